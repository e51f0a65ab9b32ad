import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import LocalAttention, LuongAttention
from luong_keras.layers.attention.scores import GeneralScore
from luong_keras.ops import windows
from tests.layer_checks import (
    EXACT,
    ROUNDOFF,
    assert_all_close,
    assert_near,
    few_at_first,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    round_weights,
    rounded,
    sigmoid,
    softmax,
    to_numpy,
    weighted_sum,
)

ALIGNMENTS = ["monotonic", "predictive"]
LENGTHS = [9, 4]
MASK = prefix_mask(LENGTHS, 9)
STEPS = 7


def make(alignment, half_width=2, score_mode="dot", **options):
    layer = LocalAttention(
        alignment, half_width, score_mode, dtype="float64", **options
    )
    return randomize(layer, (None, None, 4), (None, None, 4))


def inputs():
    return random(2, STEPS, 4), random(2, 9, 4, seed=1)


def aligned_position(layer, h, t, length):
    if layer.alignment == "monotonic":
        return min(t, length - 1)
    inner = np.tanh(h @ to_numpy(layer.position_kernel))
    return length * sigmoid(to_numpy(layer.position_vector) @ inner)


def reference(layer, gaussian, sigma, query, memory, lengths):
    """Compute the weights one query at a time, with the dot score."""
    weights = np.zeros((*query.shape[:2], memory.shape[1]))
    for b, length in enumerate(lengths):
        for t, h in enumerate(query[b]):
            p = aligned_position(layer, h, t, length)
            centre = min(int(p), length - 1)
            first = max(centre - layer.half_width, 0)
            last = min(centre + layer.half_width, length - 1)
            window = np.arange(first, last + 1)
            proximity = np.exp(-((window - p) ** 2) / (2 * sigma**2))
            scores = memory[b, window] @ h
            if gaussian == "inside_softmax":
                scores = scores * proximity
            found = softmax(scores)
            if gaussian in ("after_softmax", "renormalized"):
                found = found * proximity
            if gaussian == "renormalized":
                found = found / found.sum()
            weights[b, t, window] = found
    return weights


def test_a_renormalized_gaussian_may_underflow():
    layer = LocalAttention("monotonic", gaussian="renormalized", sigma=0.5)
    query, memory = random(1, 4), random(1, 21, 4)
    # All words are 10 away, and exp(-200) is 0 in float32.
    mask = np.isin(np.arange(21), [0, 20])[None]
    found = layer(query, memory, value_mask=mask, position=10)
    plain = LocalAttention("monotonic")
    plain.build(query.shape, memory.shape)
    plain.set_weights(layer.get_weights())
    expected = plain(query, memory, value_mask=mask, position=10)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.parametrize("gaussian", windows.GAUSSIANS)
@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_weights_and_context(alignment, gaussian, float64):
    layer = make(alignment, gaussian=gaussian)
    query, memory = inputs()
    context, weights = layer(
        query, memory, value_mask=MASK, return_attention_scores=True
    )
    expected = reference(layer, gaussian, 1.0, query, memory, LENGTHS)
    np.testing.assert_allclose(weights, expected, **EXACT)
    np.testing.assert_allclose(context, expected @ memory, **EXACT)


@pytest.mark.parametrize(
    "alignment, gaussian",
    [("monotonic", "none"), ("predictive", "after_softmax")],
)
def test_default_gaussian_is_that_of_the_paper(alignment, gaussian, float64):
    query, memory = inputs()
    for sigma in (None, 3.0):
        layer = make(alignment, half_width=3, sigma=sigma)
        weights = layer(query, memory, return_attention_scores=True)[1]
        expected = reference(
            layer, gaussian, sigma or 1.5, query, memory, [9, 9]
        )
        np.testing.assert_allclose(weights, expected, **EXACT)


class TanhScore(GeneralScore):
    """A user-defined score, derived from the general one."""

    def __call__(self, query, keys):
        return keras.ops.tanh(super().__call__(query, keys))


@pytest.mark.parametrize(
    "score_mode", ["scaled_dot", "general", "concat", TanhScore]
)
def test_window_over_the_whole_source_is_global_attention(score_mode, float64):
    query, memory = inputs()
    options = {"use_scale": True} if isinstance(score_mode, str) else {}
    scores = [
        mode if isinstance(mode, str) else mode() for mode in [score_mode] * 2
    ]
    layer = make("monotonic", 9, scores[0], **options)
    global_layer = LuongAttention(scores[1], dtype="float64", **options)
    global_layer.build((None, None, 4), (None, None, 4))
    global_layer.set_weights(layer.get_weights())
    np.testing.assert_allclose(
        layer(query, memory, value_mask=MASK),
        global_layer(query, memory, value_mask=MASK),
        **EXACT,
    )


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "query, window", [(50.0, [6, 7, 8]), (-50.0, [0, 1, 2])]
)
def test_predicted_position_stays_inside_the_sentence(query, window):
    layer = LocalAttention(half_width=2, gaussian="none", score_mode="dot")
    layer.build((None, None, 4), (None, None, 4))
    layer.position_kernel.assign(np.eye(4))
    layer.position_vector.assign(np.full(4, 50.0))
    weights = layer(
        np.full((1, 1, 4), query),
        np.zeros((1, 9, 4)),
        return_attention_scores=True,
    )[1]
    used = to_numpy(weights)[0, 0].nonzero()[0]
    assert used.tolist() == window


# Errors.


@pytest.mark.parametrize(
    "options, message",
    [
        ({"alignment": "global"}, "alignment.*Received: .*'global'"),
        ({"half_width": 0}, "half_width.*at least 1.*Received: .*0"),
        ({"gaussian": "before"}, "gaussian.*Received: .*'before'"),
        ({"alignment": ["monotonic"]}, r"alignment.*Received: .*\['mono"),
        ({"sigma": 0.0}, "sigma.*Received: sigma=0.0"),
        ({"sigma": float("nan")}, "sigma.*Received: sigma=nan"),
        ({"score_mode": "location"}, "score_mode.*Received: .*'location'"),
    ],
)
def test_arguments_are_checked(options, message):
    with pytest.raises(ValueError, match=message):
        LocalAttention(**options)


def test_unclamped_position_moves_past_the_sentence(float64):
    layer = make("monotonic", half_width=2, clamp_position=False)
    query, memory = inputs()
    context, weights = layer(
        query, memory, value_mask=MASK, return_attention_scores=True
    )
    # The second sentence has 4 words: at t = 5 its last word is in reach,
    # from t = 6 on no word is.
    assert to_numpy(weights)[1, 5].nonzero()[0].tolist() == [3]
    np.testing.assert_array_equal(to_numpy(weights)[1, 6], np.zeros(9))
    np.testing.assert_array_equal(to_numpy(context)[1, 6], np.zeros(4))
    clamped = make("monotonic", half_width=2)
    kept = clamped(query, memory, value_mask=MASK)
    np.testing.assert_allclose(context[0], kept[0], **EXACT)


@pytest.mark.parametrize("alignment", ALIGNMENTS)
def test_window_matches_the_weights(alignment, float64):
    layer = make(alignment)
    query, memory = inputs()
    window = layer.window(query, memory, MASK)
    weights = layer(
        query, memory, value_mask=MASK, return_attention_scores=True
    )[1]
    np.testing.assert_array_equal(to_numpy(weights) > 0, window.mask)
    # Steps count from the first word of a query that is padded on the left.
    padded = np.arange(STEPS) >= [[1]] * len(LENGTHS)
    shifted = layer.window(query, memory, MASK, query_mask=padded)
    if layer.alignment == "monotonic":
        np.testing.assert_array_equal(
            shifted.mask[:, 1:], to_numpy(window.mask)[:, :-1]
        )
    else:
        np.testing.assert_array_equal(shifted.mask, window.mask)
    for b, length in enumerate(LENGTHS):
        for t in range(STEPS):
            p = aligned_position(layer, query[b, t], t, length)
            found = float(to_numpy(window.aligned_position)[b, t])
            np.testing.assert_allclose(found, p, **EXACT)
            assert int(window.centre[b, t]) == int(p)
    np.testing.assert_allclose(
        window.gaussian,
        np.exp(
            -(
                (np.arange(9) - to_numpy(window.aligned_position)[..., None])
                ** 2
            )
            / 2
        ),
        **EXACT,
    )


def test_masked_steps_are_not_counted(float64):
    layer = make("monotonic", half_width=1)
    query, memory = inputs()
    mask = np.arange(STEPS)[None] != [[1], [0]]
    steps = np.array([[0, 0, 1, 2, 3, 4, 5]] * 2)
    found, expected = (
        layer(query, memory, query_mask=mask, position=position)
        for position in (None, steps)
    )
    np.testing.assert_array_equal(found, expected)


# Gathered windows.


@pytest.mark.slow_after_first
@pytest.mark.parametrize("gaussian", windows.GAUSSIANS)
@pytest.mark.parametrize(
    "alignment, half_width, steps, clamped",
    few_at_first(
        [
            ("predictive", 1, 5, True),
            # In blocks of two or four queries; of 53, the last block has one.
            ("monotonic", 1, 53, True),
            ("monotonic", 1, 53, False),
            ("monotonic", 2, 53, True),
            ("monotonic", 2, 64, False),
        ],
        [
            ("predictive", 1, 5, True),
            ("monotonic", 2, 53, True),
            ("monotonic", 2, 64, False),
        ],
        [("predictive", 1, 5, True), ("monotonic", 2, 53, True)],
    ),
)
def test_a_long_source_is_read_in_windows(
    alignment, half_width, steps, clamped, gaussian, monkeypatch, float64
):
    source = 60
    query = keras.Variable(random(3, steps, 4), dtype="float64")
    memory = keras.Variable(random(3, source, 4, seed=1), dtype="float64")
    layer = LocalAttention(
        alignment,
        half_width,
        gaussian=gaussian,
        clamp_position=clamped,
        use_scale=True,
        dtype="float64",
    )
    randomize(layer, query.shape, memory.shape)
    options = {
        "value_mask": prefix_mask([source, 7, 0], source),
        "query_mask": random(3, steps, seed=5) > -1,
        "dropout_mask": 2.0 * (random(3, steps, source, seed=2) > 0),
        "return_attention_scores": True,
    }

    def loss():
        context, weights = layer(query + 0, memory + 0, **options)
        return weighted_sum(
            context, random(3, steps, 4, seed=3)
        ) + weighted_sum(weights, random(3, steps, source, seed=4))

    gathered = record_gathers(monkeypatch)
    variables = [query, memory, *layer.trainable_variables]
    in_windows, found = loss_and_gradients(loss, variables)
    assert gathered
    gathered.clear()
    no_windows = windows.SINGLE, source + 1
    monkeypatch.setattr(windows, "choose_blocks", lambda *_: no_windows)
    over_all, expected = loss_and_gradients(loss, variables)
    assert not gathered
    np.testing.assert_allclose(in_windows, over_all, **EXACT)
    assert_all_close(found, expected, **EXACT)


def record_gathers(monkeypatch):
    """Record the number of steps of each later call that gathers windows."""
    gathered, read = [], LocalAttention._read_windows

    def recorded(self, blocks, query, *arguments):
        gathered.append(query.shape[1])
        return read(self, blocks, query, *arguments)

    monkeypatch.setattr(LocalAttention, "_read_windows", recorded)
    return gathered


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("source", [8, 10, 500])
def test_monotonic_alignment_of_any_source_length(source, monkeypatch, float64):
    layer = make("monotonic", 2, score_mode="dot")
    query, memory = random(2, STEPS, 4), random(2, source, 4, seed=1)
    lengths = [source, 4]
    gathered = record_gathers(monkeypatch)
    context, weights = layer(
        query,
        memory,
        value_mask=prefix_mask(lengths, source),
        return_attention_scores=True,
    )
    assert bool(gathered) == (source == 500)
    expected = reference(layer, "none", 1.0, query, memory, lengths)
    np.testing.assert_allclose(weights, expected, **EXACT)
    np.testing.assert_allclose(context, expected @ memory, **EXACT)


@pytest.mark.slow
@pytest.mark.tensorflow
@pytest.mark.parametrize("source", [47, 48])
def test_dynamic_source_length_selects_the_route(source, monkeypatch):
    import tensorflow as tf

    layer = LocalAttention(half_width=1)
    layer.build((2, None, 4), (2, None, 4))
    query = random(2, 5, 4).astype("float32")
    memory = random(2, source, 4).astype("float32")
    sentences = {}

    def record_route(name, index):
        route = getattr(LocalAttention, name)

        def recorded(self, *arguments):
            count = tf.shape(arguments[index])[0]
            note = lambda n: sentences.update({name: int(n)})  # noqa: E731
            tf.py_function(note, [count], [])
            return route(self, *arguments)

        monkeypatch.setattr(LocalAttention, name, recorded)

    record_route("_read_all", 0)
    record_route("_read_windows", 1)
    spec = tf.TensorSpec([2, None, 4])
    found = tf.function(layer, input_signature=[spec, spec])(query, memory)
    assert sentences == {
        "_read_all": 2 if source < 48 else 0,
        "_read_windows": 2 if source >= 48 else 0,
    }
    np.testing.assert_allclose(found, layer(query, memory), atol=1e-6)


@pytest.mark.slow_after_first
@pytest.mark.tensorflow
@pytest.mark.parametrize("steps, source", [(5, 90), (45, 90), (90, 30)])
def test_blocks_of_dynamic_lengths(steps, source):
    import tensorflow as tf

    layer = make("monotonic", half_width=2, score_mode="concat")
    query, memory = random(2, steps, 4), random(2, source, 4, seed=1)
    keys = layer.project_keys(ops.convert_to_tensor(memory))
    mask = prefix_mask([source, 3], source)
    lengths = [None, None]

    @tf.function(
        input_signature=[
            *[tf.TensorSpec([*lengths, 4], "float64")] * 3,
            tf.TensorSpec(lengths, "bool"),
        ]
    )
    def attend(query, memory, keys, mask):
        return layer(
            query,
            memory,
            keys=keys,
            value_mask=mask,
            return_attention_scores=True,
        )

    found = attend(query, memory, keys, mask)
    # One query at a time, read only from its window.
    for t in range(steps):
        context, weights = layer(
            query[:, t],
            memory,
            value_mask=mask,
            position=t,
            return_attention_scores=True,
        )
        np.testing.assert_allclose(found[0][:, t], context, **EXACT)
        np.testing.assert_allclose(found[1][:, t], weights, **EXACT)


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("source, masked", [(5, True), (6, True), (6, False)])
def test_hypotheses_share_one_position(source, masked, monkeypatch, float64):
    layer = make("monotonic", half_width=1)
    query, memory = random(2, 3, 4), random(2, source, 4, seed=1)
    mask = prefix_mask([source, 4], source) if masked else None
    options = {"value_mask": mask, "position": 3}
    gathered = record_gathers(monkeypatch)
    found = to_numpy(layer(query, memory, **options))
    # One window for all of them, if the source has two widths or more.
    assert gathered == [3] * (source == 6)
    for k in range(3):
        single = layer(query[:, k], memory, **options)
        np.testing.assert_allclose(found[:, k], single, **EXACT)


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "alignment, gaussian",
    few_at_first(
        [(a, g) for a in ALIGNMENTS for g in windows.GAUSSIANS],
        [*zip(("predictive", "monotonic") * 2, windows.GAUSSIANS, strict=True)],
        [("predictive", "after_softmax")],
    ),
)
def test_half_precision_keeps_every_position(alignment, gaussian):
    """bfloat16 cannot represent position 257: its window would be wrong.

    It represents inputs and weights exactly, so that only computed values are
    rounded. A score is a sum of 8 products, whose rounding errors may add up.
    """
    units, tolerance = 8, 8 * ROUNDOFF["bfloat16"]
    query = rounded(random(2, 500, units), "bfloat16")
    memory = rounded(random(2, 600, units, seed=1), "bfloat16")
    mask = prefix_mask([600, 598], 600)
    upstream = random(*query.shape, seed=2)
    found = []
    for dtype in ("mixed_bfloat16", "float32"):
        layer = LocalAttention(
            alignment, half_width=3, gaussian=gaussian, dtype=dtype
        )
        round_weights(layer, "bfloat16", query.shape, memory.shape)

        def attend(layer=layer):
            return layer(
                query, memory, value_mask=mask, return_attention_scores=True
            )

        _, weight_gradients = loss_and_gradients(
            lambda attend=attend: weighted_sum(
                ops.cast(attend()[0], "float32"), upstream
            ),
            layer.trainable_variables,
        )
        found.append([*map(to_numpy, attend()), *weight_gradients])
    assert_near(*found, tolerance)
