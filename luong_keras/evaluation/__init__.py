"""Scores of translations and alignments, and their plots.

`bleu` scores a corpus, `length_analysis` scores it by sentence length,
`perplexity` and `aer` score probabilities and alignments, `word_for_word`
is a baseline, and `plots` draws alignments and length analyses.
"""
