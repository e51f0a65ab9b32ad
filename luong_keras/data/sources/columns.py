"""The source and target columns of a table."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from luong_keras.suggestions import did_you_mean

_SOURCE = {"source", "src"}
_TARGET = {"target", "tgt", "trg", "ref", "reference"}
# Words that column names may have besides a language.
_FILLING = {"text", "sentence", "sentences", "translation", "lang", "language"}
_LINKS = re.compile(r"(\d+[-p]\d+ ?)*")
# Two-letter code -> name and three-letter codes.
_LANGUAGES = {
    "af": "afrikaans afr", "ar": "arabic ara", "bg": "bulgarian bul",
    "bn": "bengali ben", "ca": "catalan cat", "cs": "czech ces cze",
    "da": "danish dan", "de": "german deu ger", "el": "greek ell gre",
    "en": "english eng", "es": "spanish spa", "et": "estonian est",
    "eu": "basque eus baq", "fa": "persian fas per farsi", "fi": "finnish fin",
    "fr": "french fra fre", "ga": "irish gle", "gl": "galician glg",
    "he": "hebrew heb", "hi": "hindi hin", "hr": "croatian hrv",
    "hu": "hungarian hun", "is": "icelandic isl ice", "it": "italian ita",
    "ja": "japanese jpn", "ka": "georgian kat geo", "ko": "korean kor",
    "lt": "lithuanian lit", "lv": "latvian lav",
    "nl": "dutch nld dut", "no": "norwegian nor", "pl": "polish pol",
    "pt": "portuguese por", "ro": "romanian ron rum", "ru": "russian rus",
    "sk": "slovak slk slo", "sl": "slovenian slv slovene", "sr": "serbian srp",
    "sv": "swedish swe", "sw": "swahili swa", "ta": "tamil tam",
    "th": "thai tha", "tr": "turkish tur", "uk": "ukrainian ukr",
    "ur": "urdu urd", "vi": "vietnamese vie", "zh": "chinese zho chi",
}  # fmt: skip


@dataclass(frozen=True)
class RequestedColumns:
    """The requested languages and columns of a source of pairs.

    Attributes:
        languages: The codes of the source and the target language; one of
            them may be None, for any other language.
        columns: The names of the two columns, or None to guess them.
    """

    languages: tuple[str | None, str | None] = ("en", "de")
    columns: tuple[str, str] | None = None

    @property
    def description(self) -> str:
        """The requested columns or languages, for messages."""
        names = self.columns or self.languages
        return " and ".join(name or "one other" for name in names)


@dataclass(frozen=True)
class Columns:
    """The two columns of a table, or fields of records, and their choice.

    Attributes:
        source: The index of the source column, from 0; of records, the keys
            that lead to the source, from the outside in.
        target: The same for the target.
        note: A message for the user about the choice, or None.
        languages: As those of a `TextSource`.
    """

    source: Any
    target: Any
    note: str | None = None
    languages: tuple[str, str] | None = None


def find_columns(
    names: Sequence[str], columns: tuple[str, str], origin: str
) -> tuple[int, int]:
    """Find the columns that a setting names.

    Args:
        names: The names of all columns.
        columns: The two requested columns: names, or numbers from 1.
        origin: The name of the table, for the message.

    Returns:
        The indices of the columns, from 0.

    Raises:
        ValueError: If a column does not exist, if its name is that of several,
            or if both are the same.

    Example:
        >>> find_columns(["id", "en", "de"], ("de", "2"), "x.csv")
        (2, 1)
    """
    indices = []
    # `names` may be a line of data that contains one of the numbers.
    all_named = {*columns} <= {*names}
    for column in columns:
        is_number = column.isdecimal() and 1 <= int(column) <= len(names)
        if is_number and not all_named:
            indices.append(int(column) - 1)
        elif list(names).count(column) > 1:
            raise ValueError(
                f"Expected: names of one column each. Received: {column!r}, "
                f"the name of several columns of {origin}. Give the numbers of "
                "both columns from 1, as in --columns 1 2."
            )
        elif column in names:
            indices.append(list(names).index(column))
        else:
            hint = did_you_mean(column, names)
            raise ValueError(
                f"There is no column {column!r} in {origin}. Expected: two of "
                f"{_format_names(names)}, or their numbers from 1, as "
                f"data.columns. Received: {list(columns)}.{hint}"
            )
    if indices[0] == indices[1]:
        raise ValueError(
            f"data.columns must be two columns. Received: {list(columns)}, "
            f"which is one column of {origin}."
        )
    return indices[0], indices[1]


def guess_columns(
    names: Sequence[str], languages: tuple[str | None, str | None]
) -> tuple[int, int] | None:
    """Guess the columns from their names.

    Args:
        names: The names of all columns.
        languages: As those of `RequestedColumns`.

    Returns:
        The indices of the columns, from 0; None if the names do not tell.

    Example:
        >>> guess_columns(["id", "sentence_en", "German"], ("en", "de"))
        (1, 2)
        >>> guess_columns(["src", "tgt"], ("en", "de"))
        (0, 1)
        >>> guess_columns(["English", "Chinese"], ("zh", None))
        (1, 0)
        >>> guess_columns(["a", "b"], ("en", "de"))
    """
    words = [_significant_word(name) for name in names]
    for source, target in (
        (_SOURCE, _TARGET),
        (_language_names(*languages), _language_names(*languages[::-1])),
    ):
        matches = [
            [index for index, word in enumerate(words) if word in side]
            for side in (source, target)
        ]
        if all(len(indices) == 1 for indices in matches):
            return matches[0][0], matches[1][0]
    # Two other languages, in the order of the columns.
    codes = list(map(column_language, names))
    if len(codes) == 2 and None not in codes and codes[0] != codes[1]:
        return 0, 1
    return None


def choose_columns(
    names: Sequence[str], requested: RequestedColumns, origin: str
) -> Columns:
    """Choose the requested columns of a table, or guess the columns.

    Args:
        names: The names of all columns.
        requested: The requested languages and columns.
        origin: The name of the table, for messages.

    Returns:
        The columns.

    Raises:
        ValueError: If the columns do not exist, or cannot be guessed.
    """
    if requested.columns is not None:
        indices = find_columns(names, requested.columns, origin)
        return describe_columns(names, indices, origin, "as data.columns says")
    guess = guess_columns(names, requested.languages)
    reason = "guessed by their names"
    if guess is None and len(names) == 2:
        guess, reason = (0, 1), "guessed: there are two"
    if guess is None:
        raise ValueError(
            f"The columns of {origin} cannot be guessed. Expected: columns "
            "named source and target, or after the languages "
            f"{requested.description}. Received: "
            f"{_format_names(names)}. Name two of them, the source first: "
            "--columns NAME NAME (data.columns)."
        )
    return describe_columns(names, guess, origin, reason)


def describe_columns(
    names: Sequence[str], indices: tuple[int, int], origin: str, reason: str
) -> Columns:
    """Describe which columns were chosen, and how.

    Args:
        names: The names of all columns.
        indices: The indices of the source and the target column, from 0.
        origin: The name of the table.
        reason: How the columns were chosen.

    Returns:
        The columns, with a message for the user, and with the codes of the
        languages that name them, if any.

    Example:
        >>> names = ["id", "French", "English"]
        >>> columns = describe_columns(names, (1, 2), "x.csv", "guessed")
        >>> columns.note, columns.languages
        ("x.csv: source = 'French', target = 'English' (guessed)", ('fr', 'en'))
        >>> describe_columns(["a", "b"], (0, 1), "x.csv", "guessed").languages
    """
    source, target = (names[index] for index in indices)
    note = f"{origin}: source = {source!r}, target = {target!r} ({reason})"
    from_code, to_code = column_language(source), column_language(target)
    if from_code is None or to_code is None or from_code == to_code:
        return Columns(*indices, note)
    return Columns(*indices, note, (from_code, to_code))


def column_language(name: str) -> str | None:
    """Return the code of the language in a column's name, or None.

    Example:
        >>> column_language("German"), column_language("id")
        ('de', None)
    """
    word = _significant_word(name)
    return next((c for c in _LANGUAGES if word in _language_names(c)), None)


def _language_names(language: str | None, other: str | None = None) -> set[str]:
    """Return the names of a language, or of all but `other` if it is None."""
    if language is None:
        names = {name for code in _LANGUAGES for name in _language_names(code)}
        return names - _language_names(other or "")
    code = re.split("[-_]", language.lower())[0]
    return {code, *_LANGUAGES.get(code, code).split()}


def _significant_word(name: str) -> str:
    """Return the only significant word of a column's name, or "".

    For example, it is `en` in `en`, `en-US`, `sentence_en`, `translation.en`.
    """
    name = str(name).strip()
    words = re.split(r"[^a-z]+", name.lower())
    if {"lang", "language"} & {*words} and (_SOURCE | _TARGET) & {*words}:
        return ""  # a column of codes, such as `source_language`
    words = [word for word in words if word and word not in _FILLING]
    if len(words) == 2 and re.fullmatch(
        r".*[a-z]{2,3}[-_]([A-Z]{2}|[A-Z][a-z]{3})|.*\(.*\)", name
    ):
        words.pop()  # a country or a script
    return words[0] if len(words) == 1 else ""


def _format_names(names: Sequence[str]) -> str:
    listing = ", ".join(repr(str(name)[:40]) for name in names[:12])
    return listing + (", …" if len(names) > 12 else "")


def choose_fields(
    record: object, requested: RequestedColumns, origin: str
) -> Columns:
    """Choose the fields of records by the first record.

    Args:
        record: The first record: a mapping, possibly nested as in
            `{"translation": {"en": …, "de": …}}`; or a source and a target,
            in this order.
        requested: The requested languages and columns.
        origin: The name of the records, for messages.

    Returns:
        The fields.

    Raises:
        ValueError: If the fields do not exist, or cannot be guessed.

    Example:
        >>> record = {"id": 7, "translation": {"en": "a", "de": "b"}}
        >>> fields = choose_fields(record, RequestedColumns(), "x.jsonl")
        >>> fields.source, fields.target
        (('translation', 'en'), ('translation', 'de'))
    """
    if is_pair(record):
        return Columns((0,), (1,))
    if not isinstance(record, Mapping):
        raise ValueError(
            f"Expected: in {origin}, records with named fields, or pairs of "
            f"source and target. Received: {record!r:.80}."
        )
    # Names come before types; integers count if text alone does not suffice.
    for types in (object, str | bytes | None, str | bytes | None | int):
        paths = list(_key_paths(record, types))
        names = [".".join(map(str, path)) for path in paths]
        if requested.columns or guess_columns(names, requested.languages):
            break
        if types is not object and len(paths) == 2:
            break
    columns = choose_columns(names, requested, origin)
    source, target = paths[columns.source], paths[columns.target]
    return replace(columns, source=source, target=target)


def is_pair(record: object) -> bool:
    """Test whether a record is a source and a target without names.

    A line of the `test.jsonl` of a run has gold links or null after them.
    """
    match record:
        case [_, _] | [_, _, None]:
            return True
        case [_, _, str() as links]:
            return isinstance(record, list) and bool(_LINKS.fullmatch(links))
    return False


def field(record: object, keys: tuple[str | int, ...]) -> object:
    """Return the value of a field, or None if the record lacks the field."""
    value = record
    for key in keys:
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _key_paths(record: Mapping, types: Any):
    """Yield the keys that lead to each value of the given types."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((name, *inner) for inner in _key_paths(value, types))
        elif types is object or (
            isinstance(value, types) and not isinstance(value, bool)
        ):
            yield (name,)
