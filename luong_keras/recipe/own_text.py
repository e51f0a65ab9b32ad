"""Sentence pairs of one's own, as the settings of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from luong_keras.data.text_files import is_columns
from luong_keras.files.atomic_file import atomic_path
from luong_keras.training.run_folder import OTHER_TEXT, RunFolder

Text = str | Path | Sequence[str | Path] | Iterable[tuple[str, str]]

# What ends a line or a column.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def text_settings(
    run: RunFolder,
    train: Text,
    dev: Text | None = None,
    test: Text | None = None,
) -> dict[str, Any]:
    """The settings by which a run finds its pairs.

    Args:
        run: where pairs that are in no file are written.
        train: the training pairs: (source, target) strings, or the path of a
            file of two columns (`.tsv`, `.tsv.gz`), or the paths of a source
            and a target file, or the prefix of two files.
        dev: the pairs to choose a model by, in the same forms; held out of
            the training pairs when None.
        test: the pairs to score, likewise.

    Returns:
        Settings by their full names.

    Raises:
        ValueError: where something is no pair of sentences.
    """
    given = {"train": train, "dev": dev, "test": test}
    settings: dict[str, Any] = {"data.dataset": "files"}
    for part, text in given.items():
        settings[f"data.{part}"] = (
            None if text is None else _named(text, part, run)
        )
    paths = settings["data.train"]
    if not isinstance(paths, str):
        languages = [path.removesuffix(".gz")[-3:] for path in paths]
        if all(re.fullmatch(r"\.[a-z]{2}", language) for language in languages):
            settings["data.source_language"] = languages[0][1:]
            settings["data.target_language"] = languages[1][1:]
    return settings


def _named(text: Text, part: str, run: RunFolder) -> str | tuple[str, str]:
    """The file or files of a part, written where there is none."""
    if isinstance(text, str | Path):
        return str(text)
    pairs = list(text)
    match pairs:
        case [str() | Path() as source, str() | Path() as target]:
            if is_columns(source) or is_columns(target):
                raise ValueError(
                    "Expected: one file of two columns, or a source and a "
                    f"target file. Received: {source} and {target}."
                )
            return str(source), str(target)
    path = run.pairs / f"{part}.tsv"
    lines = [_line(pair, n) for n, pair in enumerate(pairs, start=1)]
    content = "".join(lines).encode("utf-8")
    # A file that is rewritten looks like another text.
    if not path.exists() or path.read_bytes() != content:
        if path.exists() and run.data.exists():
            raise ValueError(OTHER_TEXT.format(run.path))
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)
    return str(path)


def _line(pair, number: int) -> str:
    if (
        isinstance(pair, str)
        or len(pair) != 2
        or not all(isinstance(sentence, str) for sentence in pair)
    ):
        raise ValueError(
            "Expected: pairs of a source and a target sentence, both str. "
            f"Received: {pair!r} as pair {number}."
        )
    line = "\t".join(_CONTROL.sub(" ", sentence) for sentence in pair) + "\n"
    try:
        line.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"Pair {number} cannot be written as UTF-8 ({error.reason}). "
            f"Received: {pair!r}."
        ) from error
    return line
