"""The token ids of a corpus, written once, and which pairs are used."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luong_keras.data.corpus import Corpus
from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.path_checks import no_link
from luong_keras.tables import counted
from luong_keras.text.threads import in_threads
from luong_keras.text.tokenizer import Tokenizer
from luong_keras.with_tensorflow import tf

OVER_LONG = ("drop", "truncate", "truncate_source_left")
_LINES_PER_CALL = 4096


class TokenIds:
    """The ids of one side of a corpus, read through memory maps.

    Args:
        ids: Of all sentences, one after the other, without `<s>` and `</s>`.
        offsets: Where each sentence starts, and the number of ids, (N + 1,).

    Attributes:
        lengths: Tokens of each sentence, (N,), int32.
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray) -> None:
        self._ids, self._offsets = ids, offsets
        self.lengths = np.diff(offsets).astype(np.int32)

    def count(self, token_id: int) -> int:
        """Returns the number of tokens with this id."""
        return int(np.count_nonzero(self._ids == token_id))

    def rows(
        self, lines: np.ndarray, max_length: int, keep_end: bool = False
    ) -> list[np.ndarray]:
        """Reads sentences, cut to a number of tokens.

        Args:
            lines: Their numbers, from 0.
            max_length: The most tokens that are left of a sentence.
            keep_end: Whether the first tokens go instead of the last.

        Returns:
            The ids that are left of each.
        """
        starts, stops = self._offsets[lines], self._offsets[lines + 1]
        if keep_end:
            starts = np.maximum(starts, stops - max_length)
        else:
            stops = np.minimum(stops, starts + max_length)
        return [
            self._ids[start:stop]
            for start, stop in zip(starts.tolist(), stops.tolist(), strict=True)
        ]


def token_ids(
    corpus: Corpus,
    side: str,
    tokenizer: Tokenizer,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> TokenIds:
    """Encodes each sentence, or opens what was written the last time.

    The ids are kept in the corpus's folder, under a name made of the text
    and the tokenizer.

    Args:
        corpus: The corpus.
        side: `"source"` or `"target"`.
        tokenizer: The tokenizer of that side.
        threads: How many threads encode, one a core when None.
        progress: Called with the number of further sentences encoded.

    Returns:
        The ids.
    """
    name = f"{corpus.fingerprint}\n{side}\n{tokenizer.fingerprint}"
    digest = hashlib.sha256(name.encode()).hexdigest()[:16]
    paths = (
        corpus.folder / f"{side}.ids.{digest}.bin",
        corpus.folder / f"{side}.offsets.{digest}.npy",
    )
    dtype = np.uint16 if tokenizer.vocabulary_size <= 1 << 16 else np.int32
    try:
        return _opened(*paths, dtype, len(corpus))
    except (OSError, ValueError):
        pass  # Not written yet, or not whole.
    encode = encoder(tokenizer)

    def encoded(start: int) -> tuple[bytes, np.ndarray]:
        stop = min(start + _LINES_PER_CALL, len(corpus))
        lines = corpus.side(side, np.arange(start, stop))
        ids = encode(tf.constant(lines, tf.string))
        flat = ids.flat_values.numpy().astype(dtype)
        return flat.tobytes(), ids.row_lengths().numpy()

    starts = range(0, len(corpus), _LINES_PER_CALL)
    lengths = []
    with atomic_path(paths[0]) as temporary, open(temporary, "wb") as file:
        for content, counts in in_threads(encoded, starts, threads):
            file.write(content)
            lengths.append(counts)
            if progress is not None:
                progress(len(counts))
    with atomic_path(paths[1]) as temporary:
        np.save(temporary, np.cumsum(np.concatenate([[0], *lengths])))
    return _opened(*paths, dtype, len(corpus))


def encoder(tokenizer: Tokenizer) -> Callable[[tf.Tensor], tf.RaggedTensor]:
    """Compiles a tokenizer's `encode` for batches of any size.

    Args:
        tokenizer: The tokenizer.

    Returns:
        A function from strings (B,) to ids (B, None).
    """
    # Traced here: threads would do so once each, and TensorFlow warns where
    # several tokenizers do so when they are called.
    return tf.function(
        tokenizer.encode,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    ).get_concrete_function()


def _opened(path: Path, offsets_path: Path, dtype: type, count: int):
    offsets = np.load(no_link(offsets_path), mmap_mode="r")
    if offsets.shape != (count + 1,):
        raise ValueError(f"{offsets_path} is of another text.")
    ids: np.ndarray = np.zeros(0, dtype)
    if offsets[-1]:
        ids = np.memmap(no_link(path), dtype, "r", shape=int(offsets[-1]))
    # As plain arrays, since slices of a map are ten times as slow.
    return TokenIds(np.asarray(ids), np.asarray(offsets))


@dataclass(frozen=True)
class PairSelection:
    """The pairs that are used, and the lengths of all.

    Args:
        lines: The numbers of the used lines, (n,), ascending.
        source: The ids of all source sentences.
        target: The ids of all target sentences.
        source_lengths: Tokens of each line of the corpus, at most the
            maximal length, (N,).
        target_lengths: The same of the target side.
        dropped: How many pairs were too long and left out.
        cut: How many pairs were too long and are cut.
        empty: How many pairs were left out for a side of no tokens.
    """

    lines: np.ndarray
    source: TokenIds
    target: TokenIds
    source_lengths: np.ndarray
    target_lengths: np.ndarray
    dropped: int
    cut: int
    empty: int


def select_pairs(
    corpus: Corpus,
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_length: int,
    over_long: str,
) -> PairSelection:
    """Decides, before training, which pairs are used.

    Args:
        corpus: The sentence pairs.
        source_tokenizer: Turns source sentences into ids.
        target_tokenizer: Turns target sentences into ids.
        max_length: The most tokens of a side, `<s>` and `</s>` not counted.
        over_long: `"drop"`, `"truncate"` or `"truncate_source_left"`.

    Returns:
        The selection.

    Raises:
        ValueError: An argument is out of its range, or no pair is left.
    """
    if max_length < 1:
        raise ValueError(
            f"`max_length` must be at least 1. Received: {max_length}."
        )
    if over_long not in OVER_LONG:
        raise ValueError(
            f"`over_long` must be one of {OVER_LONG}. Received: {over_long!r}."
        )
    source = token_ids(corpus, "source", source_tokenizer)
    target = token_ids(corpus, "target", target_tokenizer)
    # A character that the tokenizer deletes can be a whole sentence.
    empty = (source.lengths == 0) | (target.lengths == 0)
    long = ~empty & (np.maximum(source.lengths, target.lengths) > max_length)
    drop = over_long == "drop"
    selection = PairSelection(
        lines=np.flatnonzero(~(empty | long) if drop else ~empty),
        source=source,
        target=target,
        source_lengths=np.minimum(source.lengths, max_length),
        target_lengths=np.minimum(target.lengths, max_length),
        dropped=int(long.sum()) if drop else 0,
        cut=0 if drop else int(long.sum()),
        empty=int(empty.sum()),
    )
    if not selection.lines.size:
        raise ValueError(
            f"No pair is left to train on. Received: "
            f"{counted(len(corpus), 'pair')}, "
            f"{selection.empty} with a side of no tokens, "
            f"{selection.dropped} with more than {max_length} tokens. Give a "
            "larger `max_length`, or `over_long='truncate'`."
        )
    return selection
