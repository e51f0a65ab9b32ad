"""Unknown words of translations replaced in the graph (section 4.2)."""

from __future__ import annotations

import tempfile
from pathlib import Path

from luong_keras.alignment.dictionary import read_dictionary
from luong_keras.decoding.unk_replacement import copied_positions
from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


class UnknownWords(tf.Module):
    """Puts source words, or their translations, in place of `<unk>`.

    Args:
        dictionary: a file of word translations, as `read_dictionary` reads;
            an export carries what is needed of it. Words that it has not are
            copied, as are all where it is None.
        alignment_step: as `DecodingConfig.alignment_step`.
    """

    def __init__(
        self, dictionary: str | None, alignment_step: str = "produces"
    ) -> None:
        super().__init__()
        self.alignment_step = alignment_step
        words = read_dictionary(dictionary).words if dictionary else {}
        self._table = self._make_table(words) if words else None

    def replace(self, ids, alignments, tokens, source_tokens) -> tf.Tensor:
        """Tokens (B, N, T) without unknown words that have a source word.

        Args:
            ids: (B, N, T).
            alignments: (B, N, T, S).
            tokens: (B, N, T) strings, the names of the ids.
            source_tokens: (B, S) strings.
        """
        positions = copied_positions(ids, alignments, self.alignment_step)
        shape = tf.shape(positions)
        flat = tf.reshape(tf.maximum(positions, 0), [shape[0], -1])
        copies = tf.reshape(tf.gather(source_tokens, flat, batch_dims=1), shape)
        if self._table is not None:
            known = self._table.lookup(copies)
            copies = tf.where(known == "", copies, known)
        return tf.where(positions >= 0, copies, tokens)

    def _make_table(self, words):
        """A table of a file of its own, which exports carry as an asset."""
        self._folder = tempfile.TemporaryDirectory(prefix="luong_keras_words_")
        file = Path(self._folder.name) / "dictionary.tsv"
        lines = (
            f"{word}\t{translation}\n" for word, translation in words.items()
        )
        file.write_bytes("".join(lines).encode())
        self._asset = tf.saved_model.Asset(str(file))
        return tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                self._asset.asset_path,
                key_dtype=tf.string,
                key_index=0,
                value_dtype=tf.string,
                value_index=1,
            ),
            default_value="",
        )
