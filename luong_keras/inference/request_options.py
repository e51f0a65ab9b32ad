"""Search options of the sentences of a batch."""

from __future__ import annotations

from typing import NamedTuple

from luong_keras.inference.search_options import SEARCH_OPTIONS, option_column
from luong_keras.with_tensorflow import tf


class SearchOptions(NamedTuple):
    """Search options of a batch, (B,) each.

    `SEARCH_OPTIONS` has the value that keeps the configured setting, and the
    range to which values are clipped. The options after `replace_unknown` are
    either all given or all None, which makes a smaller graph.

    Attributes:
        beam_size: Int32, number of hypotheses, clipped to `max_beam_size`.
        n_best: Int32, number of translations to return or to draw.
        length_penalty: Float32, exponent of the length.
        prefix: Strings, the words that the translation must begin with.
        replace_unknown: Int32, 1 to replace unknown words, 0 to leave them.
        coverage_penalty: Float32, penalty for source words without attention.
        no_repeat_ngram: Int32, size of the n-grams that no translation
            repeats.
        temperature: Float32, above 0 to draw samples.
        top_k: Int32, number of most probable words to draw from.
        top_p: Float32, total probability of the words to draw from.
        seed: Int32, seed of samples.
        required: Strings, phrases that must occur, separated by tabs. A
            phrase with an unknown word is left out.
        forbidden: Strings, phrases that must not occur. In a phrase with an
            unknown word, this word is `<unk>`.
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
        """Create options for `count` sentences, with one or `count` values."""
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
    """The prefix of each sentence, or P phrases per sentence.

    Attributes:
        ids: Ids of the words, (B, L) of prefixes, (B, P, L) of phrases.
        lengths: Number of words of each prefix (B,), or of each phrase (B, P);
            0 for none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


class RequestOptions(NamedTuple):
    """Search options whose texts are ids.

    Attributes:
        options: The options by name.
        prefix: The words that translations begin with.
        required: Phrases that translations contain; None if the options are
            those of a beam, without samples, coverage or repetition.
        forbidden: Phrases that translations do not contain.
    """

    options: dict[str, tf.Tensor]
    prefix: Phrases
    required: Phrases | None = None
    forbidden: Phrases | None = None
