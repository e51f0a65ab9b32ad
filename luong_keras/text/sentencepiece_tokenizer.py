"""The SentencePiece tokenizer in the graph."""

from __future__ import annotations

import hashlib
import io
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from luong_keras.config.data import SentencePieceConfig
from luong_keras.missing_package import missing_package, needs, private_name
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
from luong_keras.text.tokenizer import Tokenizer, clean_text, map_lines
from luong_keras.with_tensorflow import tf

_SPACE = "\u2581"  # SentencePiece's mark for a space
# A byte that valid UTF-8, and therefore a token, never contains.
_CUT = b"\xff"
# SentencePiece skips longer lines silently. Those of a corpus are shorter, also
# if Moses' rules make seven bytes of each character.
_MAX_LINE_BYTES = 200_000
# It also skips lines with this character, its mark for an unknown one.
_RESERVED = "\u2585".encode()


class VocabularySizeError(ValueError):
    """A text has fewer subwords, or more characters, than requested.

    Attributes:
        nearest: The nearest possible size, including the special tokens.
    """

    def __init__(self, message: str, nearest: int) -> None:
        super().__init__(message)
        self.nearest = nearest


class SentencePieceTokenizer(Tokenizer):
    """A tokenizer of SentencePiece subwords.

    Args:
        model_file: A SentencePiece model in which `<pad>`, `<unk>`, `<s>`
            and `</s>` have the ids 0 to 3.
        lowercase: Whether text is lower-cased first.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file is not such a model.

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
        super().__init__(model_file, lowercase)
        try:
            self._to_ids = _load_model(self._bytes, tf.int32)
            self._to_pieces = _load_model(self._bytes, tf.string)
            self._size = int(self._to_ids.vocab_size())
        except tf.errors.OpError as error:
            raise ValueError(
                f"{model_file} is not a SentencePiece model ({error.message}). "
                "Restore the file, or train a new tokenizer."
            ) from error
        special_tokens = self.lookup(tf.range(len(SPECIAL_TOKENS))).numpy()
        special_tokens = tuple(piece.decode() for piece in special_tokens)
        if special_tokens != SPECIAL_TOKENS:
            raise ValueError(
                f"The ids 0 to 3 of a model are {list(SPECIAL_TOKENS)}. "
                f"Received: {list(special_tokens)} in {model_file}. Train it "
                "with `SentencePieceTokenizer.train`, or give SentencePiece "
                "`pad_id=0, unk_id=1, bos_id=2, eos_id=3`."
            )

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int,
        *,
        model_type: Literal["bpe", "unigram", "char"] = "bpe",
        lowercase: bool = False,
        character_coverage: float = 1.0,
        normalization: Literal[
            "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"
        ] = "nmt_nfkc",
        byte_fallback: bool = False,
        user_defined_symbols: Sequence[str] = (),
    ) -> SentencePieceTokenizer:
        """Learn the subwords of a text.

        The same text gives the same model in one version of SentencePiece.

        Args:
            lines: Sentences, of both languages for a joint vocabulary.
            vocabulary_size: The number of ids, including the special tokens.
            model_type: `"bpe"`, `"unigram"` or `"char"`.
            lowercase: As in the constructor.
            character_coverage: The share of the text's characters that get a
                subword, 0.98 to 1; below 1 for scripts of thousands of
                characters.
            normalization: SentencePiece's rule: `"nmt_nfkc"`, `"nfkc"`, these
                with `"_cf"`, which folds case, or `"identity"`.
            byte_fallback: Whether a character without a subword becomes its
                UTF-8 bytes, 256 ids of the vocabulary, instead of `<unk>`.
            user_defined_symbols: Symbols that are always one token.

        Returns:
            The tokenizer; `save` it to keep it.

        Raises:
            VocabularySizeError: If the text has too few different characters
                and words for this size, or too many different characters.
            ValueError: If an argument is invalid, the text is empty, or a line
                is too long.
        """
        with needs("sentencepiece"):
            import sentencepiece
        if isinstance(user_defined_symbols, str):
            raise ValueError(
                "`user_defined_symbols` is a list of symbols. Received: one "
                f"string, {user_defined_symbols!r}. Put it into a list."
            )
        config = SentencePieceConfig(
            model_type,
            normalization,
            character_coverage,
            byte_fallback,
            tuple(user_defined_symbols),
        )
        for symbol in config.user_defined_symbols:
            if lowercase and symbol != symbol.lower():
                raise ValueError(
                    "Lower-cased text has no capitals, so the symbol would "
                    f"never match. Received: {symbol!r} among "
                    "`user_defined_symbols`, and lowercase=True. Write it in "
                    "lower case."
                )
        failures: list[BaseException] = []

        def sentences() -> Iterator[bytes]:
            try:
                for batch in map_lines(
                    lambda text: clean_text(text, lowercase), lines
                ):
                    for line in batch.numpy().tolist():
                        _check_length(line)
                        yield from line.split(_RESERVED)
            except BaseException as error:  # including Ctrl-C
                failures.append(error)
                raise

        model = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=sentences(),
                model_writer=model,
                # A smaller size would drop rare characters of a "char" model.
                vocab_size=(
                    sys.maxunicode
                    if config.model_type == "char"
                    else vocabulary_size
                ),
                model_type=config.model_type,
                normalization_rule_name=config.normalization,
                character_coverage=config.character_coverage,
                byte_fallback=config.byte_fallback,
                # SentencePiece ignores a tuple.
                user_defined_symbols=list(config.user_defined_symbols),
                pad_id=PAD_ID,
                unk_id=UNK_ID,
                bos_id=BOS_ID,
                eos_id=EOS_ID,
                pad_piece=PAD,
                unk_piece=UNK,
                bos_piece=BOS,
                eos_piece=EOS,
                max_sentence_length=_MAX_LINE_BYTES,
                # The number of threads is written into the model.
                num_threads=1,
                minloglevel=2,
            )
        # SentencePiece 0.2.1 makes a SystemError of them.
        except (RuntimeError, SystemError) as error:
            if failures:  # SentencePiece reports them as its own error.
                raise failures[0] from None
            raise _training_error(vocabulary_size, error) from error
        tokenizer = cls._of_bytes(model.getvalue(), lowercase=lowercase)
        size = tokenizer.vocabulary_size
        if size > vocabulary_size:
            raise VocabularySizeError(
                f"The characters of the text need a vocabulary of {size}. "
                f"Received: vocabulary_size={vocabulary_size}. Give a larger "
                "one, or a `character_coverage` below 1.",
                size,
            )
        return tokenizer

    def tokens(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        return self._to_pieces.tokenize(self.clean(text))

    def encode(self, text: tf.Tensor) -> tf.RaggedTensor:  # noqa: D102
        return self._to_ids.tokenize(self.clean(text))

    def lookup(self, ids: tf.Tensor) -> tf.Tensor:  # noqa: D102
        def lookup_pieces(flat: tf.Tensor) -> tf.Tensor:
            # The operation aborts the process at an id out of range.
            flat = tf.cast(flat, tf.int32)
            is_valid = (flat >= 0) & (flat < self._size)
            return self._to_ids.id_to_string(tf.where(is_valid, flat, UNK_ID))

        return tf.ragged.map_flat_values(lookup_pieces, ids)

    def join(self, tokens: tf.RaggedTensor) -> tf.Tensor:
        """Join tokens to running text.

        A token that is not a subword keeps its spelling: a word that was
        copied from the source, `<unk>`, or a `<s>` in the text. Line ends,
        which are among the bytes of `byte_fallback`, become spaces.

        Args:
            tokens: (B, None) strings, as from `tokens` or `lookup`.

        Returns:
            (B,) strings.
        """
        flat = tokens.flat_values
        ids = self._to_ids.string_to_id(flat)
        spellings = tf.strings.regex_replace(flat, _SPACE, " ")
        # Cut special tokens in two: the operation would omit a whole one.
        names = "|".join(token[1:] for token in SPECIAL_TOKENS)
        spellings = tf.strings.regex_replace(
            spellings, f"^<({names})$", b"<" + _CUT + rb"\1"
        )
        flat = tf.where(ids < len(SPECIAL_TOKENS), spellings, flat)
        parts = tf.strings.split(flat, _CUT)
        parts = parts.with_row_splits_dtype(tokens.row_splits.dtype)
        parts = tokens.with_flat_values(parts)
        text = self._to_pieces.detokenize(parts.merge_dims(1, 2))
        # A byte of `byte_fallback` may be a line end, which no sentence has.
        text = tf.strings.regex_replace(text, r"[\n\r]", " ")
        return tf.strings.regex_replace(text, "^ +|( ) +", r"\1")


def _check_length(line: bytes) -> None:
    if len(line) > _MAX_LINE_BYTES:
        raise ValueError(
            f"Expected: lines of at most {_MAX_LINE_BYTES:,} bytes. Received: "
            f"{line[:80]!r}…, of {len(line):,}. Divide it into sentences."
        )


# What to do, by a part of SentencePiece's message.
_FIXES = {
    "too high": "The text has too few different characters and words for it: "
    "give more text, or a smaller `vocabulary_size`.",
    "required_chars": "The text has more different characters than that: give "
    "a larger `vocabulary_size`, or a `character_coverage` below 1.",
    "sentences_.empty": "The text has no sentence: give one that is not empty.",
}


def _training_error(vocabulary_size: int, error: Exception) -> ValueError:
    message = str(error)
    fixes = [fix for part, fix in _FIXES.items() if part in message]
    fix = fixes[0] if fixes else "Check the arguments and the text."
    text = (
        f"SentencePiece could not train a model on this text. Received: "
        f"vocabulary_size={vocabulary_size}. {fix} SentencePiece says: "
        f"{message.splitlines()[0]}"
    )
    match = re.search(
        r"too high .* value <= (\d+)|required_chars\. \d+ vs (\d+)", message
    )
    if match:
        return VocabularySizeError(text, int(match[1] or match[2]))
    return ValueError(text)


class _SharedModel(tf.saved_model.experimental.TrackableResource):
    """A loaded model that lasts as long as the process.

    A model without a name is deleted with the kernel that loaded it, and
    `keras.utils.set_random_seed` and `clear_session` delete all kernels.
    Tokenizers with equal files share a model.
    """

    def __init__(self, model: bytes) -> None:
        super().__init__()
        self._model = model
        self.resource_handle  # noqa: B018 - loads the model

    def _create_resource(self) -> tf.Tensor:
        create = private_name(
            "tensorflow_text.python.ops.sentencepiece_tokenizer."
            "gen_sentencepiece_tokenizer.sentencepiece_op"
        )
        name = hashlib.sha256(self._model).hexdigest()
        return create(model=self._model, shared_name=name)


def _load_model(model: bytes, out_type: tf.DType) -> Any:
    """Return tensorflow-text's tokenizer of a model."""
    text = _import_tensorflow_text()
    tokenizer = text.SentencepieceTokenizer(model, out_type=out_type)
    private_name(
        "tensorflow_text.SentencepieceTokenizer._model_resource", tokenizer
    )
    tokenizer._model_resource = _SharedModel(model)
    return tokenizer


def _import_tensorflow_text() -> Any:
    """Import the package, which word tokenizers do not need."""
    try:
        import tensorflow_text
    except (ImportError, tf.errors.NotFoundError) as error:
        # NotFoundError: its minor version differs from TensorFlow's.
        raise missing_package("tensorflow-text", error) from error
    return tensorflow_text
