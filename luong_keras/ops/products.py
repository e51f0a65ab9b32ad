"""Products with weights, in the precision of the weights."""

import keras
from keras import ops

from luong_keras.ops import deferred, masking


def product(x, kernel, bias=None):
    """X @ kernel + bias in the kernel's dtype, then in at least float32.

    Under a mixed policy the product is cheap and what is summed up over time
    stays exact. In the step of a `replayed_loop` the kernel gets its gradient
    when the loop is over.

    x (..., E), kernel (E, U) a tensor or a variable, bias (U,) or None.
    """
    # `ops.convert_to_tensor` of a variable gives another tensor every time.
    is_variable = isinstance(kernel, keras.Variable)
    kernel = kernel.value if is_variable else ops.convert_to_tensor(kernel)
    run = deferred.current()
    place = None if run is None else run.place(kernel)
    if place is None:
        return _product(x, kernel, bias)
    at = run.place(bias)
    if at is None:
        return _plus(run.apply(lambda: _Product(run, place), x), bias)
    return run.apply(lambda: _Product(run, place, at), x)


def weight_gradient(inputs, d_outputs, kernel):
    """The gradient of `kernel` in `inputs @ kernel`, over all steps at once."""
    inputs, d_outputs = (
        ops.cast(ops.reshape(x, (-1, x.shape[-1])), kernel.dtype)
        for x in (inputs, d_outputs)
    )
    return _product(ops.transpose(inputs), d_outputs)


def bias_gradient(d_outputs):
    """The gradient of a bias (U,) that was added at all steps (T, B, U)."""
    return ops.sum(d_outputs, axis=(0, 1))


def _product(x, kernel, bias=None):
    x = ops.cast(x, kernel.dtype)
    *rows, width = x.shape
    if len(rows) != 2:
        return _plus(masking.widen(ops.matmul(x, kernel)), bias)
    # As one matrix: TensorFlow makes one operation of a product and its bias,
    # and would compute the sizes of unknown axes in every step.
    flat = ops.matmul(ops.reshape(x, (-1, width)), kernel)
    flat = _plus(masking.widen(flat), bias)
    steps = ops.shape(x)[1] if rows[1] is None else rows[1]
    return ops.reshape(flat, (-1, steps, ops.shape(kernel)[-1]))


def _plus(x, bias):
    return x if bias is None else x + ops.cast(bias, x.dtype)


class _Product(deferred.Operation):
    """The product with the parameters at these places of a run's."""

    def __init__(self, run, kernel, bias=None):
        self.places = (kernel,) if bias is None else (kernel, bias)
        self.kernel = run.held[kernel]
        self.bias = None if bias is None else run.held[bias]
        # Once, outside of the loop.
        self.transposed = ops.transpose(self.kernel)

    def value(self, x):
        return _product(x, self.kernel, self.bias), []

    def input_gradient(self, d_value, x, kept):
        return _product(d_value, self.transposed)

    def parameter_gradients(self, x, d_value):
        found = [weight_gradient(x, d_value, self.kernel)]
        return found if self.bias is None else [*found, bias_gradient(d_value)]
