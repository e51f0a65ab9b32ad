"""Products with weights, and with the rows of each sentence.

In a step of a `scan`, a `Tape` records the products: their values are saved,
and an operand that all steps share, a weight or the rows, gets its gradient
from one product after the scan. Elsewhere they are plain products.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple

import keras
from keras import backend, ops

from luong_keras.ops import masking
from luong_keras.ops.backends import rows_of_each
from luong_keras.ops.loops import vector_jacobians

# The gradients of windows of D words are added up in sources longer than 24 D;
# in shorter ones a product is as fast (`benchmarks/local_attention.py`).
_LONG_SOURCE = 24

_current = ContextVar("luong_keras_tape", default=None)


def product(x, kernel, addend=None, view=None):
    """Return x @ kernel in the kernel's dtype, plus addend in at least float32.

    Under a mixed policy the product is cheap and sums over time stay exact.

    x (..., E), kernel (E, U) a tensor or a variable; addend None, a bias (U,)
    or a tensor (..., U) of the step. `view`, such as `ops.transpose`, maps the
    kernel to the matrix that multiplies x.
    """
    tape = _current.get()
    index = None if tape is None else tape.index(kernel)
    kernel = _apply_view(ops.convert_to_tensor(kernel), view)
    if index is None:
        return _product(x, kernel, addend)
    indices, dtype, summand, plain_addend = [index], kernel.dtype, None, None
    if tape.index(addend) is not None:
        indices.append(tape.index(addend))
    elif addend is not None and (
        tuple(addend.shape) == (*x.shape[:-1], kernel.shape[-1])
    ):
        summand = masking.upcast(addend)
    else:
        plain_addend = addend
    value = tape.apply(
        lambda: _Dense(tape, indices, dtype, view), x, summand=summand
    )
    return _add_bias(value, plain_addend)


def dots(x, rows):
    """Return the products of x (B, N, W) with rows (B, S, W): (B, N, S).

    The result is in at least float32. float16 is multiplied in float32,
    because products may overflow and the softmax of two infinities is NaN.
    """
    return _multiply_rows(_dots, _sums, x, rows)


def weighted_sums(weights, rows):
    """Return sums of the rows (B, S, W), weighted by (B, N, S): (B, N, W).

    The result is in at least float32.
    """
    return _multiply_rows(_sums, _dots, weights, rows)


def gather_windows(rows, positions):
    """Gather the rows (B, S, U) at (B, N, W) as (B N, W, U).

    The tape records the windows if N = 1. Each has successive positions.
    """

    def gather(x):
        batch, blocks, width = ops.shape(positions)
        shape = (batch * blocks, width, ops.shape(x)[-1])
        return ops.reshape(rows_of_each(x, positions), shape)

    windows = gather(rows)
    tape = _current.get()
    index = None if tape is None else tape.index(rows)
    if index is not None and positions.shape[1] == 1:
        held = tape.held[index]
        held = windows if held is rows else gather(held)
        tape.windows.append(_Window(windows, held, index, positions[..., :1]))
    return windows


def _product(x, kernel, bias=None):
    x = ops.cast(x, kernel.dtype)
    *rows, width = x.shape
    if len(rows) != 2:
        return _add_bias(masking.upcast(ops.matmul(x, kernel)), bias)
    # As one matrix: TensorFlow fuses the product of a matrix with its bias,
    # and would compute the sizes of unknown axes in each step.
    flat = ops.matmul(ops.reshape(x, (-1, width)), kernel)
    is_vector = bias is None or len(bias.shape) == 1
    flat = _add_bias(masking.upcast(flat), bias if is_vector else None)
    # A size of -1 is undefined beside an empty axis.
    sizes = (-1, rows[1]) if rows[1] else ops.shape(x)[:2]
    outputs = ops.reshape(flat, (*sizes, ops.shape(kernel)[-1]))
    return outputs if is_vector else _add_bias(outputs, bias)


def _add_bias(x, bias):
    return x if bias is None else x + ops.cast(bias, x.dtype)


def _apply_view(kernel, view):
    return kernel if view is None else view(kernel)


def _multiply_rows(multiply, multiply_back, x, rows):
    tape = _current.get()
    window = None if tape is None else tape.window(rows)
    if window is None:
        return multiply(x, rows)
    return tape.apply(
        lambda: _Rows(tape, multiply, multiply_back, window),
        x,
        window.held,
        window.first,
    )


def _dots(x, rows):
    return _sums(x, ops.swapaxes(rows, -1, -2))


def _sums(weights, rows):
    if backend.standardize_dtype(rows.dtype) == "float16":
        rows = masking.upcast(rows)
    return masking.upcast(ops.matmul(ops.cast(weights, rows.dtype), rows))


# Products of a step.


def in_scan():
    """Test whether a step of a `scan` runs, which is rematerialised."""
    return _current.get() is not None


class Tape:
    """Record of the products of one run of a step, in the order of calls.

    Args:
        parameters: List of tensors that all steps share, as the step reads
            them.
        held: List of the same tensors without a gradient.
        variables: Dict from the id of a Keras variable to its index among the
            parameters.
        operations: List of the products of a step; the first run fills it.
        saved: List of the values of the products, or None to compute them.
        zeros: With `saved`, list of zeros of the products' shapes; their
            gradients are the gradients of the products.

    Attributes:
        values: List of the values of the products.
        operands: List with a list for each product, the operands that its
            gradients need in addition to the gradient of its value.
    """

    def __init__(
        self, parameters, held, variables, operations, saved=None, zeros=None
    ):
        self.parameters, self.held = list(parameters), held
        self.variables, self.operations = variables, operations
        self.saved, self.zeros = saved, zeros
        self.values, self.operands, self.windows = [], [], []

    def __enter__(self):
        self._token = _current.set(self)
        return self

    def __exit__(self, *error):
        _current.reset(self._token)

    def index(self, x):
        """Return the index of `x` among the parameters, or None."""
        # In mixed precision each read of a variable gives another tensor.
        if isinstance(x, keras.Variable):
            return self.variables.get(id(x))
        for index, parameter in enumerate(self.parameters):
            if x is parameter:
                return index
        return None

    def window(self, rows):
        """Return the `_Window` of a parameter or gathered rows, or None."""
        for window in self.windows:
            if rows is window.rows:
                return window
        index = self.index(rows)
        return None if index is None else _Window(rows, self.held[index], index)

    def apply(self, make_operation, x, rows=None, first=None, summand=None):
        """Return the value of the next product of the step."""
        i = len(self.operands)
        if i == len(self.operations):
            self.operations.append(make_operation())
        operation = self.operations[i]
        self.operands.append([x] if first is None else [x, first])
        if self.saved is None:
            value = _add_bias(operation.value(x, rows), summand)
        else:
            addends = [x for x in (self.zeros[i], summand) if x is not None]
            value = _attach_gradient(operation, x, rows, self.saved[i], addends)
        self.values.append(value)
        return value


class _Window(NamedTuple):
    """Rows of a product, as the step reads them and without a gradient.

    They are a parameter of the tape, with the index `parameter`, or gathered
    from it: then `first` is the position (B, 1, 1) of the first row.
    """

    rows: Any
    held: Any
    parameter: int
    first: Any = None


def _attach_gradient(operation, x, rows, value, addends):
    """Return the saved value, with the gradients of product and addends."""

    @ops.custom_gradient
    def attach(x, *addends):
        def gradient(d_value):
            d_x = operation.operand_gradient(d_value, rows)
            return ops.cast(d_x, x.dtype), *[d_value for _ in addends]

        return value, gradient

    return attach(x, *addends)


class _Dense:
    """`product` with the kernel and the bias at these indices of a tape."""

    def __init__(self, tape, indices, dtype, view):
        self.indices, self.view = indices, view
        self.held, *bias = [tape.held[index] for index in indices]
        self.bias = bias[0] if bias else None
        # Made once, outside the loop.
        self.kernel = ops.cast(_apply_view(self.held, view), dtype)
        self.transposed = ops.transpose(self.kernel)

    def value(self, x, rows):
        return _product(x, self.kernel, self.bias)

    def operand_gradient(self, d_value, rows):
        return _product(d_value, self.transposed)

    def shared_gradients(self, d_value, x):
        """Return the gradients of kernel and bias from steps (T, B, ...)."""
        d_kernel = _weight_gradient(x, d_value, self.kernel)
        if self.view is not None:
            (d_kernel,), _ = vector_jacobians(
                lambda kernel: ([self.view(kernel)], None),
                [self.held],
                [d_kernel],
            )
        if self.bias is None:
            return [d_kernel]
        axes = tuple(range(len(d_value.shape) - 1))
        return [d_kernel, ops.sum(d_value, axis=axes)]


def _weight_gradient(inputs, d_outputs, kernel):
    """Return the gradient of `kernel` in `inputs @ kernel` over all steps."""
    inputs, d_outputs = (
        ops.cast(ops.reshape(x, (-1, x.shape[-1])), kernel.dtype)
        for x in (inputs, d_outputs)
    )
    return _product(ops.transpose(inputs), d_outputs)


class _Rows:
    """`dots` or `weighted_sums` with rows that all steps share."""

    def __init__(self, tape, multiply, multiply_back, window):
        self.value, self.operand_gradient = multiply, multiply_back
        self.index, self.rows = window.parameter, tape.held[window.parameter]
        # Products of one group put their factors together.
        windows = None if window.first is None else id(window)
        self.group = window.parameter, windows

    def gradient_factors(self, d_value, x, first=None):
        """Return the factors of the rows' gradient, and `first`.

        The factors are (B, T N, S) and (B, T N, W), and `first` is None. For
        windows of D words they are (B, T, D), (B, T, W) and (B, T, 1).
        """
        by_row, by_width = x, d_value
        if self.value is _dots:
            by_row, by_width = d_value, x
        by_row, by_width = (
            _merge_steps(ops.cast(factor, self.rows.dtype))
            for factor in (by_row, by_width)
        )
        if first is not None:
            first = ops.cast(_merge_steps(first), masking.INDEX_DTYPE)
        return by_row, by_width, first


def _merge_steps(x):
    """Reshape all steps (T, B, N, W) to (B, T N, W)."""
    steps, batch, count, width = ops.shape(x)
    if count == 1:
        return ops.swapaxes(ops.squeeze(x, 2), 0, 1)
    x = ops.transpose(x, (1, 0, 2, 3))
    return ops.reshape(x, (batch, steps * count, width))


def _rows_gradient(rows, factors):
    """Return the gradient of rows (B, S, W) from the products' factors."""
    by_row, by_width, (first, *_) = zip(*factors, strict=True)
    length, window_length = ops.shape(rows)[1], ops.shape(by_row[0])[-1]

    def multiply():
        # A single product makes a single tensor as large as the rows.
        full = by_row
        if first is not None:
            full = [spread_windows(x, first, length) for x in by_row]
        full, widths = (ops.concatenate(x, axis=1) for x in (full, by_width))
        return masking.upcast(ops.matmul(ops.swapaxes(full, 1, 2), widths))

    def add_up():
        products = ops.matmul(
            ops.stack(by_row, axis=-1), ops.stack(by_width, axis=-2)
        )
        return _add_windows(masking.upcast(products), first, length)

    if first is None:
        return multiply()
    is_long = length > _LONG_SOURCE * window_length
    if isinstance(is_long, bool):
        return add_up() if is_long else multiply()
    return ops.cond(is_long, add_up, multiply)


def spread_windows(windows, first, length):
    """Put windows (B, T, W) into zeros (B, T, S), from `first` (B, T, 1) on."""
    batch, steps, width = ops.shape(windows)
    sums = _add_windows(
        # Not -1, which an empty axis does not determine.
        ops.reshape(windows, (batch * steps, 1, width)),
        ops.reshape(first, (batch * steps, 1, 1)),
        length,
    )
    return ops.reshape(sums, (batch, steps, length))


def _add_windows(windows, first, length):
    """Add windows (B, T, W, ...) to zeros (B, S, ...), from `first` on."""
    batch, _, width, *inner = ops.shape(windows)
    row = masking.all_indices(batch)
    row = row * ops.cast(length, masking.INDEX_DTYPE)
    index = ops.reshape(row, (-1, 1, 1)) + first
    index = index + masking.all_indices(width)
    sums = ops.scatter(
        ops.reshape(index, (-1, 1)),
        ops.reshape(windows, (-1, *inner)),
        (batch * length, *inner),
    )
    return ops.reshape(sums, (batch, length, *inner))


def shared_gradients(operations, operands, d_values):
    """Return the gradients of parameters that all steps of a scan share.

    Args:
        operations: List of the products of a step.
        operands: List of the operands of each on its `Tape`, (T, B, ...).
        d_values: List of the gradients of their values, (T, B, ...).

    Returns:
        List of pairs (index among the parameters, gradient).
    """
    pairs, groups = [], {}
    for operation, tensors, d_value in zip(
        operations, operands, d_values, strict=True
    ):
        if isinstance(operation, _Rows):
            factors = operation.gradient_factors(d_value, *tensors)
            group = groups.setdefault(operation.group, (operation, []))
            group[1].append(factors)
        else:
            gradients = operation.shared_gradients(d_value, *tensors)
            pairs += zip(operation.indices, gradients, strict=True)
    for operation, factors in groups.values():
        gradient = _rows_gradient(operation.rows, factors)
        pairs.append((operation.index, gradient))
    return pairs
