"""Drives an input-feeding cell over time, with the memory it attends to."""

import keras
from keras import ops

from luong_keras import masking
from luong_keras.layers.input_feeding_cell import InputFeedingCell
from luong_keras.layers.recurrent_loop import scan_states

DROPOUT_STYLES = ("zaremba", "authors", "sequence")


@keras.saving.register_keras_serializable(package="luong_keras")
class MemoryRNN(keras.layers.Layer):
    """Runs a cell that attends to a memory over all target steps.

    What `keras.layers.RNN` is to its cells, with the memory as an input of
    the sequence instead of a state of the step. What does not depend on the
    step is computed once: the inputs' share of the gates, the projected
    keys and values. Without input feeding nothing in a step depends on the
    attention of the step before, and all T are attended in one call.

    Args:
        cell: an `InputFeedingLSTMCell`, `InputFeedingGRUCell` or one of the
            Bahdanau cells.
        return_sequences: whether to return all steps or the last one.
        return_state: whether to return the last states as well.
        dropout: share of the units dropped in training, on the input of
            every recurrent layer (the fed vector included); 0.2 in the
            paper.
        dropout_style: `"zaremba"` (Zaremba et al. 2015) also drops the
            returned vectors; `"authors"` leaves them, as the program of the
            paper's authors does; both draw a fresh mask a step.
            `"sequence"` is `"zaremba"` with one mask for all steps (Gal and
            Ghahramani 2016).
        seed: seed of the dropout.
        **kwargs: `name`, `dtype` and the other arguments of a Keras layer.

    Call arguments:
        inputs: (B, T, E).
        memory: h̄, (B, S, M); None for a cell without attention.
        initial_state: the cell's states, a list of (B, U); also without the
            last, the attentional vector, which then starts at zero. Zeros
            when None.
        mask, inputs_mask: boolean (B, T), two names of one mask, filled in
            by Keras; a False step carries the states over unchanged.
        memory_mask: boolean (B, S), True = may be attended.
        training: whether dropout applies.
        return_attention_scores: also returns the alignments (B, T, S), the
            weights after the softmax.
        dropout_masks: dict of masks (T, B, ...) or (1, B, ...), named as in
            the cell's call, with `"outputs"` for the returned vectors; used
            in place of drawn ones.

    Output:
        vectors h̃ (B, T, U), or (B, U) without `return_sequences`; then
        the alignments if asked for; then every state if `return_state`.

    Example:

    >>> import numpy as np
    >>> from luong_keras import InputFeedingLSTMCell, LocalAttention, MemoryRNN
    >>> cell = InputFeedingLSTMCell(8, attention=LocalAttention("monotonic"))
    >>> vectors, alignments = MemoryRNN(cell)(
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
        seed=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if not isinstance(cell, InputFeedingCell):
            raise ValueError(
                "`cell` must be one of this library's cells, such as "
                "`InputFeedingLSTMCell`. Received: "
                f"cell={cell!r}. Use `keras.layers.RNN` for cells of Keras."
            )
        if dropout_style not in DROPOUT_STYLES:
            raise ValueError(
                f"`dropout_style` must be one of {DROPOUT_STYLES}. "
                f"Received: dropout_style={dropout_style!r}."
            )
        if not 0 <= dropout < 1:
            raise ValueError(
                "`dropout` must be at least 0 and less than 1. "
                f"Received: dropout={dropout}."
            )
        self.supports_masking = True
        self.cell = cell
        self.return_sequences = return_sequences
        self.return_state = return_state
        self.dropout = dropout
        self.dropout_style = dropout_style
        self.seed = seed
        attention = cell.attention
        if dropout > 0 or (attention is not None and attention.dropout > 0):
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
    ):
        if return_attention_scores and self.cell.attention is None:
            raise ValueError(
                "`return_attention_scores=True` needs a cell with an "
                "attention layer. Received: cell.attention=None."
            )
        masks = dropout_masks
        if masks is None:
            masks = self._draw_masks(inputs, memory, training)
        states = self._initial_states(inputs, initial_state)
        mask = inputs_mask if mask is None else mask
        run = self._feeding_loop if self._loops else self._parallel
        sequences, alignments = run(
            inputs,
            memory,
            memory_mask,
            states,
            mask,
            masks,
            return_attention_scores,
        )
        vectors = sequences[-1]
        if "outputs" in masks:
            vectors = vectors * _batch_first(masks["outputs"], vectors.dtype)
        if not self.return_sequences:
            vectors = vectors[:, -1]
        results = [ops.cast(vectors, self.compute_dtype)]
        if return_attention_scores:
            results.append(alignments)
        if self.return_state:
            results += [sequence[:, -1] for sequence in sequences]
        return tuple(results) if len(results) > 1 else results[0]

    @property
    def _loops(self):
        """Whether a step needs the attention of the step before it."""
        return self.cell.input_feeding or hasattr(self.cell, "feeding_kernel")

    def _initial_states(self, inputs, initial_state):
        zeros = self.cell.get_initial_state(ops.shape(inputs)[0])
        if initial_state is None:
            return zeros
        given = [masking.widen(state) for state in initial_state]
        if len(given) == len(zeros) - 1:
            given.append(zeros[-1])
        if len(given) != len(zeros):
            raise ValueError(
                f"`initial_state` must hold {len(zeros)} tensors (or all but "
                "the last, the attentional vector), one for each of the "
                f"cell's states. Received: {len(given)} tensors."
            )
        return given

    def _feeding_loop(
        self, inputs, memory, memory_mask, states, mask, masks, with_alignments
    ):
        """The recurrence with attention in every step."""
        cell = self.cell
        projected, masks = self._project_inputs(inputs, masks)
        weights = cell.loop_weights()
        projected_memory = cell.project_memory(memory)
        repeated, stepwise = _split_masks(masks)

        def one_step(old, projected, position, masks):
            new, _ = cell.step(
                weights,
                projected,
                old,
                projected_memory,
                memory_mask,
                position,
                {**repeated, **masks},
            )
            return new

        sequences = scan_states(one_step, states, projected, stepwise, mask)
        if not with_alignments:
            return sequences, None
        hidden = cell.alignment_queries(
            cell.top_hidden(sequences), cell.top_hidden(states)
        )
        # One call for all T: nothing but states can leave the loop.
        _, alignments = cell._context(
            hidden, projected_memory, memory_mask, None, _attention_mask(masks)
        )
        return sequences, alignments

    def _parallel(
        self, inputs, memory, memory_mask, states, mask, masks, with_alignments
    ):
        """The recurrence alone, then attention for all steps at once."""
        cell = self.cell
        projected, masks = self._project_inputs(inputs, masks)
        weights = cell.loop_weights()
        repeated, stepwise = _split_masks(masks)

        def one_step(old, projected, position, masks):
            del position  # the recurrence alone is the same at every step
            return cell.recur(weights, projected, old, {**repeated, **masks})

        sequences = scan_states(
            one_step, states[:-1], projected, stepwise, mask
        )
        vectors, alignments = cell.attend(
            weights,
            cell.top_hidden(sequences),
            cell.project_memory(memory),
            memory_mask,
            _last_real_step(mask),
            _attention_mask(masks),
        )
        return [*sequences, vectors], alignments

    def _project_inputs(self, inputs, masks):
        """Inputs' share of the gates (B, T, ...), and the other masks."""
        masks = {k: v for k, v in masks.items() if k != "outputs"}
        dropped = masks.pop("inputs", None)
        if dropped is not None:
            inputs = inputs * _batch_first(dropped, inputs.dtype)
        return self.cell.project_inputs(inputs), masks

    def _draw_masks(self, inputs, memory, training):
        """All masks of a sequence: no draw may happen inside the loop."""
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
            name: keras.random.dropout(
                ops.ones(shape, dtype=dtype),
                rates[name],
                seed=self.seed_generator,
            )
            for name, shape in shapes.items()
            if rates[name] > 0
        }

    def compute_output_spec(
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
    ):
        batch, steps = inputs.shape[:2]
        units = self.cell.units
        dtype = self.compute_dtype
        middle = (steps,) if self.return_sequences else ()
        results = [keras.KerasTensor((batch, *middle, units), dtype=dtype)]
        if return_attention_scores:
            results.append(
                keras.KerasTensor((batch, steps, memory.shape[1]), dtype=dtype)
            )
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
            "seed": self.seed,
        }

    @classmethod
    def from_config(cls, config):
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**{**config, "cell": cell})


def _last_real_step(mask):
    """The position that the states of every step belong to, (B, T)."""
    if mask is None:
        return None
    real = ops.cumsum(ops.cast(mask, "int32"), axis=1)
    return ops.maximum(real - 1, 0)


def _split_masks(masks):
    """Masks that every step shares, without their time axis, and the rest."""
    repeated = {k: m[0] for k, m in masks.items() if m.shape[0] == 1}
    return repeated, {k: m for k, m in masks.items() if k not in repeated}


def _batch_first(mask, dtype):
    return ops.cast(ops.swapaxes(mask, 0, 1), dtype)


def _attention_mask(masks):
    mask = masks.get("attention")
    return None if mask is None else ops.swapaxes(mask, 0, 1)
