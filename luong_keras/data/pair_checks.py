"""Checks pairs of sentences, a chunk at a time, in any process.

Without TensorFlow, which a process would take seconds to load.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from luong_keras.config_data import FilterConfig
from luong_keras.data.corpus import SIDES
from luong_keras.data.pair_filters import FILTERED, filtered
from luong_keras.data.pair_hashes import pair_hash
from luong_keras.data.sources.placed_pair import MORE_COLUMNS, one_line

Preprocess = Callable[[str], str]

NO_FILTERS = FilterConfig()

# A sentence of more characters is none: a file without line ends, say. To
# prepare and to tokenize it would take all memory.
LONGEST = 20_000
SHOWN = 5  # So many places are kept for each reason.
REASONS = {
    "empty source": "the source sentence is empty",
    "empty target": "the target sentence is empty",
    "not UTF-8": "a sentence cannot be written as UTF-8",
    "no second column": "there is no tab between source and target",
    MORE_COLUMNS: "there is a tab or comma too many",
    "no source": "the record has no source sentence",
    "no target": "the record has no target sentence",
    "no record": "the line cannot be read as a record",
    "too long": f"a sentence has more than {LONGEST:,} characters",
}


@dataclass(frozen=True)
class PairChecker:
    """What is done with every pair, the same in every process.

    Attributes:
        preprocess: Applied to the sentences of each side, or None.
        filters: Which pairs are left out on purpose.
    """

    preprocess: tuple[Preprocess | None, Preprocess | None] = (None, None)
    filters: FilterConfig = NO_FILTERS

    def __post_init__(self) -> None:
        """Has pairs that no filter looks at pass quickly."""
        if self.filters == NO_FILTERS:
            object.__setattr__(self, "filters", NO_FILTERS)

    def __setstate__(self, state: dict) -> None:
        """The same in another process."""
        self.__dict__.update(state)
        self.__post_init__()

    def __call__(
        self, pairs: Sequence[tuple[tuple, str | None]]
    ) -> CheckedPairs:
        """Checks a chunk of pairs.

        Args:
            pairs: Source and target, and why it is no pair, if it is none.

        Returns:
            What is left of them.
        """
        lines: tuple[list[bytes], list[bytes]] = ([], [])
        kept, hashes = [], []
        counts: dict[str, int] = {}
        left_out: list[tuple[str, int]] = []
        for number, (pair, problem) in enumerate(pairs):
            texts, reason = self._checked(pair, problem)
            if reason is None:
                try:
                    encoded = [text.encode() for text in texts]
                except UnicodeEncodeError:
                    reason = "not UTF-8"
            if reason is None:
                lines[0].append(encoded[0])
                lines[1].append(encoded[1])
                kept.append(number)
                if self.filters.duplicates:
                    hashes.append(pair_hash(*texts))
                continue
            counts[reason] = counts.get(reason, 0) + 1
            if counts[reason] <= SHOWN:
                left_out.append((reason, number))
        return CheckedPairs(
            tuple(b"".join(line + b"\n" for line in side) for side in lines),
            tuple(
                np.fromiter(map(len, side), np.int32, len(side)) + 1
                for side in lines
            ),
            np.array(kept, np.int32),
            np.array(hashes, np.uint64) if self.filters.duplicates else None,
            counts,
            left_out,
        )

    def _checked(
        self, pair: tuple, problem: str | None
    ) -> tuple[list[str], str | None]:
        """Returns the two texts, or the reason why there are none."""
        texts: list[str] = []
        if problem is not None:
            return texts, problem
        if pair[1] is None:
            return texts, "no second column"
        for side, text, prepare in zip(
            SIDES, pair, self.preprocess, strict=True
        ):
            if len(text) > LONGEST:
                return texts, "too long"
            if prepare is not None:
                text = prepare(text)
            # Only ASCII spaces are cut off, but any white space counts as
            # empty.
            text = one_line(text).strip(" ")
            if not text or text.isspace():
                return texts, f"empty {side}"
            texts.append(text)
        if self.filters is NO_FILTERS:
            return texts, None
        return texts, filtered(texts[0], texts[1], self.filters)


@dataclass(frozen=True)
class CheckedPairs:
    r"""What is left of a chunk of pairs.

    Attributes:
        texts: The lines of both sides, each ended by `\n`.
        sizes: Their bytes, each (n,), int32.
        kept: Which pairs of the chunk they are, (n,), int32.
        hashes: The numbers of the pairs, (n,), or None.
        counts: How many were left out, by reason.
        left_out: The reason and the number of the first ones of each.
    """

    texts: tuple[bytes, ...]
    sizes: tuple[np.ndarray, ...]
    kept: np.ndarray
    hashes: np.ndarray | None
    counts: dict[str, int]
    left_out: list[tuple[str, int]]

    def without(self, repeated: np.ndarray) -> CheckedPairs:
        """The same without some of the pairs, which are duplicates."""
        again = self.kept[repeated]
        if not again.size:
            return self
        keep = np.flatnonzero(~repeated)
        texts = []
        for text, sizes in zip(self.texts, self.sizes, strict=True):
            stops = np.cumsum(sizes)
            starts = stops - sizes
            texts.append(
                b"".join(
                    text[start:stop]
                    for start, stop in zip(
                        starts[keep].tolist(), stops[keep].tolist(), strict=True
                    )
                )
            )
        shown = [("duplicate", int(number)) for number in again[:SHOWN]]
        return CheckedPairs(
            tuple(texts),
            tuple(sizes[keep] for sizes in self.sizes),
            self.kept[keep],
            None,
            self.counts | {"duplicate": len(again)},
            sorted(self.left_out + shown, key=lambda entry: entry[1]),
        )


def shown_pair(pair: tuple) -> str:
    """A pair for a report, not all of a long one."""
    return " ||| ".join(repr(side and side[:80]) for side in pair)


def is_filtered(reason: str) -> bool:
    """Whether pairs are left out for it on purpose."""
    return reason in FILTERED
