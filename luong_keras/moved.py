"""Where the names and modules of version 0.1.0 are now.

For the error that a program written for it gets.
"""

import sys

# Namespace -> the names that `luong_keras` itself had.
_NAMES = {
    "alignment": (
        "aligned_word_pairs",
        "alignment_error_rate",
        "best_links",
        "parse_alignments",
        "read_dictionary",
        "write_dictionary",
    ),
    "callbacks": (
        "BestWeights",
        "JsonLinesLog",
        "ReduceOnPlateau",
        "StopOnSignal",
        "TranslationValidation",
        "WordsPerSecond",
    ),
    "client": ("TranslationServerError",),
    "data": (
        "Corpus",
        "Datasets",
        "EvaluationBatches",
        "TrainingBatches",
        "corpus_key",
        "load_datasets",
        "open_or_write_corpus",
        "phrasebook",
    ),
    "decoding": ("ensemble_step", "forced_decoding", "replace_unknown_words"),
    "evaluation": (
        "bleu_by_length",
        "corpus_bleu",
        "multi_bleu",
        "plot_alignment",
        "plot_length_analysis",
        "translate_word_for_word",
        "word_for_word",
    ),
    "inference": ("ScoredTranslation", "SearchOptions", "Translation"),
    "interop": (
        "authors_weights",
        "load_addons_attention",
        "load_addons_wrapper",
        "load_authors_weights",
    ),
    "losses": ("MaskedSparseCategoricalCrossentropy", "TranslationLoss"),
    "metrics": ("WordAccuracy", "WordCount", "WordPerplexity"),
    "optimizers": ("make_optimizer",),
    "recipe": ("Evaluation", "write_results"),
    "serving": (
        "SavedModelError",
        "SavedModelSession",
        "check_saved_model",
        "export_saved_model",
        "run_in_server_runtime",
    ),
    "tokenizers": (
        "SentencePieceTokenizer",
        "WordTokenizer",
        "load_tokenizer",
        "preprocessor",
    ),
    "training": ("RunFolder",),
}
# Those with another name there.
RENAMED = {
    "WordAccuracy": "TokenAccuracy",
    "WordCount": "TokenCount",
    "WordPerplexity": "TokenPerplexity",
    "WordsPerSecond": "TokensPerSecond",
}
NAMES = {name: space for space, names in _NAMES.items() for name in names}

MODULES = {
    "chunked_loss": "ops.chunked_loss",
    "cross_entropy": "ops.cross_entropy",
    "data.phrasebook_adverbials": "data.phrasebook.adverbials",
    "data.phrasebook_builder": "data.phrasebook.builder",
    "data.phrasebook_clauses": "data.phrasebook.clauses",
    "data.phrasebook_noun_phrases": "data.phrasebook.noun_phrases",
    "data.phrasebook_nouns": "data.phrasebook.nouns",
    "data.phrasebook_sentences": "data.phrasebook.sentences",
    "data.phrasebook_verb_phrases": "data.phrasebook.verb_phrases",
    "data.phrasebook_verbs": "data.phrasebook.verbs",
    "data.phrasebook_words": "data.phrasebook.words",
    "decoding.beam_search": "decoding.beam",
    "decoding.reordering": "decoding.beam_gather",
    "decoding.trace": "decoding.backpointers",
    "evaluation.aer": "alignment.aer",
    "evaluation.word_positions": "alignment.word_positions",
    "layers.addons_names": "interop.addons_names",
    "layers.addons_weights": "interop.addons_weights",
    "layers.attention_step": "layers.attention.attention_step",
    "layers.bahdanau_attention": "layers.attention.bahdanau_attention",
    "layers.bahdanau_cells": "layers.decoder.bahdanau_cells",
    "layers.cell_weights": "layers.decoder.cell_weights",
    "layers.decoder_loops": "layers.decoder.decoder_loops",
    "layers.feeding_sequence": "layers.decoder.feeding_sequence",
    "layers.input_feeding_cell": "layers.decoder.input_feeding_cell",
    "layers.input_feeding_gru_cell": "layers.decoder.input_feeding_gru_cell",
    "layers.input_feeding_lstm_cell": "layers.decoder.input_feeding_lstm_cell",
    "layers.input_feeding_rnn": "layers.decoder.input_feeding_rnn",
    "layers.local_attention": "layers.attention.local_attention",
    "layers.lstm_sequence": "layers.decoder.lstm_sequence",
    "layers.luong_attention": "layers.attention.luong_attention",
    "layers.memory_rnn": "layers.decoder.memory_rnn",
    "masking": "ops.masking",
    "models.authors_weights": "interop.authors_weights",
    "recurrence": "ops.recurrence",
    "scores": "layers.attention.scores",
    "serving.client": "client.translation_client",
    "serving.evaluate": "recipe.evaluation",
    "serving.grpc_transport": "client.grpc_transport",
    "serving.model_ensemble": "inference.model_ensemble",
    "serving.request_columns": "inference.search_options",
    "serving.rest_transport": "client.rest_transport",
    "serving.server_error": "client.server_error",
    "serving.translation": "inference.translation",
    "serving.translation_graph": "inference.translation_graph",
    "serving.translator": "translator",
    "serving.unknown_words": "inference.unknown_words",
    "table_rows": "ops.lookup",
    "text.aligned_word_pairs": "alignment.word_pairs",
    "text.alignment_links": "alignment.links",
    "text.missing_package": "missing_package",
    "text.translation_dictionary": "alignment.dictionary",
    "time_loop": "ops.time_loop",
    "training.atomic_file": "files.atomic_file",
    "training.variable_paths": "training.variable_names",
    "training.words_per_second": "training.tokens_per_second",
    "windows": "ops.windows",
}


def moved_name(name: str) -> ImportError:
    """The error for a name of `NAMES`.

    Example:
        >>> print(moved_name("export_saved_model"))
        `luong_keras.export_saved_model` of version 0.1.0 is now \
`luong_keras.serving.export_saved_model`. Write `from luong_keras.serving \
import export_saved_model`.
    """
    space = f"luong_keras.{NAMES[name]}"
    now = RENAMED.get(name, name)
    return ImportError(
        f"`luong_keras.{name}` of version 0.1.0 is now `{space}.{now}`. "
        f"Write `from {space} import {now}`."
    )


class _MovedModules:
    """Stands behind all finders and knows the modules that have moved."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Finds nothing; raises for a module of `MODULES`."""
        package, _, module = name.partition(".")
        if package == "luong_keras" and module in MODULES:
            # Without `name=`: `from luong_keras import scores` shows it then.
            raise ModuleNotFoundError(
                f"`{name}` of version 0.1.0 is now "
                f"`luong_keras.{MODULES[module]}`."
            )
        return None


sys.meta_path.append(_MovedModules())
