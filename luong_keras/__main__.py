"""Entry point of `python -m luong_keras`, the command `luong-keras`."""

import sys

from luong_keras.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
