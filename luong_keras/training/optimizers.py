"""The two optimizers of the presets."""

import functools

import keras

# The gradient of a rare word is small (clipped, and a mean over a batch's
# words); with the epsilon of Keras, 1e-7, Adam would hardly move it.
_OPTIMIZERS = {
    "sgd": keras.optimizers.SGD,
    "adam": functools.partial(keras.optimizers.Adam, epsilon=1e-9),
}


def make_optimizer(
    name: str = "sgd",
    learning_rate: float = 1.0,
    clip_norm: float | None = 5.0,
    weight_decay: float | None = None,
) -> keras.optimizers.Optimizer:
    """Make an optimizer that clips the norm of the whole gradient.

    The defaults are the paper's: plain SGD from rate 1, the gradient rescaled
    when its norm over all variables exceeds 5 (section 4.1).

    Args:
        name: `"sgd"` or `"adam"`.
        learning_rate: The initial rate.
        clip_norm: The largest norm of the gradient, `None` for no clipping.
        weight_decay: The decoupled weight decay, `None` for none.

    Returns:
        The optimizer.

    Raises:
        ValueError: If the name is unknown.

    Example:
        >>> make_optimizer("adam", learning_rate=1e-3).global_clipnorm
        5.0
    """
    if name not in _OPTIMIZERS:
        raise ValueError(
            f"`name` must be one of {tuple(_OPTIMIZERS)}. Received: "
            f"name={name!r}. For another optimizer, give the object of "
            "`keras.optimizers` to `compile`."
        )
    return _OPTIMIZERS[name](
        learning_rate=learning_rate,
        global_clipnorm=clip_norm,
        weight_decay=weight_decay,
    )
