"""Weights of `tfa.seq2seq` (TensorFlow Addons) for the layers.

Arrays have the names that Addons gives its variables, `v.name` or the name in
a checkpoint. The last parts of a name determine the role of an array; the
parts before them are ignored. This module needs neither Addons nor TensorFlow.
"""

import re

import numpy as np

from luong_keras.layers.attention.bahdanau_attention import BahdanauAttention
from luong_keras.layers.attention.local_attention import LocalAttention
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.layers.rnn.attention_cell import AttentionCell

_SCORE_WEIGHTS = (
    "attention_v",
    "attention_g",
    "attention_b",
    "attention_score_bias",
)
_CHECKPOINT_LAYER = "_attention_layers"


def roles_of(names, attention_layer=None):
    """Map each name to its role, or to itself if the role is unknown.

    The roles: `cell_0/kernel`, `cell_0/recurrent_kernel`, `cell_0/bias`,
    `cell_1/kernel`, ..., the lowest cell first; `attention_layer/kernel`;
    `memory_layer/kernel`, `query_layer/kernel`, `attention_v`, ....

    Args:
        names: The names, in the order of the variables.
        attention_layer: The name of the attention layer; `attention_layer`
            when None.
    """
    paths = {name: _split_name(name) for name in names}
    cells = _cell_scopes(paths.values())
    # A mechanism builds some kernels under the name of the mechanism.
    mechanisms = {"LuongAttention", "BahdanauAttention"} | {
        path[-2] for path in paths.values() if path[-1] in _SCORE_WEIGHTS
    }
    roles, mechanism_kernels = {}, []
    for name, path in paths.items():
        scope, owner, leaf = path[:-1], path[-2], path[-1]
        if scope in cells:
            roles[name] = f"cell_{cells.index(scope)}/{leaf}"
        elif leaf in _SCORE_WEIGHTS:
            roles[name] = leaf
        elif owner in (_CHECKPOINT_LAYER, attention_layer or "attention_layer"):
            roles[name] = f"attention_layer/{leaf}"
        elif owner in ("memory_layer", "query_layer"):
            roles[name] = f"{owner}/{leaf}"
        elif owner in mechanisms and leaf == "kernel":
            mechanism_kernels.append(name)
        else:
            roles[name] = name
    # The wrapper contains the query kernel but not the memory kernel. If both
    # are in the same scope, the query kernel comes first.
    mechanism_kernels.sort(key=lambda name: -len(paths[name]))
    if mechanism_kernels and "memory_layer/kernel" not in roles.values():
        roles[mechanism_kernels.pop()] = "memory_layer/kernel"
    return roles | {name: "query_layer/kernel" for name in mechanism_kernels}


def _split_name(name):
    """Split a name into parts, with at least one part before the last."""
    name = name.removesuffix("/.ATTRIBUTES/VARIABLE_VALUE").removesuffix(":0")
    name = name.replace(f"{_CHECKPOINT_LAYER}/0/", f"{_CHECKPOINT_LAYER}/")
    return ("", *name.split("/"))


def _cell_scopes(paths):
    """Return the scopes of the recurrent cells, the lowest first."""
    scopes = [path[:-1] for path in paths if path[-1] == "recurrent_kernel"]

    def number(scope):
        # lstm_cell, lstm_cell_1, ..., or cells/0, cells/1, ...
        digits = re.search(r"\d+$", scope[-1])
        return int(digits.group()) if digits else -1

    return sorted(scopes, key=number)


_HINTS = {
    "attention_g": (
        "It belongs to `LuongAttention(use_scale=True)` or "
        "`BahdanauAttention(normalize=True)`. "
    ),
    "attention_b": "It belongs to `BahdanauAttention(normalize=True)`. ",
    "attention_v": "It belongs to `BahdanauAttention`. ",
    "attention_score_bias": "Monotonic attention has no counterpart here. ",
    "query_layer/kernel": (
        "It belongs to `BahdanauAttention`. If two variables have the same "
        "name, as after `BahdanauAttention(units, memory)`, use the names "
        'f"{i}/{v.name}", where i counts the variables. '
    ),
    "attention_layer/kernel": (
        "A wrapper without `attention_layer_size` cannot be converted, "
        "unless it received a layer: pass the name of this layer as "
        "`attention_layer=`. "
    ),
    "attention_layer/bias": (
        "It belongs to a cell with `attentional_bias=True`. "
    ),
}


def load_addons_attention(layer, weights):
    """Load the weights of an attention mechanism into an attention layer.

    `tfa.seq2seq.LuongAttention(units)` corresponds to
    `LuongAttention("general")`, its `scale=True` to `use_scale=True`, and
    `tfa.seq2seq.BahdanauAttention` to `BahdanauAttention` with the same
    `normalize`.

    Args:
        layer: A built layer of one of these two kinds.
        weights: Dict, or open npz file, with the arrays of the mechanism, such
            as `{v.name: v.numpy() for v in mechanism.variables}`.

    Raises:
        ValueError: If the layer is of another kind or not built; if an array
            is missing, unexpected, duplicate or of another shape.

    Example:
    >>> import numpy as np
    >>> from luong_keras import LuongAttention
    >>> from luong_keras.interop import load_addons_attention
    >>> layer = LuongAttention("general")
    >>> layer.build((None, None, 4), (None, None, 6))
    >>> load_addons_attention(
    ...     layer, {"LuongAttention/memory_layer/kernel:0": np.ones((6, 4))}
    ... )
    """
    variables = _attention_variables(layer)
    shapes = {role: variable.shape for role, variable in variables.items()}
    _assign_arrays(variables, _arrays_by_role(weights, shapes))


def load_addons_wrapper(cell, weights, attention_layer=None):
    """Load the weights of an `AttentionWrapper` into a cell.

    The wrapper must have one attention mechanism, feed its output to its next
    step, and wrap an `LSTMCell`, a `GRUCell` (`reset_after=True`) or
    `StackedRNNCells` of them. It corresponds to an `InputFeedingLSTMCell` or
    `InputFeedingGRUCell` with the same number of layers,
    `attentional_activation="linear"` and `attention_layer_size` units. If the
    names of the cells have no numbers, the order of `weights` counts, the
    lowest cell first.

    Args:
        cell: A built cell, for example the `cell` of an `InputFeedingLSTM`.
        weights: Dict, or open npz file, with the arrays of the wrapper, such
            as `{v.name: v.numpy() for v in wrapper.variables}`.
        attention_layer: Name of the `Dense` layer that the wrapper received
            as `attention_layer`; the cell then needs the same activation.
            None for a wrapper with `attention_layer_size`.

    Raises:
        ValueError: As in `load_addons_attention`, and if the cell does not
            correspond to a wrapper.

    Example:
    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTM, LuongAttention
    >>> from luong_keras.interop import load_addons_wrapper
    >>> decoder = InputFeedingLSTM(
    ...     4, attention=LuongAttention(), attentional_activation="linear"
    ... )
    >>> decoder.build((None, None, 5), (None, None, 6))
    >>> load_addons_wrapper(decoder.cell, {
    ...     "wrapper/attention_layer/kernel:0": np.ones((4 + 6, 4)),
    ...     "wrapper/lstm_cell/kernel:0": np.ones((5 + 4, 16)),
    ...     "wrapper/lstm_cell/recurrent_kernel:0": np.ones((4, 16)),
    ...     "wrapper/lstm_cell/bias:0": np.ones(16),
    ...     "LuongAttention/memory_layer/kernel:0": np.ones((6, 4)),
    ... })
    """
    _check_cell(cell, attention_layer)
    variables = _cell_variables(cell)
    shapes = {role: variable.shape for role, variable in variables.items()}
    width, gates = cell.kernels[0].shape
    shapes["cell_0/kernel"] = (width + cell.units, gates)
    arrays = _arrays_by_role(weights, shapes, attention_layer)
    # Addons has [x_t; fed vector] in one kernel, and the order [h_t; c_t].
    kernel = arrays["cell_0/kernel"]
    arrays["cell_0/kernel"] = kernel[:width]
    cell.feeding_kernel.assign(kernel[width:])
    arrays["attention_layer/kernel"] = np.roll(
        arrays["attention_layer/kernel"], -cell.units, axis=0
    )
    _assign_arrays(variables, arrays)


# Layers of this library: a variable for each role.


def _attention_variables(layer):
    _check_attention(layer)
    if not isinstance(layer, BahdanauAttention):
        variables = {"memory_layer/kernel": layer.score.attention_kernel}
        if layer.use_scale:
            variables["attention_g"] = layer.scale
        return variables
    variables = {
        "query_layer/kernel": layer.score.query_kernel,
        "memory_layer/kernel": layer.score.key_kernel,
        "attention_v": layer.score.attention_vector,
    }
    if layer.normalize:
        variables["attention_g"] = layer.score.gain
        variables["attention_b"] = layer.score.bias
    return variables


def _cell_variables(cell):
    """Return the variables of cell and attention, without feeding kernel."""
    variables = _attention_variables(cell.attention)
    for layer in range(cell.num_layers):
        variables[f"cell_{layer}/kernel"] = cell.kernels[layer]
        variables[f"cell_{layer}/recurrent_kernel"] = cell.recurrent_kernels[
            layer
        ]
        if cell.use_bias:
            variables[f"cell_{layer}/bias"] = cell.biases[layer]
    variables["attention_layer/kernel"] = cell.attentional_kernel
    if cell.attentional_bias:
        variables["attention_layer/bias"] = cell.attentional_bias_vector
    return variables


def _check_attention(layer):
    if isinstance(layer, BahdanauAttention):
        fits = not layer.use_scale
    else:
        is_global = not isinstance(layer, LocalAttention)
        fits = is_global and isinstance(layer, LuongAttention)
        fits = fits and layer.score_mode == "general"
    if not fits:
        raise ValueError(
            "TensorFlow Addons has the attention of "
            "`LuongAttention('general')` and of `BahdanauAttention` without "
            f"`use_scale`. Received: {type(layer).__name__}, score_mode="
            f"{getattr(layer, 'score_mode', None)!r}. Use one of these two."
        )
    _check_built(layer)


def _check_cell(cell, attention_layer):
    fits = isinstance(cell, AttentionCell) and cell.input_feeding
    if not fits or cell.attention is None:
        raise ValueError(
            "The counterpart of an `AttentionWrapper` is an input-feeding "
            "cell with attention. Expected: `InputFeedingLSTMCell(units, "
            "attention=...)` or the GRU's. Received: "
            f"{type(cell).__name__}. For a whole decoder pass its `cell`."
        )
    _check_built(cell)
    activation = cell.attentional_activation.__name__
    if attention_layer is None and activation != "linear":
        raise ValueError(
            "The layer that `attention_layer_size` makes has no activation. "
            "Expected: a cell with `attentional_activation='linear'`. "
            f"Received: {activation!r}. Make the cell with 'linear', or pass "
            "the name of the layer that the wrapper received as "
            "`attention_layer=`."
        )


def _check_built(layer):
    if not layer.built:
        raise ValueError(
            f"`{type(layer).__name__}` has no weights yet. Expected: a built "
            "layer. Received: built=False. Call it, or `build` it with the "
            "shapes of its inputs, before loading."
        )


def _assign_arrays(variables, arrays):
    for role, variable in variables.items():
        variable.assign(arrays[role])


# Addons: a role for each name.


def _arrays_by_role(weights, shapes, attention_layer=None):
    """Return one array per role in `shapes`; check names and shapes."""
    names = {}
    for name, role in roles_of(list(weights), attention_layer).items():
        if role not in shapes:
            raise ValueError(
                f"{name!r} has no place in this layer. Expected: arrays for "
                f"{sorted(shapes)}. {_HINTS.get(role, '')}Leave out what "
                "belongs to other layers."
            )
        if role in names:
            raise ValueError(
                f"Two arrays for `{role}`. Received: {names[role]!r} and "
                f"{name!r}. Pass those of one attention mechanism and one "
                "wrapper; a wrapper of several mechanisms cannot be converted."
            )
        names[role] = name
    for role, expected in shapes.items():
        if role not in names:
            raise ValueError(
                f"No array for `{role}`. Received: {list(weights)}. "
                f"{_HINTS.get(role, '')}Add it, or make the layer without it."
            )
        received = np.shape(weights[names[role]])
        if received != tuple(expected):
            raise ValueError(
                f"{names[role]!r} does not fit `{role}`. Expected: shape "
                f"{tuple(expected)}. Received: shape {received}. Create this "
                "layer with the units, widths and kind of cell (LSTM, GRU) of "
                "the saved one; `attention_layer_size` must equal the cell's "
                "units."
            )
    return {role: np.asarray(weights[name]) for role, name in names.items()}
