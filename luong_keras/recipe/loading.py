"""Loading of trained runs: models, tokenizers and search."""

from collections.abc import Sequence
from pathlib import Path

from luong_keras.config import DecodingConfig, Precision
from luong_keras.config.values import with_values
from luong_keras.models.translation_model import TranslationModel
from luong_keras.recipe.stored_settings import run_config
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.preprocessing import Preprocessor, preprocessors
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.training.run_folder import RunFolder
from luong_keras.training.weight_files import load_weights


def load_run(
    run_folder: str | Path | Sequence[str | Path],
    weights: str | None = None,
    decoding: DecodingConfig | None = None,
    precision: Precision | None = None,
) -> tuple[
    list[TranslationModel],
    Tokenizer,
    Tokenizer,
    DecodingConfig,
    Preprocessor | None,
    Preprocessor | None,
]:
    """Load the models, tokenizers and search settings of one or more runs.

    Args:
        run_folder: The folder of the run, or the folders of several runs with
            the same vocabularies.
        weights: `"best"`, `"last"` or an epoch such as `"epoch-7"`; by default
            the weights that each run scores and exports, its
            `training.final_weights`.
        decoding: The search settings; by default those of the first run.
        precision: The precision of the computation; by default each run's.

    Returns:
        The arguments of a `TextTranslator`: the models, both tokenizers, the
        search settings and both preprocessors.

    Raises:
        FileNotFoundError: If a run or its weights are missing.
        ValueError: If there is no folder, if the runs differ in their
            vocabularies, their direction or the preparation of their text, if
            the name of the weights is invalid, or if a word list or vocabulary
            lies outside its run folder.
    """
    if isinstance(run_folder, str | Path):
        run_folder = [run_folder]
    if not run_folder:
        raise ValueError(
            "Expected: the folder of a run, or of several. Received: none."
        )
    runs = [
        # With search settings from the caller, no word list is read.
        _load_single_run(
            folder, weights, precision, resolve_paths=decoding is None
        )
        for folder in run_folder
    ]
    models, tokenizers, configs = zip(*runs, strict=True)
    preprocessor_pairs = [preprocessors(config.data) for config in configs]
    fingerprints = [[side.fingerprint for side in pair] for pair in tokenizers]
    directions = [
        (config.data.source_language, config.data.target_language)
        for config in configs
    ]
    for folder, preprocessor_pair, pair, direction in zip(
        run_folder, preprocessor_pairs, fingerprints, directions, strict=True
    ):
        if direction != directions[0] == direction[::-1]:
            raise ValueError(
                "The runs of an ensemble must translate in the same direction. "
                f"Expected: from {directions[0][0]} to {directions[0][1]}, as "
                f"{run_folder[0]}. Received: the opposite in {folder}. Leave "
                "it out."
            )
        if preprocessor_pair != preprocessor_pairs[0]:
            raise ValueError(
                "The runs of an ensemble must have their text prepared "
                f"alike. Expected: {preprocessor_pairs[0]}, as "
                f"{run_folder[0]}. Received: {preprocessor_pair} in {folder}. "
                "Train it with the same settings of `data`."
            )
        if pair != fingerprints[0]:
            raise ValueError(
                "The runs of an ensemble must have the same vocabularies. "
                f"Received: {folder}, whose vocabularies differ from those of "
                f"{run_folder[0]}. Train it on the corpus of that run."
            )
    return (
        list(models),
        *tokenizers[0],
        decoding or configs[0].decoding,
        *preprocessor_pairs[0],
    )


def _load_single_run(folder, weights, precision, resolve_paths):
    """Load the model, the two tokenizers and the settings of a run."""
    config = run_config(folder, resolve_paths=resolve_paths)
    run = RunFolder(folder)
    path = run.weights(
        config.training.final_weights if weights is None else weights
    )
    if precision is not None:
        config = with_values(config, {"model.precision": precision})
    translation_model = TranslationModel(config.model)
    load_weights(translation_model.model, path)
    tokenizers = [
        load_tokenizer(run.path, name)
        for name in ("source_vocabulary", "target_vocabulary")
    ]
    return translation_model, tokenizers, config
