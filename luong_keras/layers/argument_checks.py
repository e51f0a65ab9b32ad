"""Checks of the arguments of layers.

Of tensors only shapes and types are read, so the checks cost nothing in a
compiled function and work for symbolic tensors.
"""

import numbers

import numpy as np
from keras import backend

from luong_keras.config.checks import check_integers
from luong_keras.ops.masking import shapes_compatible


def check_layer(kind, optional=False, **arguments):
    """Check that every argument is a layer of class `kind`.

    `optional` also allows None.
    """
    for name, layer in arguments.items():
        is_absent = optional and layer is None
        if not is_absent and not isinstance(layer, kind):
            raise ValueError(
                f"`{name}` must be a layer of class {kind.__name__}"
                f"{', or None' if optional else ''}. Received: "
                f"{name}={layer!r}."
            )


def check_mask(name, mask, of, x):
    """Check that a mask (B, L) fits `x` (B, L, ...), which it masks.

    Args:
        name: The name of the mask.
        mask: Boolean tensor, or None for no mask.
        of: The name of the masked tensor.
        x: The masked tensor.
    """
    if mask is None:
        return
    if not hasattr(mask, "shape"):
        raise ValueError(
            f"`{name}` must be a boolean tensor. Received: {name}={mask!r}."
        )
    dtype = backend.standardize_dtype(mask.dtype)
    if dtype != "bool":
        raise ValueError(
            f"`{name}` must be boolean, True = use. Received: dtype {dtype}, "
            f"shape {tuple(mask.shape)}. Pass `mask > -1` for an additive "
            "mask of 0 and -1e9, `mask > 0` for one of 1 and 0, "
            "`keras.ops.arange(S) < lengths[:, None]` for lengths (B,)."
        )
    expected = tuple(x.shape[: len(x.shape) - 1])
    if not shapes_compatible(tuple(mask.shape), expected):
        raise ValueError(
            f"`{name}` must have one entry per position of `{of}`. Expected: "
            f"shape {expected}. Received: {tuple(mask.shape)}, with "
            f"{of}.shape={tuple(x.shape)}."
        )


def check_mask_names(dropout_masks, names):
    """Check that the names of dropout masks are among `names`."""
    for name in dropout_masks or {}:
        if name not in names:
            raise ValueError(
                "`dropout_masks` has a mask that nothing reads. Expected: "
                f"some of {names}. Received: dropout_masks[{name!r}]."
            )


def check_floats(name, x, *forms):
    """Check that a tensor holds vectors of floats, not ids.

    `forms`: the allowed shapes, such as "(B, U)"; without them, all.
    """
    if not hasattr(x, "shape"):
        raise ValueError(
            f"`{name}` must be a tensor of floats. Received: {name}={x!r}."
        )
    ranks = [form.count(",") + 1 for form in forms]
    if forms and len(x.shape) not in ranks:
        raise ValueError(
            f"`{name}` has the wrong rank. Expected: vectors "
            f"{' or '.join(forms)}. Received: {name}.shape={tuple(x.shape)}. "
            "Embed ids first, for example by `keras.layers.Embedding`; a "
            "recurrent layer returns one vector per word with "
            "`return_sequences=True`; reshape images to (B, S, features)."
        )
    dtype = backend.standardize_dtype(x.dtype)
    if not backend.is_float_dtype(dtype):
        raise ValueError(
            f"`{name}` must hold vectors of floats. Received: dtype {dtype}, "
            f"shape {tuple(x.shape)}. Embed ids first, for example by "
            "`keras.layers.Embedding`; convert features of whole numbers, "
            "`x.astype('float32')`."
        )


def check_states(name, states, widths, rows):
    """Check that `states` is a list of tensors (*rows, width).

    The last one, the attentional vector, may be left out.
    """
    count = len(widths)
    if not isinstance(states, (list, tuple)) or not (
        count - 1 <= len(states) <= count
    ):
        received = repr(states)
        if isinstance(states, (list, tuple)):
            received = f"{len(states)} tensors"
        elif hasattr(states, "shape"):
            received = f"one tensor of shape {tuple(states.shape)}"
        raise ValueError(
            f"`{name}` must hold {count} tensors (or all but the last, the "
            "attentional vector), one for each of the cell's states, in a "
            f"list. Received: {received}."
        )
    for i, (state, width) in enumerate(zip(states, widths, strict=False)):
        check_floats(f"{name}[{i}]", state)
        if not shapes_compatible(tuple(state.shape), (*rows, width)):
            raise ValueError(
                f"`{name}[{i}]` must be as the cell's `state_size` says. "
                f"Expected: {(*rows, width)}. Received: "
                f"{tuple(state.shape)}. `Bridge(units, num_states)` makes "
                "states of this width from encoder states of another width."
            )


def depends_on_step(attention):
    """Test whether attention depends on the decoder step, as local-m does."""
    return attention is not None and attention.uses_position


def check_single_step(query):
    """Check that a query without a position is not a single step (B, U)."""
    if len(query.shape) == 2:
        raise ValueError(
            "Monotonic alignment needs to know the decoder step t of a "
            "single query. Expected: `position=t` with a query (B, U), "
            "or a query (B, T, U) of all steps. Received: "
            f"query.shape={tuple(query.shape)}, position=None."
        )


def _check_position_shape(position, query):
    """Check that a position serves a query (B, T, U), or (B, U) of one step."""
    expected = (*query.shape[:-1], 1)[:2]
    shape = tuple(getattr(position, "shape", ()))
    if len(query.shape) == 2 and len(shape) == 1:
        shape = (*shape, 1)
    sizes = zip(reversed(shape), reversed(expected), strict=False)
    if len(shape) > 2 or any(
        size not in (None, 1, steps) and steps is not None
        for size, steps in sizes
    ):
        raise ValueError(
            "`position` must be one decoder step, or broadcast to (B, T); one "
            "per sentence, for several steps, is `position[:, None]`. "
            f"Received: position.shape={tuple(position.shape)}, "
            f"query.shape={tuple(query.shape)}."
        )


def check_step(name, step, inputs):
    """Check that a decoder step is an integer, () or one per sentence."""
    check_steps(name, step)
    shape = tuple(getattr(step, "shape", ()))
    if shape and not shapes_compatible(shape, tuple(inputs.shape[:1])):
        raise ValueError(
            f"`{name}` must be one decoder step, or one per sentence. "
            f"Expected: shape () or {tuple(inputs.shape[:1])}. Received: "
            f"{name}={step!r}."
        )


def check_steps(name, steps):
    """Check that decoder steps are integers and, if known, not negative."""
    if isinstance(steps, numbers.Integral):
        check_integers(minimum=0, **{name: steps})
        return
    dtype = backend.standardize_dtype(getattr(steps, "dtype", "float32"))
    if "int" not in dtype:
        raise ValueError(
            f"`{name}` must be an integer, or a tensor of integers: decoder "
            f"steps, counted from 0. Received: {name}={steps!r}."
        )
    if isinstance(steps, np.ndarray) and (steps < 0).any():
        raise ValueError(f"`{name}` counts from 0. Received: {name}={steps!r}.")


def check_same_batch(**tensors):
    """Check that the batch sizes are equal; None is left out."""
    sizes = {name: x.shape[0] for name, x in tensors.items() if x is not None}
    known_sizes = {size for size in sizes.values() if size is not None}
    if len(known_sizes) > 1:
        raise ValueError(
            "All tensors of a call must have the same batch size. Received: "
            + ", ".join(f"{name} of {size}" for name, size in sizes.items())
            + "."
        )


def check_call(layer, query, value, query_mask, value_mask, keys, position):
    """Check that the arguments of an attention layer fit together."""
    check_floats("query", query)
    check_floats("value", value)
    if len(query.shape) not in (2, 3) or len(value.shape) != 3:
        raise ValueError(
            f"`{type(layer).__name__}` attends from a query (B, T, U) or "
            "(B, U) to a value (B, S, M). Received: "
            f"query.shape={tuple(query.shape)}, "
            f"value.shape={tuple(value.shape)}. A recurrent layer returns one "
            "vector per word with `return_sequences=True`."
        )
    if depends_on_step(layer):
        if position is None:
            check_single_step(query)
        else:
            check_steps("position", position)
            _check_position_shape(position, query)
    check_same_batch(query=query, value=value, keys=keys)
    check_mask("query_mask", query_mask, "query", query)
    check_mask("value_mask", value_mask, "value", value)
    if keys is not None and not shapes_compatible(
        tuple(keys.shape[1:2]), tuple(value.shape[1:2])
    ):
        raise ValueError(
            "`keys` must be `project_keys(value)`, one a position. Received: "
            f"keys.shape={tuple(keys.shape)}, "
            f"value.shape={tuple(value.shape)}."
        )
