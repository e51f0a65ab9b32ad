"""Checks of layers: the arguments of a call, the format of a weights file."""

import functools
import inspect

import keras
from keras import ops, tree

from luong_keras.ops.backends import check_float64
from luong_keras.ops.masking import shapes_compatible
from luong_keras.ops.products import in_scan

# Arguments that hold several tensors; all others are single tensors.
STRUCTURES = ("states", "initial_state", "dropout_masks")
_CONSTRUCTOR = (
    "Decoders have it in their constructor. An `Encoder` always returns the "
    "memory of all words and the last states."
)
_FROM_ZEROS = (
    "An `Encoder` starts every call from zeros; `InputFeedingLSTM(units, "
    "attention=None, input_feeding=False, return_state=True)` continues."
)
_MASK = (
    "Masks are boolean, True = use: `value_mask=` (B, S) and `query_mask=` "
    "(B, T) in attention layers, `memory_mask=` (B, S) in decoders and cells."
)
_LENGTHS = (
    "Make a mask of the lengths, `keras.ops.arange(S) < lengths[:, None]`. "
    + _MASK
)
_MEMORY = (
    "The memory is an argument of the call: `layer(query, memory)` for "
    "attention layers, `memory=` in the call of decoders and cells."
)
_NOT_CAUSAL = (
    "Attention from a decoder to a source has no later words to hide. "
    "`keras.layers.Attention` has a causal mask, for attention to itself."
)
_HEADS = (
    "There is one head, as in the paper. `keras.layers.MultiHeadAttention` "
    "has several."
)
_FIXED = (
    "The gates are sigmoid and tanh. `attentional_activation=` of a decoder "
    "is that of the attentional vector."
)
_SEVERAL = (
    "An `Encoder`, or a layer with `return_state=True`, returns several "
    "tensors: write `memory, *states = encoder(x)`, and pass `memory`."
)
_WITHOUT = "There is none: leave it out."
_PENALTY = (
    "There is none: leave it out, and use `weight_decay` of the optimizer, "
    "or `model.add_loss`."
)
_RESULTS = (
    "`return_attention_scores=True` in the call returns the weights of all "
    "steps."
)
# Arguments of other libraries -> what to use here.
FOREIGN = {
    # keras.layers.RNN, LSTM and GRU.
    "stateful": "No layer keeps states between calls: take those of a decoder "
    "by `return_state=True`, and pass them as `initial_state=` (and "
    "`start_position=`, the number of steps made). " + _FROM_ZEROS,
    "initial_state": "Decoders take it in the call. " + _FROM_ZEROS,
    "recurrent_dropout": "`dropout=` drops the input of every recurrent layer; "
    "with `dropout_style='sequence'` one mask serves all steps.",
    "constants": "Pass the tensor that every step attends to as `memory=`.",
    "go_backwards": "A decoder reads what it has written and has one "
    "direction. `Encoder(reverse=True)` reads from the last word to the "
    "first, `Encoder(bidirectional=True)` both ways.",
    **dict.fromkeys(("sequence", "sequences"), "It is called `inputs`."),
    **dict.fromkeys(("activation", "recurrent_activation"), _FIXED),
    **dict.fromkeys(("return_sequences", "return_state"), _CONSTRUCTOR),
    **dict.fromkeys(
        (
            *("unroll", "time_major", "implementation", "use_cudnn"),
            *("reset_after", "zero_output_for_mask", "batch_input_shape"),
            *("cell_input_fn", "output_attention", "probability_fn"),
            *("sigmoid_noise", "score_bias_init", "output_shape"),
        ),
        _WITHOUT,
    ),
    **dict.fromkeys(
        (
            f"{what}_{kind}"
            for what in ("kernel", "recurrent", "bias", "activity")
            for kind in ("regularizer", "constraint")
        ),
        _PENALTY,
    ),
    # keras.layers.Attention, AdditiveAttention and MultiHeadAttention.
    **dict.fromkeys(("mask", "attention_mask", "key_mask"), _MASK),
    **dict.fromkeys(("use_causal_mask", "causal"), _NOT_CAUSAL),
    **dict.fromkeys(
        ("num_heads", "key_dim", "value_dim", "attention_axes"), _HEADS
    ),
    "key": "Keys are made of the value: `layer(query, value)`; "
    "`keys=layer.project_keys(value)` makes them once for many calls.",
    "return_attention_scores": "It is an argument of the call, not of the "
    "constructor.",
    # tfa.seq2seq.
    **dict.fromkeys(("memory", "value"), _MEMORY),
    **dict.fromkeys(
        ("memory_sequence_length", "sequence_length", "lengths"), _LENGTHS
    ),
    "value_mask": _MASK,
    "memory_mask": _MASK,
    "query_mask": "A decoder calls it `mask`, boolean (B, T); a cell reads one "
    "word per call.",
    "scale": "It is called `use_scale`.",
    "normalize": "`BahdanauAttention(normalize=True)` has it.",
    "num_units": "It is called `units`.",
    **dict.fromkeys(
        ("D", "window", "window_size", "window_width"),
        "The paper's D is `half_width`: a window has 2 D + 1 positions.",
    ),
    **dict.fromkeys(
        ("half_width", "alignment", "gaussian", "sigma", "clamp_position"),
        "`LocalAttention` has it.",
    ),
    "attention_mechanism": "It is called `attention`.",
    "attention_layer_size": "The attentional vector has the width `units`.",
    "attention_layer": "`attentional_activation=` and `attentional_bias=` "
    "configure the layer that computes the attentional vector.",
    "alignment_history": _RESULTS,
    **dict.fromkeys(
        ("initial_cell_state", "initial_states", "encoder_state"),
        "It is called `initial_state`, a list of tensors.",
    ),
    "encoder_outputs": "It is called `memory`.",
    "num_hidden": "It is called `units`.",
}
WEIGHTS_FORMAT = 2  # increased when the saved weights change


class CheckedLayer(keras.layers.Layer):
    """Keras layer that refuses wrong arguments before it is built.

    Argument names of other libraries, float64 if the backend rounds it, and
    ragged or nested values instead of a tensor raise a `ValueError`.
    Subclasses check the rest in `_check_call`, which receives the arguments of
    a call by name, also those that a user's subclass adds. Variables are
    replaced by their values.
    """

    def __new__(cls, *args, **kwargs):
        _refuse_foreign(cls, cls.__init__, kwargs)
        return super().__new__(cls, *args, **kwargs)

    def __init__(self, name=None, dtype=None, trainable=True):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        check_float64(self)

    @classmethod
    def from_config(cls, config):
        # Keras would hide an error behind one with the whole configuration.
        return cls(**config)

    def __call__(self, *args, **kwargs):
        _refuse_foreign(type(self), type(self).call, kwargs)
        args, kwargs = tree.map_structure(_variable_value, (args, kwargs))
        signature = _signature(type(self).call)
        if "mask" in signature.parameters and kwargs.get("mask") is None:
            # Keras gives the outputs an explicit mask of this name only.
            mask = kwargs.pop("inputs_mask", None)
            kwargs |= {} if mask is None else {"mask": mask}
        # Keras takes `training` even if `call` does not.
        call_kwargs = {
            name: value
            for name, value in kwargs.items()
            if name != "training" or name in signature.parameters
        }
        try:
            bound = signature.bind(self, *args, **call_kwargs)
        except TypeError:
            # Keras reports the missing or unknown argument.
            return super().__call__(*args, **kwargs)
        # By name, also those that `call` takes as `**others`.
        _, *names = signature.parameters
        arguments = dict(zip(names, bound.args[1:], strict=False))
        arguments |= bound.kwargs
        for name, value in arguments.items():
            _check_tensors(name, value)
        self._check_call(**arguments)
        self._check_widths(**arguments)
        return super().__call__(*args, **kwargs)

    def rematerialized_call(self, layer_call, *args, **kwargs):
        """Return the call as a `keras.RematScope` changes it.

        A layer that draws dropout masks or words is not rematerialised: the
        backward pass would draw others. TensorFlow loses the gradients of
        tensors that are passed by name, and of the weights of a step of a
        `scan`.
        """
        if in_scan() or getattr(self, "seed_generator", None) is not None:
            return layer_call
        tensors = {
            name: value
            for name, value in kwargs.items()
            if all(ops.is_tensor(x) for x in tree.flatten(value))
        }
        others = {k: v for k, v in kwargs.items() if k not in tensors}
        call = super().rematerialized_call(
            lambda args, tensors: layer_call(*args, **tensors, **others),
            *args,
            **kwargs,
        )
        return lambda *args, **kwargs: call(args, tensors)

    def _check_call(self, **arguments):
        """Check that the arguments of a call fit together."""

    def _check_widths(self, **arguments):
        """Check that widths are those for which the layer was built.

        It receives the arguments of a call in their order.
        """
        config = self.get_build_config() or {}
        shapes = config.get("shapes_dict")
        if shapes is None:  # only the shape of the first argument
            shapes = {
                f"{next(iter(arguments))}_shape": config.get("input_shape")
            }
        for name, value in arguments.items():
            _check_width(name, value, shapes.get(f"{name}_shape"))

    def compute_output_spec(self, *args, **kwargs):
        args, kwargs = tree.map_structure(_as_dense_spec, (args, kwargs))
        default = CheckedLayer.compute_output_shape
        if type(self).compute_output_shape is not default:  # a user's subclass
            return super().compute_output_spec(*args, **kwargs)
        # `keras.Layer` would ask `compute_output_shape`, which comes here.
        return keras.Operation.compute_output_spec(self, *args, **kwargs)

    def compute_output_shape(self, *args, **kwargs):
        """Return the shapes of the outputs.

        Args:
            *args: The shapes of the arguments of a call, in their order.
            **kwargs: The same, called `<argument>_shape` as in `build`. The
                `build` of a user's subclass may have other names.
        """
        parameters = _signature(type(self).call).parameters
        names = [f"{name}_shape" for name in parameters]
        named_shapes = {
            name: kwargs.pop(name) for name in names if name in kwargs
        }
        return self._output_shape(*args, *kwargs.values(), **named_shapes)

    def _output_shape(self, *args, **kwargs):
        """Return the shapes of the outputs from those of the arguments."""

        def tensors(shapes):
            return shapes and tree.map_shape_structure(
                lambda shape: keras.KerasTensor(shape, self.compute_dtype),
                shapes,
            )

        specs = self.compute_output_spec(
            *map(tensors, args),
            **{
                name.removesuffix("_shape"): tensors(shapes)
                for name, shapes in kwargs.items()
            },
        )
        return tree.map_structure(lambda spec: spec.shape, specs)


def _variable_value(x):
    """Return the value of a variable, or the argument itself."""
    x = x.value if isinstance(x, keras.Variable) else x
    # TensorFlow variables, which `ops` takes for tensors.
    return x.read_value() if hasattr(x, "read_value") else x


@functools.cache
def _signature(function):
    return inspect.signature(function)


def _refuse_foreign(owner, function, names):
    """Refuse argument names of other libraries."""
    parameters = _signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return
    for name in names:
        if name in FOREIGN and name not in parameters:
            raise ValueError(
                f"`{owner.__name__}.{function.__name__}` has no argument "
                f"`{name}`. {FOREIGN[name]} Received: `{name}=`."
            )


def _check_width(name, value, shape):
    """Check that the last axis of a tensor is that of `shape`."""
    if value is None or not shape:
        return
    if isinstance(value, (list, tuple)):
        for i, pair in enumerate(zip(value, shape, strict=False)):
            _check_width(f"{name}[{i}]", *pair)
    elif not shapes_compatible(tuple(value.shape[-1:]), tuple(shape[-1:])):
        raise ValueError(
            f"`{name}` must have the width that this layer was built for. "
            f"Expected: (..., {shape[-1]}). Received: "
            f"{name}.shape={tuple(value.shape)}. Make another layer for it."
        )


def _check_tensors(name, value):
    """Check that a value is one dense tensor."""
    if isinstance(value, (list, tuple, dict)):
        if name not in STRUCTURES:
            advice = _LENGTHS if name.endswith("mask") else _SEVERAL
            raise ValueError(
                f"`{name}` must be one tensor. Received: a "
                f"{type(value).__name__} of {len(value)}. Convert numbers to "
                f"an array, `numpy.asarray(...)`. {advice}"
            )
        for element in tree.flatten(value):
            _check_tensors(name, element)
        return
    if getattr(getattr(value, "shape", None), "rank", 0) is None:
        raise ValueError(
            f"`{name}` must be a tensor of known rank. Received: shape "
            "<unknown>. Give its `tf.TensorSpec` one entry per axis, such as "
            "(None, None, 8)."
        )
    kind = type(value).__name__
    fix = None
    if kind == "RaggedTensor" or any(
        getattr(value, flag, False) is True for flag in ("ragged", "is_nested")
    ):
        fix = (
            "Pad it, `x.to_tensor()`, and pass a mask, "
            "`tf.sequence_mask(x.row_lengths())`."
        )
        kind = "a ragged tensor"
    elif getattr(getattr(value, "dtype", None), "kind", "f") in "OSU":
        fix = (
            "Rows of different lengths are padded, for example by "
            "`keras.utils.pad_sequences(rows, padding='post')`."
        )
        kind = f"an array of dtype {value.dtype}"
    if fix:
        raise ValueError(
            f"`{name}` must be a dense tensor of numbers. Received: {kind} of "
            f"shape {tuple(value.shape)}. {fix}"
        )


def _as_dense_spec(x):
    """Return a symbolic tensor without the flag `sparse`.

    Keras also marks the product of a dense tensor and a number, and obeys on
    JAX.
    """
    if isinstance(x, keras.KerasTensor) and x.sparse:
        return keras.KerasTensor(x.shape, x.dtype)
    return x


class VersionedLayer(CheckedLayer):
    """Layer whose saved weights carry the version of their format.

    A file of another version, or without one, raises a `ValueError`.
    """

    def save_own_variables(self, store):
        super().save_own_variables(store)
        store["format"] = WEIGHTS_FORMAT

    def load_own_variables(self, store):
        arrays = {name: store[name] for name in [*store.keys()]}
        version = int(arrays.pop("format")[()]) if "format" in arrays else 1
        if version != WEIGHTS_FORMAT:
            raise ValueError(
                f"`{type(self).__name__}` {self.name!r} reads weights of "
                f"format {WEIGHTS_FORMAT}. Received: a file of format "
                f"{version}, of another version of luong_keras. Save the "
                "weights again with this one, or read the file with the "
                "version that wrote it."
            )
        super().load_own_variables(arrays)
