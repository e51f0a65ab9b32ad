import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import InputFeedingLSTMCell
from luong_keras.ops.products import product
from luong_keras.ops.recurrence import lstm_activations
from tests.golden.golden_files import cases
from tests.layer_checks import loss_and_gradients, to_numpy

FILE = "lstm_unit.npz"
INPUTS = ("W", "x", "h_prev", "c_prev", "mask", "d_h_out", "d_c_out")


def swap_last_gates(kernel):
    i, f, third, fourth = np.split(kernel, 4, axis=-1)
    return np.concatenate([i, f, fourth, third], axis=-1)


@pytest.mark.parametrize(
    "case", [(FILE, name) for name in cases(FILE)], indirect=True
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_lstm_unit_matches_the_authors(case, dtype, compare, float64):
    arrays, _ = case
    check = compare(arrays, INPUTS, single=dtype == "float32")
    units = arrays["h_prev"].shape[1]
    width = arrays["x"].shape[1]
    cell = InputFeedingLSTMCell(
        units,
        attention=None,
        input_feeding=False,
        use_bias=False,
        cell_clip=50.0,
        gradient_clip=1000.0,
        dtype=dtype,
    )
    cell.build((None, width))
    kernel = swap_last_gates(arrays["W"].T)
    cell.kernels[0].assign(kernel[:width])
    cell.recurrent_kernels[0].assign(kernel[width:])
    # Masked rows are zeroed before the unit, and so are their gradients.
    mask = arrays["mask"][:, None]
    x, h, c = (
        keras.Variable(arrays[name], dtype=dtype)
        for name in ("x", "h_prev", "c_prev")
    )

    def step():
        states = [h * mask, c * mask, ops.zeros_like(arrays["h_prev"])]
        _, new = cell(x * mask, states)
        return new

    def loss():
        new = step()
        incoming = (arrays["d_h_out"] * mask, arrays["d_c_out"] * mask)
        return sum(
            ops.sum(state * ops.cast(gradient, dtype))
            for state, gradient in zip(new[:2], incoming, strict=True)
        )

    hidden, carry, _ = step()
    check.check("h", to_numpy(hidden))
    check.check("c", to_numpy(carry))
    gates, _, _ = lstm_activations(
        cell.project_inputs(x * mask)
        + product(h * mask, cell.recurrent_kernels[0].value),
        c * mask,
    )
    for name, gate in zip(
        ("gate_i", "gate_f", "signal_a", "gate_o"), gates, strict=True
    ):
        check.check(name, to_numpy(gate), where=mask)
    variables = [x, h, c, cell.kernels[0], cell.recurrent_kernels[0]]
    _, found = loss_and_gradients(loss, variables)
    names = ("d_x", "d_h_prev", "d_c_prev")
    for name, gradient in zip(names, found[:3], strict=True):
        check.check(name, gradient, gradient=True)
    d_kernel = swap_last_gates(np.concatenate(found[3:]))
    check.check("d_W", d_kernel.T, gradient=True)
