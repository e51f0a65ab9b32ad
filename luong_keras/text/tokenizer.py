"""Base class of word and subword tokenizers."""

from __future__ import annotations

import abc
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from luong_keras.files.atomic_file import atomic_path, write_json
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID
from luong_keras.text.threads import batches_of
from luong_keras.with_tensorflow import tf

LINES_PER_CALL = 1024  # Batched calls are many times faster than single ones.


class Tokenizer(tf.Module, abc.ABC):
    """Text to ids and back, inside the TensorFlow graph.

    A tokenizer is a `tf.Module`, so an export that tracks it carries its
    tables and files. Its methods take batches, also empty ones, run inside
    `tf.function` without AutoGraph, and take any bytes: what is not UTF-8 is
    replaced by U+FFFD.

    Args:
        lowercase: Whether text is lower-cased before anything else.
    """

    kind: str  # The name that is written into the tokenizer's JSON file.
    file_suffix: str

    def __init__(self, lowercase: bool) -> None:
        super().__init__()
        self.lowercase = bool(lowercase)

    @property
    @abc.abstractmethod
    def vocabulary_size(self) -> int:
        """The number of ids, the four special tokens included."""

    @property
    @abc.abstractmethod
    def options(self) -> dict[str, Any]:
        """The arguments that, with the file, restore this tokenizer."""

    @abc.abstractmethod
    def file_bytes(self) -> bytes:
        """Returns the content of the tokenizer's file."""

    @abc.abstractmethod
    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Splits text into tokens as they stand there.

        Args:
            text: Strings, (B,).

        Returns:
            Strings (B, None), one for one with the ids of `encode`; a word
            outside the vocabulary keeps its spelling.
        """

    @abc.abstractmethod
    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Turns text into ids, without `<s>` and `</s>`.

        Args:
            text: Strings, (B,).

        Returns:
            Ids (B, None), int32.
        """

    @abc.abstractmethod
    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Names ids.

        Args:
            ids: Integers of any shape, ragged or not.

        Returns:
            The token of each id in the same shape; `<unk>` for an id outside
            the vocabulary.
        """

    @abc.abstractmethod
    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Puts tokens together as running text.

        Args:
            tokens: Strings (B, None), as from `tokens` or `lookup`.

        Returns:
            Strings (B,).
        """

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Turns ids into running text.

        Args:
            ids: Integers (B, None); `<pad>`, `<s>` and `</s>` are left out.

        Returns:
            Strings (B,).
        """
        is_word = (ids != PAD_ID) & (ids != BOS_ID) & (ids != EOS_ID)
        return self.join(self.lookup(tf.ragged.boolean_mask(ids, is_word)))

    @property
    def fingerprint(self) -> str:
        """A hash of everything that decides the ids."""
        options = json.dumps(
            {"kind": self.kind, **self.options}, sort_keys=True
        )
        content = options.encode() + b"\n" + self.file_bytes()
        return hashlib.sha256(content).hexdigest()

    def save(self, folder: str | Path, name: str) -> None:
        """Writes `NAME.json` and the file of the vocabulary or the model.

        `luong_keras.text.loading.load_tokenizer` reads them again.

        Args:
            folder: Where to write; made if absent.
            name: The files' name without suffix, such as `"source"`.
        """
        folder = Path(folder)
        with atomic_path(folder / f"{name}{self.file_suffix}") as temporary:
            temporary.write_bytes(self.file_bytes())
        description = {
            "kind": self.kind,
            "options": self.options,
            "fingerprint": self.fingerprint,
        }
        # The last one: without it there is no tokenizer.
        write_json(folder / f"{name}.json", description)

    def clean(self, text: tf.Tensor) -> tf.Tensor:
        """Makes valid UTF-8 of any bytes, and lower case where chosen."""
        return clean_text(text, self.lowercase)


def clean_text(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    """Makes valid UTF-8 of any bytes, and lower case where chosen.

    Args:
        text: Strings of any shape.
        lowercase: Whether to lower-case.

    Returns:
        Strings of the same shape.
    """
    text = tf.strings.unicode_transcode(
        text,
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        errors="replace",
        replacement_char=0xFFFD,
    )
    return lower_case(text) if lowercase else text


def lower_case(text: tf.Tensor) -> tf.Tensor:
    """Lower-cases as Python's `str.lower` does.

    The 40 capital letters of Unicode 14, such as U+2C2F, stay as they are.

    Args:
        text: Valid UTF-8 strings of any shape.

    Returns:
        Strings of the same shape.

    Example:
        >>> lower_case(tf.constant("ÄΣ")).numpy().decode()
        'äς'
    """
    # `tf.strings.lower` ends a string at its first NUL, and no attribute of
    # an operation can hold one.
    parts = tf.strings.split(tf.reshape(text, [-1]), "\0")
    lowered = tf.strings.lower(parts.flat_values, encoding="utf-8")
    parts = parts.with_flat_values(tf.strings.join([lowered, "\0"]))
    joined = tf.strings.reduce_join(parts, axis=-1)
    lengths = tf.strings.length(joined) - 1
    joined = tf.strings.substr(joined, tf.zeros_like(lengths), lengths)
    return tf.ensure_shape(tf.reshape(joined, tf.shape(text)), text.shape)


def vocabulary_of(tokenizer: Tokenizer) -> list[str]:
    """All tokens of a tokenizer, in the order of their ids."""
    ids = tf.range(tokenizer.vocabulary_size)
    return [token.decode() for token in tokenizer.lookup(ids).numpy()]


def batches_of_lines(lines: Iterable[str]) -> Iterator[tf.Tensor]:
    """Groups lines for batched calls.

    Args:
        lines: Sentences, as str or UTF-8 bytes.

    Yields:
        Strings (n,), `LINES_PER_CALL` at a time.
    """
    for group in batches_of(lines, LINES_PER_CALL):
        yield tf.constant(group, tf.string)
