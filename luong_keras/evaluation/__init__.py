"""Scores of translations and alignments, and their plots.

`bleu` scores a corpus, `length_analysis` scores it by sentence length,
`metrics` has what chooses the best epoch of a training,
`minimum_bayes_risk` chooses among samples, `word_for_word` is a baseline, and
`plots` draws alignments and length analyses.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
