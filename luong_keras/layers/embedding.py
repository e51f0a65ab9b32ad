"""Word embedding."""

import keras
from keras import ops

from luong_keras.ops.backends import rows


@keras.saving.register_keras_serializable(package="luong_keras")
class Embedding(keras.layers.Embedding):
    """`keras.layers.Embedding` that reads only the rows of its words.

    The Keras layer reads the whole table (see `ops.backends`), and in mixed
    precision rounds all of it. Arguments, results and saved weights are the
    same for dense ids from 0 to V - 1; other ids fail on TensorFlow.

    Example:

    >>> import numpy as np
    >>> from luong_keras.layers import Embedding
    >>> tuple(Embedding(9, 3)(np.ones((2, 5), "int32")).shape)
    (2, 5, 3)
    """

    def add_weight(self, *args, **kwargs):
        if kwargs.get("name") == "embeddings":
            kwargs["autocast"] = False  # the rows are cast, not the table
        return super().add_weight(*args, **kwargs)

    def call(self, inputs):
        vectors = rows(self.embeddings, ops.cast(inputs, "int32"))
        return ops.cast(vectors, self.compute_dtype)

    def quantize(self, *args, **kwargs):
        # Keras refuses to quantise subclasses, which may compute otherwise.
        return super().quantize(*args, **{**kwargs, "type_check": False})


def embedding_table(embedding, words=None):
    """Return the word vectors (V, E) of a `keras.layers.Embedding`.

    With integer `words` (...), return only the vectors of these ids, (..., E).
    The attribute `embeddings` of a quantised layer holds codes instead.
    """
    if embedding.quantization_mode is not None:
        if words is None:
            words = ops.arange(embedding.input_dim, dtype="int32")
        return embedding(words)
    table = ops.convert_to_tensor(embedding.embeddings)
    return table if words is None else ops.take(table, words, axis=0)
