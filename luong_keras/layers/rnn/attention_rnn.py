"""Layer that runs a decoder cell over time, with the memory it attends to."""

import keras
from keras import backend, ops, tree

from luong_keras.config.checks import check_choice, check_fraction
from luong_keras.layers.argument_checks import (
    check_floats,
    check_mask,
    check_states,
    check_step,
    depends_on_step,
)
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.layers.rnn import cell_loops
from luong_keras.layers.rnn.attention_cell import (
    AttentionCell,
    pad_empty_memory,
)
from luong_keras.ops import masking
from luong_keras.ops.backends import dropout
from luong_keras.ops.scan import BACKENDS

DROPOUT_STYLES = ("zaremba", "authors", "sequence")


@keras.saving.register_keras_serializable(package="luong_keras")
class AttentionRNN(CheckedLayer):
    """Layer that runs a cell with attention over all target steps.

    It corresponds to `keras.layers.RNN`, but the memory is an input of the
    sequence instead of a state of the step. Everything independent of the
    step is computed once: the inputs' contribution to the gates, the projected
    keys and values. If the recurrence does not depend on attention (no input
    feeding), one call of the attention layer serves all T steps.

    Args:
        cell: An `InputFeedingLSTMCell`, `InputFeedingGRUCell` or one of the
            Bahdanau cells.
        return_sequences: Whether to return all steps or the last one.
        return_state: Whether to return the last states as well.
        dropout: Fraction of the units dropped in training from the input of
            each recurrent layer, including the fed vector; 0.2 in the paper.
        dropout_style: `"zaremba"` (Zaremba et al. 2015) also drops units of
            the returned vectors; `"authors"` does not, like the program of
            the paper's authors; both draw a new mask for each step.
            `"sequence"` is `"zaremba"` with one mask for all steps (Gal and
            Ghahramani 2016).
        deferred_gradients: Whether, in training, the backward pass recomputes
            the steps and gets the gradient of each weight from one product
            after the scan. This is faster than automatic differentiation and
            gives the same result, but cannot be differentiated again.
            `"auto"` does so on TensorFlow and JAX; True is an error on other
            backends; False is automatic differentiation.
        seed: Seed of the dropout; that of the attention layer when None.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        inputs: (B, T, E).
        memory: H̄, (B, S, M); an error for a cell without attention.
        initial_state: List of (B, U), the cell's states. The last one, the
            attentional vector, may be left out and then starts at zero.
            Zeros when None.
        mask, inputs_mask: Boolean (B, T), two names of one mask, filled in
            by Keras. A False step carries the states over unchanged, and
            monotonic attention does not count it. Without input feeding the
            vector of such a step is attended anew from the carried states.
        memory_mask: Boolean (B, S), True = may be attended.
        training: Whether dropout applies.
        return_attention_scores: Whether to return the alignments (B, T, S)
            too, the weights after the softmax.
        dropout_masks: Dict of masks (T, B, ...) or (1, B, ...), named as in
            the cell's call, with `"outputs"` for the returned vectors; used
            instead of drawn masks. Masks that are learnt need
            `deferred_gradients=False`.
        start_position: Number of the first step, counted from 0: an integer,
            or an integer tensor () or (B,); 0 when None. Required if a cell
            with monotonic attention gets an `initial_state`: 0 after an
            encoder, t after t unmasked steps. Other attention does not
            depend on it.

    Output:
        vectors h̃ (B, T, U), or (B, U) without `return_sequences`; with
        `return_attention_scores` then the alignments; with `return_state`
        then each state.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTMCell, AttentionRNN
    >>> cell = InputFeedingLSTMCell(8, attention="local-m")
    >>> vectors, alignments = AttentionRNN(cell)(
    ...     np.ones((2, 3, 5)), memory=np.ones((2, 6, 4)),
    ...     return_attention_scores=True,
    ... )
    >>> tuple(vectors.shape), tuple(alignments.shape)
    ((2, 3, 8), (2, 3, 6))
    """

    def __init__(
        self,
        cell,
        return_sequences=True,
        return_state=False,
        dropout=0.0,
        dropout_style="zaremba",
        deferred_gradients="auto",
        seed=None,
        name=None,
        dtype=None,
        trainable=True,
    ):
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.autocast = False  # It would round the states.
        if isinstance(cell, dict):  # from a saved configuration
            cell = keras.saving.deserialize_keras_object(cell)
        if not isinstance(cell, AttentionCell):
            raise ValueError(
                "`cell` must be one of this library's cells, such as "
                "`InputFeedingLSTMCell`. Received: "
                f"cell={cell!r}. Use `keras.layers.RNN` for cells of Keras."
            )
        check_choice(DROPOUT_STYLES, dropout_style=dropout_style)
        check_fraction(dropout=dropout)
        check_choice(
            ("auto", True, False), deferred_gradients=deferred_gradients
        )
        if deferred_gradients is True and backend.backend() not in BACKENDS:
            raise ValueError(
                "`deferred_gradients=True` needs TensorFlow or JAX. Received: "
                f"the backend {backend.backend()!r}. Use "
                "`deferred_gradients='auto'`."
            )
        self.supports_masking = True
        self.cell = cell
        if not trainable:  # Its weights are those of the cell.
            cell.trainable = False
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.dropout = dropout
        self.dropout_style = dropout_style
        self.deferred_gradients = deferred_gradients
        self.seed = seed
        attention = cell.attention
        if dropout > 0 or (attention is not None and attention.dropout > 0):
            if seed is None and attention is not None:
                seed = attention.seed
            self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, inputs_shape, memory_shape=None):
        if not self.cell.built:
            self.cell.build(inputs_shape, memory_shape=memory_shape)
        self.built = True

    def compute_mask(self, inputs, previous_mask):
        return previous_mask if self.return_sequences else None

    def call(
        self,
        inputs,
        memory=None,
        initial_state=None,
        mask=None,
        inputs_mask=None,
        memory_mask=None,
        training=False,
        return_attention_scores=False,
        dropout_masks=None,
        start_position=None,
    ):
        inputs = ops.cast(inputs, self.compute_dtype)
        masks = dropout_masks
        if masks is None:
            masks = self._draw_masks(inputs, memory, training)
        masks = dict(masks)
        states = self.initial_states(inputs, initial_state)
        mask = inputs_mask if mask is None else mask
        # Zero times NaN is NaN in the gradients of padding.
        inputs = masking.zero_where_masked(inputs, mask)
        if 0 in inputs.shape:
            return self._zero_outputs(
                inputs, memory, states, return_attention_scores
            )
        outputs_mask = masks.pop("outputs", None)
        source_length = None if memory is None else ops.shape(memory)[1]
        memory, memory_mask, masks = pad_empty_memory(
            memory, memory_mask, masks
        )
        sequence = cell_loops.CellSequence(
            inputs,
            memory,
            memory_mask,
            states,
            mask,
            cell_loops.step_numbers(inputs, mask, start_position),
            masks,
            return_attention_scores,
            # Only in training: exported models should have plain operations.
            deferred=bool(
                training
                and self.deferred_gradients
                and backend.backend() in BACKENDS
            ),
        )
        vectors, alignments, last_states = cell_loops.run(self.cell, sequence)
        if outputs_mask is not None:
            outputs_mask = ops.swapaxes(outputs_mask, 0, 1)
            vectors = vectors * ops.cast(outputs_mask, vectors.dtype)
        if not self.return_sequences:
            vectors = vectors[:, -1]
        results = [ops.cast(vectors, self.compute_dtype)]
        if return_attention_scores:
            results.append(alignments[..., :source_length])
        if self.return_state:
            results += last_states
        return tuple(results) if len(results) > 1 else results[0]

    def _zero_outputs(self, inputs, memory, states, return_attention_scores):
        """Return zeros and the initial states for an empty batch or T = 0."""
        specs = self.compute_output_spec(
            inputs, memory, return_attention_scores=return_attention_scores
        )
        results = [
            masking.zeros_of(spec, inputs, memory)
            for spec in tree.flatten(specs)
        ]
        if self.return_state:
            results[-len(states) :] = states
        return tuple(results) if len(results) > 1 else results[0]

    def initial_states(self, inputs, initial_state):
        """Return the cell's states in at least float32, zeros if absent."""
        zeros = self.cell.get_initial_state(ops.shape(inputs)[0])
        if initial_state is None:
            return zeros
        states = self.cell.cast_states(initial_state)
        return [*states, *zeros[len(states) :]]

    def _check_call(
        self,
        inputs,
        memory=None,
        initial_state=None,
        mask=None,
        inputs_mask=None,
        memory_mask=None,
        return_attention_scores=False,
        dropout_masks=None,
        start_position=None,
        **others,
    ):
        self.cell.check_dropout_masks(dropout_masks, "outputs")
        check_floats("inputs", inputs, "(B, T, E)")
        check_mask("mask", mask, "inputs", inputs)
        check_mask("inputs_mask", inputs_mask, "inputs", inputs)
        self.cell.check_memory(inputs, memory, memory_mask)
        if initial_state is not None:
            check_states(
                "initial_state",
                initial_state,
                self.cell.state_size,
                inputs.shape[:1],
            )
        self.cell._check_widths(inputs=inputs, memory=memory)
        self._check_start_position(inputs, initial_state, start_position)
        if return_attention_scores and self.cell.attention is None:
            raise ValueError(
                "`return_attention_scores=True` needs a cell with an "
                "attention layer. Received: cell.attention=None."
            )

    def _check_start_position(self, inputs, initial_state, start_position):
        """Check that monotonic attention knows the step of given states."""
        if start_position is not None:
            check_step("start_position", start_position, inputs)
        elif initial_state is not None and depends_on_step(self.cell.attention):
            raise ValueError(
                "Monotonic attention depends on the number of the step, which "
                "the given states do not contain. Expected: "
                "`start_position=0` at the beginning of a sequence, as after "
                "an encoder, or the number of steps already made, to continue "
                "a sequence. Received: `initial_state` with "
                "start_position=None. Pass `start_position=`."
            )

    def _draw_masks(self, inputs, memory, training):
        """Draw all masks of a sequence before the loop, which may not draw."""
        if not training:
            return {}
        batch, steps, width = ops.shape(inputs)
        if self.dropout_style == "sequence":
            steps = 1
        source_length = None if memory is None else ops.shape(memory)[1]
        shapes = self.cell.dropout_mask_shapes(
            batch, steps, source_length, width
        )
        if self.dropout_style != "authors":
            shapes["outputs"] = (steps, batch, self.cell.units)
        rates = {name: self.dropout for name in shapes}
        if "attention" in shapes:
            rates["attention"] = self.cell.attention.dropout
        dtype = masking.wider_dtype(self.compute_dtype)
        return {
            name: dropout(
                ops.ones(shape, dtype=dtype), rates[name], self.seed_generator
            )
            for name, shape in shapes.items()
            if rates[name] > 0
        }

    def compute_output_spec(
        self,
        inputs,
        memory=None,
        *others,
        return_attention_scores=False,
        **options,
    ):
        batch, steps = inputs.shape[:2]
        units = self.cell.units
        dtype = self.compute_dtype
        step_axis = (steps,) if self.return_sequences else ()
        results = [keras.KerasTensor((batch, *step_axis, units), dtype=dtype)]
        if return_attention_scores:
            shape = (batch, steps, memory.shape[1])
            weights_dtype = self.cell.attention.compute_dtype
            results.append(keras.KerasTensor(shape, dtype=weights_dtype))
        if self.return_state:
            wide = masking.wider_dtype(dtype)
            results += [
                keras.KerasTensor((batch, width), dtype=wide)
                for width in self.cell.state_size
            ]
        return tuple(results) if len(results) > 1 else results[0]

    def get_config(self):
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "return_sequences": self.return_sequences,
            "return_state": self.return_state,
            "dropout": self.dropout,
            "dropout_style": self.dropout_style,
            "deferred_gradients": self.deferred_gradients,
            "seed": self.seed,
        }
