"""Which word of a text each of its tokens belongs to."""

from collections.abc import Sequence

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
