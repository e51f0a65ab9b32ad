"""`tf.data.Dataset`s of strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from luong_keras.data.sources.columns import Wanted
from luong_keras.data.sources.records import Fields, chosen_fields, field
from luong_keras.data.sources.source_kinds import ObjectKind, is_of

_PAIRS_PER_CALL = 1024


def matches(thing: Any) -> bool:
    """Whether it is a `tf.data.Dataset`."""
    return is_of(thing, "tensorflow", "DatasetV2")


def read(
    dataset: Any, wanted: Wanted
) -> tuple[Iterable[tuple[Any, Any]], str | None]:
    """The pairs of its elements, single ones or batches."""
    fields = chosen_fields(
        _strings(dataset.element_spec), wanted, "the tf.data.Dataset"
    )
    specs = [
        field(dataset.element_spec, side)
        for side in (fields.source, fields.target)
    ]
    ranks = {getattr(getattr(s, "shape", None), "rank", None) for s in specs}
    if ranks == {0}:
        dataset = dataset.batch(_PAIRS_PER_CALL)
    elif ranks != {1}:
        raise ValueError(
            "Expected: a tf.data.Dataset whose elements are pairs of strings, "
            "or batches of them: tensors of rank 0 or 1. Received: "
            f"{dataset.element_spec}."
        )
    return _pairs(dataset, fields), fields.note


def _strings(spec: Any) -> Any:
    """The spec with a text for each tensor of strings, None for others."""
    if isinstance(spec, dict):
        return {
            name: found
            for name, value in spec.items()
            if (found := _strings(value)) is not None
        }
    if isinstance(spec, tuple):
        return tuple(map(_strings, spec))
    is_text = getattr(getattr(spec, "dtype", None), "name", "") == "string"
    return "" if is_text else None


def _pairs(dataset: Any, fields: Fields) -> Iterator[tuple[Any, Any]]:
    for batch in dataset.as_numpy_iterator():
        sides = (field(batch, fields.source), field(batch, fields.target))
        yield from zip(*(side.tolist() for side in sides), strict=True)  # type: ignore[attr-defined]


KIND = ObjectKind(matches, read)
