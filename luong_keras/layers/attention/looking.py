"""How local attention looks at a source: as a whole, or in windows of it."""

from typing import Any, NamedTuple

from keras import ops

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
    """The ways of `LocalAttention`, which all give the same numbers.

    A short source is read as a whole, in one product, and what is outside of
    a window is masked; of a long one the windows are copied out first.
    """

    def _look_in_succession(
        self, query, keys, value, mask, dropout_mask, training
    ):
        """Monotonic alignment for all T: none looks beyond T + D words."""
        steps, source_length = ops.shape(query)[1], ops.shape(value)[1]
        span = windows.sentence_span(value, mask)
        reach = steps + self.half_width
        given = {"value": value, "mask": mask, "dropout": dropout_mask}
        if keys is not value:
            given["keys"] = keys
        given = {name: x for name, x in given.items() if x is not None}

        def near_words(cut):
            found = {n: cut(x) for n, x in given.items() if n != "dropout"}
            if dropout_mask is not None:
                by_place = ops.swapaxes(dropout_mask, 1, 2)
                found["dropout"] = ops.swapaxes(cut(by_place), 1, 2)
            return found

        # Padding on the left moves the words; else a slice will do.
        moved = mask is not None and ops.any(span.first > 0)
        near = _either(
            moved,
            lambda: near_words(
                lambda x: windows.from_first(x, span.first, reach)
            ),
            lambda: near_words(lambda x: x[:, :reach]),
        )
        value = near["value"]
        keys = near.get("keys", None if keys is None else value)
        at_left = masking.Span(ops.zeros_like(span.first), span.length)
        position = ops.arange(steps, dtype="int32")
        place = self.place(query, at_left, position, near.get("mask"))
        context, weights = self._look(
            self._blocks(query, position, True),
            *(query, keys, value, place, near.get("dropout"), training),
        )
        weights = _either(
            moved,
            lambda: windows.spread(
                weights,
                span.first[:, None, None]
                + ops.arange(ops.shape(weights)[-1], dtype="int32"),
                source_length,
            ),
            lambda: windows.lengthened(weights, source_length),
        )
        return context, weights

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

    def _look(self, blocks, query, keys, value, *others):
        """Context (B, T, M) and weights (B, T, S)."""
        blocks, long = blocks
        keys = self.project_keys(value) if keys is None else keys
        return _either(
            ops.shape(value)[1] >= long,
            lambda: self._look_in_windows(blocks, query, keys, value, *others),
            lambda: self._look_at_all(query, keys, value, *others),
        )

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
        if single_step:
            raise ValueError(
                "Monotonic alignment needs to know the decoder step t of a "
                "single query. Expected: `position=t` with a query (B, U), "
                "or a query (B, T, U) of all steps. Received: "
                f"query.shape={tuple(query.shape)}, position=None."
            )
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


def _either(condition, when_true, when_false):
    """`ops.cond`, of one side alone where the condition is known."""
    if isinstance(condition, bool):
        return when_true() if condition else when_false()
    return ops.cond(condition, when_true, when_false)
