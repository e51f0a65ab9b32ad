"""The number of tokens of each sentence of a corpus, counted once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from luong_keras.data.corpus import Corpus
from luong_keras.files.atomic_file import atomic_path, disk_errors_named
from luong_keras.files.inside import no_link
from luong_keras.missing_package import missing_package
from luong_keras.text.threads import in_threads
from luong_keras.text.tokenizer import Tokenizer

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_LINES_PER_CALL = 4096
_CALLS_PER_NOTE = 128


def token_lengths(
    corpus: Corpus,
    side: str,
    tokenizer: Tokenizer,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Counts the tokens of each sentence, or reads the counts of last time.

    The counts are kept in the corpus's folder, under a name made of the text
    and the tokenizer; also those that a call has made that was interrupted.

    Args:
        corpus: The corpus.
        side: `"source"` or `"target"`.
        tokenizer: The tokenizer of that side.
        threads: How many threads count, one a core when None.
        progress: Is told how many sentences more have been counted.

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
    partial = path.with_name(f"{path.stem}.partial-npy")
    lengths = np.empty(len(corpus), np.int32)
    done = 0
    for piece in _counted(corpus, side, tokenizer, threads, partial, progress):
        lengths[done : done + len(piece)] = piece
        done += len(piece)
    with atomic_path(path) as temporary:
        np.save(temporary, lengths)
    partial.unlink(missing_ok=True)
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


def _counted(
    corpus: Corpus,
    side: str,
    tokenizer: Tokenizer,
    threads: int | None,
    partial: Path,
    progress: Callable[[int], None] | None,
) -> Iterator[np.ndarray]:
    """The counts, piece by piece; of large texts they are kept as they come."""
    count = _counter(corpus, side, tokenizer)
    done = _partial_counts(partial, len(corpus))
    if progress is not None:
        progress(len(done))
    yield done
    starts = range(len(done), len(corpus), _LINES_PER_CALL)
    waiting = []
    for lengths in in_threads(count, starts, threads):
        yield lengths
        waiting.append(lengths)
        if progress is not None:
            progress(len(lengths))
        if len(waiting) == _CALLS_PER_NOTE:
            content = b"".join(piece.tobytes() for piece in waiting)
            with (
                disk_errors_named(partial, atomic=False),
                open(partial, "ab") as file,
            ):
                file.write(content)
            waiting.clear()


def _counter(corpus, side, tokenizer) -> Callable[[int], np.ndarray]:
    """Counts some sentences from a given one on."""
    encode = encoder(tokenizer)
    encode.get_concrete_function()  # type: ignore[attr-defined]

    def count(start: int) -> np.ndarray:
        stop = min(start + _LINES_PER_CALL, len(corpus))
        lines = corpus.side(side, np.arange(start, stop))
        ids = encode(tf.constant(lines, tf.string))
        return ids.row_lengths().numpy().astype(np.int32)

    return count


def _partial_counts(path: Path, most: int) -> np.ndarray:
    """What an earlier call has counted; whole calls of it."""
    if not path.exists():
        return np.zeros(0, np.int32)
    lengths = np.fromfile(no_link(path, in_place=True), np.int32)
    whole = len(lengths) // _LINES_PER_CALL * _LINES_PER_CALL
    if whole > most:
        whole = 0  # Of another text, which is not to be.
    with open(path, "r+b") as file:
        file.truncate(4 * whole)
    return lengths[:whole]
