"""Translate standard input or files with a trained run.

    echo "The old teacher opens the door." | \
        python examples/translate.py --run-dir runs/demo

`--n-best` and `--alignments` print JSON lines instead of text. In Python:

    Translator.from_run("runs/demo").translate(["The old teacher …"])
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["translate", *sys.argv[1:]]))
