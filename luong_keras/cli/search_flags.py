"""Flags of the search that several commands share."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, Literal

from luong_keras.cli.parsing import Own
from luong_keras.config import DecodingConfig


@dataclass(frozen=True)
class SearchFlags:
    """Settings of the search, each as the run has it where it is not given."""

    # hypotheses of the search, or samples of a sentence
    beam_size: Own[int | None] = None
    # beam: the best hypotheses; sampling: drawn at random, one a sentence, or
    # as many as --beam-size or translate's --n-best says; stochastic_beam:
    # drawn without putting back
    search: Own[Literal["beam", "sampling", "stochastic_beam"] | None] = None
    # of --search sampling and stochastic_beam: below 1 probable words become
    # more probable
    temperature: Own[float | None] = None
    # of --search sampling: draw from this many most probable words
    top_k: Own[int | None] = None
    # of --search sampling: draw from the fewest words with this probability
    # together
    top_p: Own[float | None] = None
    # of --search sampling and stochastic_beam: another seed draws others
    seed: Own[int | None] = None
    # 0: sum of log-probabilities, 1: their mean
    length_penalty: Own[float | None] = None
    # power: length**x; google: ((5 + length) / 6)**x
    length_penalty_form: Own[Literal["power", "google"] | None] = None
    # what source words cost that nobody attends, such as 0.2
    coverage_penalty: Own[float | None] = None
    # that many words in a row do not come twice
    no_repeat_ngram: Own[int | None] = None
    # fewest words of a translation, of the source length + 1
    min_length_ratio: Own[float | None] = None
    # most symbols of a translation: this x the source length + the offset; of
    # the source length + 1 without one
    max_length_ratio: Own[float | None] = None
    # see --max-length-ratio
    max_length_offset: Own[float | None] = None
    # a file of `luong-keras lexicon`: translate with the words that a batch's
    # source words have there, and with frequent ones
    shortlist: Own[str | None] = None


def changed_search(
    decoding: DecodingConfig, flags: SearchFlags, **others: Any
) -> DecodingConfig:
    """The search of a run with what the command line gives; None is nothing.

    Args:
        decoding: that of the run.
        flags: of the command line.
        **others: what else it gives, as `DecodingConfig.with_` takes it.
    """
    given = dataclasses.asdict(flags) | others
    return decoding.with_(
        **{name: value for name, value in given.items() if value is not None}
    )
