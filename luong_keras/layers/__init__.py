"""Keras layers: attention, encoders, decoders, their cells and losses."""

from luong_keras.layers.attention.bahdanau_attention import BahdanauAttention
from luong_keras.layers.attention.local_attention import LocalAttention
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.layers.attention.score import Score
from luong_keras.layers.bridge import Bridge
from luong_keras.layers.embedding import Embedding
from luong_keras.layers.encoder import Encoder
from luong_keras.layers.output_projection import OutputProjection
from luong_keras.layers.rnn.attention_cell import AttentionCell
from luong_keras.layers.rnn.attention_rnn import AttentionRNN
from luong_keras.layers.rnn.bahdanau_cells import (
    BahdanauGRUCell,
    BahdanauLSTMCell,
)
from luong_keras.layers.rnn.input_feeding_cells import (
    InputFeedingGRUCell,
    InputFeedingLSTMCell,
)
from luong_keras.layers.rnn.input_feeding_rnn import (
    BahdanauGRU,
    BahdanauLSTM,
    InputFeedingGRU,
    InputFeedingLSTM,
)
from luong_keras.layers.word_losses import WordLosses

__all__ = [
    "BahdanauAttention",
    "BahdanauGRU",
    "BahdanauGRUCell",
    "BahdanauLSTM",
    "BahdanauLSTMCell",
    "Bridge",
    "Embedding",
    "Encoder",
    "AttentionCell",
    "InputFeedingGRU",
    "InputFeedingGRUCell",
    "InputFeedingLSTM",
    "InputFeedingLSTMCell",
    "LocalAttention",
    "LuongAttention",
    "AttentionRNN",
    "OutputProjection",
    "Score",
    "WordLosses",
]
