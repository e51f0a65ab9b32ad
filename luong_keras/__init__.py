"""Luong attention, input feeding and beam search for Keras.

The public names are in `__init__.pyi` and load on first use: the layers work
without TensorFlow, and the client of a server without Keras.
"""

import lazy_loader

from luong_keras.moved import NAMES, moved_name
from luong_keras.registration import register_with_keras

__version__ = "0.1.0"

# Public name -> module. Loaded on first use, so that the layers work without
# TensorFlow and the text and serving parts cost nothing until needed.
_MODULES = {
    "AttentionConfig": "config",
    "BahdanauAttention": "layers.attention.bahdanau_attention",
    "BahdanauGRU": "layers.decoder.input_feeding_rnn",
    "BahdanauGRUCell": "layers.decoder.bahdanau_cells",
    "BahdanauLSTM": "layers.decoder.input_feeding_rnn",
    "BahdanauLSTMCell": "layers.decoder.bahdanau_cells",
    "BestWeights": "training.best_weights",
    "Bridge": "layers.bridge",
    "Corpus": "data.corpus",
    "DataConfig": "config",
    "Datasets": "data.datasets",
    "DecodingConfig": "config",
    "Encoder": "layers.encoder",
    "Evaluation": "recipe.evaluation",
    "EvaluationBatches": "data.evaluation_batches",
    "InputFeedingGRU": "layers.decoder.input_feeding_rnn",
    "InputFeedingGRUCell": "layers.decoder.input_feeding_gru_cell",
    "InputFeedingLSTM": "layers.decoder.input_feeding_rnn",
    "InputFeedingLSTMCell": "layers.decoder.input_feeding_lstm_cell",
    "JsonLinesLog": "training.json_lines_log",
    "LearningRateHalving": "training.schedules",
    "LocalAttention": "layers.attention.local_attention",
    "LuongAttention": "layers.attention.luong_attention",
    "MaskedSparseCategoricalCrossentropy": "training.losses",
    "MemoryRNN": "layers.decoder.memory_rnn",
    "ModelConfig": "config",
    "OutputProjection": "layers.output_projection",
    "PRESETS": "presets",
    "ReduceOnPlateau": "training.schedules",
    "RunConfig": "config",
    "RunFolder": "training.run_folder",
    "SavedModelError": "serving.server_runtime",
    "SavedModelSession": "serving.saved_model_session",
    "ScoredTranslation": "inference.translation",
    "SearchOptions": "inference.translation_graph",
    "SentencePieceTokenizer": "text.sentencepiece_tokenizer",
    "StopOnSignal": "training.stop_on_signal",
    "TrainingBatches": "data.batching",
    "TrainingConfig": "config",
    "Translation": "inference.translation",
    "TranslationClient": "client.translation_client",
    "TranslationLoss": "training.losses",
    "TranslationModel": "models.translation_model",
    "TranslationServerError": "client.server_error",
    "TranslationValidation": "training.translation_validation",
    "Translator": "translator",
    "WordAccuracy": "training.metrics",
    "WordCount": "training.metrics",
    "WordLosses": "layers.output_projection",
    "WordPerplexity": "training.metrics",
    "WordTokenizer": "text.word_tokenizer",
    "WordsPerSecond": "training.tokens_per_second",
    "aligned_word_pairs": "alignment.word_pairs",
    "alignment_error_rate": "alignment.aer",
    "authors_weights": "interop.authors_weights",
    "beam_search": "decoding.beam",
    "best_links": "alignment.aer",
    "bleu_by_length": "evaluation.length_analysis",
    "check_saved_model": "serving.saved_model_checks",
    "config_from_dict": "config_values",
    "config_to_dict": "config_values",
    "corpus_bleu": "evaluation.bleu",
    "corpus_key": "data.datasets",
    "enable_float64": "ops.double_precision",
    "ensemble_step": "decoding.ensemble",
    "export_saved_model": "serving.export",
    "fit": "training.fit",
    "forced_decoding": "decoding.forced",
    "greedy_search": "decoding.greedy",
    "load_addons_attention": "interop.addons_weights",
    "load_addons_wrapper": "interop.addons_weights",
    "load_authors_weights": "interop.authors_weights",
    "load_datasets": "data.datasets",
    "load_tokenizer": "text.loading",
    "make_optimizer": "training.optimizers",
    "multi_bleu": "evaluation.bleu",
    "open_or_write_corpus": "data.corpus_writer",
    "override": "config_values",
    "parse_alignments": "alignment.aer",
    "phrasebook": "data.phrasebook",
    "plot_alignment": "evaluation.plots",
    "plot_length_analysis": "evaluation.plots",
    "preprocessor": "text.preprocessing",
    "preprocessors": "text.preprocessing",
    "read_dictionary": "alignment.dictionary",
    "replace_unknown_words": "decoding.unk_replacement",
    "run_in_server_runtime": "serving.server_runtime",
    "translate_word_for_word": "evaluation.word_for_word",
    "word_for_word": "evaluation.word_for_word",
    "write_dictionary": "alignment.dictionary",
    "write_results": "recipe.evaluation",
}

__all__ = sorted(_MODULES)


def __getattr__(name):
    if name in NAMES:
        raise moved_name(name)
    return _load(name)


register_with_keras()
