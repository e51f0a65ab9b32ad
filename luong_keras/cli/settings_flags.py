"""Every setting of a run as a flag of the command line."""

from __future__ import annotations

import dataclasses
import functools
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config.values import config_to_dict, leaf_values


@functools.cache
def _unchecked(kind: type) -> type:
    """The dataclass without its checks: settings are checked all together."""
    sections = {
        name: _unchecked(annotation)
        for name, annotation in typing.get_type_hints(kind).items()
        if isinstance(annotation, type) and dataclasses.is_dataclass(annotation)
    }
    fields = [
        (name, section, dataclasses.field(default_factory=section))
        for name, section in sections.items()
    ]
    made = dataclasses.make_dataclass(
        kind.__name__,
        fields,
        bases=(kind,),
        namespace={"__post_init__": lambda self: None, "__doc__": kind.__doc__},
        frozen=True,
    )
    # The help is read from the comments of the source that this names.
    made.__module__ = kind.__module__
    return made


def without_checks(config: RunConfig, values: Mapping[str, Any]):
    """`config` with other values by full names, whatever they are together."""
    nested = config_to_dict(config)
    for name, value in values.items():
        *path, last = name.split(".")
        section = nested
        for part in path:
            section = section[part]
        section[last] = value
    return _made(_unchecked(RunConfig), nested)


def _made(kind: type, nested: Mapping[str, Any]):
    return kind(
        **{
            field.name: (
                _made(field.type, nested[field.name])
                if isinstance(field.type, type)
                and dataclasses.is_dataclass(field.type)
                else nested[field.name]
            )
            for field in dataclasses.fields(kind)
        }
    )


@functools.cache
def settings_flags(arguments: type) -> type:
    """The dataclass of a command with the sections of a run beside."""
    fields = [
        (name, kind, dataclasses.field(default_factory=kind))
        for name, section in typing.get_type_hints(RunConfig).items()
        for kind in (_unchecked(section),)
    ]
    made = dataclasses.make_dataclass(
        arguments.__name__,
        fields,
        bases=(arguments,),
        namespace={"__doc__": arguments.__doc__},
        frozen=True,
    )
    made.__module__ = arguments.__module__
    return made


def given_leaves(base, arguments, argv: Sequence[str]) -> dict[str, Any]:
    """The settings, by full names, that the flags name.

    Also one that is what it was: it counts where another setting changes it.
    """
    before, after = (
        leaf_values(
            {
                name: dataclasses.asdict(getattr(settings, name))
                for name in typing.get_type_hints(RunConfig)
            }
        )
        for settings in (base, arguments)
    )
    flags = [flag.partition("=")[0] for flag in argv if flag.startswith("--")]
    named = {flag[2:].replace("-", "_") for flag in flags}
    named |= {name.replace(".no_", ".") for name in named}
    return {n: v for n, v in after.items() if v != before[n] or n in named}
