"""`luong-keras report`: a run as one page, or two side by side."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from luong_keras.cli.parsing import Own, parse_arguments
from luong_keras.recipe.run_settings import run_config
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True)
class Report:
    """Writes a run as one page of HTML, or two runs side by side.

    Scores, curves, the best and the worst translations with what the model
    attends to, settings, time and machine, in one file that asks for nothing
    from anywhere. Two runs must have the same test pairs; their scores are
    compared by paired approximate randomisation.
    """

    # the folder of the run, and of one to compare it with
    runs: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="RUN [OTHER]", help_behavior_hint=""),
    ]
    # the file; default: report.html in the folder of the run, or of the
    # second one
    output: Own[Path | None] = None
    # translations of each kind to show
    examples: int = 5
    # draw no alignments: the models are not loaded
    no_alignments: FlagCreatePairsOff[bool] = False
    # random swappings of the paired test, and resamplings of the intervals
    samples: int = 1000


parse = functools.partial(parse_arguments, Report, "luong-keras report")


def run(arguments: Report) -> int:
    """Writes the page and says where it is."""
    if len(arguments.runs) not in (1, 2):
        raise ValueError(
            "Expected: the folder of one run, or of two. Received: "
            f"{len(arguments.runs)}."
        )
    for name in ("examples", "samples"):
        if getattr(arguments, name) < 1:
            raise ValueError(
                f"--{name} must be at least 1. Received: "
                f"{getattr(arguments, name)}."
            )
    for folder in arguments.runs:
        run_config(folder, own_files=False)
    from luong_keras.report.page import write_page

    default = RunFolder(arguments.runs[-1]).report
    path = write_page(
        arguments.runs,
        arguments.output or default,
        arguments.examples,
        not arguments.no_alignments,
        arguments.samples,
    )
    print(path)
    return 0
