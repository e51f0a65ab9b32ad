"""The step function of a search, and the checks of its results.

    logits, states, weights = step(ids, states, position)

`ids` (B, K) are the last words of K hypotheses of each of B sentences: one in
the first step, then those of the strategy. `states` is a list or any nested
structure of tensors (B, K, ...), `position` is 0-based. A step returns logits
(B, K, V), the new states, and attention weights (B, K, S) or None.

A step that keeps states of its own has a method `first_states(states, batch,
max_steps)`: it gets those given to the search, (B, ...), and returns all.
"""

import keras
from keras import ops, tree

from luong_keras.ops.masking import may_be_equal


def refuse_model(step):
    """A Keras layer or model takes no `position`, so it is no step function."""
    if isinstance(step, keras.Layer):
        raise ValueError(
            "Expected: a step function of (ids, states, position) that "
            "returns logits (B, K, V), the new states and attention weights "
            f"(B, K, S) or None. Received: the {type(step).__name__} "
            f"{step.name!r}. Wrap it: `ModelStep(model, constants)` of "
            "`luong_keras.decoding`."
        )


def first_states(step, states, batch, max_steps):
    """The states of a step's first call, (B, 1, ...)."""
    if hasattr(step, "first_states"):
        states = step.first_states(states, batch, max_steps)
    return tree.map_structure(lambda x: ops.expand_dims(x, 1), states)


def call_step(step, ids, states, position):
    """Calls a step and checks what it returns.

    Returns:
        Logits, the new states in the structure of the old ones, and attention
        weights; those of a step without attention are empty, (B, K, 0).
    """
    found = step(ids, states, position)
    results = found if isinstance(found, tuple | list) else [found]
    shapes = [shape_of(each) for each in results]
    without_attention = results[-1] is None
    ranks = [3] if without_attention else [3, 3]
    if len(shapes) != 3 or [len(x) for x in shapes[::2] if x] != ranks:
        raise ValueError(
            "Expected: a step that returns logits (B, K, V), the new states "
            "and attention weights (B, K, S), or None where there are none. "
            f"Received: {len(shapes)} results, the first of shape "
            f"{shapes[0]}, the last of shape {shapes[-1]}."
        )
    logits, new_states, weights = results
    if without_attention:
        weights = ops.zeros((*ops.shape(ids), 0), dtype=logits.dtype)
    return logits, same_states(states, new_states), weights


def same_states(old, new):
    """New states in the structure of the old ones, whose shapes they have."""
    expected, received = (
        [shape_of(each) for each in tree.flatten(states)]
        for states in (old, new)
    )
    if len(received) != len(expected) or not all(
        map(may_be_equal, received, expected)
    ):
        raise ValueError(
            "Expected: new states of the number and the shapes of the old "
            f"ones, {expected}. Received: {received}."
        )
    return tree.pack_sequence_as(old, tree.flatten(new))


def shape_of(tensor):
    """The static shape; () of what has none."""
    return tuple(getattr(tensor, "shape", ()))
