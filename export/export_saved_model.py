"""Export a trained run as a SavedModel for TensorFlow Serving.

    python export/export_saved_model.py --run-dir runs/demo \
        --output models/translator/1

Several runs with the same vocabularies become an ensemble. The export is
checked as a server would run it; an export that fails is removed. In Python:
`Translator.from_run(...).export("models/translator/1")`.
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.export import Export, run
from luong_keras.cli.parsing import parse_arguments


def main() -> int:
    """Run the command line."""
    try:
        arguments = parse_arguments(Export, "luong-keras export", sys.argv[1:])
        return run(arguments)
    except (OSError, ValueError) as error:
        sys.exit(f"Nothing was exported. {error}")


if __name__ == "__main__":
    # A test runs this file in its process: exit only with an error.
    if status := main():
        sys.exit(status)
