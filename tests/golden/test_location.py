import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import InputFeedingLSTMCell, LuongAttention
from luong_keras.ops import masking
from tests.golden.golden_files import cases
from tests.layer_checks import loss_and_gradients, to_numpy

FILE = "location_historical.npz"
INPUTS = ("enc", "src_len", "h", "d_htilde", "W_loc", "W_h")


@pytest.mark.parametrize(
    "case", [(FILE, name) for name in cases(FILE)], indirect=True
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_location_score_with_a_fixed_number_of_positions(
    case, dtype, compare, float64
):
    arrays, _ = case
    check = compare(arrays, INPUTS, single=dtype == "float32")
    enc = keras.Variable(arrays["enc"], dtype=dtype)
    h = keras.Variable(arrays["h"], dtype=dtype)
    slots, units = arrays["W_loc"].shape
    source_length = enc.shape[1]
    mask = np.arange(source_length) < arrays["src_len"][:, None]
    attention = LuongAttention(
        "location", max_length=slots, mask_location=False, dtype=dtype
    )
    cell = InputFeedingLSTMCell(units, attention=attention, dtype=dtype)
    cell.build((None, units), memory_shape=enc.shape)
    attention.score.location_kernel.assign(arrays["W_loc"].T)
    cell.attentional_kernel.assign(arrays["W_h"].T)

    def attentional_vector():
        return cell.attend(
            cell.loop_weights(),
            ops.convert_to_tensor(h),
            cell.project_memory(ops.convert_to_tensor(enc)),
            mask,
        )[0]

    by_slot = ops.matmul(h.value, attention.score.location_kernel.value)
    by_slot = to_numpy(masking.masked_softmax(by_slot))
    check.check("align_slots", by_slot)
    context, weights = attention(
        h.value,
        ops.convert_to_tensor(enc),
        value_mask=mask,
        return_attention_scores=True,
    )
    # The layer drops weights after the end of the sentence.
    expected = np.where(mask, by_slot[:, :source_length], 0)
    exact = 1e-12 if dtype == "float64" else 1e-6
    np.testing.assert_allclose(to_numpy(weights), expected, exact, exact)
    check.check("context", to_numpy(context))
    check.check("h_tilde", to_numpy(attentional_vector()))
    d_htilde = ops.convert_to_tensor(arrays["d_htilde"], dtype)
    _, found = loss_and_gradients(
        lambda: ops.sum(attentional_vector() * d_htilde),
        [h, enc, attention.score.location_kernel, cell.attentional_kernel],
    )
    check.check("d_h", found[0], gradient=True)
    check.check("d_enc", found[1], gradient=True)
    check.check("d_W_loc", found[2].T, gradient=True)
    check.check("d_W_h", found[3].T, gradient=True)
