"""The gradient of a function in the middle of a loop."""

from keras import backend, ops


def vector_jacobian(function, x, upstream):
    """The gradient of `x` from that of `function(x)`, by the backend.

    For backward loops that are written by hand, where a part of a step is
    not. Keras has no such operation.

    Args:
        function: of one tensor to one tensor.
        x: the tensor.
        upstream: the gradient of the result.

    Returns:
        A tensor like `x`.

    Example:
        >>> import numpy as np
        >>> x = ops.convert_to_tensor(np.array([1.0, 2.0], "float32"))
        >>> found = vector_jacobian(ops.square, x, ops.ones_like(x))
        >>> np.array(found).tolist()
        [2.0, 4.0]
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(x)
            result = function(x)
        return tape.gradient(
            result,
            x,
            ops.cast(upstream, result.dtype),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
    if backend.backend() == "torch":
        return _torch_vector_jacobian(function, x, upstream)
    import jax

    result, pull_back = jax.vjp(function, x)
    return pull_back(ops.cast(upstream, result.dtype))[0]


def _torch_vector_jacobian(function, x, upstream):
    import torch

    # Backward functions run where nothing is recorded.
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        result = function(x)
    if not result.requires_grad:
        return torch.zeros_like(x)
    upstream = ops.cast(upstream, result.dtype)
    return torch.autograd.grad(
        result, x, upstream, allow_unused=True, materialize_grads=True
    )[0]
