"""What the newest export of a run translates, called from Python."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import tensorflow as tf

# Registers the operations of SentencePiece; an export of words has none.
with contextlib.suppress(ImportError):
    import tensorflow_text  # noqa: F401


def newest_version(folder: str | Path) -> Path:
    """The version of the largest number in a folder of exports.

    Raises:
        FileNotFoundError: where there is none.
    """
    folder = Path(folder)
    versions = [path for path in folder.glob("*") if path.name.isdecimal()]
    if not versions:
        raise FileNotFoundError(
            f"Expected: a SavedModel below {folder}, its name a number. "
            "Received: none. Has the run come to its end?"
        )
    return max(versions, key=lambda path: int(path.name))


def exported_translations(
    folder: str | Path, sources: Sequence[str], batch_size: int = 32
) -> list[str]:
    """The best translations of an export, as a server would answer."""
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]
    found = []
    for start in range(0, len(sources), batch_size):
        text = tf.constant(sources[start : start + batch_size], tf.string)
        answer = serve(text=text)["translation"].numpy()
        found += [translation.decode() for translation in answer]
    return found
