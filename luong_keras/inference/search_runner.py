"""Searches with the configured settings or with options per sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding.beam import Beam
from luong_keras.decoding.constrained_beam import (
    ConstrainedBeam,
    ForbiddenPhrases,
)
from luong_keras.decoding.greedy import Greedy
from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import (
    CoveragePenalty,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Scorer,
)
from luong_keras.decoding.search import check_search, search
from luong_keras.decoding.strategy import DecodingStrategy, Hypotheses
from luong_keras.inference.request_options import RequestOptions
from luong_keras.inference.search_options import (
    LEAST_TEMPERATURE,
    SEARCH_OPTIONS,
)
from luong_keras.tables import counted
from luong_keras.with_tensorflow import tf

# Larger than any number of hypotheses: returns all that the search keeps.
ALL = 2**31 - 1


class Sources(NamedTuple):
    """The source sentences of a search.

    Attributes:
        lengths: (B,) number of words.
        mask: (B, S) mask, True for words.
        seeds: (B,) int32 hashes of the texts.
    """

    lengths: tf.Tensor
    mask: tf.Tensor
    seeds: tf.Tensor


class SearchRunner:
    """Runner of searches with the settings of a configuration.

    Args:
        decoding: the settings of the search.
        config: the configuration of the model, for its ids.
        strategy: decoding strategy to use instead of the configured search.
        scorers: additional scorers of words and hypotheses.
    """

    def __init__(
        self,
        decoding: DecodingConfig,
        config: ModelConfig,
        strategy: DecodingStrategy | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        self.scorers = check_search(strategy or Greedy(), scorers)
        self.decoding = decoding
        self.config = config
        self.strategy = strategy
        self._check_shortlist()

    @property
    def max_beam_size(self) -> int:
        """Largest beam size that a sentence may choose."""
        return self.decoding.max_beam_size or self.decoding.beam_size

    def limits(self, lengths: tf.Tensor, least: tf.Tensor | int = 0) -> dict:
        """Return the length limits of translations, and the special ids.

        Args:
            lengths: (B,) number of words of the sources.
            least: (B,) number of symbols that must have room.
        """
        decoding, config = self.decoding, self.config
        read = tf.cast(lengths, tf.float32)
        maximum = tf.cast(decoding.max_symbols(read), tf.int32)
        maximum = tf.maximum(maximum, 2)
        maximum = tf.maximum(maximum, least)
        maximum = tf.where(lengths > 0, maximum, 0)
        # S + 1, as in the authors' program.
        fewest = tf.cast((read + 1) * decoding.min_length_ratio, tf.int32)
        return {
            "max_lengths": maximum,
            "max_steps": tf.reduce_max(maximum),
            "min_lengths": tf.minimum(fewest, maximum - 1),
            "bos_id": config.bos_id,
            "eos_id": config.eos_id,
            "pad_id": config.target_pad_id,
        }

    def run_configured(
        self,
        step,
        states,
        sources: Sources,
        num_return_sequences: tf.Tensor | int | None = None,
    ) -> Hypotheses:
        """Search as configured, by default for all hypotheses."""
        return search(
            step,
            states,
            self.strategy
            or self._configured_strategy(sources.seeds, num_return_sequences),
            scorers=self._own_scorers(sources.mask),
            **self.limits(sources.lengths),
        )

    def run_requested(
        self, step, states, sources: Sources, request: RequestOptions
    ) -> Hypotheses:
        """Search with the options of each sentence."""
        options = self._resolved(request.options)
        limits = self.limits(sources.lengths, needed_room(request))
        if request.required is None:
            return self._plain_beam(
                step, states, sources, options, request, limits
            )
        assert request.forbidden is not None  # given together with `required`
        samples = options["temperature"] > 0
        beams, drawn = (
            limits | {"max_lengths": tf.where(rows, limits["max_lengths"], 0)}
            for rows in (~samples, samples)
        )
        scorers = [
            Prefix(request.prefix, request.prefix_lengths),
            ForbiddenPhrases(*request.forbidden),
            *self._own_scorers(sources.mask, options),
        ]
        found = search(
            step,
            states,
            ConstrainedBeam(
                words=request.required.ids,
                lengths=request.required.lengths,
                **self._beams(options, beams),
            ),
            scorers=scorers,
            **beams,
        )

        def with_samples():
            strategy = self._samples(sources, options, drawn)
            others = search(step, states, strategy, scorers=scorers, **drawn)
            return _rows_of(samples, others, found)

        return Hypotheses(
            *tf.cond(tf.reduce_any(samples), with_samples, lambda: tuple(found))
        )

    # Parts.

    def _check_shortlist(self):
        """Check that no scorer or phrase has ids of the whole vocabulary."""
        received = []
        if self.scorers:
            received.append(counted(len(self.scorers), "scorer"))
        if isinstance(self.strategy, ConstrainedBeam):
            received.append(f"strategy={type(self.strategy).__name__}")
        if self.decoding.shortlist is not None and received:
            raise ValueError(
                "A user-defined scorer, and the phrases of a `ConstrainedBeam`,"
                " have ids of the vocabulary, but a shortlist has other ids. "
                f"Received: {' and '.join(received)} and shortlist="
                f"{self.decoding.shortlist!r}. Leave one out. The option "
                "`required` of a translator names phrases as text."
            )

    def _configured_strategy(self, seeds, num_return_sequences):
        decoding = self.decoding
        size = decoding.beam_size
        seeds = _mixed(seeds, decoding.seed)
        if decoding.search == "sampling":
            return Sampling(
                size,
                decoding.temperature,
                decoding.top_k,
                decoding.top_p,
                seeds,
            )
        if size == 1 and decoding.stack_size in (None, 1):
            return Greedy()
        return Beam(
            size,
            decoding.stack_size,
            decoding.stack_keeps,
            num_return_sequences=num_return_sequences,
        )

    def _own_scorers(self, mask, chosen=None):
        """Return the scorers of the settings and of the chosen options."""
        own = {**vars(self.decoding), **(chosen or {})}
        exponent, form = own["length_penalty"], own["length_penalty_form"]
        scorers: list[Scorer] = [LengthPenalty(exponent, form)]
        strength, size = own["coverage_penalty"], own["no_repeat_ngram"]
        if tf.is_tensor(strength) or strength:
            scorers.append(CoveragePenalty(strength, mask))
        if tf.is_tensor(size) or size:
            scorers.append(NoRepeatedNgrams(size))
        return scorers + self.scorers

    def _resolved(self, options):
        """Return the options with the configured values where unset."""
        decoding = self.decoding
        drawn = decoding.search == "sampling"
        own = {
            "beam_size": decoding.beam_size,
            "n_best": 0,
            "length_penalty": decoding.length_penalty,
            "coverage_penalty": decoding.coverage_penalty,
            "no_repeat_ngram": decoding.no_repeat_ngram or 0,
            "temperature": decoding.temperature if drawn else 0.0,
            "top_k": decoding.top_k or 0,
            "top_p": decoding.top_p,
            "seed": decoding.seed,
        }
        found = {
            name: resolved(name, options[name], value)
            for name, value in own.items()
            if options[name] is not None
        }
        found["beam_size"] = tf.minimum(found["beam_size"], self.max_beam_size)
        temperature = found.get("temperature")
        if temperature is not None:
            found["temperature"] = tf.where(
                temperature > 0, tf.maximum(temperature, LEAST_TEMPERATURE), 0
            )
        return found

    def _beams(self, options, limits):
        """Return settings of a beam as wide as the largest chosen beam."""
        stack_size, n_best = self.decoding.stack_size, options["n_best"]
        rows = limits["max_lengths"] > 0
        beams = tf.where(rows, options["beam_size"], 1)
        return {
            "size": tf.reduce_max(beams),
            "stack_size": stack_size,
            "stack_keeps": self.decoding.stack_keeps,
            "sizes": beams,
            # Without `stack_size`, a sentence has as many as its beam.
            "stack_sizes": beams if stack_size is None else None,
            "max_size": self.max_beam_size,
            "num_return_sequences": tf.where(n_best > 0, n_best, ALL),
        }

    def _plain_beam(self, step, states, sources, options, request, limits):
        chosen = {"length_penalty": options["length_penalty"]}
        prefix = Prefix(request.prefix, request.prefix_lengths)
        return search(
            step,
            states,
            Beam(**self._beams(options, limits)),
            scorers=[prefix, *self._own_scorers(sources.mask, chosen)],
            **limits,
        )

    def _samples(self, sources, options, limits):
        """Create a strategy that draws as many samples as a beam would give."""
        n_best = options["n_best"]
        counts = tf.where(n_best > 0, n_best, options["beam_size"])
        counts = tf.minimum(
            counts, self.decoding.stack_size or self.max_beam_size
        )
        rows = limits["max_lengths"] > 0
        counts = tf.where(rows, counts, 1)
        return Sampling(
            tf.reduce_max(counts),
            tf.where(rows, options["temperature"], 1.0),
            options["top_k"],
            options["top_p"],
            _mixed(sources.seeds, options["seed"]),
            counts,
        )


def needed_room(request: RequestOptions | None) -> tf.Tensor | int:
    """Return how many symbols (B,) must have room, for prefix and phrases."""
    if request is None:
        return 0
    room = request.prefix_lengths + 1
    if request.required is not None:
        room += tf.reduce_sum(request.required.lengths, axis=1)
    return room


def resolved(name: str, column: tf.Tensor, own: float) -> tf.Tensor:
    """Return the clipped option of each sentence, or the configured value."""
    option = SEARCH_OPTIONS[name]
    chosen = column > 0 if option.unset == 0 else column >= 0
    moved = tf.clip_by_value(
        column,
        tf.cast(option.low, column.dtype),
        tf.cast(option.high, column.dtype),
    )
    return tf.where(chosen, moved, tf.cast(own, column.dtype))


def text_seeds(text: tf.Tensor) -> tf.Tensor:
    """Hash each text to an int32, (B,)."""
    return tf.cast(tf.strings.to_hash_bucket_fast(text, 2**31 - 1), tf.int32)


def _mixed(seeds, seed):
    """Combine the seeds of texts with the seed of the search."""
    return seeds + tf.cast(seed, tf.int32) * 1_000_003


def _rows_of(rows, some, others):
    """Take hypotheses of `some` where `rows` (B,) is True, else of `others`."""
    ranks = tf.maximum(tf.shape(some.scores)[1], tf.shape(others.scores)[1])
    empty = Hypotheses(0, 0, -float("inf"), 0.0)
    merged = []
    for one, other, value in zip(some, others, empty, strict=True):
        one, other = (_with_ranks(each, ranks, value) for each in (one, other))
        chosen = tf.reshape(rows, [-1] + [1] * (len(one.shape) - 1))
        merged.append(tf.where(chosen, one, other))
    return tuple(merged)


def _with_ranks(tensor, ranks, value):
    missing = ranks - tf.shape(tensor)[1]
    others = [[0, 0]] * (len(tensor.shape) - 2)
    paddings = [[0, 0], [0, missing], *others]
    return tf.pad(
        tensor, paddings, constant_values=tf.cast(value, tensor.dtype)
    )
