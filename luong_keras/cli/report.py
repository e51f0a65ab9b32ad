"""`luong-keras report`: one page of HTML about a run, or two runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import FlagCreatePairsOff, Positional, arg

from luong_keras.cli.parsing import Option
from luong_keras.config.checks import check_at_least
from luong_keras.recipe.stored_settings import run_config
from luong_keras.training.run_folder import RunFolder


@dataclass(frozen=True)
class Report:
    """Write a run as one page of HTML, or two runs side by side.

    The page shows scores, curves, the best and the worst translations with
    their attention weights, settings, time and machine. It is one file that
    loads nothing from elsewhere. Two runs must have the same test pairs; their
    scores are compared by paired approximate randomisation.
    """

    # the folder of the run, and of another run to compare it with
    runs: Annotated[
        Positional[tuple[Path, ...]],
        arg(metavar="RUN [OTHER]", help_behavior_hint=""),
    ]
    # the file to write; default: report.html in the folder of the run, or of
    # the second run
    output: Option[Path | None] = None
    # number of translations of each kind to show
    examples: int = 5
    # draw no alignments, and load no models
    no_alignments: FlagCreatePairsOff[bool] = False
    # number of random swaps of the paired test, and of bootstrap samples of the
    # intervals
    samples: int = 1000


def run(arguments: Report) -> int:
    """Write the page and print its path."""
    if len(arguments.runs) not in (1, 2):
        raise ValueError(
            "Expected: the folder of one run, or of two. Received: "
            f"{len(arguments.runs)}."
        )
    check_at_least(
        1,
        **{"--examples": arguments.examples, "--samples": arguments.samples},
    )
    for folder in arguments.runs:
        run_config(folder, resolve_paths=False)
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
