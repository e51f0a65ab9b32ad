"""Moses preprocessing in the graph."""

from __future__ import annotations

from luong_keras.missing_package import missing_package
from luong_keras.text.moses_joining import MosesJoiner
from luong_keras.text.moses_rules import normalizer_rules, tokenizer_rules
from luong_keras.text.preprocessing import Preprocessor, moses_tools
from luong_keras.text.tokenizer import clean_text

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


class MosesGraph:
    r"""Does in the graph what a `Preprocessor` does in Python.

    It is made of operations of TensorFlow and of constants, so an export
    carries all of it, and a server needs no sacremoses. It takes any bytes:
    what is not UTF-8 is replaced by U+FFFD.

    Args:
        preprocessor: What to do, and for which language.

    Example:
        >>> graph = MosesGraph(Preprocessor("en", lowercase=True))
        >>> prepared = graph.prepare(tf.constant(["It’s “new”: isn’t it?"]))
        >>> prepared.numpy()[0].decode()
        'it \'s " new " : isn \'t it ?'
        >>> graph.finish(prepared).numpy()[0].decode()
        'it\'s "new": isn\'t it?'
    """

    def __init__(self, preprocessor: Preprocessor) -> None:
        self.preprocessor = preprocessor
        tools = moses_tools(preprocessor.language)
        self._rules: list[tuple[str, str]] = []
        self._join: MosesJoiner | None = None
        if preprocessor.normalize_punctuation:
            self._rules += normalizer_rules(tools["normalizer"])
        if preprocessor.tokenize:
            self._rules += tokenizer_rules(tools["tokenizer"])
            self._join = MosesJoiner(tools["detokenizer"])

    def prepare(self, text: tf.Tensor) -> tf.Tensor:
        """Prepares sentences, as `Preprocessor.__call__` does.

        Args:
            text: Strings, (B,).

        Returns:
            Strings (B,).
        """
        text = clean_text(text, self.preprocessor.lowercase)
        for pattern, replacement in self._rules:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text

    def finish(self, text: tf.Tensor) -> tf.Tensor:
        """Puts words together, as `Preprocessor.postprocess` does.

        Args:
            text: Sentences whose words are set apart by spaces, (B,).

        Returns:
            Running text, (B,).
        """
        text = clean_text(text, lowercase=False)
        return text if self._join is None else self._join(text)
