"""Scores of translations, and plots of scores and alignments.

`translation_scores` scores a corpus, `length_analysis` groups the score by
sentence length, `metrics` selects the best epoch of a training run, and `plots`
draws alignments and length analyses.
"""

from luong_keras.lazy_names import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
