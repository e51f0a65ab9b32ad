"""Exports a trained run as a SavedModel for TensorFlow Serving, forkable.

    python export/export_saved_model.py --run-dir runs/demo \
        --output models/translator/1

Several runs with the same vocabularies become an ensemble. The export is
checked as a server would run it; what fails a check is not left. In Python:
`Translator.from_run(...).export("models/translator/1")`.
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.export import parse, run


def main() -> int:
    """Runs what the command line asks for."""
    try:
        return run(parse(sys.argv[1:]))
    except (OSError, ValueError) as error:
        sys.exit(f"Nothing was exported. {error}")


if __name__ == "__main__":
    # A test runs this file; a status of zero is no end of its process.
    if status := main():
        sys.exit(status)
