"""Luong attention, input feeding and beam search for Keras."""

import importlib

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, so that the layers work without
# TensorFlow and the text and serving parts cost nothing until needed.
_MODULES = {
    "BahdanauAttention": "layers.bahdanau_attention",
    "BahdanauGRU": "layers.input_feeding_rnn",
    "BahdanauGRUCell": "layers.bahdanau_cells",
    "BahdanauLSTM": "layers.input_feeding_rnn",
    "BahdanauLSTMCell": "layers.bahdanau_cells",
    "Encoder": "layers.encoder",
    "InputFeedingGRU": "layers.input_feeding_rnn",
    "InputFeedingGRUCell": "layers.input_feeding_gru_cell",
    "InputFeedingLSTM": "layers.input_feeding_rnn",
    "InputFeedingLSTMCell": "layers.input_feeding_lstm_cell",
    "LocalAttention": "layers.local_attention",
    "LuongAttention": "layers.luong_attention",
    "MemoryRNN": "layers.memory_rnn",
    "ModelConfig": "config",
    "OutputProjection": "layers.output_projection",
    "PRESETS": "config",
    "RunConfig": "config",
    "TranslationModel": "models.translation_model",
    "Translator": "serving.translator",
}

__all__ = sorted(_MODULES)


def __getattr__(name):
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__():
    return [*globals(), *_MODULES]
