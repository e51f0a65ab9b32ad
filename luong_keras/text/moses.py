"""Moses preprocessing in the graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from luong_keras.text.moses_rules import (
    character_class,
    normalizer_rules,
    tokenizer_rules,
)
from luong_keras.text.preprocessing import Preprocessor, moses_tools
from luong_keras.text.tokenizer import clean_text
from luong_keras.text.word_splitting import join_with_spaces, split_at_spaces
from luong_keras.with_tensorflow import tf


class MosesGraph:
    r"""A `Preprocessor` as a TensorFlow graph.

    It consists of TensorFlow operations and constants, so an export contains
    all of it, and a server does not need sacremoses. It takes any bytes:
    invalid UTF-8 is replaced by U+FFFD.

    Args:
        preprocessor: The preprocessor, which has the steps and the language.

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
        """Prepare sentences, as `Preprocessor.__call__` does.

        Args:
            text: (B,) strings.

        Returns:
            (B,) strings.
        """
        text = clean_text(text, self.preprocessor.lowercase)
        for pattern, replacement in self._rules:
            text = tf.strings.regex_replace(text, pattern, replacement)
        return text

    def finish(self, text: tf.Tensor) -> tf.Tensor:
        """Detokenise sentences, as `Preprocessor.postprocess` does.

        Args:
            text: (B,) sentences whose words are separated by spaces.

        Returns:
            (B,) strings, running text.
        """
        text = clean_text(text, lowercase=False)
        return text if self._join is None else self._join(text)


_QUOTE = "['\"„“`]+"


class MosesJoiner:
    """`MosesDetokenizer.detokenize(..., unescape=False)` as a graph.

    Each word determines whether it is attached to the word before it or to the
    word after it. Quotation marks of one kind open and close alternately.

    Args:
        detokenizer: A `sacremoses.MosesDetokenizer`, which provides the
            language and the character classes.

    Example:
        >>> import sacremoses
        >>> joiner = MosesJoiner(sacremoses.MosesDetokenizer("en"))
        >>> text = joiner(tf.constant(["it 's ( almost ) 3 % , no ?"]))
        >>> text.numpy()[0].decode()
        "it's (almost) 3%, no?"
    """

    def __init__(self, detokenizer: Any) -> None:
        language = detokenizer.lang
        letter = f"[{character_class(detokenizer.IsAlpha)}]"
        currency = character_class({*detokenizer.IsSc, *"([{¿¡"})
        self._currency = f"[{currency}]+"
        self._cjk = f"[{character_class(_cjk_characters())}]"
        self.language = language
        # The pattern of each rule of some languages; "" matches no word.
        self._starts_cjk = f"{self._cjk}.*" if language != "ko" else ""
        self._contraction = f"'{letter}.*" if language == "en" else ""
        self._elision = f".*{letter}'" if language in ("fr", "it", "ga") else ""
        self._after_elision = f"{letter}.*"

    def __call__(self, text: tf.Tensor) -> tf.Tensor:
        """Join the words of sentences.

        Args:
            text: (B,) valid UTF-8 strings whose words are separated by white
                space.

        Returns:
            (B,) strings.
        """
        text = join_with_spaces(split_at_spaces(text))
        text = tf.strings.join([" ", text, " "])
        text = tf.strings.regex_replace(text, " @-@ ", "-")
        words = tf.strings.split(text)
        spaces = tf.where(self._space_before(_Words(words)), " ", "")
        return tf.strings.reduce_join(
            words.with_flat_values(
                tf.strings.join([spaces, words.flat_values])
            ),
            axis=-1,
        )

    def _space_before(self, words: _Words) -> tf.Tensor:
        """Compute (N,) flags, whether a space precedes each word."""
        elisions = words.no_match
        if self._elision:
            before_letter = words.following(words.match(self._after_elision))
            elisions = words.match(self._elision) & before_letter
        # Only the first rule that matches a word applies.
        cjk, currency, stop, contraction, decimal, elision, quotation = (
            _first_matches(
                words.match(self._starts_cjk),
                words.match(self._currency),
                words.match(r"[,.?!:;\\%})\]]+"),
                words.match(self._contraction),
                self._decimals(words),
                elisions,
                words.match(_QUOTE),
            )
        )
        opening = _opening_quotes(words, quotation, *self._fixed_quotes(words))
        attaches_left = (
            (cjk & words.previous(words.match(f".*{self._cjk}")))
            | stop
            | contraction
            | decimal
            | (quotation & ~opening)
        )
        attaches_right = currency | elision | opening
        space = ~attaches_left & ~words.previous(attaches_right)
        if self.language == "fr":
            space |= stop & words.match(r"[?!:;\\%]")
        return space & ~words.is_first

    def _decimals(self, words):
        """Flag numbers in Czech sentences that end in a number and a stop."""
        if self.language != "cs":
            return words.no_match
        number = words.match("[0-9]+")
        is_final_stop = (
            words.is_last & words.match("[.,]") & words.previous(number)
        )
        return (
            number & words.any_in_sentence(is_final_stop) & (words.position > 1)
        )

    def _fixed_quotes(self, words):
        """Flag quotation marks that always open, and that always close."""
        if self.language == "en":  # The Jones' house.
            after_s = words.previous(words.match(".*s"))
            return words.no_match, words.match("'") & after_s
        if self.language == "cs":
            return words.match("„"), words.match("“")
        return words.no_match, words.no_match


class _Words:
    """The (N,) words of a batch with their positions in their sentences."""

    def __init__(self, words: tf.RaggedTensor) -> None:
        self.words = words
        self.flat = words.flat_values
        self.rows = words.value_rowids()
        self.position = tf.range(tf.size(self.rows, tf.int64)) - tf.gather(
            words.row_starts(), self.rows
        )
        self.is_first = self.position == 0
        lengths = tf.gather(words.row_lengths(), self.rows)
        self.is_last = self.position == lengths - 1
        self.no_match = tf.zeros_like(self.is_first)

    def match(self, pattern: str) -> tf.Tensor:
        """Test whether each word matches a pattern; "" matches none."""
        if not pattern:
            return self.no_match
        return tf.strings.regex_full_match(self.flat, pattern)

    def previous(self, flags: tf.Tensor) -> tf.Tensor:
        """Return the flag of the word before; False for the first word."""
        return tf.concat([[False], flags], 0)[:-1] & ~self.is_first

    def following(self, flags: tf.Tensor) -> tf.Tensor:
        """Return the flag of the word after; False for the last word."""
        return tf.concat([flags, [False]], 0)[1:] & ~self.is_last

    def any_in_sentence(self, flags: tf.Tensor) -> tf.Tensor:
        """Test whether any word of the same sentence has the flag."""
        any_in_row = tf.reduce_any(self.words.with_flat_values(flags), axis=1)
        return tf.gather(any_in_row, self.rows)


def _first_matches(*rules: tf.Tensor) -> Iterator[tf.Tensor]:
    """Yield each rule without the words of the rules before it."""
    matched = tf.zeros_like(rules[0])
    for rule in rules:
        yield rule & ~matched
        matched |= rule


def _opening_quotes(words, quotation, opens, closes):
    """Flag the words that are opening quotation marks.

    Marks of one kind in one sentence open and close alternately. The
    alternation restarts at each mark that always opens or always closes.
    """
    places = tf.where(quotation)[:, 0]
    kinds = tf.strings.regex_replace(
        tf.gather(words.flat, places), "^[„“”]+$", '"'
    )
    rows = tf.strings.as_string(tf.gather(words.rows, places))
    groups = tf.unique(tf.strings.join([rows, kinds])).idx
    order = tf.argsort(groups, stable=True)
    groups, places = tf.gather(groups, order), tf.gather(places, order)
    opens, closes = tf.gather(opens, places), tf.gather(closes, places)
    new_group = tf.concat([[True], groups[1:] != groups[:-1]], 0)
    starts_run = new_group[: tf.size(groups)] | opens | closes
    run = tf.cumsum(tf.cast(starts_run, tf.int32)) - 1
    index = tf.range(tf.size(groups))
    run_start = tf.gather(tf.math.segment_min(index, run), run)
    is_even = (index - run_start) % 2 == 0
    opening = is_even != tf.gather(closes, run_start)
    return tf.scatter_nd(
        places[:, None], opening, tf.shape(quotation, tf.int64)
    )


def _cjk_characters() -> Iterable[str]:
    from sacremoses.util import CJKChars, is_cjk

    for first, last in CJKChars.ranges:
        yield from filter(is_cjk, map(chr, range(first, last + 1)))
