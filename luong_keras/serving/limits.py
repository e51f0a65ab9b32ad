"""Limits of one batch of a server, checked before any computation.

A row beyond a limit gets an empty text and its `status`. The other rows of
the batch, which may belong to other requests, get their usual results.
"""

from dataclasses import dataclass

from luong_keras.config.checks import Count, Settings

# Values of the output `status`.
OK = "OK"
TEXT_TOO_LONG = "TEXT_TOO_LONG"
TOO_MANY_ROWS = "TOO_MANY_ROWS"


@dataclass(frozen=True)
class ServingLimits(Settings):
    """The limits of an export.

    Attributes:
        max_rows: Maximum number of rows of a batch that are processed. A
            server that batches requests must not make larger batches:
            `max_batch_size` of `export/batching.config`.
    """

    max_rows: Count = 32
