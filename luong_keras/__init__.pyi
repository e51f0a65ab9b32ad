from . import alignment as alignment
from . import callbacks as callbacks
from . import config as config
from . import data as data
from . import decoding as decoding
from . import evaluation as evaluation
from . import inference as inference
from . import interop as interop
from . import layers as layers
from . import losses as losses
from . import metrics as metrics
from . import models as models
from . import optimizers as optimizers
from . import presets as presets
from . import recipe as recipe
from . import report as report
from . import serving as serving
from . import tokenizers as tokenizers
from . import training as training
from .config import AttentionConfig as AttentionConfig
from .config import DataConfig as DataConfig
from .config import DecodingConfig as DecodingConfig
from .config import ModelConfig as ModelConfig
from .config import RunConfig as RunConfig
from .config import TrainingConfig as TrainingConfig
from .config.values import config_from_dict as config_from_dict
from .config.values import config_to_dict as config_to_dict
from .config.values import override as override
from .decoding.beam_search import beam_search as beam_search
from .decoding.beam_search import greedy_search as greedy_search
from .layers.attention.bahdanau_attention import (
    BahdanauAttention as BahdanauAttention,
)
from .layers.attention.local_attention import LocalAttention as LocalAttention
from .layers.attention.luong_attention import LuongAttention as LuongAttention
from .layers.bridge import Bridge as Bridge
from .layers.encoder import Encoder as Encoder
from .layers.output_projection import OutputProjection as OutputProjection
from .layers.rnn.attention_rnn import AttentionRNN as AttentionRNN
from .layers.rnn.bahdanau_cells import BahdanauGRUCell as BahdanauGRUCell
from .layers.rnn.bahdanau_cells import (
    BahdanauLSTMCell as BahdanauLSTMCell,
)
from .layers.rnn.input_feeding_cells import (
    InputFeedingGRUCell as InputFeedingGRUCell,
)
from .layers.rnn.input_feeding_cells import (
    InputFeedingLSTMCell as InputFeedingLSTMCell,
)
from .layers.rnn.input_feeding_rnn import BahdanauGRU as BahdanauGRU
from .layers.rnn.input_feeding_rnn import BahdanauLSTM as BahdanauLSTM
from .layers.rnn.input_feeding_rnn import InputFeedingGRU as InputFeedingGRU
from .layers.rnn.input_feeding_rnn import (
    InputFeedingLSTM as InputFeedingLSTM,
)
from .layers.word_losses import WordLosses as WordLosses
from .models.translation_model import TranslationModel as TranslationModel
from .ops.backends import enable_float64 as enable_float64
from .presets import PRESETS as PRESETS
from .training.fit import fit as fit
from .training.schedules import LearningRateHalving as LearningRateHalving
from .translator import Translator as Translator

__version__: str
