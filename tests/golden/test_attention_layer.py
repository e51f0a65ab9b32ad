import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import InputFeedingLSTMCell, LocalAttention, LuongAttention
from tests.golden.golden_files import cases
from tests.layer_checks import jacobians, to_numpy

FILE = "attention_layer.npz"
INPUTS = (
    *("enc", "src_len", "h", "tgt_mask", "t", "d_htilde"),
    *("W_h", "W_a", "v_a", "W_pos", "v_pos"),
)
SCORES = {1: "dot", 2: "general", 3: "concat"}
GLOBAL, MONOTONIC, PREDICTIVE = 1, 2, 4


def attention_of(meta, dtype):
    score = SCORES[meta["attn_opt"]]
    options = {"score_mode": score, "dtype": dtype}
    if score == "concat":
        options["concat_form"] = "query_only"
    if meta["attn_func"] == GLOBAL:
        return LuongAttention(**options)
    if meta["attn_func"] == MONOTONIC:
        return LocalAttention("monotonic", meta["D"], **options)
    form = "inside_softmax" if meta["norm_local"] else "after_softmax"
    return LocalAttention("predictive", meta["D"], gaussian=form, **options)


def assign(cell, arrays):
    """Assign weights of the authors' layout; return the variables used."""
    attention, named = cell.attention, {"W_h": cell.attentional_kernel}
    cell.attentional_kernel.assign(arrays["W_h"].T)
    if attention.score_mode == "general":
        named["W_a"] = attention.score.attention_kernel
        attention.score.attention_kernel.assign(arrays["W_a"])
    elif attention.score_mode == "concat":
        named |= {
            "W_a": attention.score.query_kernel,
            "v_a": attention.score.attention_vector,
        }
        attention.score.query_kernel.assign(arrays["W_a"].T)
        attention.score.attention_vector.assign(arrays["v_a"])
    if getattr(attention, "alignment", None) == "predictive":
        named |= {
            "W_pos": attention.position_kernel,
            "v_pos": attention.position_vector,
        }
        attention.position_kernel.assign(arrays["W_pos"].T)
        attention.position_vector.assign(arrays["v_pos"])
    return named


def in_their_layout(name, gradient, attention):
    """Return a gradient (N, ...) with its last axes in the authors' order."""
    as_ours = name == "W_a" and attention.score_mode == "general"
    if gradient.ndim == 3 and not as_ours:
        return np.swapaxes(gradient, 1, 2)
    return gradient


class Calls:
    """The N calls of a case, as N queries (B, N, d) of one call."""

    def __init__(self, arrays, meta, dtype):
        self.enc = keras.Variable(arrays["enc"], dtype=dtype)
        self.h = keras.Variable(np.swapaxes(arrays["h"], 0, 1), dtype=dtype)
        self.query_mask = arrays["tgt_mask"].T > 0
        _, source_length, units = arrays["enc"].shape
        positions = np.arange(source_length)
        self.mask = positions < arrays["src_len"][:, None]
        self.position = {}
        attention = attention_of(meta, dtype)
        if isinstance(attention, LocalAttention):
            self.position = {"position": arrays["t"].astype("int32")}
        self.cell = InputFeedingLSTMCell(
            units, attention=attention, use_bias=False, dtype=dtype
        )
        self.cell.build((None, units), memory_shape=arrays["enc"].shape)
        self.named = assign(self.cell, arrays)
        self.d_htilde = ops.convert_to_tensor(
            np.swapaxes(arrays["d_htilde"], 0, 1), dtype
        )

    def attentional_vectors(self):
        vectors, weights = self.cell.attend(
            self.cell.loop_weights(),
            ops.convert_to_tensor(self.h),
            self.cell.project_memory(ops.convert_to_tensor(self.enc)),
            self.mask,
            self.position.get("position"),
        )
        return ops.where(self.query_mask[..., None], vectors, 0.0), weights

    def losses(self):
        vectors, _ = self.attentional_vectors()
        return ops.sum(vectors * self.d_htilde, axis=(0, 2))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            (FILE, name),
            marks=pytest.mark.skip("the authors' defect")
            if name.startswith("QUIRK")
            else (),
            id=name,
        )
        for name in cases(FILE)
    ],
    indirect=True,
)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_attention_layer_matches_the_authors(case, dtype, compare, float64):
    arrays, meta = case
    check = compare(arrays, INPUTS, single=dtype == "float32")
    calls = Calls(arrays, meta, dtype)
    attention = calls.cell.attention
    context, weights = attention(
        ops.convert_to_tensor(calls.h),
        ops.convert_to_tensor(calls.enc),
        query_mask=calls.query_mask,
        value_mask=calls.mask,
        return_attention_scores=True,
        **calls.position,
    )
    weights = to_numpy(weights) * calls.query_mask[..., None]
    check.check("align", np.swapaxes(weights, 0, 1))
    check.check("context", np.swapaxes(to_numpy(context), 0, 1))
    vectors, _ = calls.attentional_vectors()
    check.check("h_tilde", np.swapaxes(to_numpy(vectors), 0, 1))
    if isinstance(attention, LocalAttention):
        check_window(check, calls, weights, meta)
    check_gradients(check, calls)


def check_window(check, calls, weights, meta):
    attention = calls.cell.attention
    window = attention.window(
        ops.convert_to_tensor(calls.h),
        ops.convert_to_tensor(calls.enc),
        calls.mask,
        **calls.position,
    )
    centre = to_numpy(window.centre).T.astype(int)
    active = calls.query_mask.T
    check.check("center", centre, where=active)
    if "p" in check.expected:
        check.check("p", to_numpy(window.aligned_position).T, where=active)
    half_width = meta["D"]
    positions = centre[..., None] + np.arange(-half_width, half_width + 1)
    check.check("win_pos", positions, where=active[..., None])

    def slots(dense):
        """Gather the slots of each window, (B, N, S) to (N, B, 2D + 1)."""
        dense = np.swapaxes(np.asarray(dense), 0, 1)
        inside = np.clip(positions, 0, dense.shape[-1] - 1)
        found = np.take_along_axis(dense, inside, axis=-1)
        return np.where(inside == positions, found, 0)

    valid = slots(to_numpy(window.mask)) * active[..., None]
    check.check("win_valid", valid)
    check.check("win_align", slots(weights))
    if meta["attn_func"] == PREDICTIVE:
        gaussian = slots(to_numpy(window.gaussian)) * valid
        check.check("win_gauss", gaussian, where=active[..., None])
        check.check("win_pre", slots(before_gaussian(calls, meta)), where=valid)


def before_gaussian(calls, meta):
    """Return the raw scores, or the softmax before the Gaussian."""
    attention = calls.cell.attention
    keys = attention.project_keys(ops.convert_to_tensor(calls.enc))
    if meta["norm_local"]:
        return to_numpy(attention.score(ops.convert_to_tensor(calls.h), keys))
    attention.gaussian = "none"
    _, weights = attention(
        ops.convert_to_tensor(calls.h),
        ops.convert_to_tensor(calls.enc),
        value_mask=calls.mask,
        return_attention_scores=True,
        **calls.position,
    )
    attention.gaussian = "after_softmax"
    return to_numpy(weights)


def check_gradients(check, calls):
    names = list(calls.named)
    variables = [calls.h, calls.enc, *calls.named.values()]
    d_h, d_enc, *others = jacobians(calls.losses, variables)
    # A call has no gradient for the queries of other calls.
    own_gradients = np.stack([d_h[n, :, n] for n in range(len(d_h))])
    np.testing.assert_allclose(
        d_h.sum((0, 2)), own_gradients.sum(0), atol=1e-12
    )
    check.check("d_h", own_gradients, gradient=True)
    check.check("d_enc", d_enc, gradient=True)
    for name, gradient in zip(names, others, strict=True):
        gradient = in_their_layout(name, gradient, calls.cell.attention)
        check.check(f"d_{name}", gradient, gradient=True)
