"""Reads vocabulary files."""

from pathlib import Path

from luong_keras.special_tokens import SPECIAL_TOKENS


def read_vocabulary(path: str | Path) -> list[str]:
    """Reads and checks a vocabulary file.

    Args:
        path: One word a line, UTF-8, the special tokens first.

    Returns:
        The words; a word's place is its id.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: Not UTF-8, not begun by the special tokens, or with an
            empty, spaced or repeated word; with the line's number, from 1.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no vocabulary file {path}. Expected one word a line; "
            "`WordTokenizer.train(...).save(...)` writes one."
        )
    try:
        words = path.read_bytes().decode("utf-8").removesuffix("\n").split("\n")
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
    seen: dict[str, int] = {}
    for number, word in enumerate(words, start=1):
        if len(word.split()) != 1 or word != word.strip():
            raise ValueError(
                f"Line {number} of the vocabulary {path} must be one word "
                f"without white space. Received: {word!r}. Remove the line."
            )
        first = seen.setdefault(word, number)
        if first != number:
            raise ValueError(
                f"The word {word!r} stands twice in the vocabulary {path}: in "
                f"line {first} and in line {number}. Remove one of the lines."
            )
    return words
