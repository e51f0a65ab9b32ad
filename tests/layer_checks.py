"""Shared helpers of the tests: NumPy references, gradients, all layers."""

import contextlib
import functools

import keras
import numpy as np
import pytest
from keras import ops

import luong_keras as lk
from luong_keras.config import ModelConfig
from luong_keras.ops.backends import enable_float64

BACKEND = keras.backend.backend()
KERAS = tuple(int(part) for part in keras.__version__.split(".")[:2])
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@contextlib.contextmanager
def double_precision():
    """Enable float64 on every backend, as users do."""
    enable_float64()
    try:
        yield
    finally:
        enable_float64(False)


def small_model(optimizer="sgd", **options):
    """Make a model of one weight; `optimizer` may be a rate of SGD."""
    if isinstance(optimizer, float):
        optimizer = keras.optimizers.SGD(optimizer)
    model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
    model.compile(optimizer, "mse", jit_compile=False, **options)
    return model


def small_config(words=9, layers=1, **changes):
    """Return settings of a translation model; most sizes differ."""
    sizes = {
        "source_vocabulary_size": words,
        "target_vocabulary_size": words,
        "embedding_size": 5,
        "units": 6,
        "encoder_layers": layers,
        "decoder_layers": layers,
    }
    return ModelConfig(**{**sizes, **changes})


def preprocessing(letters):
    """Return settings of text, such as "l-t": a letter each, - if off."""
    names = "lowercase", "normalize_punctuation", "tokenize"
    return {n: x != "-" for n, x in zip(names, letters, strict=True)}


def few_at_first(values, few, on_jax=None):
    """Return parameters, all but `few` of them marked slow.

    On JAX, which compiles each case anew, `on_jax` replaces `few` if given.
    `make test` runs the unmarked parameters, `make test-all` runs all.
    """
    fast = on_jax if BACKEND == "jax" and on_jax is not None else few
    return [
        pytest.param(
            *(value if isinstance(value, tuple) else (value,)),
            marks=() if value in fast else pytest.mark.slow,
        )
        for value in values
    ]


def few_on_jax(values, few):
    """Return parameters, on JAX all but `few` of them marked slow."""
    return few_at_first(values, values, few)


def random(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


# Largest relative error of rounding to the format.
ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


def rounded(x, dtype):
    """Round `x` to `dtype` and return it in float32."""
    x = ops.cast(ops.cast(np.asarray(x, "float32"), dtype), "float32")
    return to_numpy(x).astype("float32")


@functools.cache
def rounding_of_products(dtype):
    """Measure the rounding of a product, in units of `ROUNDOFF`, at least 1.

    TensorFlow rounds each partial sum in bfloat16 if the CPU has no
    instructions for this format, otherwise only the result.
    """
    if dtype not in ROUNDOFF:
        return 1.0
    x, kernel = (
        rounded(random(*shape, seed=i), dtype)
        for i, shape in enumerate([(256, 4), (4, 64)])
    )
    product = to_numpy(ops.matmul(ops.cast(x, dtype), ops.cast(kernel, dtype)))
    error = np.abs(product - x.astype("float64") @ kernel)
    return max(1.0, np.max(error / (abs(x) @ abs(kernel))) / ROUNDOFF[dtype])


def prefix_mask(lengths, max_length):
    return np.arange(max_length) < np.array(lengths)[:, None]


def to_numpy(x):
    return np.asarray(ops.convert_to_numpy(x)).astype("float64")


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


def randomize(layer, *shapes, **options):
    """Set all weights to random values: zeros and ones could hide mistakes.

    If shapes of inputs are given, the layer is built for them.
    """
    if shapes:
        layer.build(*shapes, **options)
    generator = np.random.default_rng(0)
    for variable in layer.weights:
        if "seed" not in variable.name:
            variable.assign(0.7 * generator.normal(size=variable.shape))
    return layer


def round_weights(layer, dtype, *shapes):
    """Set random weights that `dtype` represents without rounding."""
    for variable in randomize(layer, *shapes).trainable_variables:
        variable.assign(rounded(to_numpy(variable), dtype))
    return layer


def int8_rounded(table):
    """Round rows (V, E) as int8 does, with 127 steps up to a row's maximum."""
    step = np.abs(table).max(-1, keepdims=True) / 127
    return np.round(table / step) * step


def weighted_sum(x, weights):
    """Return the sum of `x` times an array, a loss that uses every entry.

    With `*`, NumPy would compute the product on torch and lose the gradient.
    """
    weights = ops.cast(np.broadcast_to(weights, x.shape), x.dtype)
    return ops.sum(x * weights)


def assert_all_close(found, expected, **tolerance):
    """Compare two sequences of arrays, of the same length."""
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, **tolerance)


def assert_near(found, expected, tolerance):
    """Compare sequences of arrays, relative to each array's largest value."""
    for one, other in zip(found, expected, strict=True):
        size = np.abs(other).max() or 1.0
        np.testing.assert_allclose(
            one / size, other / size, rtol=0, atol=tolerance
        )


# References.


def softmax(scores, mask=True):
    """Return the softmax over the last axis, zeros in fully masked rows."""
    exponentials = np.where(mask, np.exp(scores), 0.0)
    total = exponentials.sum(-1, keepdims=True)
    return exponentials / np.where(total > 0, total, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def reference_lstm(inputs, hidden, carry, kernel, recurrent_kernel, bias):
    gates = inputs @ kernel + hidden @ recurrent_kernel + bias
    i, f, g, o = np.split(gates, 4, axis=-1)
    carry = sigmoid(f) * carry + sigmoid(i) * np.tanh(g)
    return [sigmoid(o) * np.tanh(carry), carry]


def reference_gru(inputs, hidden, kernel, recurrent_kernel, bias):
    outer, inner = np.zeros(2) if bias is None else bias
    x_z, x_r, x_h = np.split(inputs @ kernel + outer, 3, axis=-1)
    h_z, h_r, h_h = np.split(hidden @ recurrent_kernel + inner, 3, axis=-1)
    update, reset = sigmoid(x_z + h_z), sigmoid(x_r + h_r)
    return [update * hidden + (1 - update) * np.tanh(x_h + reset * h_h)]


def reference_recurrence(cell, inputs, fed, states, drop):
    """Run all recurrent layers for one step; append `fed` to the inputs."""
    lstm = isinstance(cell, lk.InputFeedingLSTMCell)
    size = 2 if lstm else 1
    new = []
    for layer in range(cell.num_layers):
        kernel = to_numpy(cell.kernels[layer])
        if layer == 0:
            below = inputs * drop.get("inputs", 1)
            if fed is not None:
                below = np.concatenate([below, fed], -1)
                kernel = np.concatenate([kernel, to_numpy(cell.feeding_kernel)])
        else:
            below = new[-size] * drop.get(f"layer_{layer}", 1)
        bias = to_numpy(cell.biases[layer]) if cell.use_bias else None
        old = states[layer * size : (layer + 1) * size]
        recurrent_kernel = to_numpy(cell.recurrent_kernels[layer])
        if lstm:
            bias = 0.0 if bias is None else bias
            new += reference_lstm(below, *old, kernel, recurrent_kernel, bias)
        else:
            new += reference_gru(below, *old, kernel, recurrent_kernel, bias)
    return new, new[-size]


def reference_attention(score, query, memory, mask=True, drop=1.0):
    """Return context (B, M), weights (B, S); score(query, vector) is scalar."""
    scores = np.array(
        [
            [score(h, vector) for vector in m]
            for h, m in zip(query, memory, strict=True)
        ]
    )
    weights = softmax(scores, mask) * drop
    return np.einsum("bs,bsm->bm", weights, memory), weights


def general_score(cell):
    kernel = to_numpy(cell.attention.score.attention_kernel)
    return lambda h, vector: vector @ kernel @ h


def reference_step(cell, inputs, states, memory=None, mask=True, drop=None):
    """Run a step with the general score: (h̃, new states, attention weights)."""
    drop = drop or {}
    fed = states[-1] * drop.get("feeding", 1) if cell.input_feeding else None
    new, hidden = reference_recurrence(cell, inputs, fed, states, drop)
    if cell.attention is None:
        return hidden, [*new, hidden], None
    context, weights = reference_attention(
        general_score(cell), hidden, memory, mask, drop.get("attention", 1.0)
    )
    both = np.concatenate([context, hidden], -1)
    vector = np.tanh(both @ to_numpy(cell.attentional_kernel))
    return vector, [*new, vector], weights


def reference_word_losses(logits, targets, smoothing):
    """Compute the cross entropy with label smoothing, without a mask."""
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    words = logits.shape[-1]
    smoothed = (1 - smoothing) * np.eye(words)[targets] + smoothing / words
    return -(smoothed * log_p).sum(-1)


# Gradients.


def gradients(function, variables):
    """Return d function() / d variable for each variable, as NumPy arrays."""
    return loss_and_gradients(function, variables)[1]


def loss_and_gradients(function, variables):
    return differentiable(function, variables)()


def jacobians(function, variables):
    """Return d function()[n] / d variable for every n, (N, ...) each."""
    chosen = keras.Variable(ops.zeros_like(function()))
    evaluate = differentiable(
        lambda: ops.sum(function() * chosen), [chosen, *variables]
    )
    rows = []
    for one_hot in np.eye(*chosen.shape):
        chosen.assign(one_hot)
        rows.append(evaluate()[1][1:])
    return [np.stack(each) for each in zip(*rows, strict=True)]


def _stateless(function, variables):
    """Return `function` as a function of the values of `variables`."""

    def stateless(values):
        mapping = list(zip(variables, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function()

    return stateless


def check_gradients(function, variables, step=1e-6):
    """Compare derivatives in random directions with finite differences."""
    generator = np.random.default_rng(1)
    evaluate = differentiable(function, variables)
    _, found = evaluate()
    for variable, gradient in zip(variables, found, strict=True):
        value = to_numpy(variable)
        direction = generator.normal(size=value.shape)
        variable.assign(value + step * direction)
        above, _ = evaluate()
        variable.assign(value - step * direction)
        below, _ = evaluate()
        variable.assign(value)
        np.testing.assert_allclose(
            (gradient * direction).sum(),
            (above - below) / (2 * step),
            rtol=1e-6,
            atol=1e-8,
            err_msg=variable.path,
        )


def differentiable(function, variables):
    """Return a function that computes the loss and its gradients."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        @tf.function(autograph=False)
        def compiled():
            with tf.GradientTape() as tape:
                loss = function()
            return loss, tape.gradient(
                loss,
                [variable.value for variable in variables],
                unconnected_gradients=tf.UnconnectedGradients.ZERO,
            )

    elif BACKEND == "torch":
        import torch

        def compiled():
            loss = function()
            return loss, torch.autograd.grad(
                loss,
                [variable.value for variable in variables],
                allow_unused=True,
                materialize_grads=True,
            )

    else:
        import jax

        compiled_for = jax.jit(
            jax.value_and_grad(_stateless(function, variables))
        )

        def compiled():
            return compiled_for([variable.value for variable in variables])

    def evaluate():
        loss, found = compiled()
        return float(loss), [to_numpy(gradient) for gradient in found]

    return evaluate


# Every public layer and how to call it in the same small model: the query is
# (B, T, 4), the memory (B, S, 4).

UNITS = 4


def _attend(layer, query, memory, query_mask=None, memory_mask=None):
    return layer(query, memory, query_mask=query_mask, value_mask=memory_mask)


def _decode(layer, query, memory, query_mask=None, memory_mask=None):
    return layer(query, memory=memory, mask=query_mask, memory_mask=memory_mask)


def _step(layer, query, memory, query_mask=None, memory_mask=None):
    first = query[:, 0]
    states = [first] * len(layer.state_size)
    options = {"position": 0} if layer.attention.uses_position else {}
    vector, _ = layer(
        first, states, memory=memory, memory_mask=memory_mask, **options
    )
    return vector


def _project(layer, query, memory, query_mask=None, memory_mask=None):
    return layer(query)


@keras.saving.register_keras_serializable("tests")
class AddMean(keras.layers.Layer):
    """Vectors (B, T, U) plus the means of other vectors (B, T, E)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, vectors, others):
        return vectors + ops.mean(others, axis=-1, keepdims=True)


def _embed_and_project(layer, query, memory, query_mask=None, memory_mask=None):
    # Keras 3.10 cannot load `ops.argmax` or `ops.cast` saved by a newer one.
    words = ops.where(query[..., 0] > 0, 1, 2)
    return layer(AddMean(dtype=layer.dtype)(query, layer.embedding(words)))


def _project_and_compare(
    layer, query, memory, query_mask=None, memory_mask=None
):
    words = ops.where(query[..., 0] > 0, 1, 2)
    return layer(query, words)[0]


def _bridge(layer, query, memory, query_mask=None, memory_mask=None):
    return layer([query[:, 0], query[:, -1]])[0]


def _encode(layer, query, memory, query_mask=None, memory_mask=None):
    return layer(memory, mask=memory_mask)[0]


def _of(kind, *arguments, **options):
    return lambda dtype: kind(*arguments, dtype=dtype, **options)


def _attending(kind, attention=lk.LuongAttention, *arguments):
    return lambda dtype: kind(
        UNITS, attention=attention(*arguments, dtype=dtype), dtype=dtype
    )


# For each call, the layers with it: functions from the type to a layer.
_BY_CALL = {
    _attend: {
        "LuongAttention": _of(lk.LuongAttention, use_scale=True),
        "LuongAttention location": _of(
            lk.LuongAttention, "location", max_length=5
        ),
        "LocalAttention monotonic": _of(lk.LocalAttention, "monotonic", 2),
        "LocalAttention predictive": _of(lk.LocalAttention, "predictive", 2),
        "BahdanauAttention": _of(lk.BahdanauAttention, 3),
        "BahdanauAttention normalized": _of(
            lk.BahdanauAttention, 3, normalize=True
        ),
    },
    _step: {
        "InputFeedingLSTMCell": _attending(lk.InputFeedingLSTMCell),
        "InputFeedingGRUCell": _attending(
            lk.InputFeedingGRUCell, lk.LocalAttention, "monotonic", 2
        ),
        "BahdanauLSTMCell": _attending(lk.BahdanauLSTMCell),
        "BahdanauGRUCell": _attending(lk.BahdanauGRUCell),
    },
    _decode: {
        "AttentionRNN": lambda dtype: lk.AttentionRNN(
            lk.InputFeedingGRUCell(
                UNITS,
                attention=lk.LuongAttention("concat", dtype=dtype),
                input_feeding=False,
                dtype=dtype,
            ),
            dtype=dtype,
        ),
        "InputFeedingLSTM": lambda dtype: lk.InputFeedingLSTM(
            UNITS,
            num_layers=2,
            attention=lk.LocalAttention(half_width=2, dtype=dtype),
            dtype=dtype,
        ),
        "InputFeedingGRU": _attending(lk.InputFeedingGRU),
        "BahdanauLSTM": _attending(lk.BahdanauLSTM, lk.BahdanauAttention),
        "BahdanauGRU": _attending(lk.BahdanauGRU),
    },
    _project: {"OutputProjection": _of(lk.OutputProjection, 7, use_bias=True)},
    _embed_and_project: {
        "OutputProjection tied": lambda dtype: lk.OutputProjection(
            7,
            embedding=keras.layers.Embedding(7, UNITS + 1, dtype=dtype),
            dtype=dtype,
        )
    },
    _project_and_compare: {
        "WordLosses": lambda dtype: lk.WordLosses(
            lk.OutputProjection(7, dtype=dtype), dtype=dtype
        )
    },
    _bridge: {"Bridge": _of(lk.Bridge, UNITS, 1)},
    _encode: {"Encoder": _of(lk.Encoder, UNITS, bidirectional=True)},
}
LAYERS = {
    name: (make, apply)
    for apply, layers in _BY_CALL.items()
    for name, make in layers.items()
}


def run_every_layer():
    """Run a forward pass of each layer in a functional model."""
    for name, (make, apply) in LAYERS.items():
        layer = make("float32")
        query = keras.Input((None, UNITS))
        memory = keras.Input((None, UNITS))
        model = keras.Model([query, memory], apply(layer, query, memory))
        arrays = [
            random(2, 3, UNITS).astype("float32"),
            random(2, 5, UNITS, seed=1).astype("float32"),
        ]
        assert np.isfinite(to_numpy(model(arrays))).all(), name
