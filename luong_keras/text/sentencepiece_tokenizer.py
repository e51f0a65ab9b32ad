"""SentencePiece subwords in the graph."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from luong_keras.missing_package import missing_package
from luong_keras.special_tokens import (
    BOS,
    BOS_ID,
    EOS,
    EOS_ID,
    PAD,
    PAD_ID,
    SPECIAL_TOKENS,
    UNK,
    UNK_ID,
)
from luong_keras.text.tokenizer import (
    Tokenizer,
    batches_of_lines,
    clean_text,
)

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error
try:
    import tensorflow_text as tf_text
except ImportError as error:
    raise missing_package("tensorflow-text", error) from error

_MODEL_TYPES = ("bpe", "unigram")


class VocabularySizeError(ValueError):
    """A text has fewer subwords than were asked for, or more characters.

    Attributes:
        nearest: the size that is possible, the special tokens included.
    """

    def __init__(self, message: str, nearest: int) -> None:
        super().__init__(message)
        self.nearest = nearest


class SentencePieceTokenizer(Tokenizer):
    """Text to subwords and their ids, and truly back to text.

    Set random seeds before making one: `tf.random.set_seed` (and so
    `keras.utils.set_random_seed`) clears TensorFlow's kernels, and with them
    the loaded model.

    Args:
        model_file: A SentencePiece model in which `<pad>`, `<unk>`, `<s>`
            and `</s>` have the ids 0 to 3.
        lowercase: Whether text is lower-cased first.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: The file is not such a model.

    Example:
        >>> lines = ["the cat sat", "the cat sat on the mat"]
        >>> tokenizer = SentencePieceTokenizer.train(lines, 24)
        >>> tokenizer.vocabulary_size
        24
        >>> ids = tokenizer.encode(tf.constant(["the mat sat"]))
        >>> tokenizer.decode(ids).numpy()
        array([b'the mat sat'], dtype=object)
    """

    kind = "sentencepiece"
    file_suffix = ".model"

    def __init__(self, model_file: str | Path, lowercase: bool = False) -> None:
        path = Path(model_file)
        if not path.is_file():
            raise FileNotFoundError(
                f"There is no SentencePiece model {path}. "
                "`SentencePieceTokenizer.train(...).save(...)` writes one."
            )
        self._restore(path.read_bytes(), lowercase, str(path))

    def _restore(self, model: bytes, lowercase: bool, origin: str) -> None:
        super().__init__(lowercase)
        self._bytes = model
        try:
            self._to_ids = tf_text.SentencepieceTokenizer(
                model, out_type=tf.int32
            )
            self._to_pieces = tf_text.SentencepieceTokenizer(
                model, out_type=tf.string
            )
            self._size = int(self._to_ids.vocab_size())
        except tf.errors.OpError as error:
            raise ValueError(
                f"{origin} is not a SentencePiece model ({error.message}). "
                "Restore the file, or train a new tokenizer."
            ) from error
        first = self.lookup(tf.range(len(SPECIAL_TOKENS))).numpy()
        first = tuple(piece.decode() for piece in first)
        if first != SPECIAL_TOKENS:
            raise ValueError(
                f"The ids 0 to 3 of a model are {list(SPECIAL_TOKENS)}. "
                f"Received: {list(first)} in {origin}. Train it with "
                "`SentencePieceTokenizer.train`, or give SentencePiece "
                "`pad_id=0, unk_id=1, bos_id=2, eos_id=3`."
            )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int,
        *,
        model_type: str = "bpe",
        lowercase: bool = False,
        character_coverage: float = 1.0,
        normalization: str = "nmt_nfkc",
    ) -> SentencePieceTokenizer:
        """Learns the subwords of a text; the same text gives the same model.

        Args:
            lines: Sentences, of both languages for a joint vocabulary.
            vocabulary_size: The number of ids, with the special tokens.
            model_type: `"bpe"` or `"unigram"`.
            lowercase: As in the constructor.
            character_coverage: The share of the text's characters that get a
                subword; below 1 for scripts of thousands of characters.
            normalization: SentencePiece's rule, such as `"nmt_nfkc"`, or
                `"identity"`.

        Returns:
            The tokenizer; `save` it to keep it.

        Raises:
            VocabularySizeError: The text has too few different characters
                and words for this size, or too many different characters.
            ValueError: An argument is unknown, or the text is empty.
        """
        try:
            import sentencepiece
        except ImportError as error:
            raise missing_package("sentencepiece", error) from error
        if model_type not in _MODEL_TYPES:
            raise ValueError(
                f"`model_type` must be one of {_MODEL_TYPES}. Received: "
                f"{model_type!r}."
            )
        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_cleaned(lines, lowercase),
                model_writer=model,
                model_type=model_type,
                vocab_size=vocabulary_size,
                character_coverage=character_coverage,
                normalization_rule_name=normalization,
                pad_id=PAD_ID,
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                pad_piece=PAD,
                unk_piece=UNK,
                bos_piece=BOS,
                eos_piece=EOS,
                # The number of threads is written into the model.
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise _training_error(vocabulary_size, error) from error
        tokenizer = cls.__new__(cls)
        tokenizer._restore(model.getvalue(), lowercase, "the new model")
        return tokenizer

    @property
    def vocabulary_size(self) -> int:
        """The number of ids, the four special tokens included."""
        return self._size

    @property
    def options(self) -> dict[str, Any]:
        """The arguments that, with the file, restore this tokenizer."""
        return {"lowercase": self.lowercase}

    def file_bytes(self) -> bytes:
        """Returns the SentencePiece model."""
        return self._bytes

    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        return self._to_pieces.tokenize(self.clean(text))

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        return self._to_ids.tokenize(self.clean(text))

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:  # noqa: D102
        def name(flat: tf.Tensor) -> tf.Tensor:
            # The op ends the process at an id outside the vocabulary.
            flat = tf.cast(flat, tf.int32)
            known = (flat >= 0) & (flat < self._size)
            return self._to_ids.id_to_string(tf.where(known, flat, UNK_ID))

        return tf.ragged.map_flat_values(name, ids)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:  # noqa: D102
        return self._to_pieces.detokenize(tokens)


def _cleaned(lines: Iterable[str], lowercase: bool) -> Iterator[bytes]:
    for batch in batches_of_lines(lines):
        yield from clean_text(batch, lowercase).numpy().tolist()


def _training_error(vocabulary_size: int, error: RuntimeError) -> ValueError:
    message = str(error)
    if "too high" in message:
        fix = (
            "The text has too few different characters and words for it: "
            "give more text, or a smaller `vocabulary_size`."
        )
    elif "required_chars" in message:
        fix = (
            "The text has more different characters than that: give a larger "
            "`vocabulary_size`, or a `character_coverage` below 1."
        )
    elif "sentences_.empty" in message:
        fix = "The text has no sentence: give one that is not empty."
    else:
        fix = "Check the arguments and the text."
    text = (
        f"SentencePiece made no model of this text. Received: "
        f"vocabulary_size={vocabulary_size}. {fix} SentencePiece says: "
        f"{message.splitlines()[0]}"
    )
    nearest = re.search(
        r"too high .* value <= (\d+)|required_chars\. \d+ vs (\d+)", message
    )
    if nearest:
        return VocabularySizeError(text, int(nearest[1] or nearest[2]))
    return ValueError(text)
