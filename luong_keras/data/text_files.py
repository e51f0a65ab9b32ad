"""Sentence pairs from the files that a setting or a command names."""

import functools
import itertools
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from luong_keras.config import DataConfig
from luong_keras.data.sources.columns import RequestedColumns, column_language
from luong_keras.data.sources.registry import (
    FILE_NAMES,
    PACKED_NAMES,
    file_kind,
)
from luong_keras.data.sources.source_kinds import PlacedPair, TextSource
from luong_keras.files.path_checks import local_path
from luong_keras.files.text_lines import (
    SUFFIXES,
    find_text,
    read_lines,
    without_compression,
)

FileNames = str | Sequence[str | Sequence[str]]

# WMT has names such as `newstest-src.en.sgm`.
_LANGUAGE_SUFFIX = re.compile(r".*\.([a-z]{2})(?:\.sgm)?")
ONE_OR_TWO = (
    f"one file of both sides ({FILE_NAMES}, each plain or compressed: "
    f"{PACKED_NAMES}), or a source and a target file"
)


def is_columns(path: str | Path) -> bool:
    """Test whether a file holds both sides, by its name."""
    return file_kind(path) is not None


def list_sources(names: FileNames, weighted: bool = False) -> list[FileNames]:
    """Return the sources that a setting names.

    Args:
        names: As for `text_files`, or a list of several sources.
        weighted: Whether the sources have weights; then `names` is a list of
            sources.

    Returns:
        One or more sources. Two names of files that do not hold both sides
        are a source and a target file, unless the sources have weights.

    Example:
        >>> list_sources("pairs.tsv"), list_sources(["a.en", "a.de"])
        (['pairs.tsv'], [['a.en', 'a.de']])
        >>> list_sources(["a.tsv", "b.tmx.gz"])
        ['a.tsv', 'b.tmx.gz']
        >>> list_sources(["a", "b"], weighted=True)
        ['a', 'b']
    """
    if isinstance(names, str):
        return [names]
    are_two_sides = all(
        isinstance(name, str) and not is_columns(name) for name in names
    )
    if len(names) == 2 and are_two_sides and not weighted:
        return [names]
    return list(names)


def suffix_languages(
    sources: Iterable[FileNames | None],
) -> tuple[str, str] | None:
    """Return the languages in the suffixes of source and target files.

    Args:
        sources: The sources; only those of two files count.

    Returns:
        The codes of both languages, or None if no two files have such suffixes.

    Raises:
        ValueError: If two sources have opposite directions.

    Example:
        >>> suffix_languages(["a.tsv", ("b.fr", "b.en.gz")])
        ('fr', 'en')
    """
    first = None
    for source in sources:
        match source:
            case [str() as source_name, str() as target_name]:
                found = [
                    _LANGUAGE_SUFFIX.fullmatch(without_compression(name))
                    for name in (source_name, target_name)
                ]
                if found[0] is None or found[1] is None:
                    continue
                languages = found[0][1], found[1][1]
                first = first or languages
                if languages == first[::-1] != first:
                    raise ValueError(
                        "All sources must have one direction. Expected: a file "
                        f"of {first[0]} and then one of {first[1]}, by their "
                        f"suffixes, as before. Received: {source_name} and "
                        f"{target_name}. Give these two the other way round."
                    )
    return first


def text_files(names: FileNames, languages: Sequence[str]) -> list[Path]:
    """Find the files of one source that a setting such as `data.dev` names.

    Args:
        names: A file of both sides, with a suffix such as `.tsv` or
            `.tmx.gz`; or the paths of a source and a target file; or a
            prefix, to which the languages are appended. The languages matter
            only for a prefix.
        languages: The codes of the source and the target language.

    Returns:
        One path, of a file of both sides, or two.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If `names` is none of these forms.
    """
    if not isinstance(names, str):
        paths = [str(path) for path in names]
        if [is_columns(path) for path in paths] not in ([True], [False] * 2):
            raise ValueError(
                f"Expected: {ONE_OR_TWO}. Received: {' and '.join(paths)}."
            )
        return [_find_file(path) for path in paths]
    if is_columns(names):
        return [_find_file(names)]
    return [_find_language_file(names, language) for language in languages]


def requested_columns(data: DataConfig) -> RequestedColumns:
    """Return the languages and columns that the settings name.

    If only one language is known, the other one may be any.
    """
    named = data.source_language, data.target_language
    return RequestedColumns(
        named if any(named) else data.languages, data.columns
    )


def text_sources(
    names: FileNames, requested: RequestedColumns, weighted: bool = False
) -> list[TextSource]:
    """Find the sources that a setting names, with their readers.

    Args:
        names: As for `list_sources`.
        requested: The languages and, if they are named, the columns.
        weighted: As for `list_sources`.

    Returns:
        The sources.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file lacks the columns, or they cannot be guessed.
    """
    sources = []
    # The names of two files need both languages.
    languages = DataConfig("files", *requested.languages).languages
    for source_names in list_sources(names, weighted):
        paths = text_files(source_names, languages)
        kind = file_kind(paths[0])
        if kind is None:
            sources.append(
                TextSource(functools.partial(read_pairs, paths[0], paths[1]))
            )
        else:
            sources.append(kind(paths[0], requested))
    return sources


def check_columns_exist(data: DataConfig, notes: Iterable[str | None]) -> None:
    """Refuse named columns of a text that has none.

    Pairs in memory are checked before they are written, as `pairs/…`.

    Args:
        data: The settings.
        notes: The notes of all sources, None for those without columns.

    Raises:
        ValueError: If columns are named and no source has any.
    """
    names = [*list_sources(data.train or ()), data.dev, data.test]
    folders = {Path(n).parent.name for n in names if isinstance(n, str)}
    if data.columns is not None and not (any(notes) or "pairs" in folders):
        raise ValueError(
            "data.columns (--columns) must name columns of a table, or fields "
            f"of records. Received: {' and '.join(data.columns)}, for a text "
            "without columns: pairs of a source and a target, or two files. "
            "Leave it out, and give the source first."
        )


def read_pairs(
    source_path: str | Path,
    target_path: str | Path,
    keep_bad_bytes: bool = False,
) -> Iterator[PlacedPair]:
    r"""Read sentence pairs, line by line.

    Files are UTF-8 text, plain or compressed according to their suffixes
    (`.gz`, `.xz`, `.zst`, `.bz2`). Only `\n` and `\r\n` end a line: a U+2028
    stays inside its sentence. In WMT's `.sgm` files each segment is a line.

    Args:
        source_path: The file of the source side.
        target_path: The file of the target side, with as many lines.
        keep_bad_bytes: Whether bytes that are not UTF-8 become lone
            surrogates instead of an error; `write_corpus` recognises and
            counts such pairs.

    Yields:
        The two sentences, with the name of the source file and the number
        of the line as their place.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If the files differ in length or are empty, or if a line
            is not UTF-8; raised when reading reaches the place.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> size = (folder / "en").write_text("a cat\na dog\n")
        >>> size = (folder / "de").write_text("eine Katze\nein Hund\n")
        >>> for pair in read_pairs(folder / "en", folder / "de"):
        ...     print(pair)
        ('a cat', 'eine Katze')
        ('a dog', 'ein Hund')
    """
    errors = "surrogateescape" if keep_bad_bytes else "strict"
    lines = itertools.zip_longest(
        read_lines(source_path, errors), read_lines(target_path, errors)
    )
    number = 0
    for number, (source_line, target_line) in enumerate(lines, start=1):
        if source_line is None or target_line is None:
            longer = number + sum(1 for _ in lines)
            shorter = number - 1
            counts = (
                (shorter, longer) if source_line is None else (longer, shorter)
            )
            raise ValueError(
                "The two files of a parallel text must have the same number "
                f"of lines. Received: {counts[0]} in {source_path}, "
                f"{counts[1]} in {target_path}."
            )
        place = f"{Path(source_path).name}:{number}"
        yield PlacedPair(source_line, target_line, place)
    if not number:
        raise ValueError(
            f"The parallel text has no sentence: {source_path} and "
            f"{target_path} are empty."
        )


def read_text(
    sources: Sequence[TextSource], skip_bad_lines: bool
) -> Iterator[PlacedPair]:
    """Read the pairs of one source after the other.

    Args:
        sources: The sources that `text_sources` found.
        skip_bad_lines: Whether lines that are not UTF-8, or lack a second
            column, are marked instead of an error; `write_corpus` counts
            marked lines.
    """
    for part, source in enumerate(sources):
        for pair in source.read(skip_bad_lines):
            if part:
                pair.part = part
            yield pair


def _find_file(name: str) -> Path:
    path = local_path(name)
    if not path.is_file():
        problem = "is no file" if path.exists() else "does not exist"
        raise FileNotFoundError(
            "Expected: a text file of one sentence a line, or one of both "
            f"sides ({FILE_NAMES}). Received: {path}, which {problem}."
        )
    return path


def _find_language_file(prefix: str, language: str) -> Path:
    """Find `prefix.language`, or the compressed file if only that exists."""
    path = local_path(f"{prefix}.{language}")
    paths = [path, *(Path(f"{path}{suffix}") for suffix in SUFFIXES)]
    for file in paths:
        if file.exists():
            return file
    if Path(prefix).is_file():
        raise ValueError(
            f"{prefix} holds only one side, judging by its name. Expected: "
            f"{ONE_OR_TWO}; in a list of several sources, the two files are "
            f"a list of their own. Received: {prefix} only."
        )
    raise FileNotFoundError(
        "Expected: a text file of one sentence a line, one of "
        f"{', '.join(map(str, paths))}. Received: none of them exists."
    )


def read_given_pairs(
    files: tuple[Path, ...], data: DataConfig
) -> Iterator[PlacedPair]:
    """Read pairs from the columns of the run, if a file has these columns.

    Otherwise the columns are guessed, in the direction of the run. A note
    about the columns and a missing header is printed to standard error.

    Args:
        files: One file of both sides, or two files, which may be pipes.
        data: The settings of the run.

    Raises:
        FileNotFoundError: If a file is missing; raised by the call.
        ValueError: If `files` is neither of these, or columns cannot be
            guessed; if a line cannot be read, raised when reading reaches it.
    """
    if len(files) == 2 and not any(map(is_columns, files)):
        if all(str(file) == "-" for file in files):
            raise ValueError(
                "Expected: standard input, `-`, for one of the two files. "
                "Received: - and -."
            )
        source_path, target_path = map(find_text, files)
        return read_pairs(source_path, target_path)
    sources = _find_sources(files, data)
    for source in sources:
        if source.note is not None:
            print(source.note, file=sys.stderr)
    return read_text(sources, False)


def _find_sources(
    files: tuple[Path, ...], data: DataConfig
) -> list[TextSource]:
    names = [tuple(map(str, files))]
    requested = requested_columns(data)
    try:
        return text_sources(names, requested)
    except ValueError:
        if requested.columns is None:
            raise
        source, target = map(column_language, requested.columns)
        languages = requested.languages
        is_known = data.source_language or data.target_language
        if not is_known and (source or target):
            languages = source, target
        return text_sources(names, RequestedColumns(languages))
