"""Trains, evaluates and exports a translator: `luong-keras train`, forkable.

Without arguments it trains the `demo` preset on the built-in English-German
corpus: a few minutes on two cores. `--preset paper` is the system of Luong,
Pham and Manning (2015) on WMT14, for a GPU; `--preset small` suits tens of
thousands of pairs of your own:

    python examples/wmt14_train.py --preset small \
        --set data.train=corpus/train --set data.dev=corpus/dev \
        --set data.test=corpus/test --run-dir runs/mine

The same command again resumes a run that was interrupted. The steps are in
`luong_keras/recipe/`: what `run_recipe` calls, a script of yours can call.
"""

import os
import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.train import parse, run


def main() -> int:
    """Runs what the command line asks for; returns the exit status."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    call = parse(sys.argv[1:])
    # Here, the settings are Python: call._replace(config=...).
    return run(call)


if __name__ == "__main__":
    sys.exit(main())
