"""Products with weights, and with the rows of every sentence.

In the step of a `scan` they are put on its `Tape`: their values are saved, and
an operand that all steps share, a weight or the rows, gets its gradient from
one product after the scan. Elsewhere they are plain products.
"""

from contextvars import ContextVar
from typing import Any, NamedTuple

import keras
from keras import backend, ops

from luong_keras.ops import masking
from luong_keras.ops.loops import vector_jacobians

# Windows of D words are added up in sources of more than 24 D; in shorter ones
# a product is as fast (`benchmarks/local_attention.py`).
_LONG = 24

_current = ContextVar("luong_keras_tape", default=None)


def product(x, kernel, bias=None, view=None):
    """X @ kernel + bias in the kernel's dtype, then in at least float32.

    Under a mixed policy the product is cheap and what is summed up over time
    stays exact.

    x (..., E), kernel (E, U) a tensor or a variable; bias (U,), or a summand
    (..., U) of the step, or None. `view` is a function of the kernel whose
    result is multiplied in its place, such as `ops.transpose`.
    """
    tape = _current.get()
    place = None if tape is None else tape.place(kernel)
    kernel = _viewed(ops.convert_to_tensor(kernel), view)
    if place is None:
        return _product(x, kernel, bias)
    places, dtype, summand, rest = [place], kernel.dtype, None, None
    if tape.place(bias) is not None:
        places.append(tape.place(bias))
    elif bias is not None and (
        tuple(bias.shape) == (*x.shape[:-1], kernel.shape[-1])
    ):
        summand = masking.upcast(bias)
    else:
        rest = bias
    value = tape.apply(
        lambda: _Dense(tape, places, dtype, view), x, summand=summand
    )
    return _plus(value, rest)


def dots(x, rows):
    """The products of x (B, N, W) with the rows (B, S, W): (B, N, S).

    In at least float32; of float16 in float32 throughout, since they may
    leave float16, and of two infinite scores the softmax is NaN.
    """
    return _with_rows(_dots, _sums, x, rows)


def weighted_sums(weights, rows):
    """The sums of the rows (B, S, W), weighted by (B, N, S): (B, N, W).

    In at least float32.
    """
    return _with_rows(_sums, _dots, weights, rows)


def gathered(gather, rows, positions):
    """`gather(rows, positions)`, windows that a tape knows.

    positions (B, N, W) are successive in each window; those of N = 1 are
    known.
    """
    found = gather(rows, positions)
    tape = _current.get()
    place = None if tape is None else tape.place(rows)
    if place is not None and positions.shape[1] == 1:
        held = found
        if rows is not tape.held[place]:
            held = gather(tape.held[place], positions)
        window = _Window(found, held, place, positions[..., :1])
        tape.windows.append(window)
    return found


def _product(x, kernel, bias=None):
    x = ops.cast(x, kernel.dtype)
    *rows, width = x.shape
    if len(rows) != 2:
        return _plus(masking.upcast(ops.matmul(x, kernel)), bias)
    # As one matrix: TensorFlow makes one operation of a product and its bias,
    # and would compute the sizes of unknown axes in every step.
    flat = ops.matmul(ops.reshape(x, (-1, width)), kernel)
    of_all = bias is None or len(bias.shape) == 1
    flat = _plus(masking.upcast(flat), bias if of_all else None)
    # No -1 beside an axis that may be empty.
    sizes = (-1, rows[1]) if rows[1] else ops.shape(x)[:2]
    found = ops.reshape(flat, (*sizes, ops.shape(kernel)[-1]))
    return found if of_all else _plus(found, bias)


def _plus(x, bias):
    return x if bias is None else x + ops.cast(bias, x.dtype)


def _viewed(kernel, view):
    return kernel if view is None else view(kernel)


def _with_rows(multiply, multiply_back, x, rows):
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
    return _matmul(x, rows, transposed=True)


def _sums(weights, rows):
    return _matmul(weights, rows)


def _matmul(x, rows, transposed=False):
    if backend.standardize_dtype(rows.dtype) == "float16":
        rows = masking.upcast(rows)
    rows = ops.swapaxes(rows, -1, -2) if transposed else rows
    return masking.upcast(ops.matmul(ops.cast(x, rows.dtype), rows))


# Products of a step.


class Tape:
    """The products of one run of a step, in the order of calls.

    Args:
        parameters: list of tensors that all steps share, as the step reads
            them.
        held: the same without a gradient.
        variables: dict from the id of a Keras variable to its place among the
            parameters.
        operations: list of the products that earlier runs have met; the first
            run fills it.
        saved: the values of the products, None to compute them.
        zeros: with `saved`, for every product a zero of its shape, whose
            gradient is then that of the product.

    Attributes:
        values: the value of every product.
        operands: for every product a list of what its `shared_gradients`
            reads beside the gradient of the value.
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

    def place(self, x):
        """The index of a tensor or variable among the parameters, or None."""
        # In mixed precision the value of a variable is another tensor every
        # time.
        if isinstance(x, keras.Variable):
            return self.variables.get(id(x))
        for place, parameter in enumerate(self.parameters):
            if x is parameter:
                return place
        return None

    def window(self, rows):
        """The `_Window` of rows that are a parameter or gathered, or None."""
        for window in self.windows:
            if rows is window.rows:
                return window
        place = self.place(rows)
        return None if place is None else _Window(rows, self.held[place], place)

    def apply(self, make, x, rows=None, first=None, summand=None):
        """The value of a product; `make()` makes it for the first run."""
        at = len(self.operands)
        if at == len(self.operations):
            self.operations.append(make())
        operation = self.operations[at]
        self.operands.append([x] if first is None else [x, first])
        if self.saved is None:
            value = _plus(operation.value(x, rows), summand)
        else:
            added = [x for x in (self.zeros[at], summand) if x is not None]
            value = _saved(operation, x, rows, self.saved[at], added)
        self.values.append(value)
        return value


class _Window(NamedTuple):
    """Rows of a product: as the step has them, and without a gradient.

    Of the parameter at `place`; where they are gathered from it, `first` is
    the position (B, 1, 1) of the first one.
    """

    rows: Any
    held: Any
    place: int
    first: Any = None


def _saved(operation, x, rows, value, added):
    """The saved value, differentiated as the product plus what is added."""

    @ops.custom_gradient
    def saved(x, *added):
        def gradient(*arguments, upstream=None):
            d_value = arguments[0] if upstream is None else upstream
            d_x = operation.operand_gradient(d_value, rows)
            return ops.cast(d_x, x.dtype), *[d_value for _ in added]

        return value, gradient

    return saved(x, *added)


class _Dense:
    """`product` with the kernel and the bias at these places of a tape."""

    def __init__(self, tape, places, dtype, view):
        self.places, self.view = places, view
        self.held, *bias = [tape.held[place] for place in places]
        self.bias = bias[0] if bias else None
        # Once, outside of the loop.
        self.kernel = ops.cast(_viewed(self.held, view), dtype)
        self.transposed = ops.transpose(self.kernel)

    def value(self, x, rows):
        return _product(x, self.kernel, self.bias)

    def operand_gradient(self, d_value, rows):
        return _product(d_value, self.transposed)

    def shared_gradients(self, d_value, x):
        """Gradients of kernel and bias, from all steps (T, B, ...)."""
        found = _weight_gradient(x, d_value, self.kernel)
        if self.view is not None:
            (found,), _ = vector_jacobians(
                lambda kernel: ([self.view(kernel)], None),
                [self.held],
                [found],
            )
        if self.bias is None:
            return [found]
        rows = tuple(range(len(d_value.shape) - 1))
        return [found, ops.sum(d_value, axis=rows)]


def _weight_gradient(inputs, d_outputs, kernel):
    """The gradient of `kernel` in `inputs @ kernel`, over all steps at once."""
    inputs, d_outputs = (
        ops.cast(ops.reshape(x, (-1, x.shape[-1])), kernel.dtype)
        for x in (inputs, d_outputs)
    )
    return _product(ops.transpose(inputs), d_outputs)


class _Rows:
    """`dots` or `weighted_sums` with rows that all steps share."""

    def __init__(self, tape, multiply, multiply_back, window):
        self.value, self.operand_gradient = multiply, multiply_back
        self.place, self.rows = window.place, tape.held[window.place]
        # Equal for products whose factors are put together.
        windows = None if window.first is None else id(window)
        self.group = window.place, windows

    def outer_product(self, d_value, x, first=None):
        """The factors of the rows' gradient: (B, T N, S) and (B, T N, W).

        Of windows of D words: (B, T, D), (B, T, W) and `first` (B, T, 1).
        """
        by_row, by_width = x, d_value
        if self.value is _dots:
            by_row, by_width = d_value, x
        by_row, by_width = (
            _by_sentence(ops.cast(each, self.rows.dtype))
            for each in (by_row, by_width)
        )
        if first is not None:
            first = ops.cast(_by_sentence(first), masking.PLACE_DTYPE)
        return by_row, by_width, first


def _by_sentence(x):
    """(B, T N, W) of all steps (T, B, N, W)."""
    steps, batch, count, width = ops.shape(x)
    if count == 1:
        return ops.swapaxes(ops.squeeze(x, 2), 0, 1)
    x = ops.transpose(x, (1, 0, 2, 3))
    return ops.reshape(x, (batch, steps * count, width))


def _rows_gradient(rows, factors):
    """The gradient of rows (B, S, W) from the factors of their products."""
    by_row, by_width, (first, *_) = zip(*factors, strict=True)
    length, words = ops.shape(rows)[1], ops.shape(by_row[0])[-1]

    def product():
        # One product, and so one tensor as large as the rows.
        whole = [_spread(x, first, length) for x in by_row]
        whole, widths = (ops.concatenate(x, axis=1) for x in (whole, by_width))
        return masking.upcast(ops.matmul(ops.swapaxes(whole, 1, 2), widths))

    def sums():
        found = ops.matmul(
            ops.stack(by_row, axis=-1), ops.stack(by_width, axis=-2)
        )
        return _added(masking.upcast(found), first, length)

    if first is None:
        return product()
    is_long = length > _LONG * words
    if isinstance(is_long, bool):
        return sums() if is_long else product()
    return ops.cond(is_long, sums, product)


def _spread(windows, first, length):
    """Windows (B, T, W) at their places of the source: (B, T, S)."""
    if first is None:
        return windows
    batch, steps, width = ops.shape(windows)
    found = _added(
        ops.reshape(windows, (-1, 1, width)),
        ops.reshape(first, (-1, 1, 1)),
        length,
    )
    return ops.reshape(found, (batch, steps, length))


def _added(windows, first, length):
    """Windows (B, T, W, ...) added to zeros (B, S, ...), from `first` on."""
    batch, _, width, *inner = ops.shape(windows)
    row = ops.arange(batch, dtype=masking.PLACE_DTYPE)
    row = row * ops.cast(length, masking.PLACE_DTYPE)
    place = ops.reshape(row, (-1, 1, 1)) + first
    place = place + ops.arange(width, dtype=masking.PLACE_DTYPE)
    found = ops.scatter(
        ops.reshape(place, (-1, 1)),
        ops.reshape(windows, (-1, *inner)),
        (batch * length, *inner),
    )
    return ops.reshape(found, (batch, length, *inner))


def shared_gradients(operations, operands, d_values):
    """Gradients of what all steps share, after a scan.

    Args:
        operations: list of the products of a step.
        operands: for each what its `Tape` has, of all steps (T, B, ...).
        d_values: for each the gradient of its value, (T, B, ...).

    Returns:
        List of pairs (place among the parameters, gradient).
    """
    found, groups = [], {}
    for operation, each, d_value in zip(
        operations, operands, d_values, strict=True
    ):
        if isinstance(operation, _Rows):
            factors = operation.outer_product(d_value, *each)
            group = groups.setdefault(operation.group, (operation, []))
            group[1].append(factors)
        else:
            gradients = operation.shared_gradients(d_value, *each)
            found += zip(operation.places, gradients, strict=True)
    for operation, factors in groups.values():
        gradient = _rows_gradient(operation.rows, factors)
        found.append((operation.place, gradient))
    return found
