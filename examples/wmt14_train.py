"""Train, evaluate and export a translator, like `luong-keras train`.

Without arguments the script trains the `demo` preset on the built-in
English-German corpus, which takes a few minutes on two cores. `--preset paper`
is the system of Luong, Pham and Manning (2015) on WMT14, for a GPU;
`--preset small` suits a text of tens of thousands of pairs:

    python examples/wmt14_train.py --preset small \
        --set data.train=corpus/train --set data.dev=corpus/dev \
        --set data.test=corpus/test --run-dir runs/mine

The same command resumes an interrupted run. In Python, with other settings:

    from luong_keras.cli.train import parse, run

    call = parse(["--preset", "small"])
    run(call._replace(config=...))

The steps are in `luong_keras/recipe/`: a script can call the functions that
`run_recipe` calls.
"""

import sys

import luong_keras_command  # noqa: F401  (before the package)
from luong_keras.cli.main import main

if __name__ == "__main__":
    sys.exit(main(["train", *sys.argv[1:]]))
