"""`luong-keras export`: a SavedModel for TensorFlow Serving."""

import itertools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import OmitArgPrefixes, UseAppendAction, arg

from luong_keras.cli.parsing import Option, check_run_dirs
from luong_keras.cli.settings_flags import ExportFlags, override_search
from luong_keras.recipe.stored_settings import run_config
from luong_keras.serving.limits import ServingLimits


@dataclass(frozen=True)
class Export:
    """Export a trained run as a SavedModel for TensorFlow Serving.

    The command runs the export as a server would, and removes it if a check
    fails.
    """

    # the folder of the run; --run-dir A B or --run-dir A --run-dir B: an
    # ensemble of runs with the same vocabularies
    run_dir: Annotated[
        UseAppendAction[tuple[tuple[Path, ...], ...]],
        arg(metavar="PATH [PATH …]", help_behavior_hint="(required)"),
    ]
    # folder to make; its name is the version, a number
    output: Path
    # best, last, or an epoch such as epoch-7; default: the weights
    # that the run scored and exported, by default the best
    weights: Option[str | None] = None
    # settings of the search; default: the run's
    search: OmitArgPrefixes[ExportFlags] = field(default_factory=ExportFlags)
    # number of rows of a batch that are translated; the server's
    # max_batch_size must not be larger
    max_rows: Option[int] = ServingLimits.max_rows
    # precision of the computation; default: the precision of training. A CPU
    # is slow in float16, in which a GPU may have trained
    precision: Option[
        Literal["float32", "mixed_bfloat16", "mixed_float16"] | None
    ] = None


def run(arguments: Export) -> int:
    """Export, and print information for clients; return 1 if a check fails."""
    version = arguments.output.name
    if not re.fullmatch("0|[1-9][0-9]*", version):
        raise ValueError(
            "Expected: --output with a version number as its last part, as in "
            "models/translator/1; a server loads only such folders. Received: "
            f"{arguments.output}."
        )
    run_dirs = list(itertools.chain(*arguments.run_dir))
    check_run_dirs(run_dirs)
    config = run_config(run_dirs[0])
    decoding = override_search(
        config.decoding, arguments.search, requests_sample=True
    )
    from luong_keras.serving.saved_model_session import SavedModelError
    from luong_keras.translator import Translator

    translator = Translator.from_run(
        run_dirs,
        arguments.weights,
        decoding,
        precision=arguments.precision,
    )
    try:
        folder = translator.export(
            arguments.output,
            say=print,
            limits=ServingLimits(arguments.max_rows),
        )
    except SavedModelError as error:
        print(f"Nothing was exported. {error}", file=sys.stderr)
        return 1
    print("exported to", folder)
    return 0
