"""Parsing of command lines into dataclasses."""

import contextlib
import io
import itertools
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from luong_keras.files.path_checks import local_path
from luong_keras.missing_package import needs
from luong_keras.suggestions import did_you_mean

with needs("tyro"):
    import tyro

Arguments = TypeVar("Arguments")
# Messages of tyro, rewritten below in the style of this library.
_VALUE = re.compile(
    r"Error parsing (?P<flag>--\S+): no type matching (?P<expected>\S+) could "
    r"be instantiated from \['(?P<received>.*?)'\]"
)
_CHOICE = re.compile(
    r"invalid choice '(?P<received>.*)' for argument '(?P<flag>.*)'. "
    r"Expected one of \((?P<expected>.*)\)"
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\.\w+)*=")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)([dhms])")
Value = TypeVar("Value")
# An option whose comment describes the default instead of None.
Option = Annotated[
    Value, tyro.conf.DisallowNone, tyro.conf.arg(help_behavior_hint="")
]


def parse_arguments(
    kind: type[Arguments], program: str, argv: Sequence[str]
) -> Arguments:
    """Parse the arguments into a dataclass.

    Args:
        kind: The dataclass; its comments are the help.
        program: Name of the program, such as `luong-keras train`.
        argv: The arguments after the name.

    Raises:
        ValueError: For a wrong command line, in one line, and for a path that
            is empty or an address such as `gs://bucket/model`.
        SystemExit: After `--help`.
    """
    messages = io.StringIO()
    with contextlib.redirect_stderr(messages):
        try:
            arguments = tyro.cli(kind, prog=program, args=list(argv))
            _check_paths(tuple(vars(arguments).values()))
            _check_empty_paths(arguments, argv)
            return arguments
        except SystemExit as stop:
            if not stop.code:
                raise
    raise ValueError(
        f"{_format_error(messages.getvalue())} See {program} --help."
    )


def check_run_dirs(folders: Sequence[Path]) -> None:
    """Require at least one run folder.

    Raises:
        ValueError: Without a folder.
    """
    if not folders:
        raise ValueError(
            "--run-dir is required. Expected: the folder of a run. Received: "
            "none."
        )


def given_flags(arguments: Any, names: Iterable[str]) -> list[str]:
    """Return the flags, of those with these names, that change a default."""
    defaults = type(arguments)
    return [
        f"--{name.replace('_', '-')}"
        for name in names
        if getattr(arguments, name) != getattr(defaults, name)
    ]


def _check_paths(value: Any) -> None:
    """Check that all paths are paths of this machine."""
    if isinstance(value, Path):
        local_path(value)
    elif isinstance(value, tuple):
        for item in value:
            _check_paths(item)


def _check_empty_paths(arguments: Any, argv: Sequence[str]) -> None:
    """Check that no path is empty; it would be the current folder."""
    argv = [argument.replace("_", "-") for argument in argv]
    for name, value in vars(arguments).items():
        flag = f"--{name.replace('_', '-')}"
        is_empty = f"{flag}=" in argv or (flag, "") in itertools.pairwise(argv)
        if is_empty and value in (Path(), (Path(),), ((Path(),),)):
            raise ValueError(
                f"Expected: {flag} with a path, such as . for the current "
                "folder. Received: an empty one, as from a variable that is "
                "not set."
            )


def _format_error(text: str) -> str:
    """Return the text of tyro's error boxes as one line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", text)
    sections: list[list[str]] = [[]]
    # The first line is the title of the box. Tyro also draws boxes in ASCII.
    for line in text.splitlines()[1:]:
        content = line.strip("│╰╯ ")
        if content.strip("─-"):
            sections[-1].append(content)
        elif content:
            sections.append([])
    sections = [section for section in sections if section] or [[text]]
    message = " ".join(sections[0]).strip().removesuffix(".") + "."
    match = _VALUE.match(message) or _CHOICE.match(message)
    if match:
        return _format_wrong_value(**match.groupdict())
    for lines in sections[1:]:
        flags = [line for line in lines[1:] if line.startswith("--")]
        if lines[0].startswith("Perhaps") and flags:
            message += f" Did you mean {flags[0].split()[0]}?"
        elif lines[0].startswith("Argument helptext") and flags:
            message += f" Expected: {flags[0]}."
    return message


def _format_wrong_value(flag: str, expected: str, received: str) -> str:
    # Tyro lists the choices of a union in a random order.
    choices = sorted({*re.findall(r"'([^']*)'", expected)} - {"None"})
    if choices:
        expected = f"one of {', '.join(choices)}"
    hint = did_you_mean(received, choices)
    return f"{flag}: Expected {expected}. Received: {received}.{hint}"


def spread_assignments(argv: Sequence[str]) -> list[str]:
    """Turn `--set a=1 b=2` into `--set a=1 --set b=2`; files do not change."""
    spread: list[str] = []
    for argument in argv:
        if spread[-2:-1] == ["--set"] and _ASSIGNMENT.match(argument):
            spread.append("--set")
        spread.append(argument)
    return spread


def seconds(text: str) -> float:
    """Return the seconds of a duration such as `3h` or `1h30m`.

    Raises:
        ValueError: If the text is not a duration.

    Example:
        >>> seconds("1h30m")
        5400.0
    """
    if not re.fullmatch(rf"(?:{_DURATION_PART.pattern})+", text):
        raise ValueError(
            "Expected: --stop-after with a duration of days, hours, minutes or "
            f"seconds, such as 3h, 90m or 1h30m. Received: {text!r}."
        )
    return sum(
        float(n) * _SECONDS[unit] for n, unit in _DURATION_PART.findall(text)
    )
