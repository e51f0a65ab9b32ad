"""`luong-keras translate`: translation of text with a trained run."""

import itertools
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from tyro.conf import (
    FlagCreatePairsOff,
    OmitArgPrefixes,
    Positional,
    UseAppendAction,
    arg,
)

from luong_keras.cli.parsing import Option, check_run_dirs, given_flags
from luong_keras.cli.settings_flags import SearchFlags, override_search
from luong_keras.config.checks import check_at_least
from luong_keras.files.text_lines import (
    read_input_parts,
    read_lines,
    read_lines_beside,
)
from luong_keras.progress import output_bar
from luong_keras.recipe.stored_settings import run_config
from luong_keras.text.threads import share_cores
from luong_keras.truncation import TruncatedPlaces

BATCHES = 32  # number of batches sorted by length and printed together


@dataclass(frozen=True)
class Translate:
    """Translate text with a trained run, to standard output.

    With `--n-best` or `--alignments` the output is JSON lines instead of text.
    """

    # the folder of the run; --run-dir A --run-dir B: an ensemble of runs with
    # the same vocabularies
    run_dir: Annotated[
        UseAppendAction[tuple[Path, ...]],
        arg(help_behavior_hint="(required)"),
    ]
    # UTF-8 files, one sentence per line, plain or compressed (.gz, .xz, .zst
    # or .bz2); default: standard input
    files: Option[Positional[tuple[Path, ...]]] = ()
    # best, last, or an epoch such as epoch-7; default: the weights
    # that the run scored and exported, by default the best
    weights: Option[str | None] = None
    # settings of the search; default: the run's
    search: OmitArgPrefixes[SearchFlags] = field(default_factory=SearchFlags)
    # a file of phrases that translations must have: one line per sentence, with
    # tabs between phrases; not with --search sampling
    required: Option[Path | None] = None
    # a file of phrases that translations must not have, likewise
    forbidden: Option[Path | None] = None
    # translations per sentence; without --beam-size also the number of samples
    # of --search sampling
    n_best: int = 1
    # also print the links [source position, target position] of each word
    alignments: FlagCreatePairsOff[bool] = False
    # instead of reading text, translate the test set with the run's newest
    # export and compare it with the model
    check_export: FlagCreatePairsOff[bool] = False


def run(arguments: Translate) -> int:
    """Translate; return 1 if an export differs from the model."""
    check_run_dirs(arguments.run_dir)
    check_at_least(1, **{"--n-best": arguments.n_best})
    _check_ignored_arguments(arguments)
    config = run_config(arguments.run_dir[0])
    decoding = override_search(
        config.decoding, arguments.search, n_best=arguments.n_best
    )
    if arguments.required is not None and decoding.search == "sampling":
        raise ValueError(
            "--required: phrases of a beam search. Expected: no samples, which "
            "ignore them. Received: search=sampling. Leave --required out, or "
            "give --search beam."
        )
    size = BATCHES * decoding.batch_size
    parts, total, options = read_input_parts(size), None, {}
    if arguments.files or arguments.required or arguments.forbidden:
        inputs = map(read_lines, arguments.files) if arguments.files else parts
        text = list(itertools.chain.from_iterable(inputs))
        total = len(text)
        phrases = {
            "required": arguments.required,
            "forbidden": arguments.forbidden,
        }
        options = {
            name: read_lines_beside(path, total)
            for name, path in phrases.items()
            if path is not None
        }
        parts = (text[i : i + size] for i in range(0, total, size))
    # Read before the model is built, so that errors in the input come first.
    first = [] if arguments.check_export else next(parts, [])
    if len(first) >= size:
        share_cores()
    from luong_keras.translator import Translator

    translator = Translator.from_run(
        arguments.run_dir, arguments.weights, decoding
    )
    if arguments.check_export:
        return check_export(translator, arguments.run_dir[0], config)
    start, cut = 0, TruncatedPlaces()
    try:
        with output_bar("translating", total) as advance, cut:
            for lines in itertools.chain([first], parts):
                cut.start = start
                end = start + len(lines)
                part_options = {
                    name: column[start:end] for name, column in options.items()
                }
                for answer in _translate_lines(
                    translator, lines, part_options, arguments
                ):
                    print(answer)
                    advance(1)
                # Keep these translations, even if later ones fail.
                sys.stdout.flush()
                start = end
    finally:
        cut.print("luong-keras translate: warning")
    return 0


def _check_ignored_arguments(arguments: Translate) -> None:
    """Check that no argument is given that `--check-export` would ignore."""
    if not arguments.check_export:
        return
    ignored = given_flags(
        arguments, ("n_best", "alignments", "required", "forbidden")
    )
    if arguments.files:
        ignored.append("files")
    if len(arguments.run_dir) > 1:
        ignored.append("more than one --run-dir")
    if ignored:
        raise ValueError(
            f"--check-export does not read {', '.join(ignored)}. Leave one of "
            "them out."
        )


def _translate_lines(
    translator, lines, options, arguments: Translate
) -> Iterator[str]:
    """Yield the output for each line."""
    if arguments.n_best == 1 and not arguments.alignments:
        yield from translator.translate(lines, **options)
    else:
        for nbest in translator.nbest(lines, **options):
            entries = [
                translation.as_dict(links=arguments.alignments)
                for translation in nbest[: arguments.n_best]
            ]
            yield json.dumps(entries, ensure_ascii=False)


def check_export(translator, run_dir, config) -> int:
    """Return 0 if the newest export translates like the model, otherwise 1."""
    from luong_keras.recipe.preparation import evaluation_pairs
    from luong_keras.serving.export import (
        exported_translations,
        newest_version,
    )
    from luong_keras.training.run_folder import RunFolder

    run = RunFolder(run_dir)
    newest = newest_version(run.export)
    sources = [source for source, _ in evaluation_pairs(config.data, run).test]
    with TruncatedPlaces() as cut:
        expected = translator.translate(sources)
    cut.print("luong-keras translate: warning")
    size = translator.decoding.batch_size
    served = exported_translations(newest, sources, size)
    compared = [
        row
        for row in zip(sources, expected, served, strict=True)
        if row[-1] is not None
    ]
    for source, _, translation in compared[:3]:
        print(f"{source}\n  {translation}")
    if None in served:
        print("not compared, too long for the export:", served.count(None))
    different = sum(a != b for _, a, b in compared)
    print(
        f"export {newest}: {len(compared) - different} of {len(compared)} "
        "translations equal those of the model"
    )
    return int(different > 0 or not compared)
