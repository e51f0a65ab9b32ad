"""A trained model from text to text."""

from __future__ import annotations

from collections.abc import Sequence

import keras
import numpy as np

from luong_keras.config import DecodingConfig
from luong_keras.inference.model_ensemble import ModelEnsemble
from luong_keras.inference.translation import (
    ScoredTranslation,
    Translation,
    places_by_length,
    scored_translation_of,
    translations_of,
)
from luong_keras.inference.translation_graph import TranslationGraph
from luong_keras.missing_package import missing_package
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.preprocessing import Preprocessor
from luong_keras.text.tokenizer import Tokenizer

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


class TextTranslator(TranslationGraph):
    """A trained model, or several, with tokenizers and a search.

    Everything from the string to the string runs in the TensorFlow graph, so
    that what is served is what was evaluated.

    Args:
        translation_model: the trained `TranslationModel`, or several of the
            same vocabularies: an ensemble.
        source_tokenizer: of the source language.
        target_tokenizer: of the target language.
        decoding: the settings of the search.
        source_preprocessor: what prepared the source text of the training,
            or None. The translator prepares what it is given in the same
            way; its tokens and alignments are those of prepared text.
        target_preprocessor: the same for the target text; translations are
            put back into running text.

    Raises:
        ValueError: where a tokenizer has not the vocabulary of the model.
    """

    def __init__(
        self,
        translation_model: TranslationModel | Sequence[TranslationModel],
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        decoding: DecodingConfig | None = None,
        source_preprocessor: Preprocessor | None = None,
        target_preprocessor: Preprocessor | None = None,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise RuntimeError(
                "A translator needs Keras' TensorFlow backend. Received: "
                f"{keras.backend.backend()!r}. Set KERAS_BACKEND=tensorflow."
            )
        model: TranslationModel | ModelEnsemble
        if not isinstance(translation_model, Sequence):
            model = translation_model
        elif len(translation_model) == 1:
            model = translation_model[0]
        else:
            model = ModelEnsemble(translation_model)
        config = model.config
        for side, tokenizer, size in (
            ("source", source_tokenizer, config.source_vocabulary_size),
            ("target", target_tokenizer, config.target_vocabulary_size),
        ):
            if tokenizer.vocabulary_size != size:
                raise ValueError(
                    f"The {side} vocabulary does not fit the model. "
                    f"Expected: {size} tokens. Received: "
                    f"{tokenizer.vocabulary_size}."
                )
        super().__init__(
            model,
            source_tokenizer,
            target_tokenizer,
            decoding or DecodingConfig(),
            source_preprocessor,
            target_preprocessor,
        )
        text = tf.TensorSpec([None], tf.string)
        self._translate = tf.function(
            self.translate_batch, input_signature=[text], autograph=False
        )
        self._score = tf.function(
            self.score_batch, input_signature=[text, text], autograph=False
        )

    def translate(self, lines: Sequence[str]) -> list[str]:
        """The best translation of every line, in order."""
        return [nbest[0].text for nbest in self.nbest(lines)]

    def nbest(self, lines: Sequence[str]) -> list[list[Translation]]:
        """The n best translations of every line, in order."""
        results: list[list[Translation]] = [[] for _ in lines]
        for places in places_by_length(lines, self.decoding.batch_size):
            found = self._translate(tf.constant([lines[i] for i in places]))
            arrays = {name: t.numpy() for name, t in found.items()}
            for row, place in enumerate(places):
                results[place] = translations_of(
                    arrays, row, self.decoding.alignment_step
                )
        return results

    def score(
        self, sources: Sequence[str], targets: Sequence[str]
    ) -> list[ScoredTranslation]:
        """What the model says of given translations, in order.

        The decoder is forced to produce each target (forced decoding). Both
        texts are cut at `max_source_length`.
        """
        if len(sources) != len(targets):
            raise ValueError(
                "Expected: as many targets as sources. Received: "
                f"{len(targets)} and {len(sources)}."
            )
        results: dict[int, ScoredTranslation] = {}
        for places in places_by_length(targets, self.decoding.batch_size):
            found = self._score(
                tf.constant([sources[i] for i in places]),
                tf.constant([targets[i] for i in places]),
            )
            arrays = {name: t.numpy() for name, t in found.items()}
            for row, place in enumerate(places):
                results[place] = scored_translation_of(arrays, row)
        return [results[place] for place in range(len(sources))]

    def alignments(
        self,
        sources: Sequence[str],
        targets: Sequence[str],
        with_end: bool = False,
    ) -> list[np.ndarray]:
        """Attention weights (T, S) of given translations.

        Row t has the weights of the step that produces word t of a target,
        as `score` finds them. `with_end` adds the row of the step that reads
        the last word and produces `</s>`.

        Raises:
            ValueError: for a model without attention.
        """
        if not self.translation_model.has_attention:
            raise ValueError(
                "A model without attention has no alignments. Received: "
                "config.attention.kind='none'."
            )
        end = None if with_end else -1
        return [s.alignments[:end] for s in self.score(sources, targets)]

    def join(self, tokens: Sequence[Sequence[str]]) -> list[str]:
        """Tokens of translations as prepared text, in order.

        `Translation.text` is running text: where the training text was
        prepared, the words of this one are still set apart.
        """
        joined = self.target_tokenizer.join(
            tf.ragged.constant(tokens, tf.string, ragged_rank=1)
        )
        return [line.decode() for line in joined.numpy()]
