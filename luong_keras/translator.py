"""A translator, from its training run to its export."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from luong_keras.config import DecodingConfig
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.recipe.run_reading import load_run


class Translator(TextTranslator):
    """A trained model, or several, with tokenizers and a search.

    It translates, scores and aligns as `TextTranslator` does.

    Args:
        translation_model: the trained `TranslationModel`, or several of the
            same vocabularies: an ensemble.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language.
        decoding: the settings of the search.
        source_preprocessor, target_preprocessor: what prepared the text of
            the training, as in `TextTranslator`.
    """

    @classmethod
    def from_run(
        cls,
        run_folder: str | Path | Sequence[str | Path],
        weights: str = "best",
        decoding: DecodingConfig | None = None,
        precision: str | None = None,
        fold_embedding: bool = False,
    ) -> Translator:
        """The translator that a training run has made.

        Args:
            run_folder: the folder of the run, or those of several runs with
                the same vocabularies, which translate together.
            weights: `"best"` or `"last"`.
            decoding: the search; that of the first run when None.
            precision: of the computation, as `ModelConfig.precision`; that
                of the run when None. `"mixed_bfloat16"` translates batches
                faster where the processor multiplies bfloat16, with scores
                of two or three digits and, now and then, another word. A
                greedy search of single sentences is slower: every call
                rounds the weights.
            fold_embedding: whether to keep the product of the target
                embedding and the decoder's input weights, some percent
                faster for V rows of 4 U numbers more, 16,000 of 2,048 in a
                decoder of 512 units. Weights that are loaded later need
                `translation_model.fold_embedding()` again.

        Raises:
            FileNotFoundError: where a run or its weights are missing.
            ValueError: where runs have not the same vocabularies, or their
                text was not prepared alike.
        """
        translator = cls(*load_run(run_folder, weights, decoding, precision))
        if fold_embedding:
            translator.translation_model.fold_embedding()
        return translator
