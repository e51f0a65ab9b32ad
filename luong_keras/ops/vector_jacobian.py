"""Gradients of a function inside a backward pass, by the backend.

On TensorFlow and JAX; Keras has no such operation.
"""

from keras import backend, ops


def vector_jacobians(function, arguments, upstream):
    """The gradients of `arguments` from those of the function's results.

    Args:
        function: of as many tensors as `arguments` to a list of tensors, and
            to something else that is not differentiated.
        arguments: list of tensors.
        upstream: the gradients of the results, a list.

    Returns:
        A list of tensors like `arguments`, and the function's second result.

    Example:
        >>> import numpy as np
        >>> x = ops.convert_to_tensor(np.array([1.0, 2.0], "float32"))
        >>> (found,), _ = vector_jacobians(
        ...     lambda x: ([ops.square(x)], None), [x], [ops.ones_like(x)]
        ... )
        >>> np.array(found).tolist()
        [2.0, 4.0]
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
    import jax

    results, pull_back, more = jax.vjp(function, *arguments, has_aux=True)
    return list(pull_back(_like(upstream, results))), more


def reads(function, arguments):
    """Mask of the arguments that the results depend on.

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
    read = {id(x) for x in program.outvars}
    for equation in reversed(program.eqns):
        if any(id(x) in read for x in equation.outvars):
            read |= {id(x) for x in equation.invars}
    return [id(x) in read for x in program.invars]


def _like(upstream, results):
    return [
        ops.cast(d, result.dtype)
        for d, result in zip(upstream, results, strict=True)
    ]
