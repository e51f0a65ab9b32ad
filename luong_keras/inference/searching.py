"""The searches of a translator, as configured and as sentences choose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding.beam import Beam
from luong_keras.decoding.constrained_beam import ConstrainedBeam
from luong_keras.decoding.greedy import Greedy
from luong_keras.decoding.phrases import ForbiddenPhrases
from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import (
    CoveragePenalty,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Scorer,
)
from luong_keras.decoding.search import search
from luong_keras.decoding.stochastic_beam import StochasticBeam
from luong_keras.decoding.strategy import Choice, Hypotheses
from luong_keras.inference.search_options import (
    LEAST_TEMPERATURE,
    SEARCH_OPTIONS,
)
from luong_keras.inference.wishes import Wishes
from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


# More than there are: every translation that the search keeps is wanted.
ALL = 2**31 - 1


class Sources(NamedTuple):
    """What a search knows of the sentences that it translates.

    Attributes:
        lengths: (B,) their words.
        mask: (B, S), True for words.
        seeds: (B,) int32 that depend on their texts.
    """

    lengths: tf.Tensor
    mask: tf.Tensor
    seeds: tf.Tensor


class Searching:
    """Searches with the settings of a configuration.

    Args:
        decoding: the settings.
        config: of the model, for its ids.
        choice: what chooses the words instead of what is configured.
        scorers: what else changes the ranks of words and hypotheses.
    """

    def __init__(
        self,
        decoding: DecodingConfig,
        config: ModelConfig,
        choice: Choice | None = None,
        scorers: Sequence[Scorer] = (),
    ) -> None:
        self.decoding = decoding
        self.config = config
        self.choice = choice
        self.scorers = list(scorers)

    @property
    def most(self) -> int:
        """The largest beam that a sentence may choose."""
        return self.decoding.max_beam_size or self.decoding.beam_size

    def limits(self, lengths: tf.Tensor, least: tf.Tensor | int = 0) -> dict:
        """How long translations may become, and the ids of their ends.

        Args:
            lengths: (B,) words of the sources.
            least: (B,) symbols that must have room.
        """
        decoding, config = self.decoding, self.config
        read = tf.cast(lengths, tf.float32)
        most = tf.cast(decoding.most_symbols(read), tf.int32)
        most = tf.maximum(most, 2)
        most = tf.maximum(most, least)
        most = tf.where(lengths > 0, most, 0)
        # S + 1: the authors' program.
        fewest = tf.cast((read + 1) * decoding.min_length_ratio, tf.int32)
        return {
            "max_lengths": most,
            "max_steps": tf.reduce_max(most),
            "min_lengths": tf.minimum(fewest, most - 1),
            "bos_id": config.bos_id,
            "eos_id": config.eos_id,
            "pad_id": config.target_pad_id,
        }

    def as_configured(
        self,
        step,
        states,
        sources: Sources,
        wanted: tf.Tensor | int | None = None,
    ) -> Hypotheses:
        """The search of the configuration; all is `wanted` when None."""
        return search(
            step,
            states,
            self.choice or self._configured_choice(sources.seeds, wanted),
            scorers=self._configured_scorers(sources.mask),
            **self.limits(sources.lengths),
        )

    def as_chosen(
        self, step, states, sources: Sources, wishes: Wishes
    ) -> Hypotheses:
        """The search that every sentence chooses for itself."""
        options = self._resolved(wishes.options)
        limits = self.limits(sources.lengths, needed_room(wishes))
        if wishes.required is None:
            return self._plain_beam(
                step, states, sources, options, wishes, limits
            )
        samples = options["temperature"] > 0
        beams, drawn = (
            limits | {"max_lengths": tf.where(rows, limits["max_lengths"], 0)}
            for rows in (~samples, samples)
        )
        scorers = self._chosen_scorers(sources, options, wishes)
        found = search(
            step,
            states,
            ConstrainedBeam(
                words=wishes.required.ids,
                lengths=wishes.required.lengths,
                **self._beams(options, beams),
            ),
            scorers=scorers,
            **beams,
        )

        def with_samples():
            choice = self._samples(sources, options, drawn)
            others = search(step, states, choice, scorers=scorers, **drawn)
            return _rows_of(samples, others, found)

        return Hypotheses(
            *tf.cond(tf.reduce_any(samples), with_samples, lambda: tuple(found))
        )

    # Parts.

    def _configured_choice(self, seeds, wanted):
        decoding = self.decoding
        size = decoding.beam_size
        seeds = _mixed(seeds, decoding.seed)
        if decoding.choice == "sampling":
            return Sampling(
                size,
                decoding.temperature,
                decoding.top_k,
                decoding.top_p,
                seeds,
            )
        if decoding.choice == "stochastic_beam":
            return StochasticBeam(size, decoding.temperature, seeds)
        if size == 1 and decoding.stack_size in (None, 1):
            return Greedy()
        return Beam(
            size, decoding.stack_size, decoding.stack_keeps, wanted=wanted
        )

    def _configured_scorers(self, mask, length_penalty=None):
        decoding = self.decoding
        if length_penalty is None:
            length_penalty = decoding.length_penalty
        scorers: list[Scorer] = [
            LengthPenalty(length_penalty, decoding.length_penalty_form)
        ]
        if decoding.coverage_penalty:
            scorers.append(CoveragePenalty(decoding.coverage_penalty, mask))
        if decoding.no_repeat_ngram is not None:
            scorers.append(NoRepeatedNgrams(decoding.no_repeat_ngram))
        return scorers + self.scorers

    def _resolved(self, options):
        """Numbers for all sentences, also those that choose nothing."""
        decoding = self.decoding
        drawn = decoding.choice == "sampling"
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
        found["beam_size"] = tf.minimum(found["beam_size"], self.most)
        temperature = found.get("temperature")
        if temperature is not None:
            found["temperature"] = tf.where(
                temperature > 0, tf.maximum(temperature, LEAST_TEMPERATURE), 0
            )
        return found

    def _beams(self, options, limits):
        """The settings of a beam as wide as one of the sentences needs."""
        beams, stack_size = options["beam_size"], self.decoding.stack_size
        wanted = options["n_best"]
        rows = limits["max_lengths"] > 0
        return {
            "size": tf.reduce_max(tf.where(rows, beams, 1)),
            "stack_size": stack_size,
            "stack_keeps": self.decoding.stack_keeps,
            "sizes": beams,
            # Without a number of its own, a sentence has as many as its beam.
            "stack_sizes": beams if stack_size is None else None,
            "most": self.most,
            "wanted": tf.where(wanted > 0, wanted, ALL),
        }

    def _plain_beam(self, step, states, sources, options, wishes, limits):
        own = self._configured_scorers(sources.mask, options["length_penalty"])
        prefix = Prefix(wishes.prefix, wishes.prefix_lengths)
        return search(
            step,
            states,
            Beam(**self._beams(options, limits)),
            scorers=[prefix, *own],
            **limits,
        )

    def _chosen_scorers(self, sources, options, wishes):
        form = self.decoding.length_penalty_form
        return [
            Prefix(wishes.prefix, wishes.prefix_lengths),
            ForbiddenPhrases(*wishes.forbidden),
            NoRepeatedNgrams(options["no_repeat_ngram"]),
            LengthPenalty(options["length_penalty"], form),
            CoveragePenalty(options["coverage_penalty"], sources.mask),
            *self.scorers,
        ]

    def _samples(self, sources, options, limits):
        """As many samples as wanted, or as many as a beam would give."""
        wanted = options["n_best"]
        counts = tf.where(wanted > 0, wanted, options["beam_size"])
        counts = tf.minimum(counts, self.decoding.stack_size or self.most)
        rows = limits["max_lengths"] > 0
        return Sampling(
            tf.reduce_max(tf.where(rows, counts, 1)),
            tf.where(rows, options["temperature"], 1.0),
            options["top_k"],
            options["top_p"],
            _mixed(sources.seeds, options["seed"]),
            counts,
        )


def needed_room(wishes: Wishes | None) -> tf.Tensor | int:
    """The symbols (B,) that what sentences choose must have room for."""
    if wishes is None:
        return 0
    room = wishes.prefix_lengths + 1
    if wishes.required is not None:
        room += tf.reduce_sum(wishes.required.lengths, axis=1)
    return room


def resolved(name: str, column: tf.Tensor, own: float) -> tf.Tensor:
    """What sentences choose, moved into its range, or what is configured."""
    option = SEARCH_OPTIONS[name]
    chosen = column > 0 if option.unset == 0 else column >= 0
    moved = tf.clip_by_value(
        column,
        tf.cast(option.low, column.dtype),
        tf.cast(option.high, column.dtype),
    )
    return tf.where(chosen, moved, tf.cast(own, column.dtype))


def text_seeds(text: tf.Tensor) -> tf.Tensor:
    """An int32 of each text, (B,)."""
    return tf.cast(tf.strings.to_hash_bucket_fast(text, 2**31 - 1), tf.int32)


def _mixed(seeds, seed):
    """Seeds of texts, others for every seed of a search."""
    return seeds + tf.cast(seed, tf.int32) * 1_000_003


def _rows_of(rows, some, others):
    """`Hypotheses` of the sentences of `rows` (B,), else those of others."""
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
