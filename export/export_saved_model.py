"""Exports a trained run as a SavedModel for TensorFlow Serving.

    python export/export_saved_model.py --run-dir runs/demo \
        --output models/demo/1

Several runs with the same vocabularies become an ensemble. The export is
checked as a server would run it; what fails a check is not left.
"""

import argparse
import dataclasses
import sys
from pathlib import Path

from luong_keras import (
    RunConfig,
    RunFolder,
    SavedModelError,
    Translator,
    config_from_dict,
    export_saved_model,
)


def main() -> None:
    """Runs what the command line asks for."""
    arguments = parse_arguments()
    try:
        run(arguments)
    except (OSError, ValueError, SavedModelError) as error:
        sys.exit(f"Nothing was exported. {error}")


def run(arguments) -> None:
    """Exports, and says where."""
    if not Path(arguments.output).name.isdecimal():
        raise ValueError(
            "Expected: --output with a number as its last part, the version, "
            "as in models/demo/1; a server loads no other. Received: "
            f"{arguments.output}."
        )
    config: RunConfig = read_config(arguments.run_dir[0])
    translator = Translator.from_run(
        arguments.run_dir,
        arguments.weights,
        decoding_settings(config.decoding, arguments),
        fold_embedding=arguments.fold_embedding,
    )
    folder = export_saved_model(
        translator, arguments.output, arguments.weights_dtype, say=print
    )
    print("exported to", folder)


def read_config(run_dir) -> RunConfig:
    """The settings of a run, which must exist."""
    if not Path(run_dir).is_dir():
        raise FileNotFoundError(
            f"Expected: the folder of a training run. Received: {run_dir}."
        )
    return config_from_dict(RunFolder(run_dir).read_config())


def parse_arguments() -> argparse.Namespace:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--run-dir", required=True, nargs="+", help="several: an ensemble"
    )
    parser.add_argument(
        "--output",
        required=True,
        help="folder to make; its name is the version, a number",
    )
    parser.add_argument("--weights", choices=("best", "last"), default="best")
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    parser.add_argument(
        "--max-beam-size",
        type=int,
        help="the most that a request may ask for, which then every request "
        "with options costs; default: the beam size",
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument(
        "--weights-dtype",
        choices=("bfloat16", "float16"),
        help="write rounded weights, of half the size",
    )
    size.add_argument(
        "--fold-embedding",
        action="store_true",
        help="write the product of the target embedding and the decoder's "
        "input weights: larger, and some percent faster",
    )
    return parser.parse_args()


def decoding_settings(decoding, arguments):
    """The run's search with what the command line changes."""
    changes = {}
    if arguments.beam_size is not None:
        changes = {
            "beam_size": arguments.beam_size,
            "stack_size": None,
            "max_beam_size": None,
        }
    if arguments.max_beam_size is not None:
        changes["max_beam_size"] = arguments.max_beam_size
    return dataclasses.replace(decoding, **changes)


if __name__ == "__main__":
    main()
