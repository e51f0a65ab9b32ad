"""Searches with the configured settings or with options per sentence."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding.beam import Beam
from luong_keras.decoding.constrained_beam import (
    ConstrainedBeam,
    ForbiddenPhrases,
)
from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import (
    CoveragePenalty,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Scorer,
)
from luong_keras.decoding.search import check_search, search
from luong_keras.decoding.strategy import (
    DecodingStrategy,
    Greedy,
    Hypotheses,
)
from luong_keras.inference.search_options import (
    SEARCH_OPTIONS,
)
from luong_keras.tables import pluralize
from luong_keras.with_tensorflow import tf


class _NoSpecialTokens(Scorer):
    """Suppression of `<pad>` and `<s>` in samples.

    Label smoothing gives them a small probability. Only the beam of a hardly
    trained model chooses them, and a mask would slow each of its steps.
    """

    per_sentence = ()

    def __init__(self, config):
        self.ids = (config.target_pad_id, config.bos_id)

    def suppressed(self, states, position, vocabulary_size):
        words = tf.range(vocabulary_size)
        pad_id, bos_id = self.ids
        return ((words == pad_id) | (words == bos_id))[None, None]


# Larger than any number of hypotheses: returns all that the search keeps.
ALL = 2**31 - 1


class Phrases(NamedTuple):
    """The prefix of each sentence, or P phrases per sentence.

    Attributes:
        ids: Ids of the words, (B, L) of prefixes, (B, P, L) of phrases.
        lengths: Number of words of each prefix (B,), or of each phrase (B, P);
            0 for none.
    """

    ids: tf.Tensor
    lengths: tf.Tensor


# Options by name, all of `SEARCH_OPTIONS` or, for a smaller graph, only
# `BEAM_OPTIONS`: numbers (B,), and `Phrases` for the texts.
Request = dict[str, Any]


class SearchRunner:
    """Runner of searches with the settings of a configuration.

    Args:
        decoding: The settings of the search.
        translation_model: The model, for its ids.
        strategy: Decoding strategy to use instead of the configured search.
        scorers: Additional scorers of words and hypotheses.
    """

    def __init__(
        self,
        decoding: DecodingConfig,
        translation_model: Any,
        strategy: DecodingStrategy | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        self.scorers = check_search(strategy or Greedy(), scorers)
        self.decoding = decoding
        # The largest beam size that a sentence may choose.
        self.max_beam_size = decoding.max_beam_size or decoding.beam_size
        self.config: ModelConfig = translation_model.config
        self.has_attention = translation_model.has_attention
        self.strategy = strategy
        # A user-defined part has ids of the whole vocabulary.
        received = []
        if self.scorers:
            received.append(pluralize(len(self.scorers), "scorer"))
        if isinstance(strategy, ConstrainedBeam):
            received.append(f"strategy={type(strategy).__name__}")
        if decoding.shortlist is not None and received:
            raise ValueError(
                "A user-defined scorer, and the phrases of a `ConstrainedBeam`,"
                " have ids of the vocabulary, but a shortlist has other ids. "
                f"Received: {' and '.join(received)} and shortlist="
                f"{decoding.shortlist!r}. Leave one out. The option "
                "`required` of a translator names phrases as text."
            )

    def limits(
        self, lengths: tf.Tensor, request: Request | None = None
    ) -> dict:
        """Return the length limits of translations, and the special ids.

        Args:
            lengths: (B,) number of words of the sources.
            request: The options, whose prefixes and phrases have room.
        """
        decoding, config = self.decoding, self.config
        source_lengths = tf.cast(lengths, tf.float32)
        maximum = tf.cast(decoding.max_symbols(source_lengths), tf.int32)
        maximum = tf.maximum(maximum, 2)
        if request is not None:
            symbols = request["prefix"].lengths + 1
            if "required" in request:
                symbols += tf.reduce_sum(request["required"].lengths, axis=1)
            maximum = tf.maximum(maximum, symbols)
        maximum = tf.where(lengths > 0, maximum, 0)
        # S + 1, as in the authors' program.
        min_lengths = tf.cast(
            (source_lengths + 1) * decoding.min_length_ratio, tf.int32
        )
        return {
            "max_lengths": maximum,
            "max_steps": tf.reduce_max(maximum),
            "min_lengths": tf.minimum(min_lengths, maximum - 1),
            "bos_id": config.bos_id,
            "eos_id": config.eos_id,
            "pad_id": config.target_pad_id,
        }

    def run_configured(
        self, step, states, text, mask, limits, num_return_sequences
    ) -> Hypotheses:
        """Search as configured.

        Args:
            step: The step of the decoder.
            states: Its first states.
            text: (B,) sources, which decide the draws of samples.
            mask: (B, S) mask of the sources, True for words.
            limits: The result of `limits`.
            num_return_sequences: The number of translations to return; all
                when None.
        """
        scorers = self._make_scorers(mask)
        strategy = self.strategy or self._make_strategy(
            text, num_return_sequences
        )
        if isinstance(strategy, Sampling):
            scorers.append(_NoSpecialTokens(self.config))
        return search(step, states, strategy, scorers=scorers, **limits)

    def run_requested(
        self, step, states, text, mask, limits, request: Request
    ) -> Hypotheses:
        """Search with the options of each sentence.

        Args:
            step: As in `run_configured`.
            states: As in `run_configured`.
            text: As in `run_configured`.
            mask: As in `run_configured`.
            limits: The result of `limits`.
            request: The options.
        """
        options = self.resolve_options(request)
        scorers = [
            Prefix(*request["prefix"]),
            *self._make_scorers(mask, options),
        ]
        if "required" not in request:
            beam = Beam(**self._beam_options(options, limits))
            return search(step, states, beam, scorers=scorers, **limits)
        is_sampled = options["temperature"] > 0
        beam_limits, sample_limits = (
            limits
            | {"max_lengths": tf.where(is_included, limits["max_lengths"], 0)}
            for is_included in (~is_sampled, is_sampled)
        )
        scorers.append(ForbiddenPhrases(*request["forbidden"]))
        hypotheses = search(
            step,
            states,
            ConstrainedBeam(
                words=request["required"].ids,
                lengths=request["required"].lengths,
                **self._beam_options(options, beam_limits),
            ),
            scorers=scorers,
            **beam_limits,
        )

        def replace_sampled():
            strategy = self._make_sampling(text, options, sample_limits)
            samples = search(
                step,
                states,
                strategy,
                scorers=[*scorers, _NoSpecialTokens(self.config)],
                **sample_limits,
            )
            return _select_rows(is_sampled, samples, hypotheses)

        return Hypotheses(
            *tf.cond(
                tf.reduce_any(is_sampled),
                replace_sampled,
                lambda: tuple(hypotheses),
            )
        )

    def resolve_options(self, options):
        """Return the numbers among options, as configured where unset.

        Args:
            options: (B,) columns of numbers and texts, by their names.
        """
        decoding = self.decoding
        samples = decoding.search == "sampling"
        defaults = {
            "beam_size": decoding.beam_size,
            "n_best": 0,
            "length_penalty": decoding.length_penalty,
            "coverage_penalty": decoding.coverage_penalty,
            "no_repeat_ngram": decoding.no_repeat_ngram or 0,
            "temperature": decoding.temperature if samples else 0.0,
            "top_k": decoding.top_k or 0,
            "top_p": decoding.top_p,
            "seed": decoding.seed,
        }
        resolved = {
            name: resolve_option(name, options[name], default)
            for name, default in defaults.items()
            if name in options
        }
        resolved["beam_size"] = tf.minimum(
            resolved["beam_size"], self.max_beam_size
        )
        return resolved

    # Parts.

    def _make_strategy(self, text, num_return_sequences):
        decoding = self.decoding
        size = decoding.beam_size
        if decoding.search == "sampling":
            return Sampling(
                min(size, decoding.stack_size or size),
                decoding.temperature,
                top_k=decoding.top_k,
                top_p=decoding.top_p,
                seeds=_sampling_seeds(text, decoding.seed),
            )
        if size == 1 and decoding.stack_size in (None, 1):
            return Greedy()
        return Beam(
            size,
            decoding.stack_size,
            decoding.stack_keeps,
            num_return_sequences=num_return_sequences,
        )

    def _make_scorers(self, mask, requested=None):
        """Return the scorers of the settings and of the requested options."""
        options = {**vars(self.decoding), **(requested or {})}
        exponent, form = (
            options["length_penalty"],
            options["length_penalty_form"],
        )
        scorers: list[Scorer] = [LengthPenalty(exponent, form)]
        strength, size = options["coverage_penalty"], options["no_repeat_ngram"]
        # Without attention there are no weights to count.
        if self.has_attention and (tf.is_tensor(strength) or strength):
            scorers.append(CoveragePenalty(strength, mask))
        if tf.is_tensor(size) or size:
            scorers.append(NoRepeatedNgrams(size))
        return scorers + self.scorers

    def _beam_options(self, options, limits):
        """Return settings of a beam as wide as the largest chosen beam."""
        stack_size, n_best = self.decoding.stack_size, options["n_best"]
        is_searched = limits["max_lengths"] > 0
        sizes = tf.where(is_searched, options["beam_size"], 1)
        return {
            "size": tf.reduce_max(sizes),
            "stack_size": stack_size,
            "stack_keeps": self.decoding.stack_keeps,
            "sizes": sizes,
            # Without `stack_size`, a sentence has as many as its beam.
            "stack_sizes": sizes if stack_size is None else None,
            "max_size": self.max_beam_size,
            "num_return_sequences": tf.where(n_best > 0, n_best, ALL),
        }

    def _make_sampling(self, text, options, limits):
        """Create a strategy that draws as many samples as a beam would give."""
        n_best = options["n_best"]
        counts = tf.where(n_best > 0, n_best, options["beam_size"])
        counts = tf.minimum(
            counts, self.decoding.stack_size or self.max_beam_size
        )
        is_sampled = limits["max_lengths"] > 0
        counts = tf.where(is_sampled, counts, 1)
        return Sampling(
            tf.reduce_max(counts),
            tf.where(is_sampled, options["temperature"], 1.0),
            top_k=options["top_k"],
            top_p=options["top_p"],
            seeds=_sampling_seeds(text, options["seed"]),
            counts=counts,
        )


def resolve_option(name: str, column: tf.Tensor, default: float) -> tf.Tensor:
    """Return the clipped option of each sentence, or the configured value."""
    option = SEARCH_OPTIONS[name]
    is_set = column > 0 if option.unset == 0 else column >= 0
    clipped = tf.clip_by_value(
        column,
        tf.cast(option.low, column.dtype),
        tf.cast(option.high, column.dtype),
    )
    return tf.where(is_set, clipped, tf.cast(default, column.dtype))


def _sampling_seeds(text, seed):
    """Combine a hash of each text (B,) with the seed of the search."""
    # A line of a file has the samples of the same text without a line end.
    text = tf.strings.regex_replace(text, r"[\r\n]+$", "")
    hashes = tf.strings.to_hash_bucket_fast(text, 2**31 - 1)
    return tf.cast(hashes, tf.int32) + tf.cast(seed, tf.int32) * 1_000_003


def _select_rows(mask, chosen, rest):
    """Take hypotheses of `chosen` where `mask` (B,) is True, else of `rest`."""
    ranks = tf.maximum(tf.shape(chosen.scores)[1], tf.shape(rest.scores)[1])
    empty = Hypotheses(0, 0, -float("inf"), 0.0)
    merged = []
    for tensor, other, value in zip(chosen, rest, empty, strict=True):
        tensor, other = (_pad_ranks(x, ranks, value) for x in (tensor, other))
        is_chosen = tf.reshape(mask, [-1] + [1] * (len(tensor.shape) - 1))
        merged.append(tf.where(is_chosen, tensor, other))
    return tuple(merged)


def _pad_ranks(tensor, ranks, value):
    missing = ranks - tf.shape(tensor)[1]
    paddings = [[0, 0], [0, missing]] + [[0, 0]] * (len(tensor.shape) - 2)
    return tf.pad(
        tensor, paddings, constant_values=tf.cast(value, tensor.dtype)
    )
