"""Functions for the steps of recurrent units and the order of reading.

The gates have the order of `keras.layers.LSTM` and `keras.layers.GRU`, so
weights can be copied between those layers and ours. `projected` is the
inputs' contribution to the pre-activation, W x + b, which may be computed for
all steps at once before the loop.
"""

from keras import ops

from luong_keras.ops import masking
from luong_keras.ops.backends import rows_of_each
from luong_keras.ops.products import product


def lstm_step(
    projected,
    hidden,
    carry,
    recurrent_kernel,
    cell_clip=None,
    gradient_clip=None,
):
    """Run one step of an LSTM (Zaremba et al. 2015, section 3).

    projected (..., 4U) in the gate order input, forget, candidate, output;
    hidden and carry (..., U); recurrent_kernel (U, 4U). Returns the new
    hidden and carry. `cell_clip` bounds the new carry after the hidden state
    is computed from it; `gradient_clip` bounds the gradients of the old
    states. In the authors' program they are 50 and 1000.
    """
    hidden = clip_gradient(hidden, gradient_clip)
    carry = clip_gradient(carry, gradient_clip)
    gates, squashed, carry = lstm_activations(
        product(hidden, recurrent_kernel, projected), carry
    )
    return gates[-1] * squashed, clip_value(carry, cell_clip)


def lstm_activations(pre_activations, carry):
    """Return the gates (i, f, g, o), tanh(c_t) and the new carry c_t.

    pre_activations z (..., 4U), carry (..., U):

        i, f, o = sigmoid(z_i), sigmoid(z_f), sigmoid(z_o);  g = tanh(z_g)
        c_t = f c_{t-1} + i g;  h_t = o tanh(c_t)
    """
    i, f, g, o = ops.split(pre_activations, 4, axis=-1)
    gates = ops.sigmoid(i), ops.sigmoid(f), ops.tanh(g), ops.sigmoid(o)
    i, f, g, _ = gates
    carry = f * carry + i * g
    return gates, ops.tanh(carry), carry


def _clip(x, limit):
    """Clip `x` to [-limit, limit]."""
    # As tensors: Keras on torch would round Python numbers to float32.
    return ops.clip(
        x,
        ops.convert_to_tensor(-limit, x.dtype),
        ops.convert_to_tensor(limit, x.dtype),
    )


def clip_value(x, limit):
    """Clip `x` to [-limit, limit]; its gradient passes unclipped.

    Returns `x` itself if the limit is None.
    """
    if limit is None:
        return x
    return _with_gradient(lambda x: _clip(x, limit), lambda d: d, x)


def clip_gradient(x, limit):
    """Return `x`; clip its gradient to [-limit, limit], entry by entry.

    The gradient is not clipped if the limit is None.
    """
    if limit is None:
        return x
    return _with_gradient(ops.convert_to_tensor, lambda d: _clip(d, limit), x)


def _with_gradient(function, gradient, x):
    """Return `function(x)`; `gradient` maps its gradient to that of x."""

    @ops.custom_gradient
    def attach(x):
        def backward(*arguments, upstream=None):  # torch passes it by name
            return gradient(arguments[0] if upstream is None else upstream)

        return function(x), backward

    return attach(x)


def gru_step(projected, hidden, recurrent_kernel, recurrent_bias):
    """Run one step of a gated recurrent unit, reset after the product.

    Cho et al. (2014) in the form of `keras.layers.GRU(reset_after=True)`:
    projected (..., 3U) in the order update, reset, candidate;
    recurrent_bias (3U,) or None. Returns the new hidden state.
    """
    hidden_projected = product(hidden, recurrent_kernel, recurrent_bias)
    x_z, x_r, x_h = ops.split(projected, 3, axis=-1)
    h_z, h_r, h_h = ops.split(hidden_projected, 3, axis=-1)
    update = ops.sigmoid(x_z + h_z)
    candidate = ops.tanh(x_h + ops.sigmoid(x_r + h_r) * h_h)
    return update * hidden + (1 - update) * candidate


def reverse_within_mask(x, mask):
    """Reverse the sentences of (B, S, ...); padding stays where it is.

    `mask` boolean (B, S), or None if all steps are real. The mask of the
    result is `reverse_within_mask(mask, mask)`, which equals `mask` if no
    sentence has holes. Reversing the result with its mask gives `x` back.
    """
    if mask is None:
        return ops.flip(x, axis=1)
    first, length = (ops.expand_dims(n, -1) for n in masking.span(mask))
    steps = masking.all_indices(ops.shape(x)[1])
    inside = ops.logical_and(steps >= first, steps < first + length)
    index = ops.where(inside, 2 * first + length - 1 - steps, steps)
    return rows_of_each(x, index)
