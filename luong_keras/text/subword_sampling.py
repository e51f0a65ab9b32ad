"""Other ways to split the same words into subwords, for training."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from luong_keras.missing_package import missing_package
from luong_keras.text.tokenizer import Tokenizer

try:
    import tensorflow as tf
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet
except ImportError as error:
    raise missing_package("tensorflow", error) from error

_ONE_AT_A_TIME = threading.Lock()


class SubwordSampler:
    """Byte pair encoding that leaves out merges at random.

    BPE-dropout (Provilkov et al. 2020): whenever two pieces could become one,
    they do not with the probability `dropout`. The same sentence is then split
    otherwise every time, and a model learns what the parts of a word mean. A
    translation is made of the usual pieces.

    What is drawn is a pure function of the seed and the sentences that are
    split together.

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
        self._processor = _bpe_processor(tokenizer)

    def encode(self, text: Sequence[str | bytes], seed: int) -> list[list[int]]:
        """Turns sentences into ids, without `<s>` and `</s>`.

        Args:
            text: The sentences.
            seed: A number from 0 to 2**31 - 1.

        Returns:
            The ids of each.
        """
        import sentencepiece

        cleaned = self.tokenizer.clean(tf.constant(text, tf.string)).numpy()
        lines = [line.decode() for line in cleaned]
        # A thread has a generator of its own, which in versions before 0.2.3
        # takes the seed when it draws for the first time and never again: so a
        # thread for each seed.
        with _ONE_AT_A_TIME, ThreadPoolExecutor(1) as thread:
            sentencepiece.set_random_generator_seed(seed)
            return thread.submit(self._draw, lines).result()

    def _draw(self, lines: Sequence[str]) -> list[list[int]]:
        rows = []
        for line in lines:
            row = self._processor.encode(
                line, enable_sampling=True, alpha=self.dropout
            )
            if self.max_length is not None and len(row) > self.max_length:
                row = self._processor.encode(line)
            rows.append(row)
        return rows


def _bpe_processor(tokenizer: Tokenizer):
    """The `sentencepiece` package's own reader of a tokenizer's model."""
    try:
        import sentencepiece
    except ImportError as error:
        raise missing_package("sentencepiece", error) from error
    kind = tokenizer.kind
    if kind == "sentencepiece":
        kind = _model_type(tokenizer.file_bytes())
    if kind != "bpe":
        raise ValueError(
            "Merges are left out of byte pair encodings alone. Expected: a "
            "SentencePieceTokenizer whose model is of the type 'bpe'. "
            f"Received: {kind!r}."
        )
    return sentencepiece.SentencePieceProcessor(
        model_proto=tokenizer.file_bytes()
    )


def _model_type(model: bytes) -> str:
    """The type that a SentencePiece model says it is of.

    Read without the code of `sentencepiece_model.proto` in `sentencepiece`,
    which is often of a newer protobuf than TensorFlow allows.
    """
    trainer_spec = _field(model, 2, default=b"")
    number = _field(trainer_spec, 3, default=1)
    return {1: "unigram", 2: "bpe", 3: "word", 4: "char"}[number]


def _field(message: bytes, number: int, default):
    """One field of a protobuf message of any kind."""
    unknown = Empty()
    unknown.ParseFromString(message)
    found = [
        field.data
        for field in UnknownFieldSet(unknown)
        if field.field_number == number
    ]
    return found[-1] if found else default
