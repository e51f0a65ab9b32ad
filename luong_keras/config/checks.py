"""Base class of the configurations, and checks of single settings."""

import functools
import typing
from typing import Any, Literal

from luong_keras.suggestions import did_you_mean


class Settings:
    """Base class of the configurations, which checks choices.

    Raises:
        ValueError: if a setting has a value that is none of its choices.
    """

    # Refuse unknown settings, NaN and infinity.
    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}

    def __post_init__(self):
        for name, choices in _choices(type(self)).items():
            choice = getattr(self, name)
            if choice not in choices:
                raise ValueError(
                    f"{name} must be one of {choices}. Received: {choice!r}."
                    f"{did_you_mean(str(choice), map(str, choices))}"
                )


def check_at_least(config, least: int, *names: str) -> None:
    """Check that each of these settings is at least `least`, or None."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number < least:
            raise ValueError(
                f"{name} must be at least {least}. Received: {name}={number}."
            )


def check_positive(config, *names: str) -> None:
    """Check that each of these settings is positive, or None."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number <= 0:
            raise ValueError(
                f"{name} must be positive, or null for none. Received: "
                f"{name}={number}."
            )


def check_share(config, name: str) -> None:
    """Check that this setting is a share, at least 0 and below 1."""
    share = getattr(config, name)
    if not 0 <= share < 1:
        raise ValueError(
            f"{name} must be at least 0 and less than 1. Received: "
            f"{name}={share}."
        )


@functools.cache
def _choices(kind: type) -> dict[str, tuple[Any, ...]]:
    """Map each setting with a `Literal` annotation to its choices."""
    found = {}
    for name, hint in typing.get_type_hints(kind).items():
        if choices := choices_of(hint):
            none = (None,) if type(None) in typing.get_args(hint) else ()
            found[name] = (*choices, *none)
    return found


def choices_of(annotation: Any) -> tuple[Any, ...]:
    """Return the values of `Literal[...]` or `Literal[...] | None`.

    Example:
        >>> choices_of(Literal["sgd", "adam"] | None)
        ('sgd', 'adam')
        >>> choices_of(float | None)
        ()
    """
    return tuple(
        choice
        for part in (annotation, *typing.get_args(annotation))
        if typing.get_origin(part) is Literal
        for choice in typing.get_args(part)
    )
