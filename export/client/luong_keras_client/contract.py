"""What a server says of itself: the version of its contract, its limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np

from luong_keras_client.server_error import TranslationServerError

SPOKEN = (2, 3)
_NO_SIGNATURE = ("INVALID_ARGUMENT", "NOT_FOUND", "FAILED_PRECONDITION")


@dataclass(frozen=True)
class Contract:
    """What a served translator takes.

    Attributes:
        version: of the contract, `docs/serving_contract.md`.
        max_rows: sentences that are translated together.
        max_text_bytes: of a sentence, in UTF-8.
        max_source_tokens: words or subwords that are read of a sentence.
        max_beam_size: hypotheses that a request may ask for.
        n_best: translations that a request may ask for.
    """

    version: int
    max_rows: int
    max_text_bytes: int
    max_source_tokens: int
    max_beam_size: int
    n_best: int


def contract_of(arrays: Mapping[str, np.ndarray]) -> Contract:
    """The contract that the signature `contract` answers.

    Raises:
        TranslationServerError: where it is another than this client's.
        ValueError: where a limit is below 1.

    Example:
        >>> contract_of({"version": np.array([4])})
        Traceback (most recent call last):
        luong_keras_client.server_error.TranslationServerError: contract 4
    """
    version = int(arrays["version"][0])
    if version not in SPOKEN:
        raise TranslationServerError(f"contract {version}", "CONTRACT")
    limits = {x.name: int(arrays[x.name][0]) for x in fields(Contract)}
    if min(limits.values()) < 1:
        raise ValueError(f"limits of at least 1 expected, not {limits}")
    return Contract(**limits)


def has_no_contract(error: TranslationServerError) -> bool:
    """Whether a server said that it has no signature of that name."""
    return error.code in _NO_SIGNATURE and "signature" in str(error).lower()
