"""Export a trained run as a SavedModel for TensorFlow Serving.

    python export/export_saved_model.py --run-dir runs/demo \
        --output models/translator/1

This script is `luong-keras export`; `--help` lists all options. In Python:
`Translator.from_run(...).export("models/translator/1")`.
"""

import sys

from luong_keras_command import main

if __name__ == "__main__":
    sys.argv.insert(1, "export")
    # A test runs this file in its process: exit only with an error.
    if status := main():
        sys.exit(status)
