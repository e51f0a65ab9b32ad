from . import phrasebook as phrasebook
from .batching import TrainingBatches as TrainingBatches
from .corpus import Corpus as Corpus
from .corpus_writer import open_or_write_corpus as open_or_write_corpus
from .datasets import Datasets as Datasets
from .datasets import corpus_key as corpus_key
from .datasets import load_datasets as load_datasets
from .evaluation_batches import EvaluationBatches as EvaluationBatches
