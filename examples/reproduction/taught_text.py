"""A training text with a teacher's translations in the place of its own.

A model that learns from them beside the text as it is has learnt what the
models of the teacher agree on: distillation of sequences (Kim and Rush 2016).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from luong_keras.config import RunConfig
from luong_keras.data.datasets import load_datasets
from luong_keras.data.sources.placed_pair import one_line
from luong_keras.files.folder_lock import locked
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.progress import progress_bar
from luong_keras.recipe.run_reading import load_run

_BATCHES = 32  # that are sorted by length together, and written


def write_taught_text(
    path: Path, config: RunConfig, runs: Sequence[str | Path]
) -> None:
    """Translates a training text, unless that is done; goes on where it ended.

    Args:
        path: of the file, a source and its translation a line.
        config: of the teacher, with its text and its search.
        runs: its trained models, which translate together.

    Raises:
        FolderInUseError: where another process writes it just now.
    """
    with locked(path.parent, path.name):
        if not path.exists():
            _write(path, config, runs)


def _write(path: Path, config: RunConfig, runs: Sequence[str | Path]) -> None:
    partial = path.with_suffix(".partial")
    sources = [
        one_line(source)
        for source, target in load_datasets(config.data).train()
        if source and target
    ]
    done = _finished_lines(partial, sources)
    parts = load_run(
        runs, config.training.final_weights, decoding=config.decoding
    )
    translator = TextTranslator(*parts)
    size = _BATCHES * config.decoding.batch_size
    with (
        partial.open("a", encoding="utf-8", newline="\n") as file,
        progress_bar("translating the text", len(sources)) as advance,
    ):
        advance(done)
        for start in range(done, len(sources), size):
            lines = sources[start : start + size]
            for source, found in zip(
                lines, translator.nbest(lines), strict=True
            ):
                file.write(f"{source}\t{one_line(found[0].text)}\n")
            file.flush()
            advance(len(lines))
    os.replace(partial, path)


def _finished_lines(partial: Path, sources: Sequence[str]) -> int:
    """How many lines it has of this text; what follows them is cut off."""
    if not partial.exists():
        return 0
    end = done = 0
    lines = partial.read_bytes().splitlines(keepends=True)
    for line, source in zip(lines, sources, strict=False):
        # The last line may have been cut off as the power was.
        whole = line.endswith(b"\n")
        if not whole or line.split(b"\t")[0].decode() != source:
            break
        end, done = end + len(line), done + 1
    os.truncate(partial, end)
    return done
