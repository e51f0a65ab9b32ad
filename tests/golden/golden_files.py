"""Where the reference numbers are."""

import os
from pathlib import Path


def golden_path(name: str) -> Path:
    """A file of `LUONG_KERAS_GOLDEN`, or of the copies beside this module."""
    folder = os.environ.get("LUONG_KERAS_GOLDEN")
    return Path(folder or Path(__file__).with_name("data")) / name
