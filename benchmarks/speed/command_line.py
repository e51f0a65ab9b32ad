"""Common parts of the command lines of all benchmarks."""

import argparse
import os
import sys
from pathlib import Path


def make_parser(description):
    """Make an argument parser that keeps the lines of its description."""
    return argparse.ArgumentParser(
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def data_folder(name):
    """Return a folder in that of `LUONG_KERAS_DATA`; without it, exit."""
    if "LUONG_KERAS_DATA" not in os.environ:
        sys.exit(f"Set LUONG_KERAS_DATA to the folder that has {name}/.")
    return Path(os.environ["LUONG_KERAS_DATA"], name)
