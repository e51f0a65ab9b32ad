"""Settings of a search."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from luong_keras.config.checks import (
    Count,
    NonNegative,
    Probability,
    Settings,
    Temperature,
    check_int32,
)

# The maximum length if neither a run nor its user sets one.
LIBRARY_RATIO, LIBRARY_OFFSET = 2.0, 20.0
AlignmentStep: TypeAlias = Literal["produces", "reads"]
LengthPenaltyForm: TypeAlias = Literal["power", "google"]


@dataclass(frozen=True)
class DecodingConfig(Settings):
    """Settings of a search.

    `luong-keras train --help-all` and the comments beside the fields describe
    them.
    """

    beam_size: Count = 10  # number of hypotheses kept at each step
    # largest beam that a request to a server may use; beam_size without one
    max_beam_size: int | None = None
    # number of finished hypotheses to collect; beam_size without one
    stack_size: Count | None = None
    # if more hypotheses finish, keep the best, or keep the first and end the
    # search (the authors' program)
    stack_keeps: Literal["best", "first"] = "best"
    # "beam": the best hypotheses; "sampling": independent random samples, as
    # many as beam_size, or one if only the search is set to sampling
    search: Literal["beam", "sampling"] = "beam"
    # sampling: the number by which the logits are divided; below 1, probable
    # words become more probable
    temperature: Temperature = 1.0
    # sampling: draw from this many most probable words; without a number, from
    # all
    top_k: Annotated[Count, check_int32] | None = None
    # sampling: draw from the fewest words that together have this probability
    top_p: Probability = 1.0
    # sampling: the draws depend on this seed and the text of the sentence
    seed: Annotated[int, check_int32] = 0
    # 0: plain sum of log-probabilities; 1: their mean (score / length**x)
    length_penalty: NonNegative = 0.0
    # form of the divisor: length**x, or ((5 + length) / 6)**x (Wu et al. 2016)
    length_penalty_form: LengthPenaltyForm = "power"
    # penalty for source words without attention (Wu et al. 2016 use 0.2)
    coverage_penalty: NonNegative = 0.0
    # no translation repeats a sequence of this many words, at most 8; without a
    # number, all may
    no_repeat_ngram: Count | None = None
    # minimum number of words of a translation: this x (source tokens + 1)
    min_length_ratio: float = 0.0
    # maximum number of symbols, `</s>` included: ratio x source tokens +
    # offset, or ratio x (source tokens + 1) without an offset. Without both,
    # training derives them from its text; without a run they are 2 and 20
    max_length_ratio: float | None = None
    # maximum number of symbols: added to max_length_ratio x source tokens
    max_length_offset: NonNegative | None = None
    # write the source word with the largest attention weight, or its
    # translation in `dictionary`, in place of <unk> (section 4.2)
    replace_unknown: bool = True
    # decoder step whose attention weights align a word: the step that produces
    # the word, or the one that reads it (the authors' program)
    alignment_step: AlignmentStep = "produces"
    batch_size: Count = 32  # sentences searched at once
    # maximum number of words or subwords to read per sentence; longer sources
    # are cut
    max_source_length: Count = 200
    # file of lines "source target probability", the translations that replace
    # unknown words; a source word without one is copied (section 4.2). The
    # folder of a run has a copy of its file
    dictionary: str | None = None
    # file of lines "source target probability" of tokens, as `luong-keras
    # lexicon` writes it: each batch may use only the words listed for its
    # source words, and frequent words. Without a file, all words. The folder of
    # a run has a copy of its file
    shortlist: str | None = None

    def _check(self) -> None:
        maximum = self.max_beam_size
        if maximum is not None and maximum < self.beam_size:
            raise ValueError(
                "max_beam_size must be at least beam_size. Received: "
                f"max_beam_size={maximum} and beam_size={self.beam_size}."
            )
        for name in ("dictionary", "shortlist"):
            if getattr(self, name) == "":
                raise ValueError(
                    f"Expected: a file as {name}, or none. Received: an empty "
                    "path."
                )
        if (self.no_repeat_ngram or 1) > 8:
            raise ValueError(
                "no_repeat_ngram must be 8 or less. Received: "
                f"no_repeat_ngram={self.no_repeat_ngram}."
            )
        self._check_lengths()

    def _check_lengths(self) -> None:
        ratio, offset = self.max_length_ratio, self.max_length_offset
        if ratio is None and offset is not None:
            raise ValueError(
                "max_length_offset needs max_length_ratio. Received: "
                f"max_length_offset={offset} and max_length_ratio=None. Set "
                "both, or neither."
            )
        maximum = LIBRARY_RATIO if ratio is None else ratio
        if not 0 <= self.min_length_ratio <= maximum < math.inf:
            raise ValueError(
                "Expected: 0 <= min_length_ratio <= max_length_ratio. "
                f"Received: {self.min_length_ratio} and {ratio}"
                f"{f', which is {maximum}' if ratio is None else ''}. Set "
                "both."
            )

    def max_symbols(self, source_tokens: Any) -> Any:
        """Return the maximum length of a translation, not rounded down.

        Args:
            source_tokens: Number or tensor, the length of the source.

        Returns:
            Number of target symbols, `</s>` included, of the same shape.

        Example:
            >>> DecodingConfig().max_symbols(10)
            40.0
            >>> DecodingConfig(max_length_ratio=1.5).max_symbols(9)
            15.0
        """
        ratio, offset = self.max_length_ratio, self.max_length_offset
        if ratio is None:
            return source_tokens * LIBRARY_RATIO + LIBRARY_OFFSET
        if offset is None:
            return (source_tokens + 1) * ratio
        return source_tokens * ratio + offset

    def with_(
        self, *, n_best: int | None = None, **changes: Any
    ) -> DecodingConfig:
        """Return a copy with other settings; dependent settings are adapted.

        - A new `beam_size` resets `stack_size` to None, the size of the beam,
          because a stack is chosen for one beam. It resets `max_beam_size` to
          None if that would be smaller.
        - A new `max_length_ratio` resets `max_length_offset` to None.
        - `n_best`, the number of translations per sentence, enlarges the beam
          if fewer would be collected, unless `beam_size` is passed too. It then
          also replaces a `stack_size` that is set, and sets it if `beam_size`
          is passed. (A stack larger than the beam is full only if enough
          hypotheses finish.)
        - A change to `search="sampling"` sets the beam to `n_best`, or to 1:
          that many samples are drawn, and the best of several samples does not
          follow the model's distribution.
        - Settings passed by name keep the passed values.

        Args:
            n_best: Translations needed per sentence; any number if None.
            **changes: Fields and their new values.

        Raises:
            ValueError: For values that contradict each other.

        Example:
            >>> DecodingConfig(10, stack_size=100).with_(beam_size=1).stack_size
            >>> DecodingConfig(beam_size=5).with_(n_best=8).beam_size
            8
        """
        if changes.get("search") == "sampling" != self.search:
            changes.setdefault("beam_size", n_best or 1)
        beam = changes.get("beam_size", self.beam_size)
        if beam != self.beam_size:
            changes.setdefault("stack_size", None)
        if changes.get("max_length_ratio", self.max_length_ratio) != (
            self.max_length_ratio
        ):
            changes.setdefault("max_length_offset", None)
        stack = changes.get("stack_size", self.stack_size)
        if n_best is not None and n_best > (stack or beam):
            search = changes.get("search", self.search)
            if search == "sampling" and "beam_size" in changes:
                raise ValueError(
                    "n_best must be at most beam_size, the number of samples. "
                    f"Received: n_best={n_best} and beam_size={beam}."
                )
            if changes.get("stack_size") is not None:
                raise ValueError(
                    "n_best must be at most stack_size. Received: "
                    f"n_best={n_best} and stack_size={stack}."
                )
            if stack is not None or "beam_size" in changes:
                changes["stack_size"] = n_best
            beam = changes.setdefault("beam_size", max(beam, n_best))
        maximum = self.max_beam_size
        if maximum is not None and maximum < beam:
            changes.setdefault("max_beam_size", None)
        return dataclasses.replace(self, **changes)
