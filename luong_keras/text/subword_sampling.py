"""Other ways to split the same words into subwords, for training."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Any

from luong_keras.missing_package import needs
from luong_keras.text.tokenizer import Tokenizer

with needs("tensorflow"):
    import tensorflow as tf
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

_SPACE = "\u2581"  # SentencePiece's mark of a space


class SubwordSampler:
    """Byte pair encoding that leaves out merges at random.

    BPE-dropout (Provilkov et al. 2020, algorithm 1): before each merge every
    pair of pieces that could become one is left out with the probability
    `dropout`, and the best of the others is merged. The same sentence is then
    split otherwise every time, and a model learns what the parts of a word
    mean. A translation is made of the usual pieces.

    What is drawn is a pure function of the seed and the sentences that are
    split together. The sampling of the package `sentencepiece` is not: from
    0.2.2 on the same seed draws otherwise in every process.

    Args:
        tokenizer: A `SentencePieceTokenizer` whose model is of the type
            `"bpe"`.
        dropout: The probability, above 0 and below 1.
        max_length: The most pieces of a sentence; one that would have more is
            split as usual.

    Raises:
        ValueError: For another tokenizer, or a probability outside its range.

    Example:
        >>> from luong_keras.text.sentencepiece_tokenizer import (
        ...     SentencePieceTokenizer,
        ... )
        >>> lines = ["the cat sat", "the cat sat on the mat"]
        >>> tokenizer = SentencePieceTokenizer.train(lines, 24)
        >>> sampler = SubwordSampler(tokenizer, 0.5)
        >>> ids = sampler.encode(["the cat", "the mat"], seed=3)
        >>> tokenizer.decode(tf.ragged.constant(ids)).numpy().tolist()
        [b'the cat', b'the mat']
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        dropout: float,
        max_length: int | None = None,
    ) -> None:
        if not 0 < dropout < 1:
            raise ValueError(
                "`dropout` is the probability that a merge is left out. "
                f"Expected: above 0 and below 1. Received: {dropout}."
            )
        self.tokenizer = tokenizer
        self.dropout = dropout
        self.max_length = max_length
        self._processor = processor = _bpe_processor(tokenizer)
        known = [
            i
            for i in range(processor.get_piece_size())
            if not (
                processor.is_unknown(i)
                or processor.is_control(i)
                or processor.is_unused(i)
                or processor.is_byte(i)
            )
        ]
        self._ids = {processor.id_to_piece(i): i for i in known}
        self._scores = {
            piece: processor.get_score(i) for piece, i in self._ids.items()
        }
        # What the user defined is no merge, and is never left out.
        symbols = "|".join(map(re.escape, _symbols(tokenizer.file_bytes())))
        self._symbols = re.compile(f"({symbols or '(?!)'})")
        # Where no piece has a space inside, none continues into the next word.
        self._of_words = not any(_SPACE in piece[1:] for piece in self._ids)

    def encode(self, text: Sequence[str | bytes], seed: int) -> list[list[int]]:
        """Turns sentences into ids, without `<s>` and `</s>`.

        Args:
            text: The sentences.
            seed: A number from 0 to 2**31 - 1.

        Returns:
            The ids of each.
        """
        draw = random.Random(seed).random
        cleaned = self.tokenizer.clean(tf.constant(text, tf.string)).numpy()
        rows = []
        for line in cleaned:
            line = line.decode()
            row = self._sampled_ids(self._processor.normalize(line), draw)
            if self.max_length is not None and len(row) > self.max_length:
                row = self._processor.encode(line)
            rows.append(row)
        return rows

    def _sampled_ids(self, line: str, draw: Callable[[], float]) -> list[int]:
        row: list[int] = []
        for place, part in enumerate(self._symbols.split(line)):
            if place % 2:
                row.append(self._ids[part])
            else:
                row += self._sampled_ids_of_text(part, draw)
        return row

    def _sampled_ids_of_text(
        self, line: str, draw: Callable[[], float]
    ) -> list[int]:
        words = [line]
        if self._of_words:
            begin, *others = line.split(_SPACE)
            words = [begin, *(_SPACE + word for word in others)]
        row: list[int] = []
        unknown = self._processor.unk_id()
        for word in words:
            after_unknown = False
            for piece in self._merged(word, draw):
                found = self._ids.get(piece)
                if found is not None:
                    row.append(found)
                elif not after_unknown:  # As usual: one for all in a row.
                    row += self._unknown_ids(piece, unknown)
                after_unknown = found is None and row[-1] == unknown
        return row

    def _unknown_ids(self, character: str, unknown: int) -> list[int]:
        """The bytes of a character where the model has them, or `<unk>`."""
        pieces = [f"<0x{byte:02X}>" for byte in character.encode()]
        ids = [self._processor.piece_to_id(piece) for piece in pieces]
        return [unknown] if unknown in ids else ids

    def _merged(self, word: str, draw: Callable[[], float]) -> list[str]:
        """The pieces of a word (Provilkov et al. 2020, algorithm 1)."""
        pieces, score_of = list(word), self._scores.get
        while True:
            best, best_score = -1, -float("inf")
            for i, pair in enumerate(zip(pieces, pieces[1:], strict=False)):
                score = score_of("".join(pair))
                if score is None or draw() < self.dropout:
                    continue
                if score > best_score:
                    best, best_score = i, score
            if best < 0:
                return pieces
            pieces[best : best + 2] = [pieces[best] + pieces[best + 1]]


def _bpe_processor(tokenizer: Tokenizer):
    """The `sentencepiece` package's own reader of a tokenizer's model."""
    with needs("sentencepiece"):
        import sentencepiece
    kind = tokenizer.kind
    if kind == "sentencepiece":
        kind = _model_type(tokenizer.file_bytes())
    if kind != "bpe":
        raise ValueError(
            "Merges are left out only of byte pair encodings. Expected: a "
            "SentencePieceTokenizer whose model is of the type 'bpe'. "
            f"Received: {kind!r}."
        )
    return sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.file_bytes()
    )


# Models are read without the code of `sentencepiece_model.proto` in
# `sentencepiece`, which is often of a newer protobuf than TensorFlow allows.


def _model_type(model: bytes) -> str:
    """The type that a SentencePiece model says it is of."""
    trainer_spec = _field(model, 2, default=b"")
    number = _field(trainer_spec, 3, default=1)
    return {1: "unigram", 2: "bpe", 3: "word", 4: "char"}[number]


def _symbols(model: bytes) -> list[str]:
    """The pieces of a model that the user defined, the longest first."""
    symbols = [
        _field(piece, 1, default=b"").decode()
        for piece in _fields(model, 1)
        if _field(piece, 3, default=1) == 4
    ]
    return sorted(symbols, key=len, reverse=True)


def _field(message: bytes, number: int, default):
    """One field of a protobuf message of any kind."""
    return (_fields(message, number) or [default])[-1]


def _fields(message: bytes, number: int) -> list[Any]:
    """All values of a field of a protobuf message of any kind."""
    unknown = Empty()
    unknown.ParseFromString(message)
    return [
        field.data
        for field in UnknownFieldSet(unknown)
        if field.field_number == number
    ]
