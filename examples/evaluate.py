"""Score a trained run on its test pairs and print a table.

    python examples/evaluate.py --run-dir runs/demo --beam-size 1

With `--json` it prints a line of JSON.

In Python: `Evaluation(Translator.from_run(...), config.data).scores(...)`.
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["evaluate", *sys.argv[1:]]))
