"""Contract of every public layer, in the same small model."""

import contextlib
import functools
import inspect
import itertools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from tests.layer_checks import (
    BACKEND,
    LAYERS,
    UNITS,
    assert_near,
    double_precision,
    dtype_of,
    few_at_first,
    few_on_jax,
    loss_and_gradients,
    prefix_mask,
    random,
    randomize,
    rounding_of_products,
    to_numpy,
)

TARGET = np.array([[3, 4, 5], [6, 2, 0]], "int32")
SOURCE = np.array([[7, 8, 9, 2, 3], [4, 5, 0, 0, 0]], "int32")
# Tolerances. Outputs are of size 1 to 3, with relative rounding errors of
# 2 ** -11 or 2 ** -8.
POLICIES = {
    "float16": 4e-3,
    "mixed_float16": 4e-3,
    "bfloat16": 3e-2,
    "mixed_bfloat16": 3e-2,
    "float64": 1e-5,
}
every_layer = pytest.mark.parametrize("name", LAYERS)


def build(name, dtype="float32"):
    make, apply = LAYERS[name]
    layer = make(dtype)
    query = keras.Input(batch_shape=(2, 3, UNITS))
    memory = keras.Input(batch_shape=(2, 5, UNITS))
    apply(layer, query, memory)
    return randomize(layer), apply


def forward(name, dtype="float32"):
    layer, apply = build(name, dtype)
    query, memory = random(2, 3, UNITS), random(2, 5, UNITS, seed=1)
    return apply(layer, query, memory, memory_mask=prefix_mask([5, 1], 5))


def embedding(role, mask_zero=True):
    weights = random(10, UNITS, seed=len(role))
    layer = keras.layers.Embedding(
        10, UNITS, weights=[weights], mask_zero=mask_zero, name=role
    )
    layer.build()
    return layer


def functional(name, shape=(3, 5)):
    """Return a model from ids through embeddings to the output of the layer."""
    layer, apply = build(name)
    target = keras.Input(shape[:1], dtype="int32")
    source = keras.Input(shape[1:], dtype="int32")
    # Keras before 3.14 loads no model with an unused input.
    ids = keras.layers.Identity()([target, source])
    query = embedding("query")(ids[0])
    memory = embedding("memory")(ids[1])
    return keras.Model([target, source], apply(layer, query, memory))


# Expected outputs of each layer, computed once.


@functools.cache
def features_to_output(name):
    return to_numpy(forward(name))


@functools.cache
def ids_to_output(name):
    layer, apply = build(name)
    query, memory = embedding("query"), embedding("memory")
    return to_numpy(apply(layer, query(TARGET), memory(SOURCE)))


def public(name):
    try:
        return getattr(lk, name)
    except ImportError:  # Objects of optional packages are no layers.
        return None


def test_no_public_layer_is_left_out():
    public_layers = {
        name
        for name, kind in zip(lk.__all__, map(public, lk.__all__), strict=True)
        if inspect.isclass(kind)
        and issubclass(kind, keras.layers.Layer)
        and not issubclass(kind, keras.Model)
    }
    assert {name.split()[0] for name in LAYERS} == public_layers


@pytest.mark.parametrize("seeded", [False, True])
@every_layer
def test_no_two_matrices_start_equal(name, seeded):
    make, apply = LAYERS[name]
    layer = make("float32")
    if seeded:
        config = layer.get_config()
        seed = keras.random.SeedGenerator(7)
        initializer = keras.initializers.RandomUniform(seed=seed)
        names = [n for n in config if n.endswith("kernel_initializer")]
        layer = type(layer).from_config(
            config | dict.fromkeys(names, initializer)
        )
    apply(layer, keras.Input((3, UNITS)), keras.Input((5, UNITS)))
    matrices = [w for w in layer.trainable_weights if "bias" not in w.path]
    for first, second in itertools.combinations(matrices, 2):
        if first.shape == second.shape:
            both = f"{first.path}, {second.path}"
            assert not np.array_equal(to_numpy(first), to_numpy(second)), both


@keras.saving.register_keras_serializable("tests")
def quarters(shape, dtype=None):
    return ops.full(shape, 0.25, dtype)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "name", sorted(LAYERS.keys() - {"AttentionRNN", "WordLosses"})
)
def test_initializers_may_be_functions(name, tmp_path):
    make, apply = LAYERS[name]
    config = make("float32").get_config()
    names = [option for option in config if option.endswith("initializer")]
    layer_class = type(make("float32"))
    layer = layer_class.from_config(config | dict.fromkeys(names, quarters))
    inputs = keras.Input((3, UNITS)), keras.Input((5, UNITS))
    # Keras 3.10 refuses inputs that nothing reads.
    others = map(keras.layers.Identity(), inputs)
    model = keras.Model(inputs, [apply(layer, *inputs), *others])
    assert any((to_numpy(w) == 0.25).all() for w in layer.weights)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    loaded_config = loaded.get_layer(layer.name).get_config()
    for option in names:
        assert loaded_config[option] == layer.get_config()[option]


@pytest.mark.slow_after_first
@every_layer
def test_functional_model_of_any_sizes(name):
    model = functional(name, (None, None))
    expected = ids_to_output(name)
    np.testing.assert_array_equal(model([TARGET, SOURCE]), expected)
    assert functional(name).output.shape == (None, *expected.shape[1:])
    if name != "WordLosses":  # Its last axis is T.
        assert model.output.shape[-1] == expected.shape[-1]


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name",
    few_at_first(LAYERS, ("LuongAttention", "InputFeedingLSTMCell")),
)
def test_graph_of_unknown_sizes(name):
    import tensorflow as tf

    model = functional(name, (None, None))
    unknown = tf.TensorSpec([None, None], "int32")
    graph = tf.function(
        lambda target, source: model([target, source]),
        input_signature=[unknown, unknown],
    )
    for target, source in [
        (TARGET, SOURCE),
        (TARGET[:1, :2], SOURCE[:1]),
        (np.tile(TARGET, (2, 2)), np.tile(SOURCE, (2, 1))),
    ]:
        np.testing.assert_allclose(
            graph(target, source), model([target, source]), atol=1e-6
        )


@pytest.mark.skipif(BACKEND != "jax", reason="exports of JAX")
@pytest.mark.parametrize(
    "name",
    few_at_first(LAYERS, ["LocalAttention predictive", "InputFeedingLSTM"]),
)
def test_jax_exports_of_any_sizes(name):
    import jax
    from jax import export

    model = functional(name, (None, None))
    sizes = export.symbolic_shape("b, t, s")
    ids = [
        jax.ShapeDtypeStruct((sizes[0], length), "int32")
        for length in sizes[1:]
    ]
    exported = export.export(jax.jit(model))(ids)
    for target, source in [(TARGET, SOURCE), (TARGET[:1, :2], SOURCE[:1, :1])]:
        np.testing.assert_allclose(
            exported.call([target, source]),
            model([target, source]),
            atol=1e-6,
        )


def dropout_masks_of(layer):
    """Return the call's option with masks that drop nothing, or {}."""
    options = inspect.signature(type(layer).call).parameters
    if "dropout_mask" in options:
        return {"dropout_mask": np.ones((2, 3, 5), "float32")}
    if "dropout_masks" not in options:
        return {}
    one_step = np.ones((2, UNITS), "float32")
    is_cell = hasattr(layer, "state_size")
    return {
        "dropout_masks": {"inputs": one_step if is_cell else one_step[None]}
    }


class CallTwoLayers(keras.layers.Layer):
    """Layer that calls another one, and drops everything in training."""

    def __init__(self, name):
        super().__init__()
        self.layer, self.apply = build(name)
        self.dropout = keras.layers.Dropout(1 - 1e-7)

    def call(self, query, memory, training=None):
        return self.dropout(self.apply(self.layer, query, memory))


@pytest.mark.parametrize(
    "name", few_at_first(LAYERS, ("Encoder", "InputFeedingLSTM"))
)
def test_layers_leave_the_training_mode_of_later_layers(name):
    layer = CallTwoLayers(name)
    inputs = random(2, 3, UNITS), random(2, 5, UNITS, seed=1)
    assert not to_numpy(layer(*inputs, training=True)).any()
    assert to_numpy(layer(*inputs)).any()


class MaskProbe(keras.layers.Layer):
    """Layer that returns the mask of its input."""

    def __init__(self):
        super().__init__()
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return mask


@pytest.mark.slow_after_first
@every_layer
@pytest.mark.parametrize("dropout_masks", [False, True])
def test_masks_of_an_embedding_are_used_and_propagated(
    name, dropout_masks, monkeypatch
):
    layer, apply = build(name)
    if dropout_masks:
        # With a second tensor Keras looks for the mask by another name.
        calls_with(layer, monkeypatch, **dropout_masks_of(layer))
    expected = apply(
        layer,
        embedding("query", mask_zero=False)(TARGET),
        embedding("memory", mask_zero=False)(SOURCE),
        query_mask=TARGET != 0,
        memory_mask=SOURCE != 0,
    )
    found = apply(
        layer, embedding("query")(TARGET), embedding("memory")(SOURCE)
    )
    np.testing.assert_array_equal(found, expected)
    mask = MaskProbe()(found)
    if name.endswith("Cell") or name in ("Bridge", "WordLosses"):
        assert mask is None
    else:
        ids = SOURCE if name == "Encoder" else TARGET
        np.testing.assert_array_equal(mask, ids != 0)


def calls_with(layer, monkeypatch, **options):
    """Pass `options` in each further call of layers of this class."""
    kind = type(layer)
    call = functools.partialmethod(kind.__call__, **options)
    monkeypatch.setattr(kind, "__call__", call)


@pytest.mark.slow_after_first
@every_layer
def test_calls_with_training_are_checked(name, monkeypatch):
    layer, apply = build(name)
    calls_with(layer, monkeypatch, training=False)
    query, memory = random(2, 3, UNITS), random(2, 5, UNITS, seed=1)
    np.testing.assert_array_equal(
        apply(layer, query, memory), apply(build(name)[0], query, memory)
    )
    wider = random(2, 3, UNITS + 2).astype("float32")
    with pytest.raises(ValueError, match=r"Expected: .*4\)"):
        apply(layer, wider, wider)


@pytest.mark.slow_after_first
@every_layer
@pytest.mark.parametrize("any_names", [False, True])
def test_a_subclass_may_have_another_call_argument(
    name, any_names, monkeypatch
):
    make, apply = LAYERS[name]
    kind = type(make("float32"))
    expected = forward(name)

    def call(self, *args, factor, **kwargs):
        outputs = kind.call(self, *args, **kwargs)
        return keras.tree.map_structure(lambda x: factor * x, outputs)

    signature = inspect.signature(kind.call)
    kinds = inspect.Parameter
    others = [kinds("factor", kinds.KEYWORD_ONLY)]
    if any_names:
        others = [kinds("others", kinds.VAR_KEYWORD)]
    call.__signature__ = signature.replace(
        parameters=[*signature.parameters.values(), *others]
    )
    subclass = type("Mine", (kind,), {"call": call})
    layer = subclass.from_config(make("float32").get_config())
    calls_with(layer, monkeypatch, factor=2.0)
    query, memory = random(2, 3, UNITS), random(2, 5, UNITS, seed=1)
    mask = prefix_mask([5, 1], 5)
    apply(layer, query, memory)
    randomize(layer)
    found = apply(layer, query, memory, memory_mask=mask)
    np.testing.assert_allclose(found, 2 * to_numpy(expected), rtol=1e-6)
    symbols = [keras.Input(batch_shape=x.shape) for x in (query, memory)]
    assert apply(layer, *symbols).shape == expected.shape


@every_layer
def test_output_shape_is_computed(name, monkeypatch):
    make, apply = LAYERS[name]
    layer, new = make("float32"), make("float32")
    kind = type(layer)
    called = kind.__call__
    shapes = []

    def shapes_of(x):
        return keras.tree.map_structure(lambda each: tuple(each.shape), x)

    def call(self, *args, **kwargs):
        outputs = called(self, *args, **kwargs)
        given = inspect.signature(kind.call).bind(self, *args, **kwargs)
        given = {
            f"{argument}_shape": shapes_of(value)
            for argument, value in given.arguments.items()
            if argument in ("query", "value", "inputs", "states", "memory")
            or argument in ("vectors", "targets")
        }
        shapes.extend([given, shapes_of(outputs)])
        return outputs

    monkeypatch.setattr(kind, "__call__", call)
    apply(layer, random(2, 3, UNITS), random(2, 5, UNITS, seed=1))
    given, expected = shapes
    for each in (layer, new):
        assert each.compute_output_shape(**given) == expected
        assert each.compute_output_shape(*given.values()) == expected


@pytest.mark.parametrize("renamed", [False, True])
@pytest.mark.parametrize("make", [lk.OutputProjection, lk.Encoder])
def test_output_shape_is_in_the_summary_of_a_subclassed_model(make, renamed):
    class Renamed(make):
        def build(self, input_shape):
            super().build(input_shape)

    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = (Renamed if renamed else make)(87)

        def call(self, inputs):
            return self.layer(inputs)

    lines = []
    model = Model()
    model(random(2, 3, UNITS))
    model.summary(print_fn=lambda line, **_: lines.append(line))
    assert "(2, 3, 87)" in "\n".join(lines)


@pytest.mark.slow_after_first
@every_layer
def test_saved_model_gives_equal_outputs(name, tmp_path):
    functional(name).save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    difference = to_numpy(loaded([TARGET, SOURCE])) - ids_to_output(name)
    assert np.abs(difference).max() == 0.0


@pytest.mark.slow_after_first
@every_layer
@pytest.mark.parametrize(
    "policy", few_on_jax(POLICIES, ["float64", "mixed_bfloat16"])
)
def test_dtype_policies(name, policy):
    wide = policy == "float64"
    with double_precision() if wide else contextlib.nullcontext():
        output = forward(name, policy)
        dtype = keras.DTypePolicy(policy).compute_dtype
        tolerance = POLICIES[policy] * rounding_of_products(dtype)
        if name.split()[0] in ("OutputProjection", "WordLosses") and not wide:
            dtype = "float32"
        assert dtype_of(output) == dtype
        found = to_numpy(output)
    expected = features_to_output(name)
    np.testing.assert_allclose(found, expected, atol=tolerance)


@pytest.mark.slow_on_jax
@every_layer
def test_one_word_and_one_step(name):
    """The smallest batch; its source is shorter than any window."""
    layer, apply = build(name)
    query, memory = random(2, 3, UNITS), random(2, 5, UNITS, seed=1)
    found = to_numpy(apply(layer, query[1:, :1], memory[1:, :1]))
    # There the second sentence is one word and padding.
    expected = features_to_output(name)[1:, : found.shape[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


# Not layers that contain one of Keras, nor loops that read variables.
@pytest.mark.parametrize(
    "name",
    ["LuongAttention", "InputFeedingLSTMCell", "InputFeedingGRU", "WordLosses"],
)
def test_gradients_in_a_remat_scope(name):
    def gradients():
        layer, apply = build(name)
        memory = keras.Variable(random(2, 5, UNITS, seed=1))

        def loss():
            output = apply(layer, random(2, 3, UNITS), memory + 0.0)
            return ops.sum(ops.square(output))

        variables = [memory, *layer.trainable_variables]
        return loss_and_gradients(loss, variables)[1]

    expected = gradients()
    with keras.RematScope(mode="full"):
        assert_near(gradients(), expected, 1e-6)


@pytest.mark.parametrize(
    "make",
    [
        lambda: lk.Encoder(UNITS, dropout=0.5, seed=3),
        lambda: lk.LuongAttention("dot", dropout=0.5, seed=3),
    ],
)
def test_dropout_in_a_remat_scope(make):
    def gradient():
        layer, x = make(), keras.Variable(random(2, 5, UNITS))

        def loss():
            output, *_ = keras.tree.flatten(layer(x + 0.0, training=True))
            return ops.sum(ops.square(output))

        randomize(layer, x.shape)
        return loss_and_gradients(loss, [x])[1]

    expected = gradient()
    with keras.RematScope(mode="full"):
        assert_near(gradient(), expected, 1e-6)


@pytest.mark.slow_after_first
@every_layer
def test_an_empty_sentence_gives_no_nan(name):
    layer, apply = build(name, "mixed_float16")
    query, memory = random(2, 3, UNITS), random(2, 5, UNITS)
    masks = {"memory_mask": prefix_mask([3, 0], 5)}

    def loss():
        output = apply(layer, query, memory, **masks)
        return ops.sum(ops.square(ops.cast(output, "float32")))

    value, found = loss_and_gradients(loss, layer.trainable_variables)
    assert np.isfinite(value)
    assert all(np.isfinite(gradient).all() for gradient in found)
    if name.endswith("Attention"):
        output = to_numpy(apply(layer, query, memory, **masks))
        assert output[0].any() and not output[1].any()


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "name",
    few_at_first(
        LAYERS,
        # TensorFlow takes long to compile the layers left out here.
        set(LAYERS)
        - {"InputFeedingGRU", "BahdanauLSTM", "BahdanauGRU"}
        - {"InputFeedingGRUCell", "BahdanauGRUCell", "LuongAttention location"}
        - {"BahdanauAttention normalized", "LocalAttention monotonic"},
        on_jax=LAYERS,
    ),
)
def test_one_compiled_step_changes_every_weight(name):
    model = functional(name)
    model.compile(keras.optimizers.SGD(1.0), loss="mse", jit_compile=True)
    before = [to_numpy(variable) for variable in model.trainable_variables]
    targets = np.ones((2, *model.output.shape[1:]))
    history = model.fit([TARGET, SOURCE], targets, batch_size=2, verbose=0)
    assert np.isfinite(history.history["loss"][0])
    for old, variable in zip(before, model.trainable_variables, strict=True):
        new = to_numpy(variable)
        assert np.isfinite(new).all(), variable.path
        assert not np.array_equal(old, new), variable.path
