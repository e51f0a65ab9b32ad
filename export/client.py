"""Translate with a server that serves an export.

    python export/client.py "The old teacher opens the door."
    python export/client.py --url grpc://localhost:8500 < sentences.txt

This script is `luong-keras ask`; `--help` lists all options.
"""

import sys

from luong_keras_command import main

if __name__ == "__main__":
    sys.argv.insert(1, "ask")
    sys.exit(main())
