"""The number of tokens of each sentence of a corpus, counted once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from luong_keras.data.corpus import Corpus
from luong_keras.files.atomic_file import atomic_path
from luong_keras.missing_package import missing_package
from luong_keras.text.tokenizer import Tokenizer

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_LINES_PER_CALL = 4096


def token_lengths(
    corpus: Corpus, side: str, tokenizer: Tokenizer
) -> np.ndarray:
    """Counts the tokens of each sentence, or reads the counts of last time.

    The counts are kept in the corpus's folder, under a name made of the text
    and the tokenizer.

    Args:
        corpus: The corpus.
        side: `"source"` or `"target"`.
        tokenizer: The tokenizer of that side.

    Returns:
        Counts (N,), int32, without `<s>` and `</s>`.
    """
    name = f"{corpus.fingerprint}\n{side}\n{tokenizer.fingerprint}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    path = corpus.folder / f"{side}.lengths.{digest}.npy"
    try:
        lengths = np.load(path)
        if lengths.shape == (len(corpus),) and lengths.dtype == np.int32:
            return lengths
    except (OSError, ValueError):
        pass  # Not counted yet, or not whole.
    lengths = _count(corpus, side, tokenizer)
    with atomic_path(path) as temporary:
        np.save(temporary, lengths)
    return lengths


def encoder(tokenizer: Tokenizer) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """Compiles a tokenizer's `encode` for batches of any size.

    Args:
        tokenizer: The tokenizer.

    Returns:
        A function from strings (B,) to ids (B, None).
    """
    return tf.function(
        tokenizer.encode,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    )


def _count(corpus: Corpus, side: str, tokenizer: Tokenizer) -> np.ndarray:
    encode = encoder(tokenizer)
    lengths = np.empty(len(corpus), np.int32)
    for start in range(0, len(corpus), _LINES_PER_CALL):
        stop = min(start + _LINES_PER_CALL, len(corpus))
        lines = corpus.side(side, np.arange(start, stop))
        ids = encode(tf.constant(lines, tf.string))
        lengths[start:stop] = ids.row_lengths().numpy()
    return lengths
