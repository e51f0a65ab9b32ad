"""Files of word translations: dictionaries and lexicons.

A line has three fields, `source target probability`. A dictionary replaces
unknown words by the most probable translation of each source word. A lexicon
has all translations of each token.
"""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from luong_keras.alignment.word_pairs import WordPair
from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.text_lines import read_lines


def read_dictionary(path: str | Path) -> dict[str, str]:
    r"""Read the most probable translation of each word.

    Args:
        path: UTF-8 file with `source target probability` in each line.

    Returns:
        The translations; of equally probable translations, the first.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If a line is not UTF-8 or does not have three fields, or
            if a probability is not a number; the message has the line number.
            A byte order mark is skipped.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> size = path.write_text("door Tor 0.2\ndoor Tür 0.7\n", "utf-8")
        >>> read_dictionary(path)
        {'door': 'Tür'}
    """
    return {source: best for source, (best, *_) in read_lexicon(path).items()}


def read_lexicon(path: str | Path) -> dict[str, list[str]]:
    r"""Read the translations of each token.

    Args:
        path: File as in `read_dictionary`, but with tokens as the tokenizers
            show them; the command `luong-keras lexicon` writes it.

    Returns:
        The translations of each source token, the most probable first;
        equally probable translations are in the order of the file.

    Raises:
        FileNotFoundError: As in `read_dictionary`.
        ValueError: As in `read_dictionary`.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> size = path.write_text("door Tor 0.2\ndoor Tür 0.7\n", "utf-8")
        >>> read_lexicon(path)
        {'door': ['Tür', 'Tor']}
    """
    translations: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for source, target, probability in read_entries(path):
        translations[source].append((probability, target))
    return {
        source: [target for _, target in sorted(targets, key=lambda x: -x[0])]
        for source, targets in translations.items()
    }


def read_entries(path: str | Path) -> Iterator[tuple[str, str, float]]:
    """Yield the three fields of each line; skip empty lines.

    Raises:
        FileNotFoundError: As in `read_dictionary`.
        ValueError: As in `read_dictionary`.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            "Expected: a file of lines `source target probability`, as "
            "`luong-keras lexicon` and, in Python, `write_dictionary` write "
            f"them. Received: {str(path)!r}, which "
            f"{'is no file' if path.exists() else 'does not exist'}."
        )
    for number, line in enumerate(read_lines(path), start=1):
        # Subwords may have other white space, such as a no-break space.
        fields = re.findall(r"[^ \t\r]+", line)
        if not fields:
            continue
        if len(fields) != 3:
            raise ValueError(
                f"Line {number} of the dictionary {path} does not have "
                "three fields. Expected: `source target probability`. "
                "`write_dictionary` and `luong-keras lexicon` write such "
                "files."
            )
        source, target, text = fields
        yield source, target, _parse_probability(text, number, path)


def write_dictionary(path: str | Path, pairs: Iterable[WordPair]) -> None:
    r"""Write aligned word pairs, one per line, for `read_dictionary`.

    Args:
        path: The file to write; an existing file is replaced at the end.
        pairs: The word pairs, as `aligned_word_pairs` returns them.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> write_dictionary(path, [WordPair("door", "Tür", 2, 0.5)])
        >>> path.read_text("utf-8")
        'door Tür 0.5\n'
    """
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for source, target, _, probability in pairs:
            print(source, target, f"{probability:g}", file=file)


def _parse_probability(text: str, number: int, path: Path) -> float:
    try:
        probability = float(text)
    except ValueError:
        probability = math.nan
    if math.isnan(probability):
        raise ValueError(
            "The third field of a dictionary must be a number. Received: "
            f"{text!r} in line {number} of {path}. Correct the line."
        )
    return probability
