"""Translation during training on JAX."""

from collections.abc import Sequence

import keras
import numpy as np

from luong_keras.data.padding import FEW_WIDTHS, padded_width
from luong_keras.decoding.beam_search import greedy_search
from luong_keras.decoding.scorers import NoRepeatedNgrams
from luong_keras.decoding.strategy import Hypotheses
from luong_keras.inference.translation import (
    best_text_of,
    in_order,
    sentences_by_place,
)
from luong_keras.inference.translation_graph import TranslationGraph
from luong_keras.progress import Advance
from luong_keras.with_tensorflow import tf


class JaxTranslator(TranslationGraph):
    """A translator with greedy search for a model that JAX trains.

    TensorFlow reads and joins the words. JAX searches on the first device of
    this process, with the current weights of the model. This class computes
    the scores during training; after training, use a `TextTranslator` on
    TensorFlow, which offers every search.

    Args:
        translation_model: The model in training.
        source_tokenizer: Tokenizer of the source language.
        target_tokenizer: Tokenizer of the target language.
        decoding: The settings of the search; the beam is ignored.
        source_preprocessor: Preprocessor of the source text, or None.
        target_preprocessor: The same for the target text.
    """

    def __init__(self, *arguments):
        import jax

        super().__init__(*arguments)
        self._variables = self.translation_model.model.variables
        self._compiled_search = jax.jit(
            self._greedy_search, static_argnames="max_steps"
        )

    def translate(
        self, lines: Sequence[str], advance: Advance | None = None
    ) -> list[str]:
        """Return the translation of each line, in order.

        One `TruncationWarning` per call reports the lines that were cut.
        `advance` is called with the number of sentences of each finished batch.
        """
        cuts = self._truncated_places()
        sentences = sentences_by_place(
            lambda places: self.translate_batch(
                tf.constant([lines[i] for i in places])
            ),
            lines,
            self.decoding.batch_size,
            advance,
            cuts,
        )
        results = in_order((place, best_text_of(s)) for place, s in sentences)
        cuts.warn(stacklevel=2)
        return results

    def _search(self, text, source, limits, request, num_return_sequences):
        # Few shapes, because JAX compiles one program per shape.
        rows, width = source.ids.shape[0], source.lengths.numpy().max()
        batch_rows = self.decoding.batch_size
        batch_width = int(padded_width(max(width, 1), FEW_WIDTHS))
        max_steps = self.search_runner.limits(tf.constant([batch_width]))[
            "max_steps"
        ]
        ids = source.ids.to_tensor(
            self.translation_model.config.source_pad_id,
            shape=[batch_rows, batch_width],
        ).numpy()
        lengths = [
            np.pad(limits[name].numpy(), (0, batch_rows - rows))
            for name in ("max_lengths", "min_lengths")
        ]
        values = [
            variable.value.addressable_data(0) for variable in self._variables
        ]
        outputs = self._compiled_search(
            values, ids, *lengths, max_steps=int(max_steps)
        )
        ids, lengths, scores, alignments = (
            np.asarray(x)[:rows] for x in outputs
        )
        steps = max(int(lengths.max()) + 1, 1)
        return Hypotheses(
            ids[:, :, :steps],
            lengths,
            scores.astype("float32"),
            alignments[:, :, :steps, : max(width, 1)].astype("float32"),
        )

    def _greedy_search(self, values, ids, max_lengths, min_lengths, max_steps):
        model = self.translation_model
        ngram = self.decoding.no_repeat_ngram
        mapping = list(zip(self._variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            memory, mask, states = model.encode(ids)
            return greedy_search(
                model.decoding_step(memory, mask),
                states,
                max_lengths,
                max_steps,
                min_lengths=min_lengths,
                length_penalty=self.decoding.length_penalty,
                bos_id=model.config.bos_id,
                eos_id=model.config.eos_id,
                pad_id=model.config.target_pad_id,
                scorers=[NoRepeatedNgrams(ngram)] if ngram else (),
            )
