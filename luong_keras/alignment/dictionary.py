"""Counts of aligned words, and files of word translations.

A line of such a file has three fields, `source target probability`. A
dictionary replaces unknown words by the most probable translation of each
source word. A lexicon has all translations of each token.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from luong_keras.alignment.links import Link, check_links
from luong_keras.files.atomic_file import atomic_path
from luong_keras.files.text_lines import read_lines

AlignedSentences = tuple[Sequence[str], Sequence[str], Iterable[Link]]


class WordPair(NamedTuple):
    """Two words that are aligned to each other.

    `probability` is p(t|s), the share of the links of the source word that
    lead to the target word.
    """

    source: str
    target: str
    count: int  # type: ignore[assignment]  # hides `tuple.count`
    probability: float


def aligned_word_pairs(
    sentences: Iterable[AlignedSentences],
    source_words: Container[str] | None = None,
    target_words: Container[str] | None = None,
    min_count: int = 10,
) -> list[WordPair]:
    """Count the links between the words of a parallel text.

    Only links between a word of `source_words` and a word of `target_words`
    count. Pairs that are too rare are left out afterwards.

    Args:
        sentences: Source words, target words and links `(source position,
            target position)`, 0-based, of each sentence pair.
        source_words: The source vocabulary; all words when None.
        target_words: The target vocabulary; all words when None.
        min_count: Minimum number of links of a pair.

    Returns:
        The pairs, sorted by their words.

    Raises:
        ValueError: If a link leads outside its sentences; the message has
            the number of the sentence pair, from 1.

    Example:
        >>> sentences = [
        ...     (["red", "door"], ["rote", "Tür"], [(0, 0), (1, 1)]),
        ...     (["door"], ["Tür"], [(0, 0)]),
        ...     (["door"], ["Pforte"], [(0, 0)]),
        ... ]
        >>> for pair in aligned_word_pairs(sentences, min_count=2):
        ...     print(pair.source, pair.target, pair.count, pair.probability)
        door Tür 2 0.6666666666666666
    """
    counts: Counter[tuple[str, str]] = Counter()
    for number, (source, target, links) in enumerate(sentences, start=1):
        links = list(links)
        check_links(links, (len(source), len(target)), f"pair {number}")
        for i, j in links:
            if (source_words is None or source[i] in source_words) and (
                target_words is None or target[j] in target_words
            ):
                counts[source[i], target[j]] += 1
    source_counts: Counter[str] = Counter()
    for (source_word, _), count in counts.items():
        source_counts[source_word] += count
    return [
        WordPair(*words, count, count / source_counts[words[0]])
        for words, count in sorted(counts.items())
        if count >= min_count
    ]


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
        try:
            source, target, text = fields
            probability = float(text)
        except ValueError:
            probability = math.nan
        if math.isnan(probability):
            raise ValueError(
                f"Line {number} of the dictionary {path} does not have the "
                "three fields `source target probability`, the last of them a "
                f"number. Received: {line[:80]!r}. Correct the line; "
                "`write_dictionary` and `luong-keras lexicon` write such files."
            )
        yield source, target, probability


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
            if not re.fullmatch(
                r"[^ \t\r\n]+ [^ \t\r\n]+", f"{source} {target}"
            ):
                raise ValueError(
                    "Expected: words without spaces, which separate the fields "
                    f"of a line. Received: {source!r} and {target!r}."
                )
            print(source, target, f"{probability:g}", file=file)
