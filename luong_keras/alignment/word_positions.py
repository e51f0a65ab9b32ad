"""Word positions of the tokens of a text."""

import difflib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

_SPACE = "\u2581"  # what SentencePiece writes for a space


def word_positions(tokens: Sequence[str], words: Sequence[str]) -> list[int]:
    """Finds the word of every token, by counting characters.

    Args:
        tokens: words or subwords of a sentence, as a tokenizer shows them.
        words: the words of the same sentence.

    Returns:
        One index into `words` a token.

    Raises:
        ValueError: if the two have other characters than spaces in common.

    Example:
        >>> tokens = ["\u2581car", "pet", "s", "\u2581."]
        >>> word_positions(tokens, ["carpets", "."])
        [0, 0, 0, 1]
    """
    owners = [place for place, word in enumerate(words) for _ in word]
    texts = ["".join(token.replace(_SPACE, " ").split()) for token in tokens]
    if sum(map(len, texts)) != len(owners):
        raise ValueError(
            "Tokens and words must have the same characters but for spaces. "
            f"Received: {' '.join(tokens)!r} and {' '.join(words)!r}."
        )
    positions, start = [], 0
    for text in texts:
        # A lone space belongs to the word behind it.
        positions.append(owners[min(start, len(owners) - 1)])
        start += len(text)
    return positions


def nearest_word_positions(
    tokens: Sequence[str], words: Sequence[str]
) -> list[int | None]:
    """Finds the word of every token of a text that was prepared.

    What a tokenizer reads may be another text than what stands there: in
    lower case, with other quotation marks, with words set apart, or cut at
    its end. Both are compared in lower case and in Unicode's compatibility
    form (NFKC); characters that differ even so belong to what stands between
    the same neighbours.

    Args:
        tokens: words or subwords of the prepared sentence, or of its
            beginning.
        words: the words of the sentence as it was.

    Returns:
        One index into `words` a token, of the word that has most of its
        characters; None for a token that has none of any word.

    Example:
        >>> tokens = ["the", "car", "pet", "is", '"', "red", '"', "."]
        >>> nearest_word_positions(tokens, ["The", "carpet", "is", "“red”."])
        [0, 1, 1, 2, 3, 3, 3, 3]
    """
    read, readers = _letters(token.replace(_SPACE, " ") for token in tokens)
    written, owners = _letters(words)
    votes: list[Counter[int]] = [Counter() for _ in tokens]
    for reader, place in zip(readers, _places(read, written), strict=True):
        if place is not None:
            votes[reader][owners[place]] += 1
    found = [vote.most_common(1)[0][0] if vote else None for vote in votes]
    for place in reversed(range(len(found) - 1)):
        # A lone space belongs to the word behind it.
        if tokens[place] == _SPACE:
            found[place] = found[place + 1]
    return found


def _letters(parts: Iterable[str]) -> tuple[str, list[int]]:
    """The text without spaces, comparable, and the part of each letter."""
    letters: list[str] = []
    owners: list[int] = []
    for place, part in enumerate(parts):
        plain = unicodedata.normalize("NFKC", part).casefold()
        plain = "".join(plain.split())
        letters.append(plain)
        owners += [place] * len(plain)
    return "".join(letters), owners


def _places(read: str, written: str) -> list[int | None]:
    """The place in one text of each character of the other."""
    if written.startswith(read):
        return list(range(len(read)))
    places: list[int | None] = [None] * len(read)
    # No text becomes that much shorter; the rest was not read, and comparing
    # it would take long.
    written = written[: 4 * len(read) + 100]
    matcher = difflib.SequenceMatcher(None, read, written, autojunk=False)
    for kind, start, end, first, last in matcher.get_opcodes():
        if kind in ("equal", "replace"):
            for place in range(start, end):
                step = (place - start) * (last - first) // (end - start)
                places[place] = first + step
    return places
