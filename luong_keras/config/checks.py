"""Checks of single settings."""

import typing


def check_at_least_one(config, *names: str) -> None:
    """Raises where one of these settings is below 1; None may stand there."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number < 1:
            raise ValueError(
                f"{name} must be at least 1. Received: {name}={number}."
            )


def check_not_negative(config, *names: str) -> None:
    """Raises where one of these settings is below 0; None may stand there."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number < 0:
            raise ValueError(
                f"{name} must be at least 0. Received: {name}={number}."
            )


def check_positive(config, *names: str) -> None:
    """Raises where one of these settings is not above 0; None may stand."""
    for name in names:
        number = getattr(config, name)
        if number is not None and number <= 0:
            raise ValueError(
                f"{name} must be positive, or null for none. Received: "
                f"{name}={number}."
            )


def check_share(config, name: str) -> None:
    """Raises where this setting is no share, or all of it."""
    share = getattr(config, name)
    if not 0 <= share < 1:
        raise ValueError(
            f"{name} must be at least 0 and less than 1. Received: "
            f"{name}={share}."
        )


def check_choice(config, *names: str) -> None:
    """Raises where one of these settings is none of its choices."""
    hints = typing.get_type_hints(type(config))
    for name in names:
        choices, choice = typing.get_args(hints[name]), getattr(config, name)
        if choice not in choices:
            raise ValueError(
                f"{name} must be one of {choices}. Received: {choice!r}."
            )
