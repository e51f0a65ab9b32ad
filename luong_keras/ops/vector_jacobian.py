"""The gradient of a function in the middle of a loop, by the backend.

For backward loops that are written by hand, where a part of a step is not.
Keras has no such operation.
"""

from keras import backend, ops


def vector_jacobian(function, x, upstream):
    """The gradient of `x` from that of `function(x)`.

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
    (found,), _ = vector_jacobians(
        lambda x: ([function(x)], None), [x], [upstream]
    )
    return found


def vector_jacobians(function, arguments, upstream):
    """The gradients of `arguments` from those of the function's results.

    Args:
        function: of as many tensors as `arguments` to a list of tensors, and
            to something else that is not differentiated.
        arguments: list of tensors.
        upstream: the gradients of the results, a list.

    Returns:
        A list of tensors like `arguments`, and the function's second result.
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        # A tape has one gradient for a tensor that is given twice.
        arguments = [tf.identity(x) for x in arguments]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arguments)
            results, more = function(*arguments)
        found = tape.gradient(
            results,
            arguments,
            _like(upstream, results),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return found, more
    if backend.backend() == "torch":
        return _torch_vector_jacobians(function, arguments, upstream)
    import jax

    results, pull_back, more = jax.vjp(function, *arguments, has_aux=True)
    return list(pull_back(_like(upstream, results))), more


def _torch_vector_jacobians(function, arguments, upstream):
    import torch

    # Backward functions run where nothing is recorded.
    with torch.enable_grad():
        arguments = [x.detach().requires_grad_() for x in arguments]
        results, more = function(*arguments)
    pairs = [
        (result, d)
        for result, d in zip(results, _like(upstream, results), strict=True)
        if result.requires_grad
    ]
    if not pairs:
        return [torch.zeros_like(x) for x in arguments], more
    results, upstream = zip(*pairs, strict=True)
    found = torch.autograd.grad(
        results, arguments, upstream, allow_unused=True, materialize_grads=True
    )
    return list(found), more


def reads(function, arguments):
    """Which of the arguments the results depend on, on TensorFlow and JAX.

    Args:
        function: of as many tensors as `arguments` to a list of tensors.
        arguments: list of tensors.

    Returns:
        A list of booleans.
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        arguments = [tf.identity(x) for x in arguments]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arguments)
            results = function(*arguments)
        return [d is not None for d in tape.gradient(results, arguments)]
    import jax

    program = jax.make_jaxpr(function)(*arguments).jaxpr
    read = [x for equation in program.eqns for x in equation.invars]
    read = {id(x) for x in [*read, *program.outvars]}
    return [id(x) in read for x in program.invars]


def _like(upstream, results):
    return [
        ops.cast(d, result.dtype)
        for d, result in zip(upstream, results, strict=True)
    ]
