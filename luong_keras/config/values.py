"""Conversion of configurations from and to dictionaries, files, `key=value`."""

import contextlib
import dataclasses
import functools
import json
import types
import typing
import warnings
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from luong_keras.config import RunConfig
from luong_keras.config.checks import choices_of
from luong_keras.config.yaml_files import build_section, read_yaml
from luong_keras.missing_package import needs
from luong_keras.suggestions import did_you_mean

# Short names of common settings; some of them set several settings.
SHORT_NAMES = {
    "epochs": ("training.epochs",),
    "batch_size": ("training.batch_size",),
    "learning_rate": ("training.learning_rate",),
    "optimizer": ("training.optimizer",),
    "seed": ("training.seed",),
    "init_from": ("training.init_from",),
    "metric": ("training.metric",),
    "units": ("model.units",),
    "embedding_size": ("model.embedding_size",),
    "layers": ("model.encoder_layers", "model.decoder_layers"),
    "dropout": ("model.dropout",),
    "precision": ("model.precision",),
    "vocabulary_size": (
        "model.source_vocabulary_size",
        "model.target_vocabulary_size",
    ),
    "max_length": ("data.max_length",),
    "columns": ("data.columns",),
    "beam_size": ("decoding.beam_size",),
    "length_penalty": ("decoding.length_penalty",),
}

# The removed settings that version 0.3.0 wrote, and their values without
# effect.
_REMOVED = {"training.average_epochs": None, "training.max_skipped": 0}


def config_to_dict(config) -> dict[str, Any]:
    """Return a configuration as nested dictionaries, ready for JSON."""
    return dataclasses.asdict(config)


def config_from_dict(values: dict[str, Any], kind: type = RunConfig):
    """Build a configuration of type `kind` from nested dictionaries.

    Removed settings that had no effect are left out.

    Raises:
        ValueError: For an unknown name or a value of the wrong type; the
            message has the full name of each.
    """
    pydantic, leaves = _import_pydantic(), dict(_leaf_types(kind))
    received: dict[str, Any] = {}
    if isinstance(values, Mapping):
        values = without_removed(values)
        received = leaf_values(values)
    known = leaves.keys() | _sections(leaves)
    wrong = [
        name
        for name, value in received.items()
        if name in known and not _fits(value, leaves.get(name))
    ]
    problems = [_describe_wrong_value(n, received[n], leaves) for n in wrong]
    try:
        config = pydantic.TypeAdapter(kind).validate_python(values)
    except pydantic.ValidationError as error:
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            # Pydantic has an error for each type of a union.
            if not f"{name}.".startswith(tuple(f"{n}." for n in wrong)):
                problems.append(_describe_problem(problem, name, leaves))
    if problems:
        raise _settings_error(problems)
    return config


def leaf_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten nested dictionaries into one, by full names.

    Example:
        >>> leaf_values({"model": {"attention": {"kind": "local"}}, "a": 1})
        {'model.attention.kind': 'local', 'a': 1}
    """
    return dict(_leaf_pairs(values))


def _leaf_pairs(
    values: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        full_name = f"{prefix}{name}"
        # An empty section has no values; an empty value is a wrong one.
        if isinstance(value, Mapping) and (value or full_name in _SECTIONS):
            yield from _leaf_pairs(value, f"{full_name}.")
        else:
            yield full_name, value


def with_values(config: RunConfig, values: Mapping[str, Any]) -> RunConfig:
    """Return `config` with other values, by full or short names.

    Short names are those of `SHORT_NAMES`. Settings of `decoding` follow the
    rules of `DecodingConfig.with_`.

    Raises:
        ValueError: For an unknown name, a value of the wrong type, or values
            that contradict each other.

    Example:
        >>> config = with_values(RunConfig(), {"model.units": 64, "epochs": 3})
        >>> config.model.units, config.training.epochs
        (64, 3)
    """
    changes = convert_values(values)
    nested = config_to_dict(config)
    search = {}
    for name, value in changes.items():
        *path, last = name.split(".")
        if path == ["decoding"]:
            search[last] = value
            continue
        section = nested
        for part in path:
            section = section[part]
        section[last] = value
    try:
        nested["decoding"] = config_to_dict(config.decoding.with_(**search))
    except ValueError as error:
        raise _settings_error([f"decoding: {error}"]) from None
    return config_from_dict(nested)


def convert_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by full names, each converted to its setting's type.

    Raises:
        ValueError: For unknown names and values of the wrong type; one message
            lists all wrong values.
    """
    converted: dict[str, Any] = {}
    for name, value in leaf_values(values).items():
        for full_name in _full_names(name, name):
            if isinstance(value, str):
                value = _parse_text(value, LEAVES.get(full_name))
            converted[full_name] = value
    problems = [
        _describe_wrong_value(name, value, LEAVES)
        for name, value in converted.items()
        # No setting has an empty text; it would look like the folder ".".
        if (isinstance(value, str) and not value)
        or not _fits(value, LEAVES.get(name))
    ]
    if problems:
        raise _settings_error(problems)
    adapters = {name: _type_adapter(LEAVES[name]) for name in converted}
    return {n: adapters[n].validate_python(v) for n, v in converted.items()}


def override(config: RunConfig, assignments: Iterable[str]) -> RunConfig:
    """Return `config` with assignments such as `model.units=512`.

    A value is read as JSON if that fits the setting (`null`, `true`, `0.5`),
    otherwise as text; a list needs no quotes (`[a,b]`, or `a,b` where the
    setting may be no path), and None is null. See `with_values`.

    Example:
        >>> override(RunConfig(), ["model.units=64"]).model.units
        64
    """
    return with_values(config, parse_assignments(assignments))


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """Parse `key=value` assignments into values by full names.

    Raises:
        ValueError: For a text without `=`, or an unknown setting.
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise _unknown_setting_error(name.strip(), assignment)
        for full_name in _full_names(name.strip(), assignment):
            value = _parse_text(text.strip(), LEAVES.get(full_name))
            values |= leaf_values({full_name: value})
    return values


def read_values(path: str | Path) -> dict[str, Any]:
    """Read the settings of a YAML or JSON file, by full names.

    Raises:
        FileNotFoundError: If the file does not exist.
        ValueError: If the file holds no settings, an unknown one, or one
            twice.
    """
    path = Path(path)
    values = read_yaml(path)
    if not isinstance(values, dict):
        raise ValueError(
            f"Expected: sections of settings in {path}, such as `model:` with "
            f"`units: 512` below it. Received: {type(values).__name__}."
        )
    pairs = [
        (full_name, value)
        for name, value in _leaf_pairs(without_removed(values, path))
        for full_name in _full_names(name, f"{name} in {path}")
    ]
    return build_section(path, pairs)


def without_removed(
    values: Mapping[str, Any], path: str | Path = "the file", prefix: str = ""
) -> dict[str, Any]:
    """Leave out removed settings; warn of those that had an effect."""
    kept = {}
    for name, value in values.items():
        full_name = f"{prefix}{name}"
        if full_name not in _REMOVED:
            if isinstance(value, Mapping):
                value = without_removed(value, path, f"{full_name}.")
            kept[name] = value
        elif value != _REMOVED[full_name]:
            warnings.warn(
                f"{full_name}={value!r:.200} has no effect: the setting has "
                f"been removed. Remove it from {path}.",
                stacklevel=2,
            )
    return kept


# Names and types.


def _leaf_types(kind: type, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, hint in typing.get_type_hints(kind).items():
        if isinstance(hint, type) and dataclasses.is_dataclass(hint):
            yield from _leaf_types(hint, f"{prefix}{name}.")
        else:
            yield prefix + name, hint


def _sections(leaves: Iterable[str]) -> set[str]:
    return {
        ".".join(parts[:end])
        for parts in (name.split(".") for name in leaves)
        for end in range(1, len(parts))
    }


LEAVES = dict(_leaf_types(RunConfig))
_SECTIONS = _sections(LEAVES)


def _full_names(name: str, received: str) -> tuple[str, ...]:
    """Return the full names of a setting; a section stands for itself."""
    if name in LEAVES or name in _SECTIONS:
        return (name,)
    if name in SHORT_NAMES:
        return SHORT_NAMES[name]
    raise _unknown_setting_error(name, received)


def _unknown_setting_error(name: str, received: str) -> ValueError:
    is_known = name in LEAVES or name in SHORT_NAMES
    names = [*LEAVES] if "." in name else [*SHORT_NAMES, *LEAVES]
    if is_known:
        statement = f"{name} has no value."
    elif name in _REMOVED:
        statement = f"The setting {name} has been removed."
    else:
        hint = did_you_mean(name, names)
        statement = f"There is no setting {name!r}.{hint}"
    expected = (
        "an assignment `section.name=value` such as `model.units=512`"
        if is_known or "=" in received
        else "a name such as `model.units`"
    )
    return ValueError(
        f"{statement} Expected {expected}. Received: {received!r}. The "
        f"sections are {', '.join(typing.get_type_hints(RunConfig))}."
    )


def _parse_text(text: str, annotation):
    """Parse a text as the setting's type, or return a value to be refused."""
    if text.lower() in ("none", "null") and _fits(None, annotation):
        return None
    is_list = text[:1] + text[-1:] in ("[]", "()")
    inside = text[1:-1] if is_list else text
    words = [word.strip(" '\"") for word in inside.split(",")]
    candidates = [words, text] if is_list else [text, words]
    parsed: Any = text
    with contextlib.suppress(ValueError, RecursionError):
        parsed = json.loads(text)
        candidates.insert(0, parsed)
    return next(
        (value for value in candidates if _fits(value, annotation)), parsed
    )


def _import_pydantic():
    with needs("pydantic"):
        import pydantic
    return pydantic


@functools.cache
def _type_adapter(annotation):
    # Refuse NaN and infinity.
    options = {"allow_inf_nan": False}
    return _import_pydantic().TypeAdapter(annotation, config=options)


def _fits(value, annotation) -> bool:
    if annotation is None:
        return False
    try:
        validated = _type_adapter(annotation).validate_python(value)
    except _import_pydantic().ValidationError:
        return False
    # Pydantic accepts true as the number 1.
    return not isinstance(value, bool) or validated is value


def describe_type(annotation) -> str:
    """Describe the allowed values of a setting of this type.

    Example:
        >>> describe_type(float | None)
        'float or null'
        >>> describe_type(typing.Literal["sgd", "adam"])
        "one of 'sgd', 'adam'"
        >>> describe_type(tuple[str | tuple[str, str], ...])
        'a list of (str or [str, str])'
    """
    if typing.get_origin(annotation) is typing.Literal:
        return "one of " + ", ".join(map(repr, typing.get_args(annotation)))
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return " or ".join(map(describe_type, typing.get_args(annotation)))
    if typing.get_origin(annotation) is tuple:
        first, *others = typing.get_args(annotation)
        if others != [...]:
            return f"[{', '.join(map(describe_type, [first, *others]))}]"
        part = describe_type(first)
        return f"a list of {f'({part})' if ' or ' in part else part}"
    names = {type(None): "null", bool: "true or false"}
    return names.get(annotation, annotation.__name__)


def _describe_wrong_value(name: str, value, leaves: Mapping[str, Any]) -> str:
    if name not in leaves:
        return (
            f"{name}: Expected settings of this section, such as "
            f"{next(n for n in leaves if n.startswith(name + '.'))}. "
            f"Received: {value!r:.200}."
        )
    annotation = leaves[name]
    hint = ""
    if isinstance(value, str):
        hint = did_you_mean(value, choices_of(annotation))
    return (
        f"{name}: Expected {describe_type(annotation)}. "
        f"Received: {value!r:.200}.{hint}"
    )


def _describe_problem(
    error: Mapping[str, Any], name: str, leaves: Mapping[str, Any]
) -> str:
    """Describe an error that pydantic found at `name`, in one line."""
    if error["type"] == "value_error":
        where = f"{name}: " if name else ""
        return where + str(error["ctx"]["error"])
    hint = "" if name in leaves else did_you_mean(name, leaves)
    message = error["msg"].removesuffix(".")
    return f"{name}: {message}. Received: {error['input']!r:.200}.{hint}"


def _settings_error(problems: list[str]) -> ValueError:
    return ValueError(f"Wrong settings: {'; '.join(problems)}")
