"""The step function of a search, and the checks of its results.

    logits, states, weights = step(ids, states, position)

`ids` (B, K) are the last words of K hypotheses for each of B sentences: K is 1
in the first step, then the K of the strategy. `states` is a list or any nested
structure of tensors (B, K, ...). `position` is 0-based. A step returns logits
(B, K, V), the new states, and attention weights (B, K, S) or None.

A step that adds states has a method `first_states(states, batch, max_steps)`:
it receives the states given to the search, (B, ...), and returns all states.
`ModelStep` makes a step function from a Keras decoder.
"""

import inspect

import keras
from keras import ops, tree

from luong_keras.decoding.argument_checks import is_first
from luong_keras.ops import masking
from luong_keras.ops.batch_compaction import PerSentence
from luong_keras.ops.masking import shapes_compatible
from luong_keras.special_tokens import PAD_ID


def check_step_function(step):
    """Refuse a Keras layer, which does not accept a `position`."""
    if isinstance(step, keras.Layer) or not callable(step):
        raise ValueError(
            "Expected: a step function of (ids, states, position) that "
            "returns logits (B, K, V), the new states and attention weights "
            f"(B, K, S) or None. Received: {step!r:.100}. A Keras model is "
            "wrapped by `ModelStep(model, constants)` of "
            "`luong_keras.decoding`."
        )


def first_states(step, states, batch, max_steps):
    """Return the states of the first call of a step, (B, 1, ...)."""
    if hasattr(step, "first_states"):
        states = step.first_states(states, batch, max_steps)
    return tree.map_structure(lambda x: ops.expand_dims(x, 1), states)


def call_step(step, ids, states, position):
    """Call a step and check its results.

    Returns:
        Logits, the new states in the structure of the old states, and
        attention weights, which are empty, (B, K, 0), without attention.
    """
    outputs = step(ids, states, position)
    results = outputs if isinstance(outputs, tuple | list) else [outputs]
    shapes = [static_shape(result) for result in results]
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
    if not shapes_compatible(shapes[0][:2], static_shape(ids)):
        raise ValueError(
            "Expected: logits (B, K, V) of a step for the words (B, K) that it "
            f"receives, {static_shape(ids)}. Received: shape {shapes[0]}. K "
            "grows after the first step."
        )
    if without_attention:
        weights = ops.zeros((*ops.shape(ids), 0), dtype=logits.dtype)
    return logits, match_states(states, new_states), weights


def match_states(old, new):
    """Return new states in the structure of the old; check their shapes."""
    expected, received = (
        [static_shape(x) for x in tree.flatten(states)] for states in (old, new)
    )
    if len(received) != len(expected) or not all(
        map(shapes_compatible, received, expected)
    ):
        raise ValueError(
            "Expected: new states of the number and the shapes of the old "
            f"ones, {expected}. Received: {received}."
        )
    return tree.pack_sequence_as(old, tree.flatten(new))


def static_shape(tensor):
    """Return the static shape, or () for an object without a shape."""
    return tuple(getattr(tensor, "shape", ()))


class _KerasMask(keras.layers.Layer):
    """Return the Keras mask of a tensor, or None."""

    def __init__(self):
        super().__init__(autocast=False, name="mask")
        self.supports_masking = True

    def call(self, x, mask=None):
        return mask

    def compute_mask(self, x, previous_mask):
        return None


class _WithMask(_KerasMask):
    """Return a tensor with a Keras mask."""

    def call(self, x, mask=None):
        return x

    def compute_mask(self, x, previous_mask):
        return previous_mask


class ModelStep(PerSentence):
    """The step function of any decoder: a model, a layer or a function.

    The decoder receives N = B · K rows, one per hypothesis: its states
    (N, ...), and the constants of the sentence, which all hypotheses of the
    sentence share. A functional model is called with one list,
    `decoder([ids, *states, *constants])`, any other decoder with arguments,
    `decoder(ids, *states, *constants)`. If the inputs of a model have another
    order or names, wrap it in a function.

    The decoder returns logits (N, V) or (N, 1, V) of the last ids (N, 1), and
    the new states: `[logits, *states]`, or only the logits without states.

    Args:
        decoder: The callable that computes logits and new states.
        constants: Tensor (B, ...) or list of tensors, such as the memory of
            each sentence and its mask. A tensor keeps its Keras mask.
        from_logits: False for a decoder that returns probabilities.
        reads_prefix: True for a decoder without a cache, such as a
            Transformer: it receives all ids so far, (N, T), and returns
            logits (N, T, V). T is the `max_steps` of the search. Padding
            follows the last id, so no position may attend to later ones.
        return_attention_scores: True if the last output of the decoder is
            attention weights, (N, S) or (N, 1, S); (N, T, S) if it reads the
            prefix.
        pad_id: The padding of the prefix.

    Raises:
        ValueError: For other inputs or outputs; for probabilities instead of
            logits and the reverse, except in a compiled function, whose
            tensors have no values yet.

    Example:
    >>> import keras
    >>> import numpy as np
    >>> from luong_keras.decoding import beam_search
    >>> ids, h = keras.Input((1,), dtype="int32"), keras.Input((8,))
    >>> embedded = keras.layers.Embedding(6, 4)(ids)
    >>> outputs, new_h = keras.layers.GRU(8, return_state=True)(
    ...     embedded, initial_state=h
    ... )
    >>> decoder = keras.Model([ids, h], [keras.layers.Dense(6)(outputs), new_h])
    >>> hypotheses = beam_search(
    ...     ModelStep(decoder), [np.zeros((2, 8))], 5, beam_size=3
    ... )
    >>> tuple(hypotheses.ids.shape)
    (2, 3, 5)
    """

    per_sentence = ("constants", "masks")

    def __init__(
        self,
        decoder,
        constants=(),
        from_logits=True,
        reads_prefix=False,
        return_attention_scores=False,
        pad_id=PAD_ID,
    ):
        self.decoder = decoder
        self.constants = _as_list(constants)
        # Copies of a tensor lose its Keras mask.
        self.masks = [
            _KerasMask()(x) if hasattr(x, "shape") else None
            for x in tree.flatten(self.constants)
        ]
        self.from_logits = from_logits
        self.reads_prefix = reads_prefix
        self.return_attention_scores = return_attention_scores
        self.pad_id = pad_id

    def first_states(self, states, batch, max_steps):
        """Return the states (B, ...), after an empty prefix if it is read."""
        states = _as_list(states)
        if self.reads_prefix:
            prefix = ops.full((batch, max_steps), self.pad_id, dtype="int32")
            states = [prefix, *states]
        return states

    def __call__(self, ids, states, position):
        """Return logits (B, K, V), new states and attention weights or None."""
        decoder_ids, prefix_states = ids[..., None], []
        if self.reads_prefix:
            if not states:
                raise ValueError(
                    "Expected: the ids so far, (B, K, T), as the first state. "
                    "Received: no states. `search` makes it; elsewhere, "
                    "`step.first_states(states, batch, max_steps)` does. In "
                    "an ensemble give it for each such step, zeros "
                    "(B, max_steps) of int32, and count it."
                )
            prefix, *states = states
            positions = ops.arange(ops.shape(prefix)[-1], dtype="int32")
            decoder_ids = ops.where(positions == position, decoder_ids, prefix)
            prefix_states = [decoder_ids]
        # From (B, K, ...) to (B · K, ...).
        decoder_ids, flat_states = tree.map_structure(
            lambda x: ops.reshape(x, (-1, *ops.shape(x)[2:])),
            (decoder_ids, list(states)),
        )
        logits, *new_states, weights = self._call_decoder(
            ids, decoder_ids, flat_states
        )
        new_states = tree.map_structure(
            lambda new, old: ops.cast(
                ops.reshape(new, ops.shape(old)), old.dtype
            ),
            match_states(flat_states, new_states),
            list(states),
        )
        if weights is not None:
            weights = self._take_position(weights, ids, decoder_ids, position)
        logits = self._take_position(logits, ids, decoder_ids, position)
        if is_first(position):
            _check_scale(logits, self.from_logits)
        if not self.from_logits:
            logits = ops.log(masking.upcast(logits))
        return logits, [*prefix_states, *new_states], weights

    def _call_decoder(self, ids, decoder_ids, states):
        """Return a list of logits, new states and attention weights or None."""
        batch, k = ids.shape[0], ops.shape(ids)[1]
        for constant in tree.flatten(self.constants):
            if not shapes_compatible(static_shape(constant)[:1], (batch,)):
                raise ValueError(
                    f"Expected: constants of B = {batch} sentences, (B, ...)"
                    f". Received: shape {static_shape(constant)}."
                )
        constants = tree.map_structure(
            lambda x: ops.repeat(x, k, axis=0), self.constants
        )
        masked = [
            x
            if mask is None
            else _WithMask()(x, mask=ops.repeat(mask, k, axis=0))
            for x, mask in zip(tree.flatten(constants), self.masks, strict=True)
        ]
        constants = tree.pack_sequence_as(constants, masked)
        arguments = [decoder_ids, *states, *constants]
        inputs = getattr(self.decoder, "inputs", None)
        if inputs is None or len(inputs) == len(arguments) == 1:
            _check_arguments(self.decoder, arguments, len(states))
            outputs = self.decoder(*arguments)
        else:
            _check_inputs(self.decoder, arguments, len(tree.flatten(states)))
            outputs = self.decoder(arguments)
        if isinstance(outputs, dict):
            raise ValueError(
                "Expected: a decoder that returns a list in the order logits, "
                "new states, attention weights. Received: outputs by name, "
                f"{list(outputs)}. Pass a function that returns the list."
            )
        outputs = tree.flatten(outputs)
        count = len(tree.flatten(states))
        with_weights = self.return_attention_scores
        if len(outputs) != 1 + count + with_weights:
            raise ValueError(
                f"Expected: a decoder that returns logits, {count} new states"
                f"{' and attention weights' if with_weights else ''}. "
                f"Received: {len(outputs)} outputs, of shapes "
                f"{[static_shape(output) for output in outputs]}. Give the "
                "search only the states that the decoder returns; inputs that "
                "it does not change are constants."
            )
        return outputs if with_weights else [*outputs, None]

    def _take_position(self, output, ids, decoder_ids, position):
        """Return the row of an output for the last id, (B, K, ...)."""
        shape = static_shape(output)
        length = decoder_ids.shape[1] if self.reads_prefix else 1
        has_steps = shapes_compatible(shape, (None, length, None))
        if not has_steps and (self.reads_prefix or len(shape) != 2):
            raise ValueError(
                "Expected: logits (N, T, V) and attention weights (N, T, S) of "
                f"the {length} ids so far. Received: shape {shape}."
                if self.reads_prefix
                else "Expected: logits (N, V) or (N, 1, V) and attention "
                "weights (N, S) or (N, 1, S) of the last ids (N, 1). Received: "
                f"shape {shape}. `reads_prefix=True` is for a decoder that "
                "gets all ids so far."
            )
        if has_steps:
            step = position if self.reads_prefix else 0
            output = ops.take(output, step, axis=1)
        return ops.reshape(output, (*ops.shape(ids), ops.shape(output)[-1]))


def _as_list(values):
    return list(values) if isinstance(values, list | tuple) else [values]


def _check_arguments(decoder, arguments, states):
    """Check that a layer or a function takes the arguments one by one."""
    call = decoder.call if isinstance(decoder, keras.Layer) else decoder
    signature = inspect.signature(call)
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise ValueError(
            "Expected: a decoder called with ids, states and constants, "
            "`decoder(ids, *states, *constants)`. Received: ids, "
            f"{states} states and {len(arguments) - states - 1} constants for "
            f"a decoder of {signature}: {error}. If it takes its states as "
            "one list, give the search `[states]`, which is one state."
        ) from error


def _check_inputs(decoder, arguments, states):
    """Check that the arguments fit the inputs of a functional model."""
    named_inputs = getattr(decoder, "input", None)
    if isinstance(named_inputs, dict):
        raise ValueError(
            "Expected: a decoder whose inputs are a list in the order ids, "
            "states, constants. Received: inputs by name, "
            f"{list(named_inputs)}. Pass a function: `lambda ids, *others: "
            "decoder({...})`."
        )
    expected = [tuple(x.shape) for x in decoder.inputs]
    received = [static_shape(x) for x in tree.flatten(arguments)]
    if len(expected) != len(received) or not all(
        len(a) != len(b) or shapes_compatible(a, b)
        for a, b in zip(expected, received, strict=True)
    ):
        raise ValueError(
            f"Expected: the inputs of the decoder, of shapes {expected}. "
            f"Received: ids, {states} states and "
            f"{len(received) - states - 1} constants, of shapes {received}."
        )


def _check_scale(outputs, from_logits):
    """Check that outputs are logits or probabilities, as promised."""
    if 0 in tuple(outputs.shape):
        return
    outputs = masking.upcast(outputs)
    sums = ops.sum(outputs, axis=-1)
    sum_to_one = ops.all(outputs >= 0) & ops.all(ops.abs(sums - 1) < 1e-2)
    try:
        are_probabilities = bool(sum_to_one)
    except TypeError:  # Tensors of a compiled function have no values.
        return
    if are_probabilities == from_logits:
        names = ("logits", "probabilities")
        raise ValueError(
            f"Expected: {names[not from_logits]}, as from_logits="
            f"{from_logits} promises. Received: outputs that are "
            f"{'' if from_logits else 'not '}probabilities. Write "
            f"`from_logits={not from_logits}`."
        )
