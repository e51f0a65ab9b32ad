"""Score a trained run on its test pairs and print a table.

    python examples/evaluate.py --run-dir runs/demo --beam-size 1

With `--json` it prints a line of JSON.

In Python: `Evaluation(Translator.from_run(...), config.data).scores(...)`.
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.evaluate import parse, run

if __name__ == "__main__":
    sys.exit(run(parse(sys.argv[1:])))
