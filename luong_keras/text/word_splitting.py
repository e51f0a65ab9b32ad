"""Splitting of sentences into words, and joining of words, in the graph.

Sentences are split like sacreBLEU's `13a`, the tokenisation on which BLEU is
computed, written as RE2 expressions.
"""

from luong_keras.with_tensorflow import tf

# Everything that Python's `str.split()` treats as white space.
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
    # Separate ASCII symbols, except the apostrophe, comma, dash and dot.
    (r"([{-~\[-` -&(-+:-@/])", r" \1 "),
    # Separate dots and commas, except between digits.
    (r"([^0-9])([.,])", r"\1 \2 "),
    (r"([.,])([^0-9])", r" \1 \2"),
    # Separate a dash after a digit.
    (r"([0-9])(-)", r"\1 \2 "),
)
_JOINS = (
    (r'(^| )" ([^"]*[^" ]) "', r'\1"\2"'),  # A pair of quotation marks.
    (r"([(\[{]) ", r"\1"),
    (r" ([.,!?;:%)\]}])", r"\1"),
    # Times and results. The second pass joins the last of three numbers.
    *[(r"([0-9]:) ([0-9])", r"\1\2")] * 2,
    (r"([0-9]) - ", r"\1-"),
    # A closing mark that 13a separated together with the stop before it.
    (r"([.,!?]) ([“”»’])( |[.,;:!?)]|$)", r"\1\2\3"),
    (r" ([/_@\\]) ", r"\1"),
    # Abbreviations of single letters, such as "z.B." and "U.S.A.".
    *[(r"(^|[^\pL\pM\pN])(\pL\.) (\pL\.)", r"\1\2\3")] * 2,
    # Addresses: the beginning, and the dots before small letters in and after
    # it. The part before an "@" has at most one dot.
    (r"\b(https?|ftp): ?/ ?/ ?", r"\1://"),
    (r"(\pL)\. ([^ ]+@)", r"\1.\2"),
    *[(r"((?:\bwww|[^ ]@|://)[^ ]*[^ .]\.|\bwww\.) (\p{Ll})", r"\1\2")] * 4,
    (r"(\pL\pN?)\. (com|org|net|edu|gov)\b", r"\1.\2"),
    (r"([$#]) ([0-9])", r"\1\2"),
)


def split_at_spaces(text: tf.Tensor) -> tf.RaggedTensor:
    """Split at white space of any script.

    Args:
        text: (B,) valid UTF-8 strings.

    Returns:
        (B, None) strings.

    Example:
        >>> words = split_at_spaces(tf.constant(["a\u00a0b  c", ""]))
        >>> words.to_list()
        [[b'a', b'b', b'c'], []]
    """
    return tf.strings.split(
        tf.strings.regex_replace(text, f"{WHITE_SPACE}+", " ")
    )


def split_13a(text: tf.Tensor) -> tf.RaggedTensor:
    """Split into words as sacreBLEU's tokenisation `13a` does.

    Args:
        text: (B,) valid UTF-8 strings.

    Returns:
        (B, None) strings.

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
    """Join words by single spaces.

    Args:
        words: (B, None) strings.

    Returns:
        (B,) strings.
    """
    return tf.strings.reduce_join(words, axis=-1, separator=" ")


def join_13a(words: tf.RaggedTensor) -> tf.Tensor:
    """Join words of `split_13a` and attach punctuation again.

    Spaces around a dash after a digit, or around a slash, are lost in the
    splitting. The more common spelling, without these spaces, is written.
    Splitting the result gives the same words again.

    Args:
        words: (B, None) strings.

    Returns:
        (B,) strings.

    Example:
        >>> words = [["(", "a", "10", "-", "year", ")", "!"]]
        >>> join_13a(tf.ragged.constant(words)).numpy()
        array([b'(a 10-year)!'], dtype=object)
    """
    text = join_with_spaces(words)
    for pattern, replacement in _JOINS:
        text = tf.strings.regex_replace(text, pattern, replacement)
    return text
