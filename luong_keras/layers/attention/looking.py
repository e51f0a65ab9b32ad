"""How local attention looks at a source: as a whole, or in windows of it."""

from typing import Any, NamedTuple

from keras import ops

from luong_keras.layers.argument_checks import check_single_step
from luong_keras.ops import masking, windows


class Place(NamedTuple):
    """Where the queries of a call look.

    Attributes:
        aligned_position: p_t, (B, T), counted from a sentence's first word.
        centre: the place of floor(p_t) in the row, (B, T).
        first: the place of each sentence's first word, (B,).
        mask: boolean (B, S) or None.
    """

    aligned_position: Any
    centre: Any
    first: Any
    mask: Any


class Looking:
    """The two routes of `LocalAttention`, which give the same numbers.

    A short source is read as a whole, in one product, and what is outside of
    a window is masked; of a long one the windows are copied out first.
    """

    def _blocks(self, query, position, successive=False):
        """The `Blocks`, and the source length from which they are gathered.

        Blocks are copied out of the source, while a short source is faster
        read as a whole, in one product. Where the better of the two changes
        was measured with D = 10 (`benchmarks/local_attention.py`).
        """
        width, steps = 2 * self.half_width + 1, query.shape[1]
        if steps == 1:
            return windows.SINGLE, 0
        if successive:
            size = 2 * self.half_width
            return windows.Blocks(size, size - 1), 8 * width
        # The hypotheses of a beam are at the same step. Predictive alignment
        # has no position.
        if position is not None and steps is not None and _is_one(position):
            return windows.Blocks(steps, 0), 2 * width
        return windows.SINGLE, 16 * width

    def _look(self, blocks, query, keys, value, place, dropout_mask, training):
        """Context (B, T, M) and weights (B, T, S)."""
        blocks, long = blocks
        keys = self.project_keys(value) if keys is None else keys
        read = (query, keys, value, place, dropout_mask)
        length = ops.shape(value)[1]
        if long == 0 or (isinstance(length, int) and length >= long):
            return self._look_in_windows(blocks, *read, training)
        if isinstance(length, int):
            return self._look_at_all(*read, training)
        # The length is not known yet: one route gets all sentences, the other
        # none. XLA and ONNX take no condition here, since its branches would
        # differ in the shapes inside.
        count = ops.where(length < long, ops.shape(query)[0], 0)
        found = zip(
            self._look_at_all(*_sentences(read, 0, count), training),
            self._look_in_windows(
                blocks, *_sentences(read, count, None), training
            ),
            strict=True,
        )
        return tuple(ops.concatenate(parts, axis=0) for parts in found)

    def _look_at_all(self, query, keys, value, place, dropout_mask, training):
        """Context and weights, of the whole source."""
        positions = ops.arange(ops.shape(value)[1], dtype="int32")
        where = self._where(place, positions)
        weights = windows.local_weights(
            self._scores(query, keys),
            where.mask,
            where.gaussian,
            self.gaussian_form,
        )
        return self._attend(weights, value, None, dropout_mask, training)

    def _look_in_windows(
        self, blocks, query, keys, value, place, dropout_mask, training
    ):
        """The same, of the windows gathered in `blocks`."""
        window = self.gather(query, keys, value, place, dropout_mask, blocks)
        weights = windows.local_weights(
            self.window_scores(window),
            window.where.mask,
            window.where.gaussian,
            self.gaussian_form,
        )
        weights = self._drop(weights, window.dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        context = windows.out_of_blocks(
            ops.matmul(windows.in_blocks(weights, blocks.size), window.values),
            *ops.shape(query)[:2],
        )
        source_length = ops.shape(value)[1]
        return context, windows.spread(weights, window.positions, source_length)

    def gather(
        self,
        query,
        keys,
        value,
        place,
        dropout_mask,
        blocks=windows.SINGLE,
    ):
        """The windows of the queries (B, T, U), gathered from the source."""
        positions = windows.slots(
            place.centre, self.half_width, ops.shape(value)[1], blocks
        )
        gathered_keys = windows.gather(keys, positions)
        gathered_values = gathered_keys
        if keys is not value:
            gathered_values = windows.gather(value, positions)
        if blocks.size > 1:
            positions = ops.repeat(positions, blocks.size, axis=1)
            positions = positions[:, : ops.shape(query)[1]]
        if dropout_mask is not None:
            dropout_mask = ops.take_along_axis(dropout_mask, positions, axis=-1)
        return windows.GatheredWindows(
            windows.in_blocks(query, blocks.size),
            gathered_keys,
            gathered_values,
            positions,
            self._where(place, positions),
            dropout_mask,
        )

    def window_scores(self, window):
        """The scores (B, T, W) inside of gathered windows."""
        return windows.out_of_blocks(
            self._scores(window.queries, window.keys),
            *ops.shape(window.positions)[:2],
        )

    def step_position(self, query, position, single_step):
        """The decoder step as int32, broadcastable to (B, T)."""
        if self.alignment == "predictive":
            return None
        if position is not None:
            position = ops.cast(position, "int32")
            if single_step and len(position.shape) == 1:
                position = ops.expand_dims(position, -1)
            return position
        check_single_step(query)
        return ops.arange(ops.shape(query)[1], dtype="int32")

    def window(self, query, value, value_mask=None, position=None):
        """The `Window` of every query, for plots and checks.

        query (B, T, U); value, value_mask and position as in a call. The
        layer must be built.
        """
        position = self.step_position(query, position, single_step=False)
        if value_mask is not None:
            value_mask = ops.cast(value_mask, "bool")
        span = windows.sentence_span(value, value_mask)
        positions = ops.arange(ops.shape(value)[1], dtype="int32")
        place = self.place(query, span, position, value_mask)
        return self._where(place, positions)

    def place(self, query, span, position, mask):
        """The `Place` that each query (B, T, U) looks at."""
        first = span.first[:, None]
        if self.alignment == "monotonic":
            aligned = windows.monotonic_position(
                position, span.length, self.clamp_position
            )
            # One position may serve several queries, as in a beam.
            aligned = ops.broadcast_to(aligned, ops.shape(query)[:2])
            return Place(aligned, aligned + first, span.first, mask)
        aligned = windows.predictive_position(
            query,
            span.length,
            ops.convert_to_tensor(self.position_kernel),
            ops.convert_to_tensor(self.position_vector),
        )
        centre = windows.floor_position(aligned, span.length) + first
        return Place(aligned, centre, span.first, mask)

    def _where(self, place, positions):
        """The `Window` at these positions, (S,) or (B, T, W)."""
        inside = windows.window_mask(place.centre, self.half_width, positions)
        if place.mask is not None:
            real = place.mask[:, None]
            if len(positions.shape) > 1:
                real = windows.gather_mask(place.mask, positions)
            inside = ops.logical_and(inside, real)
        aligned = ops.cast(
            place.aligned_position, masking.wider_dtype(self.compute_dtype)
        )
        factor = windows.gaussian(
            aligned,
            self.gaussian_width,
            positions - place.first[:, None, None],
        )
        return windows.Window(
            place.aligned_position, place.centre, inside, factor
        )


def _is_one(position):
    """Whether a position, (...) or (B, T), is the same for all T."""
    return len(position.shape) == 0 or position.shape[-1] == 1


def _sentences(read, begin, end):
    """The sentences from `begin` to `end` of all tensors (B, ...)."""

    def cut(x):
        return None if x is None else x[begin:end]

    query, keys, value, place, dropout_mask = read
    cut_value = cut(value)
    return (
        cut(query),
        cut_value if keys is value else cut(keys),
        cut_value,
        Place(*map(cut, place)),
        cut(dropout_mask),
    )
