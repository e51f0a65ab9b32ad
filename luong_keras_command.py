"""The entry point of the command `luong-keras`.

It lies beside the package, whose import would import Keras: the command reads
its arguments, and chooses a backend, before. A script that does so too imports
this module first.
"""

import os
import sys

if "luong_keras" not in sys.modules:
    os.environ["LUONG_KERAS_LAZY"] = "1"


def main(argv=None):
    """Runs the command line; see `luong_keras.cli.main`."""
    from luong_keras.cli.main import main

    return main(argv)


if __name__ == "__main__":
    sys.exit(main())
