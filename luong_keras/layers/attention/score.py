"""Base class of the scores of attention layers."""

import inspect
from typing import ClassVar


class Score:
    """Base class of the scores of attention layers.

    Subclasses define `__call__`; the other methods are optional. A score
    belongs to one attention layer, which saves its weights. To make the score
    itself saveable, register the subclass with
    `keras.saving.register_keras_serializable`, and keep each argument of its
    constructor in an attribute of that name, or define `get_config`.

    Attributes:
        location_based: Whether the scores (B, T, P) belong to the positions
            0 ... P - 1 of a sentence and not to the words of the memory;
            local attention refuses such a score.
        mask_location: For a location-based score, whether the softmax runs
            only over the positions of the sentence.
        options: Names of the `LuongAttention` arguments for this score only.

    Example:

    >>> import keras
    >>> import numpy as np
    >>> from keras import ops
    >>> from luong_keras import LuongAttention
    >>> from luong_keras.layers import Score
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

    def check_shapes(self, query_shape, value_shape):
        """Check the shapes (B, T, U) and (B, S, M) of the first call.

        It runs before any layer makes a weight, so that a layer that raised
        an error can be called again with other shapes.
        """

    def build(self, add_weight, query_shape, value_shape):
        """Make the weights.

        Args:
            add_weight: `add_weight(name, shape, initializer=None)` adds one
                to the layer; None is the layer's `kernel_initializer`.
            query_shape: (B, T, U).
            value_shape: (B, S, M).
        """

    def project_keys(self, value):
        """Return the keys (B, S, A) of the memory (B, S, M).

        Called once per sentence. By default the keys are `value` itself.
        """
        return value

    def __call__(self, query, keys):
        """Return the scores (B, T, S), before the softmax.

        query (B, T, U), keys (B, S, A) from `project_keys`. S may be the
        width of a window.
        """
        raise NotImplementedError(
            f"{type(self).__name__} must define `__call__(query, keys)`, from "
            "(B, T, U) and (B, S, A) to scores (B, T, S)."
        )

    def for_windows(self):
        """Return this score in the form that suits local attention."""
        return self

    def get_config(self):
        """Return the constructor's arguments, attributes of their names."""
        names = inspect.signature(type(self)).parameters.keys()
        for name in (n for n in names if not hasattr(self, n)):
            raise NotImplementedError(
                f"Expected: attributes {list(names)} of {self!r:.100}, or a "
                f"method `get_config`. Received: no attribute {name!r}."
            )
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_config(cls, config):
        """Make the score from the arguments of the constructor."""
        return cls(**config)
