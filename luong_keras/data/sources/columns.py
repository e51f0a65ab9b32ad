"""The source and target columns of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from luong_keras.suggestions import did_you_mean

_SOURCE = {"source", "src"}
_TARGET = {"target", "tgt", "trg", "ref", "reference"}
# What names of columns have beside a language.
_FILLING = {"text", "sentence", "sentences", "translation", "lang", "language"}
# Code -> name, and the codes of three letters.
_LANGUAGES = {
    "ar": "arabic ara", "cs": "czech ces cze", "da": "danish dan",
    "de": "german deu ger", "el": "greek ell gre", "en": "english eng",
    "es": "spanish spa", "et": "estonian est", "fi": "finnish fin",
    "fr": "french fra fre", "he": "hebrew heb", "hi": "hindi hin",
    "hu": "hungarian hun", "it": "italian ita", "ja": "japanese jpn",
    "ko": "korean kor", "lt": "lithuanian lit", "lv": "latvian lav",
    "nl": "dutch nld dut", "no": "norwegian nor", "pl": "polish pol",
    "pt": "portuguese por", "ro": "romanian ron rum", "ru": "russian rus",
    "sk": "slovak slk slo", "sv": "swedish swe", "tr": "turkish tur",
    "uk": "ukrainian ukr", "vi": "vietnamese vie", "zh": "chinese zho chi",
}  # fmt: skip


@dataclass(frozen=True)
class RequestedColumns:
    """The requested languages and columns of a source of pairs.

    Attributes:
        languages: The codes of the source and the target language.
        columns: The names of the two columns, or None to guess them.
    """

    languages: tuple[str, str] = ("en", "de")
    columns: tuple[str, str] | None = None


@dataclass(frozen=True)
class Columns:
    """The two columns of a table, and how they were found.

    Attributes:
        source: The place of the source column, from 0.
        target: That of the target column.
        header: Whether the first line of a file names the columns.
        note: What to tell who gave the table; None where nothing was
            guessed.
        count: How many columns the first line of a file has, and so no line
            has more; None for any number.
    """

    source: int
    target: int
    header: bool = False
    note: str | None = None
    count: int | None = None


def named_columns(
    names: Sequence[str], columns: tuple[str, str], what: str
) -> tuple[int, int]:
    """Finds the columns that a setting names.

    Args:
        names: The names of all columns.
        columns: The two that are wanted: names, or numbers from 1.
        what: The table, for the message.

    Returns:
        Their places, from 0.

    Raises:
        ValueError: There is no such column.

    Example:
        >>> named_columns(["id", "en", "de"], ("de", "2"), "x.csv")
        (2, 1)
    """
    places = []
    # The names may be a line of data, with one of the numbers in it.
    all_named = {*columns} <= {*names}
    for column in columns:
        counted = column.isdecimal() and 1 <= int(column) <= len(names)
        if counted and not all_named:
            places.append(int(column) - 1)
        elif column in names:
            places.append(list(names).index(column))
        else:
            hint = did_you_mean(column, names)
            raise ValueError(
                f"There is no column {column!r} in {what}. Expected: two of "
                f"{_shown(names)}, or their numbers from 1, as data.columns. "
                f"Received: {list(columns)}.{hint}"
            )
    if places[0] == places[1]:
        raise ValueError(
            f"data.columns must be two columns. Received: {list(columns)}, "
            f"which is one column of {what}."
        )
    return places[0], places[1]


def guessed_columns(
    names: Sequence[str], languages: tuple[str, str]
) -> tuple[int, int] | None:
    """Guesses the columns from their names.

    Args:
        names: The names of all columns.
        languages: The codes of the source and the target language.

    Returns:
        Their places, from 0; None where the names do not say it.

    Example:
        >>> guessed_columns(["id", "sentence_en", "German"], ("en", "de"))
        (1, 2)
        >>> guessed_columns(["src", "tgt"], ("en", "de"))
        (0, 1)
        >>> guessed_columns(["a", "b"], ("en", "de"))
    """
    words = [_words(name) for name in names]
    for source, target in (
        (_SOURCE, _TARGET),
        tuple(_of_language(language) for language in languages),
    ):
        found = [
            [place for place, word in enumerate(words) if word in side]
            for side in (source, target)
        ]
        if all(len(places) == 1 for places in found):
            return found[0][0], found[1][0]
    # Two other languages, in their order.
    known = list(map(column_language, names))
    if len(known) == 2 and None not in known and known[0] != known[1]:
        return 0, 1
    return None


def chosen_columns(
    names: Sequence[str], requested: RequestedColumns, what: str
) -> tuple[int, int, str]:
    """The columns that are named, or else guessed, of a table with names.

    Args:
        names: The names of all columns.
        requested: What is looked for.
        what: The table, for messages.

    Returns:
        Their places, from 0, and what to tell who gave the table.

    Raises:
        ValueError: There are no such columns, or they cannot be guessed.
    """
    if requested.columns is not None:
        found = named_columns(names, requested.columns, what)
        return *found, chosen_note(names, found, what, "as data.columns says")
    guess = guessed_columns(names, requested.languages)
    how = "guessed by their names"
    if guess is None and len(names) == 2:
        guess, how = (0, 1), "guessed: there are two"
    if guess is None:
        raise ValueError(
            f"The columns of {what} cannot be guessed. Expected: columns "
            "called source and target, or by the languages "
            f"{' and '.join(requested.languages)}. Received: {_shown(names)}. "
            "Name two of them, the source first: --columns NAME NAME "
            "(data.columns)."
        )
    return *guess, chosen_note(names, guess, what, how)


def chosen_note(
    names: Sequence[str], found: tuple[int, int], what: str, how: str
) -> str:
    """Says which columns were chosen, and how."""
    source, target = (names[place] for place in found)
    return f"{what}: source = {source!r}, target = {target!r} ({how})"


def column_language(name: str) -> str | None:
    """The code of the language that a column is named for, if it is.

    Example:
        >>> column_language("German"), column_language("id")
        ('de', None)
    """
    word = _words(name)
    return next((c for c in _LANGUAGES if word in _of_language(c)), None)


def _of_language(language: str) -> set[str]:
    code = re.split("[-_]", language.lower())[0]
    return {code, *_LANGUAGES.get(code, code).split()}


def _words(name: str) -> str:
    """The one word of a name that says something, or the empty string.

    Such as `en` of `en`, `en-US`, `sentence_en` and `translation.en`.
    """
    name = str(name).strip()
    words = [
        word
        for word in re.split(r"[^a-z]+", name.lower())
        if word and word not in _FILLING
    ]
    if len(words) == 2 and re.fullmatch(
        r".*[a-z]{2,3}[-_]([A-Z]{2}|[A-Z][a-z]{3})|.*\(.*\)", name
    ):
        words.pop()  # a country or a script
    return words[0] if len(words) == 1 else ""


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(repr(str(name)[:40]) for name in names[:12])
    return shown + (", …" if len(names) > 12 else "")


@dataclass(frozen=True)
class Fields:
    """The keys of the two sentences of a record.

    Attributes:
        source: The keys that lead to the source, from the outside in.
        target: Those that lead to the target.
        note: What to tell who gave the records, or None.
    """

    source: tuple[str | int, ...]
    target: tuple[str | int, ...]
    note: str | None = None


def chosen_fields(
    record: object, requested: RequestedColumns, what: str
) -> Fields:
    """Chooses the fields of records by the first of them.

    Args:
        record: The first one: a mapping, of which a field may be a mapping
            again, as in `{"translation": {"en": …, "de": …}}`; or a source
            and a target in this order.
        requested: What is looked for.
        what: The records, for messages.

    Returns:
        The fields.

    Raises:
        ValueError: There are no such fields, or they cannot be guessed.

    Example:
        >>> record = {"id": 7, "translation": {"en": "a", "de": "b"}}
        >>> fields = chosen_fields(record, RequestedColumns(), "x.jsonl")
        >>> fields.source, fields.target
        (('translation', 'en'), ('translation', 'de'))
    """
    if is_pair(record):
        return Fields((0,), (1,))
    if not isinstance(record, Mapping):
        raise ValueError(
            f"Expected: in {what}, records with named fields, or pairs of "
            f"source and target. Received: {record!r:.80}."
        )
    paths = list(_paths(record, str | bytes | None))
    try:
        return _fields(paths, requested, what)
    except ValueError:
        # A number may be a sentence, where nothing else is.
        return _fields(
            list(_paths(record, str | bytes | None | int)), requested, what
        )


def _fields(
    paths: Sequence[tuple[str, ...]], requested: RequestedColumns, what: str
) -> Fields:
    names = [".".join(path) for path in paths]
    source, target, note = chosen_columns(names, requested, what)
    return Fields(paths[source], paths[target], note)


def is_pair(record: object) -> bool:
    """Whether a record is a source and a target without names."""
    return (
        isinstance(record, Sequence)
        and not isinstance(record, str | bytes)
        and len(record) == 2
    )


def field(record: object, keys: tuple[str | int, ...]) -> object:
    """The value of a field, or None where the record has no such field."""
    value = record
    for key in keys:
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _paths(record: Mapping, kinds: Any):
    """The keys that lead to each value of some types."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((name, *inner) for inner in _paths(value, kinds))
        elif isinstance(value, kinds) and not isinstance(value, bool):
            yield (name,)
