"""An LSTM layer over all steps, with a backward loop written by hand."""

from keras import ops

from luong_keras.ops.products import product, weight_gradient
from luong_keras.ops.recurrence import (
    bounded,
    lstm_activations,
    lstm_gradients,
    lstm_slopes,
)
from luong_keras.ops.time_loop import (
    added,
    before,
    carried,
    split_carried,
    time_loop,
    with_gradient,
)

# What the backward loop reads of every step, in the order of `lstm_slopes`.
SLOPES = ("to_carry", "to_gates", "to_carry_before")


def lstm_sequence(
    projected,
    hidden,
    carry,
    recurrent_kernel,
    mask=None,
    cell_clip=None,
    gradient_clip=None,
):
    """`recurrence.lstm_step` over all steps, time first.

    projected W x + b (T, B, 4U); hidden and carry (B, U); recurrent_kernel
    (U, 4U); mask boolean (T, B), False carries the states over. Returns the
    hidden states (T, B, U), and the last hidden state and carry.
    """
    kernel = ops.stop_gradient(recurrent_kernel)
    start = [ops.stop_gradient(hidden), ops.stop_gradient(carry)]
    masks = {} if mask is None else {"mask": mask}

    def forward(states, x):
        hidden, carry = states
        gates, squashed, new_carry = lstm_activations(
            x["projected"] + product(hidden, kernel), carry
        )
        new = [gates[-1] * squashed, bounded(new_carry, cell_clip)]
        new = carried(new, states, x.get("mask"))
        return new, new[:1], lstm_slopes(gates, squashed, carry)

    xs = {"projected": ops.stop_gradient(projected), **masks}
    last, (hiddens,), slopes = time_loop(forward, start, xs, stacked=1, kept=3)

    def gradients(upstream):
        d_hiddens, *d_last = upstream
        transposed = ops.transpose(kernel)

        def backward(d_states, x):
            d_states = [d_states[0] + x["d_hidden"], d_states[1]]
            (d_hidden, d_carry), d_old = split_carried(d_states, x.get("mask"))
            dz, d_carry = lstm_gradients(
                [x[name] for name in SLOPES], d_hidden, d_carry
            )
            d_states = [product(dz, transposed), d_carry]
            d_states = [bounded(d, gradient_clip) for d in d_states]
            return added(d_states, d_old), [dz], []

        xs = {"d_hidden": d_hiddens, **masks}
        xs |= dict(zip(SLOPES, slopes, strict=True))
        d_start, (dz,), _ = time_loop(
            backward, d_last, xs, stacked=1, reverse=True
        )
        d_kernel = weight_gradient(before(start[0], hiddens), dz, kernel)
        return [dz, *d_start, d_kernel]

    return with_gradient(
        [hiddens, *last],
        gradients,
        [projected, hidden, carry, recurrent_kernel],
    )
