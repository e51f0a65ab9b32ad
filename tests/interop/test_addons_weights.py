"""Layers with weights of TensorFlow Addons, compared with its outputs.

The script make_addons_fixtures.py computed the outputs with the package.
"""

from pathlib import Path

import numpy as np
import pytest

import luong_keras as lk
from luong_keras import interop
from luong_keras.interop.addons_weights import roles_of
from tests.layer_checks import prefix_mask

FIXTURES = Path(__file__).with_name("addons_fixtures.npz")
CLOSE = {"rtol": 0, "atol": 1e-6}
UNITS, DEPTH = 4, 3
ATTENTION = {
    "luong": lk.LuongAttention,
    "luong_scale": lambda: lk.LuongAttention(use_scale=True),
    "bahdanau": lambda: lk.BahdanauAttention(DEPTH),
    "bahdanau_normalize": lambda: lk.BahdanauAttention(DEPTH, normalize=True),
}


def arrays(case, kind):
    start = f"{case}/{kind}/"
    with np.load(FIXTURES) as file:
        names = [name for name in file if name.startswith(start)]
        return {name.removeprefix(start): file[name] for name in names}


SHARED = arrays("shared", "inputs")
MASK = prefix_mask(SHARED["memory_lengths"], SHARED["memory"].shape[1])


def built_attention(name):
    layer = ATTENTION[name]()
    layer.build(SHARED["queries"].shape, SHARED["memory"].shape)
    return layer


def built_decoder(
    attention="luong", layer=lk.InputFeedingLSTM, units=UNITS, **options
):
    options = {
        "attentional_activation": "linear",
        **options,
        "attention": ATTENTION[attention](),
        "return_state": True,
    }
    decoder = layer(units, **options)
    decoder.build(SHARED["inputs"].shape, SHARED["memory"].shape)
    return decoder


@pytest.mark.parametrize("case", ATTENTION)
def test_attention_matches_addons(case):
    layer = built_attention(case)
    interop.load_addons_attention(layer, arrays(case, "weights"))
    tensors = SHARED["queries"], SHARED["memory"]
    options = {"value_mask": MASK, "return_attention_scores": True}
    context, alignments = layer(*tensors, **options)
    expected = arrays(case, "outputs")
    np.testing.assert_allclose(context, expected["context"], **CLOSE)
    np.testing.assert_allclose(alignments, expected["alignments"], **CLOSE)


DECODERS = {
    **{f"wrapper_{name}": {"attention": name} for name in ATTENTION},
    "wrapper_construction": {"attention": "bahdanau"},
    "wrapper_stack": {"num_layers": 2},
    "wrapper_stack_checkpoint": {"num_layers": 2},
    "wrapper_gru": {"layer": lk.InputFeedingGRU},
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("case", DECODERS)
def test_decoder_matches_the_attention_wrapper(case):
    decoder = built_decoder(**DECODERS[case])
    interop.load_addons_wrapper(decoder.cell, arrays(case, "weights"))
    pattern = ["hidden", "carry"][: decoder.cell.states_per_layer]
    initial = [SHARED[name] for name in pattern] * decoder.cell.num_layers
    outputs, alignments, *states = decoder(
        *(SHARED["inputs"], SHARED["memory"]),
        memory_mask=MASK,
        initial_state=initial,
        return_attention_scores=True,
    )
    expected = arrays(case.removesuffix("_checkpoint"), "outputs")
    np.testing.assert_allclose(outputs, expected["outputs"], **CLOSE)
    np.testing.assert_allclose(alignments, expected["alignments"], **CLOSE)
    names = [f"{n}_{i}" for i in range(2) for n in pattern][: len(initial)]
    for name, state in zip([*names, "attention"], states, strict=True):
        np.testing.assert_allclose(state, expected[name], **CLOSE)


def test_fixtures_are_of_the_last_release():
    versions = arrays("shared", "versions")
    assert versions["tensorflow_addons"] == "0.23.0"


def test_cell_without_biases_and_user_defined_attention_layer():
    weights = {
        name.replace("attention_layer/", "dense_7/"): value
        for name, value in arrays("wrapper_luong", "weights").items()
        if not name.endswith("bias:0")
    }
    weights["decoder/dense_7/bias:0"] = bias = np.arange(4.0)
    options = {"attentional_bias": True, "attentional_activation": "tanh"}
    cell = built_decoder(use_bias=False, **options).cell
    interop.load_addons_wrapper(cell, weights, attention_layer="dense_7")
    np.testing.assert_array_equal(cell.attentional_bias_vector, bias)


# Names.


def test_prefixes_are_ignored():
    names = list(arrays("wrapper_bahdanau_normalize", "weights"))
    nested_names = [f"model/decoder/{name}" for name in names]
    roles = roles_of(names)
    assert list(roles_of(nested_names).values()) == list(roles.values())
    assert sorted(roles.values()) == [
        "attention_b",
        "attention_g",
        "attention_layer/kernel",
        "attention_v",
        "cell_0/bias",
        "cell_0/kernel",
        "cell_0/recurrent_kernel",
        "memory_layer/kernel",
        "query_layer/kernel",
    ]


@pytest.mark.parametrize("reverse", [False, True])
def test_kernel_inside_the_wrapper_belongs_to_the_query(reverse):
    names = ["w/mine/attention_v:0", "w/mine/kernel:0", "mine/kernel:0"]
    roles = roles_of(sorted(names, reverse=reverse))
    assert roles["w/mine/kernel:0"] == "query_layer/kernel"
    assert roles["mine/kernel:0"] == "memory_layer/kernel"


def test_first_of_two_kernels_belongs_to_the_query():
    names = [f"{i}/BahdanauAttention/kernel:0" for i in range(2)]
    assert [*roles_of(names).items()] == [
        (names[1], "memory_layer/kernel"),
        (names[0], "query_layer/kernel"),
    ]


@pytest.mark.parametrize(
    "cells, has_numbers",
    [
        (["lstm_cell", "lstm_cell_1"], True),
        (["lstm_cell_9", "lstm_cell_10"], True),
        (["cells/0", "cells/1"], True),
        (["low", "high"], False),  # These keep their order.
    ],
)
def test_cells_are_ordered_by_their_numbers(cells, has_numbers):
    names = [f"w/{cell}/recurrent_kernel:0" for cell in cells]
    for order in (names, names[::-1]) if has_numbers else (names,):
        roles = roles_of(order)
        assert roles[names[0]] == "cell_0/recurrent_kernel"
        assert roles[names[1]] == "cell_1/recurrent_kernel"


# Errors.


def load(attention="luong", without=(), added=None, **options):
    weights = arrays("wrapper_luong", "weights")
    weights = {k: v for k, v in weights.items() if not k.endswith(without)}
    decoder = built_decoder(attention, **options)
    interop.load_addons_wrapper(decoder.cell, weights | (added or {}))


SEVERAL = {"other/memory_layer/kernel:0": np.ones((6, 4))}
UNKNOWN = {"dense/kernel:0": np.ones((4, 9))}
MONOTONIC = {"LuongAttention/attention_score_bias:0": np.ones(())}


@pytest.mark.parametrize(
    "options, message",
    [
        ({"without": ("attention_layer/kernel:0",)}, "cannot be converted"),
        ({"without": ("lstm_cell_2/bias:0",)}, "No array for `cell_0/bias`"),
        ({"added": SEVERAL}, "several mechanisms cannot be converted"),
        ({"added": UNKNOWN}, "'dense/kernel:0' has no place"),
        ({"added": MONOTONIC}, "Monotonic attention"),
        ({"attention": "luong_scale"}, "use_scale=True"),
        ({"attention": "bahdanau"}, "No array for `query_layer/kernel`"),
        ({"use_bias": False}, "lstm_cell_2/bias:0' has no place"),
        ({"num_layers": 2}, "No array for `cell_1/kernel`"),
        ({"layer": lk.InputFeedingGRU}, r"\(9, 12\).*\(9, 16\)"),
        ({"units": 5}, "`attention_layer_size` must equal"),
        ({"attentional_activation": "tanh"}, "activation='linear'"),
        ({"input_feeding": False}, "an input-feeding cell"),
    ],
)
def test_weights_that_do_not_fit_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        load(**options)


@pytest.mark.parametrize(
    "weights, message",
    [
        (arrays("bahdanau_normalize", "weights"), "normalize=True"),
        (
            {
                "BahdanauAttention/attention_v:0": np.ones(DEPTH),
                "BahdanauAttention/kernel:0": np.ones((6, DEPTH)),
            },
            "two variables have the same name",
        ),
    ],
    ids=["without a place", "of one name"],
)
def test_unfit_weights_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        interop.load_addons_attention(built_attention("bahdanau"), weights)


@pytest.mark.parametrize(
    "layer, message",
    [
        (lk.LuongAttention("dot"), "Use one of these two"),
        (lk.LocalAttention("predictive"), "Use one of these two"),
        (lk.BahdanauAttention(DEPTH, use_scale=True), "Use one of these two"),
        (lk.Bridge(4, 1), "Use one of these two"),
        (lk.LuongAttention(), "before loading"),
    ],
    ids=["dot", "local", "scaled Bahdanau", "no attention", "not built"],
)
def test_unfit_attention_is_refused(layer, message):
    with pytest.raises(ValueError, match=message):
        interop.load_addons_attention(layer, {})


def test_decoders_are_refused():
    with pytest.raises(ValueError, match="pass its `cell`"):
        interop.load_addons_wrapper(built_decoder(), {})
