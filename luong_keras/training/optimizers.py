"""The two optimizers of the presets, and how they clip the gradient."""

import keras
from keras import ops


def gradient_norm(gradients, variables, count_embeddings=True):
    """The norm of a gradient over all its variables.

    Args:
        gradients: Tensors, dense or TensorFlow's sparse slices.
        variables: Their variables.
        count_embeddings: `False` leaves out the variables named
            `"embeddings"`, as in the authors' program.

    Returns:
        A scalar.

    Example:
        >>> import numpy as np
        >>> kernel = keras.Variable(np.zeros(2), name="kernel")
        >>> float(gradient_norm([np.array([3.0, 4.0])], [kernel]))
        5.0
    """
    squares = [
        ops.sum(ops.square(_summed_rows(gradient)))
        for gradient, variable in zip(gradients, variables, strict=True)
        if count_embeddings or variable.name != "embeddings"
    ]
    return ops.sqrt(sum(squares[1:], squares[0]))


class _Clipped:
    """Rescales the gradient where its norm is above `clip_norm`.

    Unlike `global_clipnorm` of Keras, the norm can leave out the embeddings;
    they are rescaled with the others all the same.
    """

    def __init__(self, *args, clip_norm=None, count_embeddings=True, **kwargs):
        super().__init__(*args, **kwargs)
        self.clip_norm = clip_norm
        self.count_embeddings = count_embeddings

    def apply(self, grads, trainable_variables=None):
        if self.clip_norm is not None:
            variables = trainable_variables
            if variables is None:
                variables = self._trainable_variables
            norm = gradient_norm(grads, variables, self.count_embeddings)
            # At a norm of zero the scale is that of any small one.
            scale = self.clip_norm / ops.maximum(norm, self.clip_norm)
            grads = [_scaled(gradient, scale) for gradient in grads]
        return super().apply(grads, trainable_variables)

    def get_config(self):
        return {
            **super().get_config(),
            "clip_norm": self.clip_norm,
            "count_embeddings": self.count_embeddings,
        }


def _summed_rows(gradient):
    """The gradient; of a sparse one the rows, what has one index added up."""
    if not hasattr(gradient, "indices"):  # TensorFlow's of a lookup has
        return gradient
    rows, place = ops.unique(
        gradient.indices, sorted=False, return_inverse=True
    )
    return ops.segment_sum(gradient.values, place, ops.shape(rows)[0])


def _scaled(gradient, scale):
    if hasattr(gradient, "indices"):
        values = gradient.values * ops.cast(scale, gradient.values.dtype)
        return type(gradient)(values, gradient.indices, gradient.dense_shape)
    return gradient * ops.cast(scale, gradient.dtype)


@keras.saving.register_keras_serializable(package="luong_keras")
class ClippedSGD(_Clipped, keras.optimizers.SGD):
    """`keras.optimizers.SGD` with a choice of what the norm counts.

    Args:
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        count_embeddings: Whether the embeddings' gradients count in it.
        **kwargs: Those of `keras.optimizers.SGD`.
    """


@keras.saving.register_keras_serializable(package="luong_keras")
class ClippedAdam(_Clipped, keras.optimizers.Adam):
    """`keras.optimizers.Adam` with a choice of what the norm counts.

    Args:
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        count_embeddings: Whether the embeddings' gradients count in it.
        **kwargs: Those of `keras.optimizers.Adam`.
    """


# The gradient of a rare word is small (clipped, and a mean over a batch's
# words); with the epsilon of Keras, 1e-7, Adam would hardly move it.
_OPTIMIZERS = {
    "sgd": (ClippedSGD, {}),
    "adam": (ClippedAdam, {"epsilon": 1e-9}),
}


def make_optimizer(
    name: str = "sgd",
    learning_rate: float = 1.0,
    clip_norm: float | None = 5.0,
    weight_decay: float | None = None,
    count_embeddings: bool = True,
) -> keras.optimizers.Optimizer:
    """Make an optimizer that clips the norm of the whole gradient.

    The defaults are the paper's: plain SGD from rate 1, the gradient rescaled
    when its norm over all variables exceeds 5 (section 4.1).

    Args:
        name: `"sgd"` or `"adam"`.
        learning_rate: The initial rate.
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        weight_decay: The decoupled weight decay, `None` for none.
        count_embeddings: Whether the embeddings' gradients count in the
            norm; not so in the authors' program.

    Returns:
        The optimizer.

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> make_optimizer("adam", learning_rate=1e-3).clip_norm
        5.0
    """
    if name not in _OPTIMIZERS:
        raise ValueError(
            f"`name` must be one of {tuple(_OPTIMIZERS)}. Received: "
            f"name={name!r}. For another optimizer, give the object of "
            "`keras.optimizers` to `compile`."
        )
    kind, options = _OPTIMIZERS[name]
    return kind(
        learning_rate=learning_rate,
        clip_norm=clip_norm,
        count_embeddings=count_embeddings,
        weight_decay=weight_decay,
        **options,
    )
