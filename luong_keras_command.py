"""Entry point of the command `luong-keras`.

This module is not in the package, because importing the package imports Keras.
The command reads its arguments and chooses a backend before that. A script that
does the same imports this module first.
"""

import os
import sys

if "luong_keras" not in sys.modules:
    os.environ["LUONG_KERAS_LAZY"] = "1"


def main(argv=None):
    """Run the command line; see `luong_keras.cli.main`."""
    # The command does not import files of the working folder, which may be
    # another person's run. Nor may the processes that it starts.
    os.environ.setdefault("PYTHONSAFEPATH", "1")
    from luong_keras.cli.main import main

    return main(argv)


if __name__ == "__main__":
    sys.exit(main())
