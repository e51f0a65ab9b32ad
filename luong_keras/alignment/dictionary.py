"""Files of word translations: dictionaries and lexicons.

A line has three fields, `source target probability`. A dictionary replaces
unknown words by the most probable translation of each source word; a lexicon
has all translations of each token.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from luong_keras.alignment.word_pairs import WordPair
from luong_keras.files.atomic_file import atomic_path


class TranslationDictionary(NamedTuple):
    """The best translation of each source word.

    `skipped` is the number of lines of the file without three fields.
    """

    words: dict[str, str]
    skipped: int


def read_dictionary(path: str | Path) -> TranslationDictionary:
    r"""Reads the most probable translation of each word.

    Args:
        path: UTF-8 text, `source target probability` a line. Lines of fewer
            or more fields are skipped, and counted.

    Returns:
        The translations; of equally probable ones the first.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A probability is not a number; with the line's number.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> size = path.write_text("door Tor 0.2\ndoor Tür 0.7\n", "utf-8")
        >>> read_dictionary(path)
        TranslationDictionary(words={'door': 'Tür'}, skipped=0)
    """
    best: dict[str, tuple[float, str]] = {}
    skipped = 0
    for entry in read_entries(path):
        if entry is None:
            skipped += 1
            continue
        source, target, probability = entry
        if source not in best or probability > best[source][0]:
            best[source] = probability, target
    words = {source: target for source, (_, target) in best.items()}
    return TranslationDictionary(words, skipped)


def read_entries(
    path: str | Path,
) -> Iterator[tuple[str, str, float] | None]:
    """The three fields of every line; None for one without three.

    Raises:
        FileNotFoundError: There is no such file.
        ValueError: A probability is not a number; with the line's number.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no dictionary {path}. Expected lines `source target "
            "probability`; `write_dictionary` writes them."
        )
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, start=1):
            fields = line.split()
            if len(fields) != 3:
                yield None
                continue
            source, target, text = fields
            yield source, target, _number(text, number, path)


def write_dictionary(
    path: str | Path, pairs: Iterable[WordPair], all_figures: bool = False
) -> None:
    r"""Writes aligned word pairs, a line each.

    Args:
        path: the file to write; an old one is replaced when all is written.
        pairs: the lines, as `aligned_word_pairs` returns them.
        all_figures: whether lines have all seven fields, `source target
            p(t|s) p(s|t) mean pmi npmi`; otherwise the first three, which
            `read_dictionary` reads.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "en-de"
        >>> pair = WordPair("door", "Tür", 2, 0.5, 1.0, 0.75, 0.25, 0.5)
        >>> write_dictionary(path, [pair], all_figures=True)
        >>> path.read_text("utf-8")
        'door Tür 0.5 1 0.75 0.25 0.5\n'
    """
    with (
        atomic_path(path) as temporary,
        temporary.open("w", encoding="utf-8", newline="\n") as file,
    ):
        for source, target, _, *figures in pairs:
            shown = figures if all_figures else figures[:1]
            print(source, target, *(f"{x:g}" for x in shown), file=file)


def _number(text: str, number: int, path: Path) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            "The third field of a dictionary must be a number. Received: "
            f"{text!r} in line {number} of {path}. Correct the line."
        ) from None


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
        ValueError: A line does not have three fields, or a probability is not a
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
                f"Line {number} of the lexicon {path} does not have three "
                "fields. Expected: `source target probability`. `luong-keras "
                "lexicon` writes such a file."
            )
        source, target, probability = entry
        found[source].append((probability, target))
    return {
        source: [target for _, target in sorted(targets, key=lambda x: -x[0])]
        for source, targets in found.items()
    }
