"""Translations of each token, the most probable ones first."""

from collections import defaultdict
from pathlib import Path

from luong_keras.alignment.dictionary import read_entries


def read_lexicon(path: str | Path) -> dict[str, list[str]]:
    r"""Reads the translations of each token.

    Args:
        path: UTF-8 text, `source target probability` a line, as of a
            dictionary, but of tokens as the tokenizers show them; the command
            `luong-keras lexicon` writes it.

    Returns:
        The translations of each source token, the most probable first, of
        equally probable ones in the order of the file.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A line has not three fields, or a probability is not a
            number; with the line's number.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> size = path.write_text("door Tor 0.2\ndoor Tür 0.7\n", "utf-8")
        >>> read_lexicon(path)
        {'door': ['Tür', 'Tor']}
    """
    found: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for number, entry in enumerate(read_entries(path), start=1):
        if entry is None:
            raise ValueError(
                f"Line {number} of the lexicon {path} has not three fields. "
                "Expected: `source target probability`. `luong-keras lexicon` "
                "writes such a file."
            )
        source, target, probability = entry
        found[source].append((probability, target))
    return {
        source: [target for _, target in sorted(targets, key=lambda x: -x[0])]
        for source, targets in found.items()
    }
