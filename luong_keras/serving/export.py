"""A translator as a SavedModel that TensorFlow Serving loads."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import keras
import tensorflow as tf

from luong_keras.serving.translator import Translator


def export_saved_model(translator: Translator, folder: str | Path) -> Path:
    """Writes the translator's graph, weights and vocabularies.

    Signatures, batch first everywhere:

    - `serving_default`: `text` (B,) → `translation` (B,), `score` (B,);
    - `translate`: `text` (B,) → the n best with alignments, as
      `Translator.translate_batch` describes.

    The folder appears whole or not at all: it is written under a temporary
    name beside its place and renamed.

    Args:
        translator: what to export.
        folder: where; TensorFlow Serving expects a number as its name, the
            version. It must not exist.

    Returns:
        The folder.

    Raises:
        FileExistsError: where the folder exists: an exported version is
            never changed under a server's feet.
    """
    folder = Path(folder)
    if folder.exists():
        raise FileExistsError(
            f"Expected: a new folder for the SavedModel. Received: {folder}, "
            "which exists. Choose another version number, or remove it."
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(
        tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent)
    )
    try:
        _write(translator, temporary / "model")
        os.replace(temporary / "model", folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def _write(translator: Translator, folder: Path) -> None:
    text = tf.TensorSpec([None], tf.string, name="text")

    def best(text):
        found = translator.translate_batch(text)
        return {
            "translation": found["translations"][:, 0],
            "score": found["scores"][:, 0],
        }

    archive = keras.export.ExportArchive()
    # The variables by Keras' layers, the tables by the tokenizers: a
    # tf.Module that held both would give every variable twice.
    archive.track(translator.translation_model.model)
    archive.track(translator.source_tokenizer)
    archive.track(translator.target_tokenizer)
    archive.add_endpoint("serving_default", best, input_signature=[text])
    archive.add_endpoint(
        "translate", translator.translate_batch, input_signature=[text]
    )
    archive.write_out(str(folder), verbose=False)
