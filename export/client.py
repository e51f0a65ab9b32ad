"""Translates through a server that serves an export.

    python export/client.py "The old teacher opens the door."
    python export/client.py --url grpc://localhost:8500 < sentences.txt

It is `luong-keras ask`; its `--help` lists all options.
"""

import sys

from luong_keras_command import main

if __name__ == "__main__":
    sys.exit(main(["ask", *sys.argv[1:]]))
