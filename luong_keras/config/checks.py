"""Base class of the configurations, and checks of single settings."""

import functools
import math
import numbers
import typing
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, TypeAlias

from luong_keras.suggestions import did_you_mean


class Settings:
    """Base class of the configurations, which checks the values of settings.

    Raises:
        ValueError: If a setting has a value of another type, one that is none
            of its choices, or one that the check of its type or `_check`
            refuses.
    """

    # Refuse unknown settings, NaN and infinity.
    __pydantic_config__ = {"extra": "forbid", "allow_inf_nan": False}

    def __post_init__(self):
        for name, check in _checks_by_setting(type(self)):
            check(**{name: getattr(self, name)})
        self._check()

    def _check(self) -> None:
        """Check everything else; a subclass overrides this."""


def check_number(
    expected: str,
    is_valid: Callable[[Any], bool],
    optional: bool = False,
    **values: float | None,
) -> None:
    """Check that each value is a valid number; `optional` also allows None."""
    for name, value in values.items():
        is_absent = optional and value is None
        is_number = isinstance(value, numbers.Real)
        if not is_absent and not (is_number and is_valid(value)):
            raise ValueError(
                f"{name} must be {expected}. Received: {name}={value!r}."
            )


def check_integers(
    minimum: int = 1, optional: bool = False, **arguments: Any
) -> None:
    """Check that every argument is an integer of at least `minimum`.

    `optional` also allows None.
    """
    for name, number in arguments.items():
        if number is None and optional:
            continue
        is_integer = isinstance(number, numbers.Integral)
        if not is_integer or isinstance(number, bool) or number < minimum:
            raise ValueError(
                f"`{name}` must be an integer and at least {minimum}. "
                f"Received: {name}={number!r}."
            )


def check_at_least(least: int, **values: int | None) -> None:
    """Check that each value is at least `least`, or None.

    Example:
        >>> check_at_least(1, beam_size=0)
        Traceback (most recent call last):
        ...
        ValueError: beam_size must be at least 1. Received: beam_size=0.
    """
    check_number(
        f"at least {least}", lambda x: least <= x < math.inf, True, **values
    )


check_not_negative = functools.partial(
    check_number, "at least 0 and finite", lambda x: 0 <= x < math.inf, True
)
check_positive_or_none = functools.partial(
    check_number,
    "positive and finite, or null (None) for none",
    lambda x: 0 < x < math.inf,
    True,
)
check_int32 = functools.partial(
    check_number,
    "at least -2147483648 and at most 2147483647",
    lambda x: -(2**31) <= x < 2**31,
    True,
)
check_fraction = functools.partial(
    check_number, "at least 0 and less than 1", lambda x: 0 <= x < 1
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


# Types of numbers, each with the check of its values.
Count: TypeAlias = Annotated[int, functools.partial(check_at_least, 1)]
Natural: TypeAlias = Annotated[int, functools.partial(check_at_least, 0)]
Seed: TypeAlias = Annotated[
    int,
    functools.partial(
        check_number,
        "at least 0 and at most 4294967295",
        lambda x: 0 <= x < 2**32,
    ),
]
NonNegative: TypeAlias = Annotated[float, check_not_negative]
Positive: TypeAlias = Annotated[float, check_positive_or_none]
Fraction: TypeAlias = Annotated[float, check_fraction]
AtLeastOne: TypeAlias = Annotated[
    float,
    functools.partial(
        check_number, "at least 1 and finite", lambda x: 1 <= x < math.inf, True
    ),
]
Temperature: TypeAlias = Annotated[
    float,
    functools.partial(
        check_number, "positive and finite", lambda x: 0 < x < math.inf
    ),
]
Probability: TypeAlias = Annotated[
    float,
    functools.partial(
        check_number, "above 0 and at most 1", lambda x: 0 < x <= 1
    ),
]
Share: TypeAlias = Annotated[
    float, functools.partial(check_number, "0 to 1", lambda x: 0 <= x <= 1)
]
Coverage: TypeAlias = Annotated[
    float,
    functools.partial(check_number, "0.98 to 1", lambda x: 0.98 <= x <= 1),
]

# The classes of the values of a number's type, NumPy's among them.
_NUMBERS: dict[type, type] = {int: numbers.Integral, float: numbers.Real}


@functools.cache
def _checks_by_setting(kind: type) -> list[tuple[str, Callable[..., None]]]:
    """List each setting with the checks that its type implies or has."""
    plain = {int, float, str, bool, type(None)}
    marked_hints = typing.get_type_hints(kind, include_extras=True)
    checks: list[tuple[str, Callable[..., None]]] = []
    for name, hint in typing.get_type_hints(kind).items():
        kinds = typing.get_args(hint) or (hint,)
        if plain.issuperset(kinds):
            checks.append((name, functools.partial(_check_type, kinds)))
        if choices := choices_of(hint):
            none = (None,) if type(None) in kinds else ()
            choices = (*choices, *none)
            checks.append((name, functools.partial(check_choice, choices)))
        # The check of `Count` is also that of `Count | None`.
        marked = marked_hints[name]
        for part in (marked, *typing.get_args(marked)):
            marks = getattr(part, "__metadata__", ())
            checks += [(name, check) for check in marks]
    return checks


def _check_type(kinds: tuple[type, ...], **values: Any) -> None:
    for name, value in values.items():
        accepted = tuple(_NUMBERS.get(kind, kind) for kind in kinds)
        # True is an int, too.
        no_flag = isinstance(value, bool) and bool not in kinds
        if no_flag or not isinstance(value, accepted):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise ValueError(
                f"{name} must be {expected.replace('NoneType', 'None')}. "
                f"Received: {name}={value!r}."
            )


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
