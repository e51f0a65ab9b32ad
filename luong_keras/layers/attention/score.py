"""The base of all scores."""

from typing import ClassVar


class Score:
    """Base class of the scores of attention layers.

    Subclasses compute `__call__`; what else they have is up to them. A score
    belongs to one attention layer, which saves the weights. To be saved
    itself, a subclass is registered with
    `keras.saving.register_keras_serializable` and returns the arguments of
    its constructor from `get_config`.

    Attributes:
        location_based: whether the scores (B, T, P) belong to the positions
            0 ... P - 1 of a sentence and not to the words of the memory;
            such a score is refused by attention that looks at a window.
        mask_location: for those, whether the softmax runs over the positions
            of the sentence only.
        options: the arguments of `LuongAttention` that are its own.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras import ops
    >>> from luong_keras import LuongAttention
    >>> from luong_keras.layers.attention.scores import Score
    >>> @keras.saving.register_keras_serializable("example")
    ... class Distance(Score):
    ...     def __call__(self, query, keys):
    ...         difference = query[:, :, None] - keys[:, None]
    ...         return -ops.sum(ops.square(difference), axis=-1)
    >>> attention = LuongAttention(Distance())
    >>> tuple(attention(np.ones((2, 3, 4)), np.ones((2, 5, 4))).shape)
    (2, 3, 4)
    """

    location_based = False
    mask_location = True
    options: ClassVar[tuple[str, ...]] = ()

    def build(self, add_weight, query_shape, value_shape):
        """Makes the weights.

        Args:
            add_weight: `add_weight(name, shape, initializer=None)` makes one
                of the layer; None is the layer's `kernel_initializer`.
            query_shape: (B, T, U).
            value_shape: (B, S, M).
        """

    def project_keys(self, value):
        """Keys (B, S, A) of the memory (B, S, M).

        Made once a sentence. A score that projects nothing returns `value`.
        """
        return value

    def __call__(self, query, keys):
        """Scores (B, T, S), before the softmax.

        query (B, T, U), keys (B, S, A) from `project_keys`. S may be that of
        a window.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define `__call__(query, keys)`, from "
            "(B, T, U) and (B, S, A) to scores (B, T, S)."
        )

    def for_windows(self):
        """The same score for attention that looks at few positions."""
        return self

    def get_config(self):
        """The arguments of the constructor."""
        return {}

    @classmethod
    def from_config(cls, config):
        """The score with these arguments."""
        return cls(**config)
