"""What several commands let a caller change in the search of a run."""

from __future__ import annotations

from typing import Any

from luong_keras.config import DecodingConfig


def changed_search(decoding: DecodingConfig, **given: Any) -> DecodingConfig:
    """The search of a run with what the command line gives; None is nothing."""
    return decoding.with_(
        **{name: value for name, value in given.items() if value is not None}
    )
