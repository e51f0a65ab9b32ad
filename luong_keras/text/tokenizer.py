"""The base class of word and subword tokenizers."""

import abc
import atexit
import functools
import hashlib
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from luong_keras.files.atomic_file import atomic_path, write_json
from luong_keras.special_tokens import BOS_ID, EOS_ID, PAD_ID
from luong_keras.text.threads import batches_of, map_in_threads
from luong_keras.with_tensorflow import tf

LINES_PER_CALL = 4096  # batched calls are many times as fast as single ones
_asset_lock = threading.Lock()


class Tokenizer(tf.Module, abc.ABC):
    """Base class of tokenizers between text and ids, in the TensorFlow graph.

    A tokenizer is a `tf.Module`, so an export that tracks it contains its
    tables and files. Its methods run inside `tf.function` without AutoGraph.
    They take batches, including empty batches, of any bytes: invalid UTF-8 is
    replaced by U+FFFD.

    Args:
        file: The file of the vocabulary or the model.
        lowercase: Whether text is lower-cased before anything else.

    Raises:
        FileNotFoundError: If the file does not exist.
    """

    kind: str  # the name in the tokenizer's JSON file
    file_suffix: str
    _size: int

    def __init__(self, file: str | Path, lowercase: bool) -> None:
        super().__init__()
        if not Path(file).is_file():
            name = type(self).__name__
            raise FileNotFoundError(
                f"There is no file {file} of a {name}. "
                f"`{name}.train(...).save(...)` writes one."
            )
        self.lowercase = bool(lowercase)
        self._bytes = Path(file).read_bytes()

    @classmethod
    def _of_bytes(cls, content: bytes, **options: Any) -> Self:
        """Make a tokenizer of the content of its file and its options."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / f"{cls.kind}{cls.file_suffix}"
            file.write_bytes(content)
            return cls(file, **options)

    @property
    def vocabulary_size(self) -> int:
        """The number of ids, including the four special tokens."""
        return self._size

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that restore this tokenizer together with its file."""
        return {"lowercase": self.lowercase}

    def file_bytes(self) -> bytes:
        """Return the content of the tokenizer's file."""
        return self._bytes

    @abc.abstractmethod
    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Split text into tokens, as they are spelled in the text.

        Args:
            text: (B,) strings.

        Returns:
            (B, None) strings, one per id of `encode`; a word outside the
            vocabulary keeps its spelling.
        """

    @abc.abstractmethod
    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:
        """Convert text to ids, without `<s>` and `</s>`.

        Args:
            text: (B,) strings.

        Returns:
            (B, None) int32 ids.
        """

    @abc.abstractmethod
    def lookup(self, ids: tf.Tensor) -> tf.Tensor:
        """Return the tokens of ids.

        Args:
            ids: Integers of any shape, ragged or not.

        Returns:
            The token of each id in the same shape; `<unk>` for an id outside
            the vocabulary.
        """

    @abc.abstractmethod
    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Join tokens to running text.

        Args:
            tokens: (B, None) strings, as from `tokens` or `lookup`.

        Returns:
            (B,) strings.
        """

    def decode(self, ids: tf.RaggedTensor) -> tf.Tensor:
        """Convert ids to running text.

        Args:
            ids: (B, None) integers; `<pad>`, `<s>` and `</s>` are left out.

        Returns:
            (B,) strings.
        """
        is_word = (ids != PAD_ID) & (ids != BOS_ID) & (ids != EOS_ID)
        return self.join(self.lookup(tf.ragged.boolean_mask(ids, is_word)))

    @property
    def fingerprint(self) -> str:
        """A hash of everything that determines the ids."""
        options = json.dumps(
            {"kind": self.kind, **self.options}, sort_keys=True
        )
        content = options.encode() + b"\n" + self.file_bytes()
        return hashlib.sha256(content).hexdigest()

    def save(self, folder: str | Path, name: str) -> None:
        """Write `NAME.json` and the file of the vocabulary or the model.

        `luong_keras.text.loading.load_tokenizer` reads these files.

        Args:
            folder: The folder, made if absent.
            name: The name of the files without suffix, such as `"source"`.
        """
        folder = Path(folder)
        with atomic_path(folder / f"{name}{self.file_suffix}") as temporary:
            temporary.write_bytes(self.file_bytes())
            # Without this file, which is written last, the folder has no
            # tokenizer.
            (folder / f"{name}.json").unlink(missing_ok=True)
        description = {
            "kind": self.kind,
            "options": self.options,
            "fingerprint": self.fingerprint,
        }
        write_json(folder / f"{name}.json", description)

    def clean(self, text: tf.Tensor) -> tf.Tensor:
        """Replace invalid UTF-8 by U+FFFD, and lower-case if chosen."""
        return clean_text(text, self.lowercase)


def clean_text(text: tf.Tensor, lowercase: bool) -> tf.Tensor:
    """Replace invalid UTF-8 by U+FFFD, and lower-case if requested.

    Args:
        text: Strings of any shape.
        lowercase: Whether to lower-case as Python's `str.lower` does, with
            spaces for NUL characters. The 40 capital letters of Unicode 14,
            such as U+2C2F, stay unchanged.

    Returns:
        Strings of the same shape.

    Example:
        >>> clean_text(tf.constant("ÄΣ"), lowercase=True).numpy().decode()
        'äς'
    """
    text = tf.strings.unicode_transcode(
        text,
        input_encoding="UTF-8",
        output_encoding="UTF-8",
        errors="replace",
        replacement_char=0xFFFD,
    )
    if not lowercase:
        return text
    # `tf.strings.lower` ends a string at its first NUL, and has other rules for
    # some letters in Turkish and Lithuanian locales.
    text = tf.strings.regex_replace(text, r"\x00", " ")
    for letter in "IİJĮÌÍĨ":
        text = tf.strings.regex_replace(text, letter, letter.lower())
    return tf.strings.lower(text, encoding="utf-8")


def table_asset(name: str, content: bytes) -> tf.saved_model.Asset:
    """Write the file of a table, of which an export contains a copy.

    TensorFlow keeps tables for the life of the process, and shares those with
    the same file name. The name therefore depends on the content, and the files
    are removed when the process ends.

    Args:
        name: The name of the file.
        content: The content of the file.
    """
    process = os.getpid()
    with _asset_lock:
        folder = _asset_folder(process)
        file = folder / hashlib.sha256(content).hexdigest() / name
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            partial = file.with_name("partial")
            partial.write_bytes(content)
            os.replace(partial, file)
    return tf.saved_model.Asset(str(file))


@functools.cache
def _asset_folder(process: int) -> Path:
    folder = tempfile.mkdtemp(prefix="luong_keras_words_")

    def remove() -> None:
        if os.getpid() == process:  # not in a fork
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return Path(folder)


def vocabulary_of(tokenizer: Tokenizer) -> list[str]:
    """Return all tokens of a tokenizer, in the order of their ids."""
    ids = tf.range(tokenizer.vocabulary_size)
    return [token.decode() for token in tokenizer.lookup(ids).numpy()]


def map_lines(
    function: Callable[[tf.Tensor], Any],
    lines: Iterable[str | bytes],
    threads: int | None = 1,
) -> Iterator[Any]:
    """Apply a function of text to batches of lines, compiled to a graph.

    Args:
        function: A function of (B,) strings, such as `Tokenizer.encode`.
        lines: Sentences, as str or UTF-8 bytes.
        threads: The number of threads, one per core when None.

    Yields:
        The result for each batch of at most `LINES_PER_CALL` lines, in order.

    Example:
        >>> [lengths.numpy().tolist()
        ...  for lengths in map_lines(tf.strings.length, ["a", "bc"])]
        [[1, 2]]
    """
    # Traced here: otherwise each thread would trace it, and TensorFlow warns
    # if several tokenizers are traced when they are called.
    graph = tf.function(
        function,
        input_signature=[tf.TensorSpec([None], tf.string)],
        autograph=False,
    ).get_concrete_function()
    return map_in_threads(
        lambda batch: graph(tf.constant(batch, tf.string)),
        batches_of(lines, LINES_PER_CALL),
        threads,
    )
