"""What a request costs a server: memory, and seconds of one core."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from luong_keras.inference.text_translator import TextTranslator
from luong_keras.missing_package import missing_package
from luong_keras.serving.limits import ServingLimits
from luong_keras.serving.saved_model_session import process_memory
from luong_keras.serving.server_runtime import (
    Call,
    SavedModelError,
    session_jobs,
    session_process,
)
from luong_keras.special_tokens import SPECIAL_TOKENS

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error


class RequestCost(NamedTuple):
    """Of one request.

    Attributes:
        megabytes: by how much the process rose over the loaded model.
        seconds: on one core.
        finished: whether it came to an end in the time it was given; else
            both are what it had taken until then.

    Example:
        >>> print(RequestCost(412.3, 7.94))
        412 MB, 7.9 s on one core
        >>> print(RequestCost(412.3, 60.0, finished=False))
        more than 412 MB, more than 60.0 s on one core
    """

    megabytes: float
    seconds: float
    finished: bool = True

    def __str__(self) -> str:
        more = "" if self.finished else "more than "
        return (
            f"{more}{self.megabytes:,.0f} MB, {more}{self.seconds:.1f} s on "
            "one core"
        )


def request_cost(
    folder: str | Path, calls: Sequence[Call], most_seconds: float
) -> RequestCost:
    """Measures the last of some calls, which the others prepare.

    It runs in a process of its own, as the stock server would run it.

    Args:
        folder: the SavedModel.
        calls: what to ask, one after the other.
        most_seconds: what the last one may take.

    Raises:
        SavedModelError: where the runtime cannot load or run the model.
    """
    with session_process(folder, "--cost") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(session_jobs(folder, calls)))
        process.stdin.close()
        loaded = process.stdout.readline()
        before, began = json.loads(loaded or "0"), time.monotonic()
        try:
            process.wait(most_seconds)
        except subprocess.TimeoutExpired:
            peak = process_memory("VmHWM", process.pid)
            process.kill()
            return RequestCost((peak - before) / 1e6, most_seconds, False)
        if process.returncode:
            raise SavedModelError(
                "Expected: an answer to the largest request that the limits "
                f"allow. Received: the process ended with "
                f"{process.returncode} after {time.monotonic() - began:.0f} s"
                f"{_last_line(process)}. Where memory is short, export with "
                "lower limits."
            )
        seconds, peak = json.loads(process.stdout.readline())
    return RequestCost((peak - before) / 1e6, seconds)


def _last_line(process: subprocess.Popen) -> str:
    assert process.stderr is not None
    told = process.stderr.read().strip().splitlines()
    return f", {told[-1]}" if told else ""


def worst_request(translator: TextTranslator, limits: ServingLimits) -> Call:
    """As many of the longest texts and prefixes as the limits allow.

    The signature is `align`, whose answers are the largest.
    """
    decoding, rows = translator.decoding, limits.max_rows
    generator = np.random.default_rng(0)
    texts = [
        _longest(tokenizer, decoding.max_source_length, rows, generator)
        for tokenizer in (
            translator.source_tokenizer,
            translator.target_tokenizer,
        )
    ]
    beam_size = decoding.max_beam_size or decoding.beam_size
    return "align", {
        "text": texts[0],
        # The last of all: so many are put together before.
        "rank": np.full(rows, (decoding.stack_size or beam_size) - 1, "int32"),
        "beam_size": np.full(rows, beam_size, "int32"),
        "length_penalty": np.full(rows, -1, "float32"),
        "prefix": texts[1],
        "replace_unknown": np.ones(rows, "int32"),
    }


def _longest(tokenizer, tokens, rows, generator):
    """Texts of so many tokens drawn from a vocabulary, (rows,) bytes."""
    ids = generator.integers(
        len(SPECIAL_TOKENS), tokenizer.vocabulary_size, (rows, tokens)
    )
    words = tokenizer.lookup(ids)
    return tokenizer.join(tf.RaggedTensor.from_tensor(words)).numpy()
