from .attention.bahdanau_attention import BahdanauAttention as BahdanauAttention
from .attention.local_attention import LocalAttention as LocalAttention
from .attention.luong_attention import LuongAttention as LuongAttention
from .attention.score import Score as Score
from .bridge import Bridge as Bridge
from .decoder.bahdanau_cells import BahdanauGRUCell as BahdanauGRUCell
from .decoder.bahdanau_cells import BahdanauLSTMCell as BahdanauLSTMCell
from .decoder.input_feeding_cell import InputFeedingCell as InputFeedingCell
from .decoder.input_feeding_gru_cell import (
    InputFeedingGRUCell as InputFeedingGRUCell,
)
from .decoder.input_feeding_lstm_cell import (
    InputFeedingLSTMCell as InputFeedingLSTMCell,
)
from .decoder.input_feeding_rnn import BahdanauGRU as BahdanauGRU
from .decoder.input_feeding_rnn import BahdanauLSTM as BahdanauLSTM
from .decoder.input_feeding_rnn import InputFeedingGRU as InputFeedingGRU
from .decoder.input_feeding_rnn import InputFeedingLSTM as InputFeedingLSTM
from .decoder.memory_rnn import MemoryRNN as MemoryRNN
from .embedding import Embedding as Embedding
from .encoder import Encoder as Encoder
from .output_projection import OutputProjection as OutputProjection
from .output_projection import WordLosses as WordLosses
from .repeated_rows import RepeatedRows as RepeatedRows
