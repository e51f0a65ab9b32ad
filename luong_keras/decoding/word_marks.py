"""Words of a list as places of the vocabulary."""

from keras import ops


def marked_words(words, vocabulary_size):
    """Boolean (B, K, V), True at the words (B, K, N); -1 marks nothing.

    Example:
    >>> import numpy as np
    >>> marks = marked_words(np.array([[[2, -1, 2]]], "int32"), 3)
    >>> np.array(marks).tolist()
    [[[False, False, True]]]
    """
    batch, k, count = ops.shape(words)
    size = vocabulary_size + 1  # the first place is that of -1
    rows = ops.arange(batch * k, dtype="int32")[:, None]
    index = rows * size + ops.reshape(words + 1, (batch * k, count))
    marks = ops.segment_sum(
        ops.ones((batch * k * count,), dtype="int32"),
        ops.reshape(index, (-1,)),
        num_segments=batch * k * size,
    )
    return ops.reshape(marks, (batch, k, size))[..., 1:] > 0
