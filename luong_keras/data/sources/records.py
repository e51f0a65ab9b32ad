"""Records with named fields, and pairs without names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from luong_keras.data.sources.columns import Wanted, chosen_columns


@dataclass(frozen=True)
class Fields:
    """Where the two sentences of a record are.

    Attributes:
        source: The keys that lead to the source, from the outside in.
        target: Those that lead to the target.
        note: What to tell who gave the records, or None.
    """

    source: tuple[str | int, ...]
    target: tuple[str | int, ...]
    note: str | None = None


def chosen_fields(record: object, wanted: Wanted, what: str) -> Fields:
    """Chooses the fields of records by the first of them.

    Args:
        record: The first one: a mapping, of which a field may be a mapping
            again, as in `{"translation": {"en": …, "de": …}}`; or a source
            and a target in this order.
        wanted: What is looked for.
        what: The records, for messages.

    Returns:
        The fields.

    Raises:
        ValueError: There are no such fields, or they cannot be guessed.

    Example:
        >>> record = {"id": 7, "translation": {"en": "a", "de": "b"}}
        >>> fields = chosen_fields(record, Wanted(), "x.jsonl")
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
    paths = list(_paths(record))
    names = [".".join(path) for path in paths]
    source, target, note = chosen_columns(names, wanted, what)
    return Fields(paths[source], paths[target], note)


def is_pair(record: object) -> bool:
    """Whether a record is a source and a target without names."""
    return (
        isinstance(record, Sequence)
        and not isinstance(record, str | bytes)
        and len(record) == 2
    )


def field(record: object, keys: tuple[str | int, ...]) -> object:
    """What stands there, or None where the record has no such field."""
    value = record
    for key in keys:
        try:
            value = value[key]  # type: ignore[index]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _paths(record: Mapping):
    """The keys that lead to each value that may be a sentence."""
    for name, value in record.items():
        if isinstance(value, Mapping):
            yield from ((name, *inner) for inner in _paths(value))
        elif value is None or isinstance(value, str | bytes):
            yield (name,)
