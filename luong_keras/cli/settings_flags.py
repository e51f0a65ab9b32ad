"""Every setting of a run as a flag of the command line."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from collections.abc import Sequence

from luong_keras.config import RunConfig
from luong_keras.config.values import LEAVES, SHORT_NAMES, expected
from luong_keras.suggestions import did_you_mean

_FLAG = re.compile(r"--(?:[\w-]+\.[\w.-]+|columns)")


def settings_flags(arguments: type, config: RunConfig) -> type:
    """The dataclass of a command with the sections of a run beside.

    For the help: their values are those of `config`.
    """
    fields = [
        (field.name, field.type, getattr(config, field.name))
        for field in dataclasses.fields(RunConfig)
    ]
    made = dataclasses.make_dataclass(
        arguments.__name__,
        fields,
        bases=(arguments,),
        namespace={"__doc__": arguments.__doc__},
        frozen=True,
    )
    # The help is read from the comments of the source that this names.
    made.__module__ = arguments.__module__
    return made


def taken_settings(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The settings that flags name, as assignments, and what else there is.

    A list may stand in one word or in several.

    Raises:
        ValueError: for a flag of no setting, or without its value.

    Example:
        >>> taken_settings("--data.columns a b --model.units=8 --x".split())
        (['data.columns=["a", "b"]', 'model.units=8'], ['--x'])
        >>> taken_settings(["--model.no-bidirectional", "pairs.tsv"])
        (['model.bidirectional=false'], ['pairs.tsv'])
    """
    assignments, others, words = [], [], list(argv)
    while words:
        flag, equals, value = words[0].partition("=")
        if not _FLAG.fullmatch(flag):
            others.append(words.pop(0))
            continue
        del words[0]
        name, negated = _setting(flag)
        if negated:
            value = "false"
        elif not equals:
            value = _value(flag, LEAVES[name], words)
        assignments.append(f"{name}={value}")
    return assignments, others


def _setting(flag: str) -> tuple[str, bool]:
    """The setting that a flag names, and whether it is switched off."""
    name = flag[2:].replace("-", "_")
    (name,) = SHORT_NAMES.get(name, (name,))
    positive = name.replace(".no_", ".")
    if name not in LEAVES and LEAVES.get(positive) is bool:
        return positive, True
    if name not in LEAVES:
        flags = [f"--{known.replace('_', '-')}" for known in LEAVES]
        raise ValueError(
            f"Unrecognized options: {flag}.{did_you_mean(flag, flags)} "
            "--help-all has all settings."
        )
    return name, False


def _value(flag: str, annotation: typing.Any, words: list[str]) -> str:
    """Takes the value of a flag from the words behind it."""
    if annotation is bool:
        given = words and words[0].lower() in ("true", "false")
        return words.pop(0).lower() if given else "true"
    most = _most_words(annotation)
    values: list[str] = []
    while words and len(values) < most and not words[0].startswith("--"):
        values.append(words.pop(0))
        if set(values[0]) & {",", "["}:
            break
    if not values:
        raise ValueError(
            f"{flag}: Expected {expected(annotation)}. Received: no value."
        )
    return values[0] if len(values) == 1 else json.dumps(values)


def _most_words(annotation: typing.Any) -> float:
    """The maximum number of words of a value."""
    parts = typing.get_args(annotation)
    if isinstance(annotation, types.UnionType):
        return max(map(_most_words, parts))
    if typing.get_origin(annotation) is not tuple:
        return 1
    return float("inf") if ... in parts else len(parts)
