"""Luong attention, input feeding and beam search for Keras."""

import importlib

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, so that the layers work without
# TensorFlow and the text and serving parts cost nothing until needed.
_MODULES = {
    "AttentionConfig": "config",
    "BahdanauAttention": "layers.bahdanau_attention",
    "BahdanauGRU": "layers.input_feeding_rnn",
    "BahdanauGRUCell": "layers.bahdanau_cells",
    "BahdanauLSTM": "layers.input_feeding_rnn",
    "BahdanauLSTMCell": "layers.bahdanau_cells",
    "BestWeights": "training.best_weights",
    "Bridge": "layers.bridge",
    "DataConfig": "config",
    "DecodingConfig": "config",
    "Encoder": "layers.encoder",
    "InputFeedingGRU": "layers.input_feeding_rnn",
    "InputFeedingGRUCell": "layers.input_feeding_gru_cell",
    "InputFeedingLSTM": "layers.input_feeding_rnn",
    "InputFeedingLSTMCell": "layers.input_feeding_lstm_cell",
    "JsonLinesLog": "training.json_lines_log",
    "LearningRateHalving": "training.schedules",
    "LocalAttention": "layers.local_attention",
    "LuongAttention": "layers.luong_attention",
    "MaskedSparseCategoricalCrossentropy": "training.losses",
    "MemoryRNN": "layers.memory_rnn",
    "ModelConfig": "config",
    "OutputProjection": "layers.output_projection",
    "PRESETS": "config",
    "ReduceOnPlateau": "training.schedules",
    "RunConfig": "config",
    "RunFolder": "training.run_folder",
    "StopOnSignal": "training.stop_on_signal",
    "TrainingConfig": "config",
    "TranslationLoss": "training.losses",
    "TranslationModel": "models.translation_model",
    "TranslationValidation": "training.translation_validation",
    "Translator": "serving.translator",
    "WordAccuracy": "training.metrics",
    "WordCount": "training.metrics",
    "WordLosses": "layers.output_projection",
    "WordPerplexity": "training.metrics",
    "WordsPerSecond": "training.words_per_second",
    "authors_weights": "models.authors_weights",
    "beam_search": "decoding.beam_search",
    "config_from_dict": "config",
    "config_to_dict": "config",
    "ensemble_step": "decoding.ensemble",
    "export_saved_model": "serving.export",
    "fit": "training.fit",
    "greedy_search": "decoding.greedy",
    "load_authors_weights": "models.authors_weights",
    "load_addons_attention": "layers.addons_weights",
    "load_addons_wrapper": "layers.addons_weights",
    "make_optimizer": "training.optimizers",
    "override": "config",
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
