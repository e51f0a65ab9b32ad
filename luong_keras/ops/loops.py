"""Loops over time (T, ...) or chunks, and gradients by the backend."""

from keras import backend, ops

from luong_keras.ops.devices import has_gpu

# Steps per iteration on a GPU, where starting a small operation takes about as
# long as computing it, and each iteration adds bookkeeping.
_UNROLL_ON_GPU = 5


def stacking_loop(body, carry, xs, num_stacked, num_kept=0, reverse=False):
    """Run a body over the first axis of sequences.

    It works like `keras.ops.scan`, which on TensorFlow accepts one sequence
    only and copies the values that a backward loop reads. The backend
    differentiates it, or its gradient is a second loop; see
    `with_custom_gradient`.

    Args:
        body: Function `body(carry, x) -> (carry, ys, zs)`, from the carry and
            one step of each sequence (a dict) to the new carry and two lists.
        carry: List of tensors of one dtype.
        xs: Dict of tensors (T, ...) and of results that a loop has kept.
        num_stacked: The number of tensors in `ys`, of the dtype of the carry.
        num_kept: The number of tensors in `zs`, likewise.
        reverse: Whether to start at the last step; the results stay in
            the order of the steps.

    Returns:
        The last carry; `ys` of all steps, (T, ...); `zs` of all steps, in a
        form that only another `stacking_loop` reads.
    """
    if backend.backend() == "tensorflow":
        return _tensorflow_loop(body, carry, xs, num_stacked, num_kept, reverse)

    def step(carry, x):
        carry, ys, zs = body(carry, x)
        return carry, (ys, zs)

    unroll = _UNROLL_ON_GPU if has_gpu() else 1
    carry, (ys, zs) = ops.scan(
        step, list(carry), xs, reverse=reverse, unroll=unroll
    )
    return carry, ys, zs


def _tensorflow_loop(body, carry, xs, num_stacked, num_kept, reverse):
    import tensorflow as tf

    first = next(x for x in xs.values() if not isinstance(x, tf.TensorArray))
    steps, shapes = tf.shape(first)[0], []
    # Not cleared after a read: a gradient may be computed more than once.
    options = {"size": steps, "clear_after_read": False}
    inputs = {
        name: x
        if isinstance(x, tf.TensorArray)
        else tf.TensorArray(x.dtype, **options).unstack(x)
        for name, x in xs.items()
    }
    arrays = [
        tf.TensorArray(carry[0].dtype, **options)
        for _ in range(num_stacked + num_kept)
    ]

    def step(i, carry, arrays):
        t = steps - 1 - i if reverse else i
        carry, ys, zs = body(
            carry, {name: array.read(t) for name, array in inputs.items()}
        )
        shapes[:] = [(first.shape[0], *y.shape) for y in ys]
        arrays = [
            array.write(t, y)
            for array, y in zip(arrays, [*ys, *zs], strict=True)
        ]
        return i + 1, carry, arrays

    _, carry, arrays = tf.while_loop(
        lambda i, *_: i < steps,
        step,
        (0, list(carry), arrays),
        maximum_iterations=steps,
    )
    sequences = [array.stack() for array in arrays[:num_stacked]]
    for sequence, shape in zip(sequences, shapes, strict=True):
        sequence.set_shape(shape)
    return carry, sequences, arrays[num_stacked:]


def sequential_while_loop(condition, body, number, *variables):
    """Run `ops.while_loop` with one iteration after the other.

    Otherwise TensorFlow computes the parts of all iterations that depend only
    on `number` at once, and holds their results.
    """
    if backend.backend() != "tensorflow":
        return ops.while_loop(condition, body, (number, *variables))
    import tensorflow as tf

    with tf.control_dependencies(variables):
        number = tf.identity(number)
    return tf.while_loop(
        condition, body, (number, *variables), parallel_iterations=1
    )


def with_custom_gradient(results, gradients, arguments):
    """Return `results` as functions of `arguments` with a custom gradient.

    Args:
        results: List of tensors, computed from the arguments after
            `ops.stop_gradient`.
        gradients: Function from the gradients of the results to those of the
            arguments, both lists.
        arguments: List of tensors.

    Returns:
        The list of results. Differentiating them twice is an error.
    """
    if backend.backend() == "torch":
        return _with_torch_gradient(results, gradients, arguments)
    if backend.backend() == "jax":
        return _with_jax_gradient(results, gradients, arguments)

    @ops.custom_gradient
    def attach(*arguments):
        def gradient(*upstream):
            return _cast_gradients(gradients(list(upstream)), arguments)

        return tuple(results), gradient

    return list(attach(*arguments))


def _cast_gradients(d_arguments, arguments):
    """Return the gradients in the dtypes of the arguments, for use once."""
    d_arguments = _cast_like(d_arguments, arguments)
    return _refuse_second_gradient(*d_arguments, *arguments)


def _with_jax_gradient(results, gradients, arguments):
    """Attach a gradient on JAX.

    In `jax.grad` of a compiled function or a loop, JAX runs the gradient after
    the trace of the forward pass, whose values it cannot read any more. So all
    that the gradient reads is an argument.
    """
    import jax

    jaxpr = jax.make_jaxpr(gradients)(results)

    @jax.custom_vjp
    def attach(arguments, results, constants):
        return results

    def forward(arguments, results, constants):
        return results, (arguments, constants)

    def backward(residuals, upstream):
        arguments, constants = residuals
        d_arguments = jax.core.eval_jaxpr(jaxpr.jaxpr, constants, *upstream)
        return list(_cast_gradients(d_arguments, arguments)), None, None

    attach.defvjp(forward, backward)
    return attach(arguments, results, jaxpr.consts)


@ops.custom_gradient
def _refuse_second_gradient(*tensors):
    """Return half of the tensors; raise an error if any is differentiated.

    The other half may be of another graph, that of the forward pass.
    """

    def gradient(*upstream):
        raise NotImplementedError(
            "The gradient of a custom backward pass cannot be "
            "differentiated a second time. Give the decoder "
            "`deferred_gradients=False`, and call encoders and `word_losses` "
            "with `training=False`."
        )

    return tensors[: len(tensors) // 2], gradient


def _with_torch_gradient(results, gradients, arguments):
    """Attach a gradient on torch, where Keras' own allows one result only."""
    import torch

    class Attached(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *arguments):
            # Views: autograd must not modify tensors that `gradients` reads.
            return tuple(result.view_as(result) for result in results)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, *upstream):
            d_arguments = gradients(list(upstream))
            return tuple(
                ops.cast(d, x.dtype)
                for d, x in zip(d_arguments, arguments, strict=True)
            )

    return list(Attached.apply(*arguments))


# Gradients within loop bodies.


def vector_jacobians(function, arguments, upstream):
    """Return the gradients of `arguments` from those of the results.

    Args:
        function: Function from the arguments to a list of tensors and a
            second result, which is not differentiated.
        arguments: List of tensors.
        upstream: List of the gradients of the results.

    Returns:
        List of tensors like `arguments`, and the function's second result.

    Example:
        >>> import numpy as np
        >>> x = ops.convert_to_tensor(np.array([1.0, 2.0], "float32"))
        >>> (gradient,), _ = vector_jacobians(
        ...     lambda x: ([ops.square(x)], None), [x], [ops.ones_like(x)]
        ... )
        >>> np.array(gradient).tolist()
        [2.0, 4.0]
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        # A tape has one gradient for a tensor that is passed twice.
        arguments = [tf.identity(x) for x in arguments]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arguments)
            results, aux = function(*arguments)
        d_arguments = tape.gradient(
            results,
            arguments,
            _cast_like(upstream, results),
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        return d_arguments, aux
    import jax

    results, pull_back, aux = jax.vjp(function, *arguments, has_aux=True)
    return list(pull_back(_cast_like(upstream, results))), aux


def find_used(function, arguments):
    """Test which arguments the results depend on.

    Args:
        function: Function from the arguments to a list of tensors.
        arguments: List of tensors.

    Returns:
        List of booleans, one per argument.
    """
    if backend.backend() == "tensorflow":
        import tensorflow as tf

        arguments = [tf.identity(x) for x in arguments]
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(arguments)
            results = function(*arguments)
        return [d is not None for d in tape.gradient(results, arguments)]
    import jax

    jaxpr = jax.make_jaxpr(function)(*arguments).jaxpr
    used = {id(x) for x in jaxpr.outvars}
    for equation in reversed(jaxpr.eqns):
        if any(id(x) in used for x in equation.outvars):
            used |= {id(x) for x in equation.invars}
    return [id(x) in used for x in jaxpr.invars]


def _cast_like(upstream, results):
    return [
        ops.cast(d, result.dtype)
        for d, result in zip(upstream, results, strict=True)
    ]
