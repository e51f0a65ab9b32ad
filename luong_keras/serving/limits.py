"""Limits of one batch of a server, checked before any work.

A row beyond a limit is answered by an empty text and its `status`; its
batch-mates, which may be requests of others, are answered as ever.
"""

from dataclasses import dataclass

# What `status` says of a row.
OK = "OK"
TEXT_TOO_LONG = "TEXT_TOO_LONG"
TOO_MANY_ROWS = "TOO_MANY_ROWS"


@dataclass(frozen=True)
class ServingLimits:
    """The limits of an export.

    Attributes:
        max_rows: rows of a batch that are looked at. A server that puts
            requests together must not make larger batches:
            `max_batch_size` of `export/batching.config`.
    """

    max_rows: int = 32

    def __post_init__(self):
        if self.max_rows < 1:
            raise ValueError(
                "Expected: max_rows of 1 or more. Received: "
                f"max_rows={self.max_rows}."
            )
