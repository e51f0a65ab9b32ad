"""The encoder: a stack of recurrent layers over the source sentence."""

import keras
from keras import backend, ops, tree

from luong_keras.config.checks import (
    check_choice,
    check_fraction,
    check_integers,
)
from luong_keras.layers.argument_checks import (
    check_floats,
    check_mask,
    check_mask_names,
)
from luong_keras.layers.checked_layer import VersionedLayer
from luong_keras.layers.initializers import wide_initializer
from luong_keras.layers.rnn.attention_rnn import (
    DROPOUT_STYLES,
    AttentionRNN,
)
from luong_keras.layers.rnn.input_feeding_cells import InputFeedingLSTMCell
from luong_keras.ops.backends import dropout
from luong_keras.ops.devices import has_gpu
from luong_keras.ops.masking import zero_where_masked, zeros_of
from luong_keras.ops.products import product
from luong_keras.ops.recurrence import lstm_step, reverse_within_mask
from luong_keras.ops.scan import BACKENDS, scan

_RECURRENCES = {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}


@keras.saving.register_keras_serializable(package="luong_keras")
class Encoder(VersionedLayer):
    """Recurrent layers that turn a padded sequence into memory and states.

    The stacked layers are `keras.layers.LSTM` or `GRU` (section 3 of Luong et
    al. 2015), which cuDNN can fuse in training on a GPU. With `cell_clip` or
    `gradient_clip`, which Keras lacks, they are an `AttentionRNN` without a
    memory. Padding may be on either side: each direction reads a sentence from
    its first or last word to the other end, which gives the last states. A
    False inside a sentence is skipped. In training on a GPU with TensorFlow,
    cuDNN reads only right-padded sentences, and Keras refuses others.

    Args:
        units: M, width of the memory; a bidirectional encoder gives half of
            it to each direction.
        num_layers: Number of stacked layers.
        recurrence: `"lstm"` or `"gru"`.
        bidirectional: Whether every layer reads both ways (Bahdanau et al.
            2015).
        reverse: Whether the words of each sentence are read from the last to
            the first (section 4.2). Padding stays where it is and the
            memory is returned in natural order; the last states are those
            after the first word.
        dropout: Fraction of each layer's input dropped in training.
        dropout_style: As in `AttentionRNN`; `"zaremba"` also drops the memory.
        use_bias: Whether the gates have biases.
        cell_clip: As in `InputFeedingLSTMCell`; LSTM only.
        gradient_clip: As in `InputFeedingLSTMCell`; LSTM only.
        kernel_initializer: Initializer of all kernels; Keras' defaults when
            None.
        seed: Seed of the dropout.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        inputs: Embedded words or float features, (B, S, F).
        mask, inputs_mask: Boolean (B, S), True = real; two names of one mask,
            filled in by Keras.
        training: Whether dropout applies.
        dropout_masks: Dict of masks used instead of drawn ones, already
            divided by the keep probability, time first, in the order of
            reading; a single step serves all: `"inputs"` (S or 1, B, F),
            `"layer_1"` … and, for the memory, `"outputs"` (S or 1, B, M). A
            missing name means no dropout.

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
        cell_clip=None,
        gradient_clip=None,
        kernel_initializer=None,
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_integers(units=units, num_layers=num_layers)
        check_choice(_RECURRENCES, recurrence=recurrence)
        check_choice(DROPOUT_STYLES, dropout_style=dropout_style)
        check_fraction(dropout=dropout)
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        if bidirectional and (reverse or units % 2):
            raise ValueError(
                "A bidirectional encoder needs even `units` and no "
                "`reverse`, since it reads both ways. Received: "
                f"units={units}, reverse={reverse}."
            )
        self._has_clips = cell_clip is not None or gradient_clip is not None
        if self._has_clips and recurrence != "lstm":
            raise ValueError(
                "`cell_clip` and `gradient_clip` belong to "
                "`recurrence='lstm'`. Received: "
                f"recurrence={recurrence!r}, cell_clip={cell_clip}, "
                f"gradient_clip={gradient_clip}. Leave them out."
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
        self.cell_clip = cell_clip
        self.gradient_clip = gradient_clip
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.seed = seed
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self._directions = ("forward", "backward")[: 1 + bidirectional]
        # One attribute per layer: Keras before 3.15 saves no weights in nested
        # lists, and `tf.train.Checkpoint` none in any list.
        for i in range(num_layers):
            for direction in self._directions:
                name = f"{direction}_{i}"
                setattr(self, name, self._make_layer(name))
        # Functions, not layers: Keras would save the weights of layers in this
        # tuple a second time.
        self._inference_layers = tuple(
            tuple(_without_cudnn(layer) for layer in layers)
            for layers in self.stacks
        )

    @property
    def stacks(self):
        """Recurrent layers from the lowest on, each a list of directions."""
        return [
            [getattr(self, f"{name}_{i}") for name in self._directions]
            for i in range(self.num_layers)
        ]

    def _make_layer(self, name):
        kernel, recurrent = "glorot_uniform", keras.initializers.Orthogonal()
        if self.kernel_initializer is not None:
            kernel = recurrent = self.kernel_initializer
        units = self.units // 2 if self.bidirectional else self.units
        if self._has_clips:
            return self._make_clipped_layer(units, name, kernel, recurrent)
        return _RECURRENCES[self.recurrence](
            units,
            return_sequences=True,
            return_state=True,
            use_bias=self.use_bias,
            name=name,
            dtype=self.dtype_policy,
            trainable=self.trainable,
            kernel_initializer=wide_initializer(keras.initializers.get(kernel)),
            recurrent_initializer=wide_initializer(recurrent),
        )

    def _make_clipped_layer(self, units, name, kernel, recurrent):
        cell = InputFeedingLSTMCell(
            units,
            attention=None,
            input_feeding=False,
            use_bias=self.use_bias,
            cell_clip=self.cell_clip,
            gradient_clip=self.gradient_clip,
            kernel_initializer=kernel,
            recurrent_initializer=recurrent,
            dtype=self.dtype_policy,
        )
        return AttentionRNN(
            cell,
            return_state=True,
            name=name,
            dtype=self.dtype_policy,
            trainable=self.trainable,
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
        states = self._states_per_layer * self.num_layers
        return (previous_mask, *[None] * states)

    def _check_call(
        self,
        inputs,
        mask=None,
        dropout_masks=None,
        inputs_mask=None,
        **others,
    ):
        inner = [f"layer_{i}" for i in range(1, self.num_layers)]
        check_mask_names(dropout_masks, ["inputs", *inner, "outputs"])
        check_floats("inputs", inputs, "(B, S, F)")
        check_mask("mask", mask, "inputs", inputs)
        check_mask("inputs_mask", inputs_mask, "inputs", inputs)

    def call(
        self,
        inputs,
        mask=None,
        training=False,
        dropout_masks=None,
        inputs_mask=None,
    ):
        if 0 in inputs.shape:  # an empty batch, or sentences of length 0
            return tree.map_structure(
                lambda spec: zeros_of(spec, inputs),
                self.compute_output_spec(inputs),
            )
        mask = inputs_mask if mask is None else mask
        # The mask for layers that read backwards: it differs from `mask` if a
        # sentence has holes.
        flipped_mask = mask if mask is None else reverse_within_mask(mask, mask)
        reading_mask = flipped_mask if self.reverse else mask
        # Values at padding must reach no gradient: zero times NaN is NaN.
        x = zero_where_masked(inputs, mask)
        if self.reverse:
            x = reverse_within_mask(x, mask)
        states = []
        for height, directions in enumerate(self.stacks):
            name = f"layer_{height}" if height else "inputs"
            x = self._apply_dropout(x, name, dropout_masks, training)
            results = [self._run_layer(height, 0, x, reading_mask, training)]
            if len(directions) > 1:
                reversed_x = reverse_within_mask(x, mask)
                outputs, *last_states = self._run_layer(
                    height, 1, reversed_x, flipped_mask, training
                )
                results.append(
                    [reverse_within_mask(outputs, flipped_mask), *last_states]
                )
            x, *last_states = (
                ops.concatenate(parts, axis=-1) if len(parts) > 1 else parts[0]
                for parts in zip(*results, strict=True)
            )
            states += last_states
        if dropout_masks is not None or self.dropout_style != "authors":
            x = self._apply_dropout(x, "outputs", dropout_masks, training)
        if self.reverse:
            x = reverse_within_mask(x, flipped_mask)
        return (x, *states)

    def _run_layer(self, height, direction, x, mask, training):
        """Return the outputs (B, S, M) and the last states of one layer."""
        layer = self.stacks[height][direction]
        if training and self._uses_scan(layer):
            return _scan_lstm(layer, x, mask)
        if not training:
            layer = self._inference_layers[height][direction]()
        outputs, *states = layer(x, mask=mask, training=training)
        states = states[: self._states_per_layer]
        return [outputs, *(ops.cast(x, self.compute_dtype) for x in states)]

    def _uses_scan(self, layer):
        """Test whether a `scan` trains the layer, faster than Keras' loop.

        On a GPU with TensorFlow, cuDNN is even faster; on JAX, Keras uses it
        only for sequences without a mask.
        """
        return (
            isinstance(layer, keras.layers.LSTM)
            and backend.backend() in BACKENDS
            and (backend.backend() == "jax" or not has_gpu())
        )

    @property
    def _states_per_layer(self):
        return 2 if self.recurrence == "lstm" else 1

    def _apply_dropout(self, x, name, masks, training):
        if masks is not None:
            mask = masks.get(name)
            if mask is None:
                return x
            return x * ops.cast(ops.swapaxes(mask, 0, 1), x.dtype)
        if not training or self.dropout == 0:
            return x
        shape = ops.shape(x)
        noise_shape = None
        if self.dropout_style == "sequence":
            noise_shape = (shape[0], 1, shape[2])
        return dropout(x, self.dropout, self.seed_generator, noise_shape)

    def compute_output_spec(self, inputs, *others, **options):
        batch, length = inputs.shape[:2]
        dtype = self.compute_dtype
        return (
            keras.KerasTensor((batch, length, self.units), dtype=dtype),
            *[
                keras.KerasTensor((batch, self.units), dtype=dtype)
                for _ in range(self._states_per_layer * self.num_layers)
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
            "cell_clip": self.cell_clip,
            "gradient_clip": self.gradient_clip,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            )
            if self.kernel_initializer is not None
            else None,
            "seed": self.seed,
        }


def _without_cudnn(layer):
    """Return a function that gives the layer, or a copy without cuDNN.

    cuDNN is only for training: it refuses an empty sentence, and its
    operations cannot be served on a machine without a GPU.
    """
    if not hasattr(layer, "use_cudnn"):
        return lambda: layer
    reader = keras.layers.RNN(
        layer.cell,
        return_sequences=True,
        return_state=True,
        name=layer.name,
        dtype=layer.dtype_policy,
    )
    return lambda: reader


def _scan_lstm(layer, x, mask):
    """Return the outputs and last states of a `keras.layers.LSTM`."""
    dtype = layer.compute_dtype

    def cast(weight):
        return ops.cast(ops.convert_to_tensor(weight), dtype)

    cell = layer.cell
    if mask is not None:
        mask = ops.swapaxes(mask, 0, 1)
    # Leaving padded rows out of the product takes longer than multiplying them.
    projected = product(
        ops.swapaxes(x, 0, 1),
        cast(cell.kernel),
        cell.bias if cell.use_bias else None,
    )
    zeros = ops.zeros_like(projected[0, :, : layer.units])
    last_states, (hidden,) = scan(
        lambda kernel, states, projected, x: list(
            lstm_step(projected, *states, kernel)
        ),
        cast(cell.recurrent_kernel),
        [zeros, zeros],
        projected,
        {},
        [0],
        mask,
    )
    return [
        ops.cast(x, dtype) for x in (ops.swapaxes(hidden, 0, 1), *last_states)
    ]
