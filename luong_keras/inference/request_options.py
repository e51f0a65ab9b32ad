"""The search options of the sentences of a batch."""

from __future__ import annotations

from typing import NamedTuple

from luong_keras.inference.search_options import SEARCH_OPTIONS, option_column
from luong_keras.with_tensorflow import tf


class SearchOptions(NamedTuple):
    """Search options of every sentence of a batch, (B,) each.

    `SEARCH_OPTIONS` tells what leaves each as it is configured, and its
    range, into which it is moved. Those after `replace_unknown` are all
    there or all None, which makes a smaller graph.

    Attributes:
        beam_size: int32; the hypotheses, never more than `max_beam_size`.
        n_best: int32; how many translations to return, or to draw.
        length_penalty: float32; the exponent.
        prefix: strings; the words that the translation must begin with.
        replace_unknown: int32; 1 to replace unknown words, 0 to leave them.
        coverage_penalty: float32; for source words without attention.
        no_repeat_ngram: int32; no translation has as many words in a row
            twice.
        temperature: float32; above 0 to draw samples.
        top_k: int32; from that many most probable words.
        top_p: float32; from words with this probability together.
        seed: int32; of samples.
        required: strings; phrases, a tab between two, that must come. One
            with an unknown word is left out.
        forbidden: strings; phrases that must not come. One with an unknown
            word forbids `<unk>` there.
    """

    beam_size: tf.Tensor
    n_best: tf.Tensor
    length_penalty: tf.Tensor
    prefix: tf.Tensor
    replace_unknown: tf.Tensor
    coverage_penalty: tf.Tensor | None = None
    no_repeat_ngram: tf.Tensor | None = None
    temperature: tf.Tensor | None = None
    top_k: tf.Tensor | None = None
    top_p: tf.Tensor | None = None
    seed: tf.Tensor | None = None
    required: tf.Tensor | None = None
    forbidden: tf.Tensor | None = None

    @classmethod
    def columns(cls, count: int, **given) -> SearchOptions:
        """Options for that many sentences, of one value each or one for all."""
        return cls(
            **{
                name: tf.constant(
                    option_column(name, given.pop(name, None), count),
                    option.kind,
                )
                for name, option in SEARCH_OPTIONS.items()
            },
            **given,
        )


class Phrases(NamedTuple):
    """P phrases a sentence.

    Attributes:
        ids: (B, P, L) of their words.
        lengths: (B, P) how many words each has; 0 for none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


class RequestOptions(NamedTuple):
    """Search options with their texts as ids.

    Attributes:
        options: the columns of numbers by their names.
        prefix: (B, P) ids that translations begin with.
        prefix_lengths: (B,).
        required: what they have; None where no sentence can say so, nor
            choose samples, coverage or repetition.
        forbidden: what they do not have.
    """

    options: dict[str, tf.Tensor]
    prefix: tf.Tensor
    prefix_lengths: tf.Tensor
    required: Phrases | None = None
    forbidden: Phrases | None = None
