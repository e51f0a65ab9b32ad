"""The token ids of a corpus, written once, and the selection of pairs."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from luong_keras.config.checks import check_choice, check_integers
from luong_keras.data.corpus import Corpus
from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.path_checks import no_link
from luong_keras.tables import pluralize
from luong_keras.text.tokenizer import Tokenizer, map_lines

OVER_LONG = ("drop", "truncate", "truncate_source_left")


class TokenIds:
    """The ids of one side of a corpus, read through memory maps.

    Args:
        ids: The ids of all sentences in order, without `<s>` and `</s>`.
        offsets: (N + 1,) integer array, the start of each sentence, followed
            by the number of ids.

    Attributes:
        lengths: (N,) int32 array, the number of tokens of each sentence.
    """

    def __init__(self, ids: np.ndarray, offsets: np.ndarray) -> None:
        self._ids, self._offsets = ids, offsets
        self.lengths = np.diff(offsets).astype(np.int32)

    def count(self, token_id: int) -> int:
        """Return the number of tokens with this id."""
        return int(np.count_nonzero(self._ids == token_id))

    def rows(
        self, lines: np.ndarray, max_length: int, keep_end: bool = False
    ) -> list[np.ndarray]:
        """Read sentences, cut to a number of tokens.

        Args:
            lines: The numbers of the sentences, from 0.
            max_length: The maximum number of tokens kept of a sentence.
            keep_end: Whether to keep the last tokens instead of the first.

        Returns:
            The kept ids of each sentence.
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
    """Open the ids of one side, or encode and write them the first time.

    The ids are written into the corpus's folder, under a name that depends on
    the text and the tokenizer.

    Args:
        corpus: The corpus.
        side: `"source"` or `"target"`.
        tokenizer: The tokenizer of that side.
        threads: The number of threads, one per core when None.
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
        return _open_token_ids(*paths, dtype, len(corpus))
    except (OSError, ValueError):
        pass  # not written yet, or incomplete
    lines, lengths = corpus.side_lines(side), []
    with atomic_path(paths[0]) as temporary, open(temporary, "wb") as file:
        for ids in map_lines(tokenizer.encode, lines, threads):
            file.write(ids.flat_values.numpy().astype(dtype).tobytes())
            lengths.append(ids.row_lengths().numpy())
            if progress is not None:
                progress(len(lengths[-1]))
    with atomic_path(paths[1]) as temporary:
        np.save(temporary, np.cumsum(np.concatenate([[0], *lengths])))
    return _open_token_ids(*paths, dtype, len(corpus))


def _open_token_ids(path: Path, offsets_path: Path, dtype: type, count: int):
    offsets = np.load(no_link(offsets_path), mmap_mode="r")
    if offsets.shape != (count + 1,):
        raise ValueError(f"{offsets_path} is of another text.")
    ids: np.ndarray = np.zeros(0, dtype)
    if offsets[-1]:
        ids = np.memmap(no_link(path), dtype, "r", shape=int(offsets[-1]))
    # Slices of plain arrays are ten times as fast as slices of a map.
    return TokenIds(np.asarray(ids), np.asarray(offsets))


@dataclass(frozen=True)
class PairSelection:
    """The pairs that are used for training, and the lengths of all pairs.

    Args:
        lines: (n,) integer array, the numbers of the used lines, ascending.
        source: The ids of all source sentences.
        target: The ids of all target sentences.
        source_lengths: (N,) integer array, the tokens of each source line of
            the corpus, at most the maximum length.
        target_lengths: The same for the target side.
        dropped: The number of pairs left out because they were too long.
        cut: The number of pairs cut because they were too long.
        empty: The number of pairs left out for a side without tokens.
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
    """Select the pairs to train on.

    Args:
        corpus: The sentence pairs.
        source_tokenizer: The tokenizer of the source sentences.
        target_tokenizer: The tokenizer of the target sentences.
        max_length: The maximum number of tokens per side, without `<s>` and
            `</s>`.
        over_long: `"drop"`, `"truncate"` or `"truncate_source_left"`.

    Returns:
        The selection.

    Raises:
        ValueError: If an argument is out of range, or no pair is left.
    """
    check_integers(max_length=max_length)
    check_choice(OVER_LONG, over_long=over_long)
    source = token_ids(corpus, "source", source_tokenizer)
    target = token_ids(corpus, "target", target_tokenizer)
    # A sentence may consist only of characters that the tokenizer deletes.
    is_empty = (source.lengths == 0) | (target.lengths == 0)
    is_long = ~is_empty & (
        np.maximum(source.lengths, target.lengths) > max_length
    )
    drops_long = over_long == "drop"
    selection = PairSelection(
        lines=np.flatnonzero(
            ~(is_empty | is_long) if drops_long else ~is_empty
        ),
        source=source,
        target=target,
        source_lengths=np.minimum(source.lengths, max_length),
        target_lengths=np.minimum(target.lengths, max_length),
        dropped=int(is_long.sum()) if drops_long else 0,
        cut=0 if drops_long else int(is_long.sum()),
        empty=int(is_empty.sum()),
    )
    if not selection.lines.size:
        raise ValueError(
            f"No pair is left to train on. Received: "
            f"{pluralize(len(corpus), 'pair')}, "
            f"{selection.empty} with a side without tokens, "
            f"{selection.dropped} with more than {max_length} tokens. Raise "
            "`max_length` (data.max_length), or cut longer texts with "
            "`over_long='truncate'` (data.over_long)."
        )
    return selection
