"""`luong-keras align`: links between the words of a parallel text."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import FlagCreatePairsOff, Positional

from luong_keras.alignment.links import format_links
from luong_keras.alignment.symmetrization import Method, symmetrize
from luong_keras.cli.parsing import Option
from luong_keras.cli.settings_flags import override_search
from luong_keras.config import AlignmentStep, RunConfig
from luong_keras.data.text_files import read_given_pairs
from luong_keras.files.atomic_file import atomic_path
from luong_keras.progress import with_bar
from luong_keras.recipe.stored_settings import run_config
from luong_keras.tables import pluralize

if TYPE_CHECKING:
    from luong_keras.translator import Translator

_TRUNCATED = (
    "cut to the maximum length, so only the beginning has links; "
    "--max-source-length reads more"
)


@dataclass(frozen=True)
class Align:
    """Link the words of given translations by the attention of a run.

    Each pair gives one line, such as `0-0 1-2`: positions of words, from 0, the
    source first. White space separates words. With a run of the other
    direction, the links of both directions are symmetrised.
    """

    # one file of both sides (.tsv, .csv, .jsonl, .tmx, …), or a source and a
    # target file; plain or compressed (.gz, .xz, .zst, .bz2)
    files: Positional[tuple[Path, ...]]
    # the folder of the run
    run_dir: Path
    # the folder of a run that translates from the target to the source language
    reverse_run: Option[Path | None] = None
    # the method that merges the links of both directions; default:
    # grow-diag-final
    symmetrize: Option[Method | None] = None
    # decoder step whose attention weights align a word: the step that produces
    # it, or the one that reads it; default: each run's decoding.alignment_step
    step: Option[AlignmentStep | None] = None
    # the file to write; default, and -: standard output
    output: Option[Path | None] = None
    # a file of gold links, i-j a sure and ipj a possible one; prints the
    # alignment error rate, precision and recall
    gold: Option[Path | None] = None
    # positions in the gold file count from 1
    gold_one_based: FlagCreatePairsOff[bool] = False
    # maximum number of words or subwords to read per side; default: each run's
    # decoding.max_source_length
    max_source_length: Option[int | None] = None
    # best, last, or an epoch such as epoch-7; default: the weights
    # that each run scored and exported, by default the best
    weights: Option[str | None] = None


def run(arguments: Align) -> int:
    """Align the pairs and write one line per pair."""
    if arguments.gold_one_based and arguments.gold is None:
        raise ValueError(
            "--gold-one-based describes a file of gold links. Expected: --gold "
            "as well. Received: none."
        )
    output = None if arguments.output == Path("-") else arguments.output
    inputs = filter(None, (*arguments.files, arguments.gold))
    if output and output.resolve() in map(Path.resolve, inputs):
        raise ValueError(
            "Expected: as --output another file than those that are read. "
            f"Received: {output}. Choose another name."
        )
    config = run_config(arguments.run_dir)
    _check_direction(arguments, config)
    pairs = read_given_pairs(arguments.files, config.data)
    from luong_keras.recipe.aligned_text import GoldLinks, aligned_lines

    gold = None
    if arguments.gold is not None:
        gold = GoldLinks(arguments.gold, arguments.gold_one_based)
    translator = _load_translator(arguments, arguments.run_dir)
    reverse = None
    if arguments.reverse_run is not None:
        reverse = _load_translator(arguments, arguments.reverse_run)
    lines = aligned_lines(pairs, translator, reverse, arguments.step)
    if gold is not None:
        lines = gold.compare(lines)
    method = arguments.symmetrize or "grow-diag-final"
    # For each note, the number of pairs and the place of the first.
    pairs_read, notes = 0, dict[str, list[Any]]()
    with contextlib.ExitStack() as stack:
        file = sys.stdout
        if output is not None:  # It appears once it is complete.
            temporary = stack.enter_context(atomic_path(output))
            file = stack.enter_context(
                temporary.open("w", encoding="utf-8", newline="\n")
            )
        for line in with_bar(lines, "aligning words"):
            links = line.forward
            if line.backward is not None:
                links = symmetrize(links, line.backward, method)
            print(format_links(links), file=file)
            pairs_read += 1
            if line.truncated:
                notes.setdefault(_TRUNCATED, [0, line.place])[0] += 1
            if not links and any(line.lengths):
                notes.setdefault("without a link", [0, line.place])[0] += 1
    for what, (count, first) in notes.items():
        print(
            f"{count} of {pairs_read} pairs (first {first}): {what}",
            file=sys.stderr,
        )
    for name, scores in gold.scores.items() if gold is not None else ():
        print(
            f"{name:20} AER {100 * scores.error_rate:.2f} %, "
            f"precision {100 * scores.precision:.2f} %, "
            f"recall {100 * scores.recall:.2f} %",
            file=sys.stderr,
        )
    if output is not None:
        print(f"{pluralize(pairs_read, 'pair')}: {output}")
    return 0


def _check_direction(arguments: Align, config: RunConfig) -> None:
    """Check that the other run, if any, has the other direction."""
    if arguments.reverse_run is None:
        if arguments.symmetrize is not None:
            raise ValueError(
                "Links of one direction cannot be symmetrised. Received: "
                f"--symmetrize {arguments.symmetrize} only. Give a run of "
                "the other direction, --reverse-run, or leave it out."
            )
        return
    reverse = run_config(arguments.reverse_run)
    expected = config.data.target_language, config.data.source_language
    received = reverse.data.source_language, reverse.data.target_language
    # A run does not always know its languages.
    if any(a and b and a != b for a, b in zip(expected, received, strict=True)):
        names = [code or "any language" for code in (*expected, *received)]
        raise ValueError(
            "Expected: as --reverse-run, a run of the other direction, from "
            f"{names[0]} to {names[1]}. Received: "
            f"{arguments.reverse_run}, from {names[2]} to {names[3]}."
        )


def _load_translator(arguments: Align, folder: Path) -> Translator:
    from luong_keras.translator import Translator

    decoding = override_search(
        run_config(folder).decoding,
        max_source_length=arguments.max_source_length,
    )
    return Translator.from_run(folder, arguments.weights, decoding)
