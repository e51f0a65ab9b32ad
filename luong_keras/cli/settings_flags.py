"""Command-line flags for the settings of a run and its search."""

import dataclasses
import re
import typing
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import (
    DisallowNone,
    FlagConversionOff,
    OmitArgPrefixes,
    arg,
    configure,
)

from luong_keras.cli.parsing import Option, Value, given_flags
from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import LEAVES, SHORT_NAMES
from luong_keras.inference.search_options import SEARCH_OPTIONS

# An option whose default is that of the preset.
PresetOption = Annotated[
    Value, DisallowNone, arg(help_behavior_hint="(default: the preset's)")
]
# These flags are not parsed by tyro.
_FLAG = re.compile(r"--(?:[\w-]+\.[\w.-]+|columns)")


def with_sections(arguments: type, config: RunConfig | None) -> Any:
    """Add flags of settings to the dataclass of a command.

    All settings, with the values of `config`; or, without it, those that have
    short names.
    """
    fields: list[Any] = []
    for section, kind in typing.get_type_hints(RunConfig).items():
        default: Any = getattr(config, section, None)
        if config is None:
            names = [
                name
                for name, full_names in SHORT_NAMES.items()
                if full_names == (f"{section}.{name}",)
            ]
            kind = configure(OmitArgPrefixes)(
                flags_of(kind, names, PresetOption)
            )
            default = kind()
        fields.append((section, kind, default))
    flags_class = dataclasses.make_dataclass(
        arguments.__name__,
        fields,
        bases=(arguments,),
        namespace={"__doc__": arguments.__doc__},
        frozen=True,
    )
    # Tyro reads the help from the comments of this module's source.
    flags_class.__module__ = arguments.__module__
    return configure(FlagConversionOff)(flags_class)


def split_settings(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split arguments into assignments of settings and other arguments.

    A flag without a value is an assignment without one; only a setting that is
    true or false is then true.

    Example:
        >>> split_settings("--columns a,b --model.units=8 --units 9".split())
        (['columns=a,b', 'model.units=8'], ['--units', '9'])
        >>> split_settings(["a-b.tsv", "--data.lowercase", "--model.units"])
        (['data.lowercase=true', 'model.units'], ['a-b.tsv'])
        >>> split_settings(["--columns", "a", "b", "c"])
        (['columns=a,b'], ['c'])
    """
    assignments, remaining, words = [], [], list(argv)
    while words:
        flag, equals, value = words.pop(0).partition("=")
        if not _FLAG.fullmatch(flag):
            remaining.append(flag + equals + value)
            continue
        name = flag[2:].replace("-", "_")
        if not equals and _has_value(words):
            equals, value = "=", words.pop(0)
            if flag == "--columns" and "," not in value and _has_value(words):
                value += f",{words.pop(0)}"
        elif not equals and LEAVES.get(name) is bool:
            equals, value = "=", "true"
        assignments.append(name + equals + value)
    return assignments, remaining


def _has_value(words: list[str]) -> bool:
    return bool(words) and not words[0].startswith("--")


def flags_of(kind: type, names: Iterable[str], option: Any = Option) -> Any:
    """Return a class of these settings of a section, by default None."""
    hints = typing.get_type_hints(kind)
    return dataclasses.make_dataclass(
        kind.__name__,
        [(name, option[hints[name] | None], None) for name in names],
        # Tyro reads the help from the comments of that module's source.
        namespace={"__module__": kind.__module__},
        frozen=True,
    )


_SEARCH = [field.name for field in dataclasses.fields(DecodingConfig)]
if TYPE_CHECKING:
    SearchFlags = DecodingConfig
    ExportFlags = DecodingConfig
    RequestFlags = DecodingConfig
else:
    SearchFlags = flags_of(
        DecodingConfig, (n for n in _SEARCH if n != "max_beam_size")
    )
    # A server's batch has the size of its requests.
    ExportFlags = flags_of(
        DecodingConfig, (n for n in _SEARCH if n != "batch_size")
    )
    # The settings that a request to a server may change.
    RequestFlags = flags_of(
        DecodingConfig, (n for n in _SEARCH if n in SEARCH_OPTIONS)
    )


def override_search(
    decoding: DecodingConfig,
    flags: DecodingConfig | None = None,
    requests_sample: bool = False,
    **overrides: Any,
) -> DecodingConfig:
    """Return the search of a run, changed by the command line.

    Args:
        decoding: The search of the run.
        flags: Flags of the command line, if it has them; None changes
            nothing.
        requests_sample: Whether requests may ask for samples, which then have
            the settings of this search, except for the temperature.
        **overrides: Further arguments of `DecodingConfig.with_`, likewise.

    Raises:
        ValueError: For settings that contradict each other, and for settings
            of samples that the search does not draw.
    """
    flags = flags or SearchFlags()
    changes = dataclasses.asdict(flags) | overrides
    search = decoding.with_(
        **{name: value for name, value in changes.items() if value is not None}
    )
    names = ["temperature"]
    names += [] if requests_sample else ["top_k", "top_p", "seed"]
    ignored = given_flags(flags, names)
    if ignored and search.search != "sampling":
        raise ValueError(
            f"{', '.join(ignored)}: settings of samples. Expected: --search "
            "sampling as well. Received: a beam search."
        )
    return search
