"""Sentence pairs of the files that a setting names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from luong_keras.data.parallel_text import read_columns, read_pairs

COLUMNS = (".tsv", ".tsv.gz")


class PlacedPair(tuple):
    """A source and a target sentence that know where they stand.

    Attributes:
        place: The file's name and the line's number, such as `train.en:7`.
    """

    place: str

    def __new__(cls, source: str, target: str | None, place: str):
        """Makes the pair."""
        pair = super().__new__(cls, (source, target))
        pair.place = place
        return pair


def is_columns(path: str | Path) -> bool:
    """Whether a file's name says that it has two columns."""
    return str(path).endswith(COLUMNS)


def text_files(
    given: str | Sequence[str], languages: Sequence[str]
) -> list[Path]:
    """Finds the files that a setting such as `data.train` names.

    Args:
        given: A file of two columns, by its name `.tsv` or `.tsv.gz`, the
            source first; or the paths of a source and a target file; or a
            prefix, to which the languages are appended. The names of the
            first two say nothing of languages.
        languages: The codes of the source and the target language.

    Returns:
        One path, of a file of two columns, or two.

    Raises:
        FileNotFoundError: A file is missing.
    """
    if not isinstance(given, str):
        return [_existing(Path(path)) for path in given]
    if is_columns(given):
        return [_existing(Path(given))]
    return [_with_language(given, language) for language in languages]


def read_text(
    paths: Sequence[Path], skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Reads the pairs of one or two files.

    Args:
        paths: As `text_files` found them.
        skip_bad_lines: Whether lines that are not UTF-8, or have no second
            column, come with a mark by which `write_corpus` counts them,
            instead of an error.
    """
    lines: Iterator[tuple[int, str, str | None]]
    if len(paths) == 1:
        lines = read_columns(paths[0], skip_bad_lines)
    else:
        first, second = paths
        lines = read_pairs(first, second, skip_bad_lines)
    name = paths[0].name
    for number, source, target in lines:
        yield PlacedPair(source, target, f"{name}:{number}")


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise FileNotFoundError(
            f"Expected: a text file, one sentence (or, `.tsv`, one pair) a "
            f"line. Received: {path}, which does not exist."
        )
    return path


def _with_language(prefix: str, language: str) -> Path:
    """prefix.language, or prefix.language.gz where only that exists."""
    path = Path(f"{prefix}.{language}")
    packed = Path(f"{path}.gz")
    if not path.exists() and not packed.exists():
        raise FileNotFoundError(
            f"Expected: a text file of one sentence a line, {path} or "
            f"{packed}. Received: neither exists."
        )
    return path if path.exists() else packed
