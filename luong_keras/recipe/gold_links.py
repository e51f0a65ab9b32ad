"""How good the links of an aligned text are, by a file of gold links."""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path

from luong_keras.alignment.aer import LinkScores, parse_alignments
from luong_keras.alignment.links import Link
from luong_keras.alignment.symmetrization import METHODS, symmetrize
from luong_keras.data.parallel_text import read_lines
from luong_keras.recipe.aligned_text import AlignedLine


class GoldLinks:
    """Counts, line by line, how far links agree with those of a file.

    Args:
        path: the file, `i-j` a sure link and `ipj` or `i?j` a possible one,
            as many lines as the text; plain or packed.
        one_based: whether its positions count from 1.

    Attributes:
        scores: of each way to make links: `forward`, and, where there are
            links of both directions, `backward` and each of `METHODS`.

    Raises:
        FileNotFoundError: where there is no such file.
        ValueError: for a malformed link, with the number of its line.
    """

    def __init__(self, path: Path, one_based: bool = False) -> None:
        self._path = path
        self._one_based = one_based
        self._gold = parse_alignments(read_lines(path), one_based)
        self._read = 0
        self.scores: dict[str, LinkScores] = {}

    def add(self, line: AlignedLine) -> None:
        """Counts the links of the next line.

        Raises:
            ValueError: where the file has no such line, or the line a link
                that leads outside its sentences.
        """
        if self._read == len(self._gold):
            raise ValueError(
                "Expected: a line of gold links for each pair of the text. "
                f"Received: {len(self._gold)} lines in {self._path}, and a "
                f"text that goes on with {line.place}."
            )
        gold = self._gold[self._read]
        self._read += 1
        for i, j in sorted(gold.possible):
            if i >= line.lengths[0] or j >= line.lengths[1]:
                raise ValueError(self._outside((i, j), line))
        for name, links in _ways(line).items():
            self.scores.setdefault(name, LinkScores()).add(links, gold)

    def check_end(self) -> None:
        """Raises ValueError where the file has more lines than the text."""
        if self._read < len(self._gold):
            raise ValueError(
                "Expected: a line of gold links for each pair of the text. "
                f"Received: {len(self._gold)} lines in {self._path}, and "
                f"{self._read} pairs."
            )

    def _outside(self, link: Link, line: AlignedLine) -> str:
        base = int(self._one_based)
        shown = f"{link[0] + base}-{link[1] + base}"
        most = [length - 1 + base for length in line.lengths]
        hint = "" if base else ", and whether the file counts from 1"
        return (
            f"A link in line {self._read} of {self._path} leads outside its "
            f"sentences ({line.place}). Expected: positions up to {most[0]} "
            f"and {most[1]}. Received: {shown}. Check that the files have the "
            f"same lines, words and direction{hint}."
        )


def _ways(line: AlignedLine) -> Mapping[str, Set[Link]]:
    if line.backward is None:
        return {"forward": line.forward}
    both = line.forward, line.backward
    return {
        "forward": line.forward,
        "backward": line.backward,
        **{method: symmetrize(*both, method) for method in METHODS},
    }
