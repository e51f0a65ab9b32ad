"""Weights and state shapes of a decoder cell."""

import functools

import keras
from keras import ops

from luong_keras.config.checks import check_integers
from luong_keras.layers.argument_checks import (
    check_floats,
    check_mask,
    check_same_batch,
)
from luong_keras.layers.attention.bahdanau_attention import BahdanauAttention
from luong_keras.layers.attention.local_attention import LocalAttention
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import SCORES, suggest_name
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.layers.initializers import fresh_initializer, wide_initializer
from luong_keras.ops import masking


class CellWeights(CheckedLayer):
    """Weights of a stack of recurrent layers under an attention layer.

    The base of `AttentionCell`, which computes with them. Cells define
    `num_gates` and `states_per_layer`, and may override `_add_gate_bias`.
    """

    num_gates = None
    states_per_layer = None
    gradient_clip = None

    def __init__(
        self,
        units,
        num_layers=1,
        attention="general",
        input_feeding=True,
        use_bias=True,
        attentional_bias=False,
        attentional_activation="tanh",
        kernel_initializer="glorot_uniform",
        recurrent_initializer="orthogonal",
        bias_initializer="zeros",
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_integers(units=units, num_layers=num_layers)
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.autocast = False  # It would round the states.
        self.units = units
        self.num_layers = num_layers
        self.attention = get_attention(attention, self.dtype_policy)
        if not trainable and self.attention is not None:
            self.attention.trainable = False
        self.input_feeding = input_feeding
        self.use_bias = use_bias
        self.attentional_bias = attentional_bias
        self.attentional_activation = keras.activations.get(
            attentional_activation
        )
        get = keras.initializers.get
        self.kernel_initializer = get(kernel_initializer)
        self.recurrent_initializer = get(recurrent_initializer)
        self.bias_initializer = get(bias_initializer)

    # Shapes.

    @property
    def state_size(self):
        """Widths of the states: L layers, then the attentional vector."""
        layers = self.num_layers * self.states_per_layer
        return [self.units] * (layers + 1)

    @property
    def output_size(self):
        return self.units

    def get_initial_state(self, batch_size=None, dtype=None):
        """Return zeros (B, U) per state, in the wider of float32 and dtype."""
        dtype = masking.wider_dtype(dtype or self.compute_dtype)
        return [
            ops.zeros((batch_size, width), dtype=dtype)
            for width in self.state_size
        ]

    def cast_states(self, states):
        """Return states in the type of those of `get_initial_state`."""
        dtype = masking.wider_dtype(self.compute_dtype)
        return [ops.cast(state, dtype) for state in states]

    # Weights.

    def build(self, inputs_shape, states_shape=None, memory_shape=None):
        if self.attention is not None:
            self._check_memory(memory_shape)
            if not self.attention.built:
                self.attention.check_build(
                    *self._attention_shapes(memory_shape)
                )
        width = inputs_shape[-1]
        for layer in range(self.num_layers):
            self._build_layer(layer, width if layer == 0 else self.units)
        self._build_attention(memory_shape)
        self._build_feeding(memory_shape)
        self.built = True

    def _build_layer(self, layer, input_width):
        gates = self.num_gates * self.units
        kernel = self.add_weight(
            name=f"kernel_{layer}",
            shape=(input_width, gates),
            initializer=fresh_initializer(self.kernel_initializer),
        )
        recurrent_kernel = self.add_weight(
            name=f"recurrent_kernel_{layer}",
            shape=(self.units, gates),
            initializer=wide_initializer(self.recurrent_initializer),
        )
        # One attribute per weight: `tf.train.Checkpoint` skips lists.
        setattr(self, f"kernel_{layer}", kernel)
        setattr(self, f"recurrent_kernel_{layer}", recurrent_kernel)
        if self.use_bias:
            bias = self._add_gate_bias(f"bias_{layer}")
            setattr(self, f"bias_{layer}", bias)

    @property
    def kernels(self):
        """Input kernels, one per layer."""
        return self._layer_weights("kernel")

    @property
    def recurrent_kernels(self):
        """Recurrent kernels, one per layer."""
        return self._layer_weights("recurrent_kernel")

    @property
    def biases(self):
        """Biases of the gates, one per layer; empty without `use_bias`."""
        return self._layer_weights("bias") if self.use_bias else []

    def _layer_weights(self, name):
        return [getattr(self, f"{name}_{i}") for i in range(self.num_layers)]

    def _add_gate_bias(self, name):
        return self._add_bias(name, self.num_gates * self.units)

    def _add_bias(self, name, width):
        return self.add_weight(
            name=name,
            shape=(width,),
            initializer=fresh_initializer(self.bias_initializer),
        )

    def _build_attention(self, memory_shape):
        if self.attention is None:
            return
        if not self.attention.built:
            self.attention.build(*self._attention_shapes(memory_shape))
        self.attentional_kernel = self.add_weight(
            name="attentional_kernel",
            shape=(memory_shape[-1] + self.units, self.units),
            initializer=fresh_initializer(self.kernel_initializer),
        )
        if self.attentional_bias:
            self.attentional_bias_vector = self._add_bias(
                "attentional_bias", self.units
            )

    def _attention_shapes(self, memory_shape):
        """Return the shapes of the attention's query and value."""
        return (memory_shape[0], None, self.units), tuple(memory_shape)

    def check_memory(self, inputs, memory, memory_mask=None, keys=None):
        """Check that the memory of a call suits the cell and the inputs."""
        self._check_memory(memory, memory_mask=memory_mask, keys=keys)
        if memory is not None:
            check_floats("memory", memory, "(B, S, M)")
            check_same_batch(inputs=inputs, memory=memory)
            check_mask("memory_mask", memory_mask, "memory", memory)

    def _check_memory(self, memory, **others):
        if self.attention is None:
            for name, value in {"memory": memory, **others}.items():
                if value is not None:
                    raise ValueError(
                        f"`{type(self).__name__}` has no attention and cannot "
                        f"read a memory. Received: `{name}`, with "
                        f"attention=None. Leave `{name}` out, or give the "
                        'cell an attention, such as `attention="general"`.'
                    )
        if memory is None and self.attention is not None:
            raise ValueError(
                "Attention needs something to attend to. Expected: `memory` "
                "(B, S, M). Received: memory=None. Pass `memory=`. For a plain "
                "recurrent layer say `attention=None`. `keras.layers.RNN` "
                "cannot hand a memory to a cell; `AttentionRNN(cell)` can."
            )

    def _build_feeding(self, memory_shape):
        if self.input_feeding:
            self.feeding_kernel = self.add_weight(
                name="feeding_kernel",
                shape=(self.units, self.num_gates * self.units),
                initializer=fresh_initializer(self.kernel_initializer),
            )

    def get_config(self):
        serialize = keras.initializers.serialize
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "attention": keras.saving.serialize_keras_object(self.attention),
            "input_feeding": self.input_feeding,
            "use_bias": self.use_bias,
            "attentional_bias": self.attentional_bias,
            "attentional_activation": keras.activations.serialize(
                self.attentional_activation
            ),
            "kernel_initializer": serialize(self.kernel_initializer),
            "recurrent_initializer": serialize(self.recurrent_initializer),
            "bias_initializer": serialize(self.bias_initializer),
        }


# Name -> class or function that makes the layer.
ATTENTIONS = {
    **{name: functools.partial(LuongAttention, name) for name in SCORES},
    "local-m": functools.partial(LocalAttention, "monotonic"),
    "local-p": functools.partial(LocalAttention, "predictive"),
    "bahdanau": BahdanauAttention,
}


def get_attention(attention, dtype=None):
    """Return the attention layer of a decoder from a name or a layer.

    Args:
        attention: A layer; a name of `ATTENTIONS`: the names of the scores,
            `"local-m"`, `"local-p"` (section 3.2) and `"bahdanau"`; a layer
            serialised by `keras.saving.serialize_keras_object`; or None.
        dtype: The dtype of a layer that is made from a name.

    Returns:
        The layer, or None.

    Raises:
        ValueError: For anything else.
    """
    if attention is None or isinstance(attention, LuongAttention):
        return attention
    if isinstance(attention, dict):
        return get_attention(keras.saving.deserialize_keras_object(attention))
    if isinstance(attention, str) and attention in ATTENTIONS:
        return ATTENTIONS[attention](dtype=dtype)
    fix = "Pass one of them."
    if isinstance(attention, type):
        fix = f"Pass an object, `{attention.__name__}()`."
    elif isinstance(attention, Score):
        fix = "Pass `LuongAttention(score)`."
    elif isinstance(attention, keras.layers.Attention):
        fix = 'Pass "dot", which gives the same numbers.'
    elif isinstance(attention, keras.layers.Layer):
        fix = "Derive yours from `LuongAttention`, or make it a `Score`."
    elif isinstance(attention, str):
        fix = f"Pass one of them.{suggest_name(attention, ATTENTIONS)}"
    raise ValueError(
        "`attention` must be a `LuongAttention`, `LocalAttention` or "
        f"`BahdanauAttention`, one of the names {tuple(ATTENTIONS)}, or None. "
        f"Received: attention={attention!r}. {fix}"
    )
