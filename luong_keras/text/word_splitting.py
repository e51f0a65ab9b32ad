"""Splits sentences into words and joins words to sentences, in the graph.

The splitting is sacreBLEU's `13a`, that is the tokenisation on which BLEU is
counted, written as RE2 expressions.
"""

from __future__ import annotations

from luong_keras.with_tensorflow import tf

# Everything that `str.split()` of Python takes for white space.
WHITE_SPACE = r"[\s\x{0b}\x{1c}-\x{1f}\x{85}\p{Z}]"

_MARKUP = (
    ("<skipped>", ""),
    ("-\n", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
)
_SPLITS = (
    # ASCII symbols stand alone, but for the apostrophe, comma, dash and dot.
    (r"([{-~\[-` -&(-+:-@/])", r" \1 "),
    # Dots and commas stand alone except between digits.
    (r"([^0-9])([.,])", r"\1 \2 "),
    (r"([.,])([^0-9])", r" \1 \2"),
    # A dash stands alone after a digit.
    (r"([0-9])(-)", r"\1 \2 "),
)
_JOINS = (
    (r'(^| )" ([^"]*[^" ]) "', r'\1"\2"'),  # A pair of quotation marks.
    (r"([(\[{]) ", r"\1"),
    (r" ([.,!?;:%)\]}])", r"\1"),
    # Times and results. Of three numbers in a row, the second time the rest.
    *[(r"([0-9]:) ([0-9])", r"\1\2")] * 2,
    (r"([0-9]) - ", r"\1-"),
    # A closing mark that 13a cut off with the stop before it.
    (r"([.,!?]) ([“”»’])( |[.,;:!?)]|$)", r"\1\2\3"),
    (r" ([/_@\\]) ", r"\1"),
    # Abbreviations of single letters, such as "z.B." and "U.S.A.".
    *[(r"(^|[^\pL\pM\pN])(\pL\.) (\pL\.)", r"\1\2\3")] * 2,
    # Addresses: their beginning, and the dots of small letters in and after
    # it. What stands before an "@" has one dot at most.
    (r"\b(https?|ftp): ?/ ?/ ?", r"\1://"),
    (r"(\pL)\. ([^ ]+@)", r"\1.\2"),
    *[(r"((?:\bwww|[^ ]@|://)[^ ]*[^ .]\.|\bwww\.) (\p{Ll})", r"\1\2")] * 4,
    (r"(\pL\pN?)\. (com|org|net|edu|gov)\b", r"\1.\2"),
    (r"([$#]) ([0-9])", r"\1\2"),
)


def split_at_spaces(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits at white space of any script.

    Args:
        text: Valid UTF-8 strings, (B,).

    Returns:
        Strings (B, None).

    Example:
        >>> words = split_at_spaces(tf.constant(["a\u00a0b  c", ""]))
        >>> words.to_list()
        [[b'a', b'b', b'c'], []]
    """
    return tf.strings.split(
        tf.strings.regex_replace(text, f"{WHITE_SPACE}+", " ")
    )


def split_13a(text: tf.Tensor) -> tf.RaggedTensor:
    """Splits into words as sacreBLEU's tokenisation `13a` does.

    Args:
        text: Valid UTF-8 strings, (B,).

    Returns:
        Strings (B, None).

    Example:
        >>> split_13a(tf.constant(["It's 3.5%, no?"])).to_list()
        [[b"It's", b'3.5', b'%', b',', b'no', b'?']]
    """
    for pattern, replacement in _MARKUP:
        text = tf.strings.regex_replace(text, pattern, replacement)
    text = tf.strings.join([" ", text, " "])
    for pattern, replacement in _SPLITS:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return split_at_spaces(text)


def join_with_spaces(words: tf.RaggedTensor) -> tf.Tensor:
    """Joins words by single spaces.

    Args:
        words: Strings (B, None).

    Returns:
        Strings (B,).
    """
    return tf.strings.reduce_join(words, axis=-1, separator=" ")


def join_13a(words: tf.RaggedTensor) -> tf.Tensor:
    """Joins words of `split_13a` and attaches punctuation again.

    What was one word with a dash after its digit, or two words around a
    slash, cannot be distinguished from spaced ones; the commoner spelling is
    written. Splitting the result gives the same words again.

    Args:
        words: Strings (B, None).

    Returns:
        Strings (B,).

    Example:
        >>> words = [["(", "a", "10", "-", "year", ")", "!"]]
        >>> join_13a(tf.ragged.constant(words)).numpy()
        array([b'(a 10-year)!'], dtype=object)
    """
    text = join_with_spaces(words)
    for pattern, replacement in _JOINS:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
