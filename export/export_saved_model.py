"""Exports a trained run as a SavedModel for TensorFlow Serving.

python export/export_saved_model.py --run-dir runs/demo \
        --output models/demo/1
"""

import argparse
import dataclasses

from luong_keras import (
    RunFolder,
    Translator,
    config_from_dict,
    export_saved_model,
)


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run-dir", required=True)
    parser.add_argument(
        "--output",
        required=True,
        help="folder to make; its name is the version, a number",
    )
    parser.add_argument("--weights", choices=("best", "last"), default="best")
    parser.add_argument("--beam-size", type=int, help="default: the run's")
    arguments = parser.parse_args()
    config = config_from_dict(RunFolder(arguments.run_dir).read_config())
    decoding = config.decoding
    if arguments.beam_size is not None:
        decoding = dataclasses.replace(
            decoding, beam_size=arguments.beam_size, stack_size=None
        )
    translator = Translator.from_run(
        arguments.run_dir, arguments.weights, decoding
    )
    print("exported to", export_saved_model(translator, arguments.output))


if __name__ == "__main__":
    main()
