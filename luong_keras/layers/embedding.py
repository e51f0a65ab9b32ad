"""The embedding of words."""

import keras
from keras import ops

from luong_keras.ops.lookup import rows


@keras.saving.register_keras_serializable(package="luong_keras")
class Embedding(keras.layers.Embedding):
    """`keras.layers.Embedding` that reads the rows of its words alone.

    That of Keras reads the whole table (see `ops.lookup`), and in mixed
    precision rounds it all. Arguments, results and saved weights are the
    same for dense ids from 0 to V - 1; other ids fail on TensorFlow, and
    there is no `quantize`.

    Example:

    >>> import numpy as np
    >>> from luong_keras.layers.embedding import Embedding
    >>> tuple(Embedding(9, 3)(np.ones((2, 5), "int32")).shape)
    (2, 5, 3)
    """

    def add_weight(self, *args, **kwargs):
        if kwargs.get("name") == "embeddings":
            kwargs["autocast"] = False  # the rows are cast, not the table
        return super().add_weight(*args, **kwargs)

    def call(self, inputs):
        found = rows(self.embeddings, ops.cast(inputs, "int32"))
        return ops.cast(found, self.compute_dtype)
