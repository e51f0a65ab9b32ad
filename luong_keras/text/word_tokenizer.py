"""The word tokenizer in the graph, and its vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from luong_keras.special_tokens import SPECIAL_TOKENS, UNK, UNK_ID
from luong_keras.text import word_splitting
from luong_keras.text.tokenizer import (
    Tokenizer,
    clean_text,
    map_lines,
    table_asset,
    vocabulary_of,
)
from luong_keras.with_tensorflow import tf


class WordTokenizer(Tokenizer):
    """A tokenizer of words; words outside the vocabulary are `<unk>`.

    sacreBLEU's tokenisation `13a` splits a sentence into words or, with
    `pretokenized=True`, white space does. A word spelled like a special token
    has the id of `<unk>`.

    Args:
        vocabulary_file: A UTF-8 file of one word per line. The first four
            lines are `<pad>`, `<unk>`, `<s>` and `</s>`; line n, counted from
            0, has id n.
        pretokenized: Whether text is split at white space only.
        lowercase: Whether text is lower-cased first.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not such a vocabulary.

    Example:
        >>> tokenizer = WordTokenizer.train(["a cat.", "a dog."], 8)
        >>> ids = tokenizer.encode(tf.constant(["a dog, a cat."]))
        >>> ids.to_list()
        [[5, 7, 1, 5, 6, 4]]
        >>> tokenizer.decode(ids).numpy()
        array([b'a dog <unk> a cat.'], dtype=object)
    """

    kind = "words"
    file_suffix = ".vocab"

    def __init__(
        self,
        vocabulary_file: str | Path,
        pretokenized: bool = False,
        lowercase: bool = False,
    ) -> None:
        super().__init__(vocabulary_file, lowercase)
        self.pretokenized = bool(pretokenized)
        self._size = len(_read_vocabulary(self._bytes, vocabulary_file))
        name = Path(vocabulary_file).name
        self._asset = table_asset(name, self._bytes)
        index = tf.lookup.TextFileIndex
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                self._asset.asset_path,
                key_dtype=tf.string,
                key_index=index.WHOLE_LINE,
                value_dtype=tf.int64,
                value_index=index.LINE_NUMBER,
            ),
            default_value=UNK_ID,
        )
        self._words = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                self._asset.asset_path,
                key_dtype=tf.int64,
                key_index=index.LINE_NUMBER,
                value_dtype=tf.string,
                value_index=index.WHOLE_LINE,
            ),
            default_value=UNK,
        )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int | None,
        *,
        pretokenized: bool = False,
        lowercase: bool = False,
        min_count: int = 1,
        threads: int | None = 1,
    ) -> WordTokenizer:
        """Make a tokenizer of the most frequent words of a text.

        Words of equal frequency are ordered by their bytes, so the vocabulary
        does not depend on the order of the lines.

        Args:
            lines: Sentences.
            vocabulary_size: The maximum number of ids, including the four
                special tokens; a text with fewer words gives fewer. None takes
                all words of the text.
            pretokenized: As in the constructor.
            lowercase: As in the constructor.
            min_count: The minimum number of occurrences of a word.
            threads: As in `luong_keras.text.word_tokenizer.count_words`.

        Returns:
            The tokenizer; `save` it to keep it.

        Raises:
            ValueError: If `vocabulary_size` leaves no room for a word, or no
                word occurs `min_count` times.
        """
        max_words = (
            None
            if vocabulary_size is None
            else vocabulary_size - len(SPECIAL_TOKENS)
        )
        if max_words is not None and max_words < 1:
            raise ValueError(
                "`vocabulary_size` counts the four special tokens, so it must "
                f"be at least 5. Received: {vocabulary_size}."
            )
        counts = count_words(
            lines,
            lambda batch: _split_words(
                clean_text(batch, lowercase), pretokenized
            ),
            threads,
        )
        for token in SPECIAL_TOKENS:
            counts.pop(token.encode(), None)
        words = sorted(
            (word for word, count in counts.items() if count >= min_count),
            key=lambda word: (-counts[word], word),
        )
        if not words:
            raise ValueError(
                f"No word occurs {min_count} times in the text. Received: "
                f"{len(counts)} different words. Give more text, or a smaller "
                "`min_count`."
            )
        return cls.from_words(
            (word.decode() for word in words[:max_words]),
            pretokenized=pretokenized,
            lowercase=lowercase,
        )

    @classmethod
    def from_words(
        cls,
        words: Iterable[str],
        *,
        pretokenized: bool = False,
        lowercase: bool = False,
    ) -> WordTokenizer:
        """Make a tokenizer of words, which get the ids 4, 5, ...

        Args:
            words: The words without the special tokens.
            pretokenized: As in the constructor.
            lowercase: As in the constructor.

        Returns:
            The tokenizer; `save` it to keep it.

        Raises:
            ValueError: If a word is repeated, a special token or empty, or
                contains white space.
        """
        lines = [*SPECIAL_TOKENS, *words]
        for word, count in Counter(lines).items():
            if count > 1 or word.split() != [word]:
                raise ValueError(
                    "`words` must be different words without white space, and "
                    f"none of {list(SPECIAL_TOKENS)}. Received: {word!r}"
                    f"{' twice' if count > 1 else ''}. Leave it out."
                )
        return cls._of_bytes(
            "".join(line + "\n" for line in lines).encode(),
            pretokenized=pretokenized,
            lowercase=lowercase,
        )

    @property
    def words(self) -> list[str]:
        """The words in the order of their ids, without special tokens.

        Example:
            >>> WordTokenizer.from_words(["cat", "dog"]).words
            ['cat', 'dog']
        """
        return vocabulary_of(self)[len(SPECIAL_TOKENS) :]

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that restore this tokenizer together with its file."""
        return {"pretokenized": self.pretokenized, **super().options}

    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        return _split_words(self.clean(text), self.pretokenized)

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        words = self.tokens(text)
        ids = self._ids.lookup(words.flat_values)
        # A word of the text may be spelled like a special token.
        ids = tf.where(
            ids < len(SPECIAL_TOKENS), tf.cast(UNK_ID, ids.dtype), ids
        )
        return words.with_flat_values(tf.cast(ids, tf.int32))

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:  # noqa: D102
        return tf.ragged.map_flat_values(
            lambda flat: self._words.lookup(tf.cast(flat, tf.int64)), ids
        )

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:  # noqa: D102
        if self.pretokenized:
            return word_splitting.join_with_spaces(tokens)
        return word_splitting.join_13a(tokens)


def _split_words(text: tf.Tensor, pretokenized: bool) -> tf.RaggedTensor:
    if pretokenized:
        return word_splitting.split_at_spaces(text)
    return word_splitting.split_13a(text)


def count_words(
    lines: Iterable[str],
    split: Callable[[tf.Tensor], tf.RaggedTensor],
    threads: int | None = 1,
) -> Counter[bytes]:
    """Count the words of a text.

    Args:
        lines: Sentences.
        split: A function from (B,) sentences to (B, None) words, in the graph.
        threads: The number of threads, one per core when None. It does not
            change the counts.

    Returns:
        The counts.

    Example:
        >>> lines = ["a b a", "b a"]
        >>> sorted(count_words(lines, tf.strings.split).items())
        [(b'a', 3), (b'b', 2)]
    """
    totals: Counter[bytes] = Counter()
    for words, _, counts in map_lines(
        lambda batch: tf.unique_with_counts(split(batch).flat_values),
        lines,
        threads,
    ):
        counts_by_word = zip(
            words.numpy(), counts.numpy().tolist(), strict=True
        )
        totals.update(dict(counts_by_word))
    return totals


def _read_vocabulary(content: bytes, path: str | Path) -> list[str]:
    """Read and check a vocabulary.

    Args:
        content: UTF-8, one word per line, the special tokens first.
        path: The file of this content, for messages.

    Returns:
        The words; the place of a word is its id.

    Raises:
        ValueError: If the content is not UTF-8 or does not begin with the
            special tokens; if a word is empty, contains white space or is
            repeated, with the number of the line, from 1.
    """
    try:
        words = content.decode("utf-8").removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"The vocabulary {path} is not UTF-8 text ({error}). Write it "
            "again, or train a new tokenizer."
        ) from error
    if tuple(words[: len(SPECIAL_TOKENS)]) != SPECIAL_TOKENS:
        raise ValueError(
            f"A vocabulary starts with the lines {list(SPECIAL_TOKENS)}. "
            f"Received: {words[: len(SPECIAL_TOKENS)]} in {path}. Put the "
            "special tokens first."
        )
    first_lines: dict[str, int] = {}
    for number, word in enumerate(words, start=1):
        if len(word.split()) != 1 or word != word.strip():
            raise ValueError(
                f"Line {number} of the vocabulary {path} must be one word "
                f"without white space. Received: {word!r}. Remove the line."
            )
        first = first_lines.setdefault(word, number)
        if first != number:
            raise ValueError(
                f"The word {word!r} stands twice in the vocabulary {path}: in "
                f"line {first} and in line {number}. Remove one of the lines."
            )
    return words
