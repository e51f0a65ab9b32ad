"""Rows that are read twice in training, each time with other dropout."""

import keras

from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.ops.regularized_dropout import PASSES, repeat_rows


@keras.saving.register_keras_serializable(package="luong_keras")
class RepeatBatch(CheckedLayer):
    """In training every row of a batch twice, two of a kind in a row.

    What `WordLosses` with `r_drop` expects of its vectors: behind this layer
    the model reads every sentence twice (Liang et al. 2021, section 2.1).

    Args:
        name, dtype, trainable: as in every Keras layer.

    Call arguments:
        rows: (B, ...).
        training: whether to repeat them.

    Output:
        (2 B, ...) in training, else the rows.

    Example:

    >>> import numpy as np
    >>> from luong_keras.layers import RepeatBatch
    >>> words = np.array([[5, 6], [7, 0]])
    >>> np.array(RepeatBatch()(words, training=True)).tolist()
    [[5, 6], [5, 6], [7, 0], [7, 0]]
    >>> np.array(RepeatBatch()(words)).tolist()
    [[5, 6], [7, 0]]
    """

    def __init__(self, name=None, dtype=None, trainable=True):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        # Ids of words stay what they are.
        self.autocast = False
        self.built = True

    def call(self, rows, training=False):
        return repeat_rows(rows) if training else rows

    def compute_mask(self, rows, previous_mask):
        return None

    def compute_output_spec(self, rows, training=False):
        count, *others = rows.shape
        if training and count is not None:
            count *= PASSES
        return keras.KerasTensor((count, *others), dtype=rows.dtype)
