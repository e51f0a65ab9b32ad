from .length_analysis import bleu_by_length as bleu_by_length
from .metrics.registry import Metric as Metric
from .metrics.registry import register_metric as register_metric
from .plots import plot_alignment as plot_alignment
from .plots import plot_length_analysis as plot_length_analysis
from .translation_scores import corpus_bleu as corpus_bleu
