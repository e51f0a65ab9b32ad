"""The embedding of words."""

import keras
from keras import ops

from luong_keras.table_rows import rows


@keras.saving.register_keras_serializable(package="luong_keras")
class Embedding(keras.layers.Embedding):
    """`keras.layers.Embedding` that reads the rows of its words alone.

    That of Keras reads the whole table in every step, and rounds it all in
    mixed precision. Arguments, results and saved weights are the same.

    Example:

    >>> import numpy as np
    >>> from luong_keras.layers.embedding import Embedding
    >>> tuple(Embedding(9, 3)(np.ones((2, 5), "int32")).shape)
    (2, 5, 3)
    """

    def add_weight(self, *args, **kwargs):
        # The rows are cast, not the table.
        return super().add_weight(*args, **{**kwargs, "autocast": False})

    def call(self, inputs):
        found = rows(self.embeddings, ops.cast(inputs, "int32"))
        return ops.cast(found, self.compute_dtype)
