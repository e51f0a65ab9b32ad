"""A function of a batch, called with the rows that its limits allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from luong_keras.inference.translation import ABSENT_SCORE
from luong_keras.missing_package import missing_package
from luong_keras.serving.limits import OK, TEXT_TOO_LONG, TOO_MANY_ROWS

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

# Of these a row that was not looked at has -1e30; of all else nothing.
_SCORES = ("score", "scores", "log_probability")


def within_limits(
    function: Callable[..., Mapping[str, tf.Tensor]],
    max_rows: int,
    max_text_bytes: int,
) -> Callable[..., dict[str, tf.Tensor]]:
    """A function that is called with what the limits allow.

    Args:
        function: takes columns (B,), texts and others, and gives a dict of
            tensors (B, ...).
        max_rows: rows of the batch that reach it.
        max_text_bytes: the longest text that reaches it; of a row with a
            longer one all texts are empty.

    Returns:
        A function of the same columns with the same results and `status`
        (B,), and a row for each of the B that came.
    """

    def answer(*columns):
        batch = _common_size(columns)
        columns = [column[:max_rows] for column in columns]
        texts = [column for column in columns if column.dtype == tf.string]
        too_long = tf.reduce_any(
            [tf.strings.length(text) > max_text_bytes for text in texts], axis=0
        )
        found = function(
            *(
                tf.where(too_long, "", column)
                if column.dtype == tf.string
                else column
                for column in columns
            )
        )
        missing = batch - tf.shape(too_long)[0]
        results = {
            name: _with_rows(
                emptied(name, result, too_long), missing, _nothing(name, result)
            )
            for name, result in found.items()
        }
        status = tf.where(too_long, TEXT_TOO_LONG, OK)
        results["status"] = _with_rows(status, missing, TOO_MANY_ROWS)
        return results

    return answer


def emptied(name: str, result: tf.Tensor, rows: tf.Tensor) -> tf.Tensor:
    """A result without what some of its rows tell.

    Args:
        name: that of the output.
        result: (B, ...).
        rows: (B,) whether a row is to have nothing.
    """
    shape = [-1] + [1] * (result.shape.rank - 1)
    return tf.where(tf.reshape(rows, shape), _nothing(name, result), result)


def _common_size(columns):
    """B, if that is the size of every column."""
    batch = tf.shape(columns[0])[0]
    checks = [
        tf.debugging.assert_equal(
            tf.shape(column)[0],
            batch,
            message="Expected: as many values of every input. Received:",
        )
        for column in columns[1:]
    ]
    # Eager, the checks were made.
    with tf.control_dependencies([check for check in checks if check]):
        return tf.identity(batch)


def _nothing(name, result):
    if name in _SCORES:
        return tf.constant(ABSENT_SCORE, result.dtype)
    return tf.zeros([], result.dtype)


def _with_rows(result, count, nothing):
    """More rows, with nothing in them."""
    shape = tf.concat([[count], tf.shape(result)[1:]], axis=0)
    return tf.concat([result, tf.fill(shape, nothing)], axis=0)
