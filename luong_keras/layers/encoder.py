"""The encoder: a stack of recurrent layers over the source sentence."""

import keras
from keras import ops

from luong_keras.layers.input_feeding_cell import drawn_wide
from luong_keras.layers.memory_rnn import DROPOUT_STYLES
from luong_keras.recurrence import reverse_within_mask

_RECURRENCES = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


@keras.saving.register_keras_serializable(package="luong_keras")
class Encoder(keras.layers.Layer):
    """Reads a padded sequence and returns its memory and last states.

    Stacked `keras.layers.LSTM` or `GRU` (section 3 of Luong et al. 2015),
    fused by cuDNN on a GPU. Sequences are padded on the right, whatever the
    direction.

    Args:
        units: M, width of the memory; a bidirectional encoder gives half of
            it to each direction.
        num_layers: height of the stack.
        recurrence: `"lstm"` or `"gru"`.
        bidirectional: whether every layer reads both ways (Bahdanau et al.
            2015).
        reverse: whether the words of each sentence are read from the last to
            the first (section 4.1). Padding stays on the right and the
            memory comes back in natural order; the last states are those
            after the first word.
        dropout: share dropped of the input of each layer, in training.
        dropout_style: as in `MemoryRNN`; `"zaremba"` also drops the memory.
        use_bias: whether the gates have biases.
        kernel_initializer: of all kernels; Keras' own when None.
        seed: seed of the dropout.
        **kwargs: `name`, `dtype` and the other arguments of a Keras layer.

    Call arguments:
        inputs: embedded words or float features, (B, S, F).
        mask: boolean (B, S), True = real; a right-padded prefix.
        training: whether dropout applies.

    Output:
        memory (B, S, M), then the last states of every layer from the
        lowest to the highest, (B, M) each: h_1, c_1, ..., h_L, c_L with
        LSTM, h_1, ..., h_L with GRU.

    Example:

    >>> import numpy as np
    >>> from luong_keras import Encoder
    >>> memory, h, c = Encoder(8, bidirectional=True)(np.ones((2, 6, 5)))
    >>> tuple(memory.shape), tuple(h.shape)
    ((2, 6, 8), (2, 8))
    """

    def __init__(
        self,
        units,
        num_layers=1,
        recurrence="lstm",
        bidirectional=False,
        reverse=False,
        dropout=0.0,
        dropout_style="zaremba",
        use_bias=True,
        kernel_initializer=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if recurrence not in _RECURRENCES:
            raise ValueError(
                f"`recurrence` must be one of {tuple(_RECURRENCES)}. "
                f"Received: recurrence={recurrence!r}."
            )
        if dropout_style not in DROPOUT_STYLES:
            raise ValueError(
                f"`dropout_style` must be one of {DROPOUT_STYLES}. "
                f"Received: dropout_style={dropout_style!r}."
            )
        if bidirectional and (reverse or units % 2):
            raise ValueError(
                "A bidirectional encoder needs even `units` and no "
                "`reverse`, since it reads both ways. Received: "
                f"units={units}, reverse={reverse}."
            )
        self.supports_masking = True
        self.units = units
        self.num_layers = num_layers
        self.recurrence = recurrence
        self.bidirectional = bidirectional
        self.reverse = reverse
        self.dropout = dropout
        self.dropout_style = dropout_style
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        directions = ("forward", "backward") if bidirectional else ("forward",)
        self.stacks = [
            [self._layer(f"{name}_{i}") for name in directions]
            for i in range(num_layers)
        ]

    def _layer(self, name):
        kernel, recurrent = "glorot_uniform", keras.initializers.Orthogonal()
        if self.kernel_initializer is not None:
            kernel = recurrent = self.kernel_initializer
        return _RECURRENCES[self.recurrence](
            self.units // 2 if self.bidirectional else self.units,
            return_sequences=True,
            return_state=True,
            use_bias=self.use_bias,
            name=name,
            dtype=self.dtype_policy,
            kernel_initializer=drawn_wide(keras.initializers.get(kernel)),
            recurrent_initializer=drawn_wide(recurrent),
        )

    def build(self, inputs_shape):
        shape = tuple(inputs_shape)
        for directions in self.stacks:
            for layer in directions:
                layer.build(shape)
            shape = (*shape[:2], self.units)
        self.built = True

    def compute_mask(self, inputs, previous_mask):
        # The memory keeps the mask; the states have none.
        states = 2 if self.recurrence == "lstm" else 1
        return (previous_mask, *[None] * (states * self.num_layers))

    def call(self, inputs, mask=None, training=False):
        x = inputs
        if self.reverse:
            x = reverse_within_mask(x, mask)
        states = []
        for directions in self.stacks:
            x = self._drop(x, training)
            results = [
                self._read(layer, x, mask, training, backward=index == 1)
                for index, layer in enumerate(directions)
            ]
            x, *last = (
                ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
                for parts in zip(*results, strict=True)
            )
            states += last
        if self.dropout_style != "authors":
            x = self._drop(x, training)
        if self.reverse:
            x = reverse_within_mask(x, mask)
        return (x, *states)

    def _read(self, layer, x, mask, training, backward):
        if not backward:
            return layer(x, mask=mask, training=training)
        x = reverse_within_mask(x, mask)
        outputs, *last = layer(x, mask=mask, training=training)
        return [reverse_within_mask(outputs, mask), *last]

    def _drop(self, x, training):
        if not training or self.dropout == 0:
            return x
        shape = ops.shape(x)
        noise = None
        if self.dropout_style == "sequence":
            noise = (shape[0], 1, shape[2])
        return keras.random.dropout(
            x, self.dropout, noise_shape=noise, seed=self.seed_generator
        )

    def compute_output_spec(self, inputs, mask=None, training=False):
        batch, length = inputs.shape[:2]
        states = 2 if self.recurrence == "lstm" else 1
        dtype = self.compute_dtype
        return (
            keras.KerasTensor((batch, length, self.units), dtype=dtype),
            *[
                keras.KerasTensor((batch, self.units), dtype=dtype)
                for _ in range(states * self.num_layers)
            ],
        )

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "num_layers": self.num_layers,
            "recurrence": self.recurrence,
            "bidirectional": self.bidirectional,
            "reverse": self.reverse,
            "dropout": self.dropout,
            "dropout_style": self.dropout_style,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            )
            if self.kernel_initializer is not None
            else None,
            "seed": self.seed,
        }
