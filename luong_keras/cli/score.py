"""`luong-keras score`: how probable given translations are."""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from luong_keras.cli.parsing import Own, parse_arguments
from luong_keras.config import DataConfig
from luong_keras.data.sources.columns import Wanted
from luong_keras.data.text_files import (
    ONE_OR_TWO,
    TextSource,
    is_columns,
    read_text,
    text_sources,
)
from luong_keras.recipe.run_settings import run_config


@dataclass(frozen=True)
class Score:
    """Prints what a trained run thinks of given translations.

    One line a pair, its columns set apart by tabs: the log-probability, the
    number of words or subwords with the end of the sentence, and the
    perplexity. That of all pairs together goes to standard error.
    """

    # one file of both sides (.tsv, .csv, .jsonl, .tmx), or a source and a
    # target file; plain or packed (.gz, .xz, .zst)
    files: Positional[tuple[Path, ...]]
    # the folder of the run
    run_dir: Path
    # best, last, average, exponential, or an epoch such as epoch-7; default:
    # what the run scored and exported, the best unless set otherwise
    weights: Own[str | None] = None


parse = functools.partial(parse_arguments, Score, "luong-keras score")


def run(arguments: Score) -> int:
    """Scores the pairs and prints a line each."""
    files = arguments.files
    if len(files) != 2 and not (len(files) == 1 and is_columns(files[0])):
        raise ValueError(
            f"Expected: {ONE_OR_TWO}. Received: {' '.join(map(str, files))}."
        )
    # Tells at once where there is no run.
    data = run_config(arguments.run_dir).data
    text = _found(files, data)
    sources, targets = zip(*read_text(text, False), strict=True)
    from luong_keras.translator import Translator

    translator = Translator.from_run(arguments.run_dir, arguments.weights)
    found = translator.score(sources, targets)
    for scored in found:
        words = len(scored.tokens)
        perplexity = math.exp(-scored.log_probability / words)
        print(f"{scored.log_probability:.4f}\t{words}\t{perplexity:.3f}")
    total = sum(scored.log_probability for scored in found)
    words = sum(len(scored.tokens) for scored in found)
    print(
        f"perplexity {math.exp(-total / words):.3f} of {words} words in "
        f"{len(found)} pairs",
        file=sys.stderr,
    )
    return 0


def _found(files: tuple[Path, ...], data: DataConfig) -> list[TextSource]:
    """The text, with the columns of the run where it has them."""
    given = [tuple(map(str, files))]
    languages = (data.source_language, data.target_language)
    if data.columns is not None:
        with contextlib.suppress(ValueError):
            return text_sources(given, Wanted(languages, data.columns))
    return text_sources(given, Wanted(languages))
