"""The rules of Moses for the preparation of text, for RE2.

A rule is a pattern and the replacement of its matches. The rules apply one
after another to the whole sentence. The parts that depend on a language or on
Unicode are read from sacremoses, so the rules match the preparation of the
training text.
"""

import functools
import itertools
import re
import sys
from collections.abc import Iterable
from typing import Any

from luong_keras.text.word_splitting import WHITE_SPACE

Rule = tuple[str, str]

# Marks a final dot that belongs to its word. The text never contains it, since
# control characters are removed first.
_KEPT_DOT = "\x01"


def normalizer_rules(normalizer: Any) -> list[Rule]:
    """Return the rules of a `sacremoses.MosesPunctNormalizer`.

    Args:
        normalizer: The normalizer of a language, with the usual options.

    Returns:
        The rules, in order.
    """
    rules = []
    for pattern, replacement in normalizer.substitutions:
        pattern = pattern.replace(r"\d", f"[{_digits()}]")
        pattern = pattern.replace(r"\s", WHITE_SPACE)
        rules.append((pattern, re.sub(r"\\g<(\d)>", r"\\\1", replacement)))
    return [*rules, (f"^{WHITE_SPACE}+|{WHITE_SPACE}+$", "")]


def tokenizer_rules(tokenizer: Any) -> list[Rule]:
    """Return the rules of a `sacremoses.MosesTokenizer`.

    They do what `tokenize(..., aggressive_dash_splits=False, escape=False)`
    does, except that the word `DOTMULTI`, which sacremoses uses to mark dots,
    stays unchanged here.

    Args:
        tokenizer: The tokenizer of a language.

    Returns:
        The rules, in order; words are separated by single spaces.
    """
    letters_and_digits = character_class(tokenizer.IsAlnum)
    number = character_class(tokenizer.IsN)
    return [
        (f"{WHITE_SPACE}+", " "),
        (r"[\x00-\x1f]", ""),
        (r"^ +| +$", ""),
        # Separate symbols, except five that have further rules.
        (rf"([^{letters_and_digits} .'`,\-])", r" \1 "),
        (r"\.{2,}", r" \0 "),
        # Separate commas, except between digits.
        (rf"([^{number}]),", r"\1 , "),
        (rf",([^{number}])", r" , \1"),
        (rf"([{number}]),$", r"\1 , "),
        *_apostrophe_rules(tokenizer),
        *_final_dot_rules(tokenizer),
        (r" +", " "),
        (r"^ | $", ""),
        (r"\.'$", " . ' "),
    ]


def _apostrophe_rules(tokenizer: Any) -> list[Rule]:
    """Return the rules that split contractions, or separate apostrophes."""
    letter = character_class(tokenizer.IsAlpha)
    number = character_class(tokenizer.IsN)
    if tokenizer.lang == "en":
        return [
            (rf"([^{letter}])'([^{letter}])", r"\1 ' \2"),
            (rf"([^{letter}{number}])'([{letter}])", r"\1 ' \2"),
            (rf"([{letter}])'([^{letter}])", r"\1 ' \2"),
            (rf"([{letter}])'([{letter}])", r"\1 '\2"),
            (rf"([{number}])'(s)", r"\1 '\2"),
        ]
    if tokenizer.lang in ("fr", "it"):
        return [
            (rf"([^{letter}])'([^{letter}])", r"\1 ' \2"),
            (rf"([^{letter}])'([{letter}])", r"\1 ' \2"),
            (rf"([{letter}])'([^{letter}])", r"\1 ' \2"),
            (rf"([{letter}])'([{letter}])", r"\1' \2"),
        ]
    return [("'", " ' ")]


def _final_dot_rules(tokenizer: Any) -> list[Rule]:
    """Return the rules that separate final dots, except in abbreviations."""
    letter = character_class(tokenizer.IsAlpha)
    lower = character_class(tokenizer.IsLower)
    numeric = set(tokenizer.NUMERIC_ONLY_PREFIXES)
    prefixes = set(tokenizer.NONBREAKING_PREFIXES) - numeric
    keep_dot = rf"\1{_KEPT_DOT}\2"
    rules = [
        # Two spaces, so that the matches of neighbouring words do not overlap.
        (r" +", "  "),
        (r"^ *| *$", " "),
        # Keep a dot after a letter and another dot: "U.S.".
        (rf"([{letter}][^ ]*\.[^ ]*)\.( )", keep_dot),
        (rf"(\.[^ ]*[{letter}][^ ]*)\.( )", keep_dot),
        # Keep a dot before a small letter.
        (rf"()\.(  [{lower}])", keep_dot),
    ]
    if alternatives := _alternatives(prefixes):
        rules.append((rf"( (?:{alternatives}))\.( )", keep_dot))
    if alternatives := _alternatives(numeric):
        rules.append((rf"( (?:{alternatives}))\.(  [0-9])", keep_dot))
    return [*rules, (r"([^ .])\. ", r"\1 . "), (_KEPT_DOT, ".")]


def _alternatives(words: Iterable[str]) -> str:
    """Return a pattern of words; words with spaces never match a token."""
    return "|".join(
        re.escape(word) for word in sorted(words) if not re.search(r"\s", word)
    )


def character_class(characters: Iterable[str]) -> str:
    r"""Return the content of a bracket expression for some characters.

    Args:
        characters: The characters, in any order.

    Returns:
        The characters as ranges.

    Example:
        >>> character_class("cab]-!")
        '!\\-\\]a-c'
    """
    codes = sorted({ord(character) for character in characters})
    groups = itertools.groupby(
        enumerate(codes), key=lambda place: place[1] - place[0]
    )
    ranges = [[code for _, code in group] for _, group in groups]
    return "".join(
        "-".join(map(_escape_character, sorted({run[0], run[-1]})))
        for run in ranges
    )


def _escape_character(code: int) -> str:
    if code < 0x20:
        return rf"\x{code:02x}"
    return f"\\{chr(code)}" if chr(code) in r"\[]^-" else chr(code)


@functools.cache
def _digits() -> str:
    r"""Return the characters of Python's `\d`; RE2's `\d` has others."""
    characters = "".join(map(chr, range(sys.maxunicode + 1)))
    return character_class(re.findall(r"\d", characters))
