"""Scores of translations and alignments, and their plots.

`translation_scores` scores a corpus, `length_analysis` by sentence length,
`metrics` has what chooses the best epoch of a training run,
`minimum_bayes_risk` chooses among samples, and `plots` draws alignments and
length analyses.
"""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
