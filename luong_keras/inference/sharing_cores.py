"""The number of batches that a translator runs at once."""

from luong_keras.text.threads import available_cores, divide_cores

_MAX_BATCHES = 8  # each has logits of the whole vocabulary


def batches_at_once() -> int:
    """The number of batches that run at the same time.

    A search does much one after the other, which leaves cores to the batches
    beside it.
    """
    return min(available_cores(), _MAX_BATCHES)


def share_cores() -> None:
    """Gives each batch its own share of the cores, to translate many.

    For programs that do nothing else: TensorFlow then divides an operation
    among that share of the cores, and no longer among all. It works before
    TensorFlow computes for the first time; `TF_NUM_INTRAOP_THREADS` of the
    environment has precedence.

    Example:
        >>> import os
        >>> before = dict(os.environ)
        >>> share_cores()
        >>> int(os.environ["TF_NUM_INTRAOP_THREADS"]) >= 1
        True
        >>> os.environ.clear(); os.environ.update(before)
    """
    divide_cores(batches_at_once())
