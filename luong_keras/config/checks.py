"""Base class of the configurations, and checks of single settings."""

import functools
import math
import numbers
import typing
from collections.abc import Iterable
from typing import Any, Literal

from luong_keras.suggestions import did_you_mean


class Settings:
    """Base class of the configurations, which checks choices and `_check`.

    Raises:
        ValueError: If a setting has a value that is none of its choices, or
            that `_check` refuses.
    """

    # Refuse unknown settings, NaN and infinity.
    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}

    def __post_init__(self):
        for name, choices in _choices_by_setting(type(self)).items():
            choice = getattr(self, name)
            if choice not in choices:
                raise ValueError(
                    f"{name} must be one of {choices}. Received: {choice!r}."
                    f"{did_you_mean(str(choice), map(str, choices))}"
                )
        self._check()

    def _check(self) -> None:
        """Check everything else; a subclass overrides this."""


def at_least(least: int, **numbers: float | None) -> None:
    """Check that each of these numbers is finite and at least `least`, or None.

    Example:
        >>> at_least(1, beam_size=0)
        Traceback (most recent call last):
        ...
        ValueError: beam_size must be at least 1. Received: beam_size=0.
    """
    for name, number in numbers.items():
        if number is not None and not least <= number < math.inf:
            finite = "" if isinstance(number, int) else " and finite"
            raise ValueError(
                f"{name} must be at least {least}{finite}. Received: "
                f"{name}={number}."
            )


def check_at_least(config, least: int, *names: str) -> None:
    """Check that each setting is finite and at least `least`, or None."""
    at_least(least, **{name: getattr(config, name) for name in names})


def check_positive_or_none(**limits: float | None) -> None:
    """Check that each of these numbers is positive and finite, or None."""
    for name, limit in limits.items():
        if limit is not None and (
            not isinstance(limit, numbers.Real) or not 0 < limit < math.inf
        ):
            raise ValueError(
                f"`{name}` must be positive and finite, or null (None) for "
                f"none. Received: {name}={limit!r}."
            )


def check_fraction(**fractions: float) -> None:
    """Check that each of these numbers is at least 0 and less than 1."""
    for name, fraction in fractions.items():
        if not isinstance(fraction, numbers.Real) or not 0 <= fraction < 1:
            raise ValueError(
                f"`{name}` must be at least 0 and less than 1. Received: "
                f"{name}={fraction!r}."
            )


def check_choice(choices: Iterable, advice: str = "", **arguments: Any) -> None:
    """Check that each argument is one of the choices.

    Example:
        >>> check_choice(("lstm", "gru"), recurrence="lsmt")
        Traceback (most recent call last):
        ...
        ValueError: `recurrence` must be one of ('lstm', 'gru'). Received: \
recurrence='lsmt'. Did you mean lstm?
    """
    choices = tuple(choices)  # also compares a list, which has no hash
    for name, value in arguments.items():
        if value not in choices:
            hint = did_you_mean(str(value), map(str, choices))
            raise ValueError(
                f"`{name}` must be one of {choices}. Received: "
                f"{name}={value!r}.{hint}{advice}"
            )


@functools.cache
def _choices_by_setting(kind: type) -> dict[str, tuple[Any, ...]]:
    """Map each setting with a `Literal` annotation to its choices."""
    choices_by_name = {}
    for name, hint in typing.get_type_hints(kind).items():
        if choices := choices_of(hint):
            none = (None,) if type(None) in typing.get_args(hint) else ()
            choices_by_name[name] = (*choices, *none)
    return choices_by_name


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
