"""The files of both sides that a command is given."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from luong_keras.config import DataConfig
from luong_keras.data.sources.columns import RequestedColumns
from luong_keras.data.sources.source_kinds import PlacedPair, TextSource
from luong_keras.data.text_files import (
    ONE_OR_TWO,
    is_columns,
    read_text,
    text_sources,
)


def check_files(files: tuple[Path, ...]) -> None:
    """Raises ValueError for other files than one or two of both sides."""
    if len(files) != 2 and not (len(files) == 1 and is_columns(files[0])):
        raise ValueError(
            f"Expected: {ONE_OR_TWO}. Received: {' '.join(map(str, files))}."
        )


def given_pairs(
    files: tuple[Path, ...], data: DataConfig
) -> Iterator[PlacedPair]:
    """Reads the pairs, with the columns of the run where a file has them.

    Args:
        files: Those that `check_files` has passed.
        data: The settings of the run.

    Raises:
        FileNotFoundError: A file is missing; raised by the call.
        ValueError: The columns cannot be guessed; or a line cannot be read,
            raised when the reading gets there.
    """
    return read_text(_found(files, data), False)


def _found(files: tuple[Path, ...], data: DataConfig) -> list[TextSource]:
    given = [tuple(map(str, files))]
    languages = data.languages
    if data.columns is not None:
        with contextlib.suppress(ValueError):
            return text_sources(
                given, RequestedColumns(languages, data.columns)
            )
    return text_sources(given, RequestedColumns(languages))
