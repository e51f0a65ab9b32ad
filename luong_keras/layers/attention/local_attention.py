"""Local attention of Luong, Pham and Manning (2015), section 3.2."""

import numbers

import keras
from keras import ops

from luong_keras.layers.argument_checks import (
    check_choice,
    check_numbers,
    check_single_step,
)
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking, windows
from luong_keras.ops.products import weighted_sums


@keras.saving.register_keras_serializable(package="luong_keras")
class LocalAttention(LuongAttention):
    """Attention over a window of 2 D + 1 source positions around p_t.

    For a source sentence of S words:

        p_t = t, at most S - 1                   ("monotonic", local-m)
        p_t = S sigmoid(v_p . tanh(W_p h_t))     ("predictive", local-p, eq. 9)
        window = floor(p_t) - D ... floor(p_t) + D, cut to 0 ... S - 1
        a_t(s) = softmax over the window(score(h_t, h̄_s))
                 * exp(-(s - p_t)^2 / (2 sigma^2))          (eq. 10)
        c_t = sum_s a_t(s) h̄_s

    Use it where the right place is narrow and the source long; predictive
    for translation, monotonic where both sides run in step (a label a frame).

    Args:
        alignment: `"predictive"` or `"monotonic"`.
        half_width: D, at least 1; the paper uses 10.
        score_mode: any content score of `LuongAttention`, or an object of
            your own. `"location"` is refused: its scores are absolute
            positions already.
        gaussian: `"after_softmax"`, the paper's eq. 10, whose weights sum to
            less than 1; `"renormalized"` to sum 1 inside the window;
            `"inside_softmax"`, score times Gaussian before the softmax (the
            authors' later program); `"none"`. The default `"auto"` is
            `"after_softmax"` for predictive and `"none"` for monotonic
            alignment, as in the paper.
        sigma: width of the Gaussian; D / 2 when None, as in the paper.
        clamp_position: for monotonic alignment, whether p_t stays at the
            last word when t has passed it, as in the authors' program.
            False is the paper's p_t = t: beyond S - 1 + D nothing is left
            to attend, and the context is zero.
        units, concat_form, use_scale, dropout, seed, kernel_initializer: as
            in `LuongAttention`.
        name, dtype, trainable: as in every Keras layer.

    Call arguments:
        query, value, query_mask, value_mask, keys, training,
        return_attention_scores, dropout_mask: as in `LuongAttention`.
            S is counted from a sentence's first word to its last, so
            padding on either side gives the same numbers. A hole between
            them, a False inside a sentence, keeps its position and has
            weight 0; its values must be finite.
        position: integer decoder step t for monotonic alignment alone, a
            scalar, (B,) for a single step, or broadcastable to (B, T), of any
            rate. None means 0 ... T - 1 for queries (B, T, U), from the first
            True of `query_mask`, and is an error for a single step (B, U).

    Output:
        context (B, T, M); with `return_attention_scores` also the weights
        (B, T, S), zero outside the window.

    Example:

    >>> import numpy as np
    >>> from luong_keras import LocalAttention
    >>> query, memory = np.ones((2, 4, 8)), np.ones((2, 50, 8))
    >>> attention = LocalAttention("monotonic", half_width=3)
    >>> context, weights = attention(
    ...     query, memory, return_attention_scores=True
    ... )
    >>> tuple(context.shape), np.count_nonzero(weights, axis=-1)[0].tolist()
    ((2, 4, 8), [4, 5, 6, 7])

    Reference:
        Luong, Pham and Manning (2015), section 3.2, eq. 9 and 10.
    """

    uses_position = True

    def __init__(
        self,
        alignment="predictive",
        half_width=10,
        score_mode="general",
        gaussian="auto",
        sigma=None,
        clamp_position=True,
        units=None,
        concat_form=None,
        use_scale=False,
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        name=None,
        dtype=None,
        trainable=True,
    ):
        check_choice(windows.ALIGNMENTS, alignment=alignment)
        check_choice(("auto", *windows.GAUSSIANS), gaussian=gaussian)
        # D, the positions on each side of the window's centre.
        check_numbers(half_width=half_width)
        if sigma is not None and (
            not isinstance(sigma, numbers.Real) or sigma <= 0
        ):
            raise ValueError(
                f"`sigma` must be a positive number. Received: sigma={sigma!r}."
            )
        super().__init__(
            score_mode=score_mode,
            units=units,
            concat_form=concat_form,
            use_scale=use_scale,
            dropout=dropout,
            seed=seed,
            kernel_initializer=kernel_initializer,
            name=name,
            dtype=dtype,
            trainable=trainable,
        )
        if self.score.location_based:
            raise ValueError(
                "Local attention looks at a window, so its `score_mode` must "
                "compare with the memory, as 'general' does. Received: "
                f"score_mode={score_mode!r}, a score of absolute positions. "
                "Choose another, or use `LuongAttention`."
            )
        self.score = self.score.for_windows()
        self.alignment = alignment
        self.half_width = half_width
        self.gaussian = gaussian
        self.sigma = sigma
        self.clamp_position = clamp_position

    def build(self, query_shape, value_shape=None):
        units = query_shape[-1]
        if self.alignment == "predictive":
            # Their roundings in mixed precision would move p_t, S times as far
            # as the sigmoid.
            whole = {"autocast": False}
            self.position_kernel = self._add_kernel(
                "position_kernel", (units, units), **whole
            )
            self.position_vector = self._add_kernel(
                "position_vector", (units,), **whole
            )
        super().build(query_shape, value_shape)

    def project_values(self, value, kernel):
        """The memory itself, and the kernel that multiplies the context."""
        return value, kernel

    def call(
        self,
        query,
        value=None,
        query_mask=None,
        value_mask=None,
        keys=None,
        position=None,
        training=False,
        return_attention_scores=False,
        dropout_mask=None,
    ):
        successive = self.alignment == "monotonic" and position is None
        return self._call(
            *(query, value, query_mask, value_mask, keys, training),
            *(return_attention_scores, dropout_mask),
            position=self._step_position(query, position, query_mask),
            successive=successive,
        )

    def _context_and_weights(
        self,
        query,
        value,
        value_mask,
        keys,
        dropout_mask,
        training,
        position,
        successive,
    ):
        span = windows.sentence_span(value, value_mask)
        place = self._aligned(query, span, position, value_mask)
        keys = self.project_keys(value) if keys is None else keys
        read = query, keys, value, place, dropout_mask
        blocks, long = self._blocks(query, position, successive)
        length = ops.shape(value)[1]
        if long == 0 or (isinstance(length, int) and length >= long):
            return self._read_windows(blocks, *read, training)
        if isinstance(length, int):
            return self._read_all(*read, training)
        # The length is not known yet: one route gets all sentences, the other
        # none. XLA and ONNX take no condition here, since its branches would
        # differ in the shapes inside.
        count = ops.where(length < long, ops.shape(query)[0], 0)
        found = zip(
            self._read_all(*_sentences(read, 0, count), training),
            self._read_windows(
                blocks, *_sentences(read, count, None), training
            ),
            strict=True,
        )
        return tuple(ops.concatenate(parts, axis=0) for parts in found)

    # Two routes give the same numbers: a short source is read as a whole, in
    # one product, and what is outside of a window is masked; of a long one
    # the windows are gathered first.

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

    def _read_all(self, query, keys, value, place, dropout_mask, training):
        """Context and weights, of the whole source."""
        positions = ops.arange(ops.shape(value)[1], dtype=masking.PLACE_DTYPE)
        where = self._where(place, positions)
        weights = windows.local_weights(
            self._scores(query, keys),
            where.mask,
            where.gaussian,
            self.gaussian_form,
        )
        return self._attend(weights, value, dropout_mask, training)

    def _read_windows(
        self, blocks, query, keys, value, place, dropout_mask, training
    ):
        """The same, of the windows gathered in `blocks`."""
        steps, source_length = ops.shape(query)[1], ops.shape(value)[1]
        positions = windows.window_indices(
            place.centre, self.half_width, source_length, blocks
        )
        window_keys = windows.gather(keys, positions)
        window_values = window_keys
        if keys is not value:
            window_values = windows.gather(value, positions)
        if blocks.size > 1:
            positions = ops.repeat(positions, blocks.size, axis=1)[:, :steps]
        if dropout_mask is not None:
            dropout_mask = ops.take_along_axis(dropout_mask, positions, axis=-1)
        where = self._where(place, positions)
        shape = ops.shape(query)[:2]
        queries = windows.in_blocks(query, blocks.size)
        weights = windows.local_weights(
            windows.out_of_blocks(self._scores(queries, window_keys), *shape),
            where.mask,
            where.gaussian,
            self.gaussian_form,
        )
        weights = self._drop(weights, dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        in_blocks = windows.in_blocks(weights, blocks.size)
        context = windows.out_of_blocks(
            weighted_sums(in_blocks, window_values), *shape
        )
        context = ops.cast(context, value.dtype)
        return context, windows.spread(weights, positions, source_length)

    def _step_position(self, query, position, query_mask=None):
        """The decoder step as an integer, broadcastable to (B, T)."""
        if self.alignment == "predictive":
            return None
        if position is not None:
            position = ops.cast(position, masking.PLACE_DTYPE)
            if len(query.shape) == 2 and len(position.shape) == 1:
                position = ops.expand_dims(position, -1)
            return position
        check_single_step(query)
        steps = ops.arange(ops.shape(query)[1], dtype=masking.PLACE_DTYPE)
        if query_mask is None:
            return steps
        first = masking.span(query_mask).first[:, None]
        return ops.maximum(steps - first, 0)

    def window(self, query, value, value_mask=None, position=None):
        """The `Window` of every query, for plots and checks.

        query (B, T, U); value, value_mask and position as in a call. The
        layer must be built.
        """
        position = self._step_position(query, position)
        if value_mask is not None:
            value_mask = ops.cast(value_mask, "bool")
        span = windows.sentence_span(value, value_mask)
        positions = ops.arange(ops.shape(value)[1], dtype=masking.PLACE_DTYPE)
        place = self._aligned(query, span, position, value_mask)
        return self._where(place, positions)

    def _aligned(self, query, span, position, mask):
        """The `AlignedPosition` of each query (B, T, U)."""
        first = span.first[:, None]
        if self.alignment == "monotonic":
            aligned = windows.monotonic_position(
                position, span.length, self.clamp_position
            )
            # One position may serve several queries, as in a beam.
            aligned = ops.broadcast_to(aligned, ops.shape(query)[:2])
            return windows.AlignedPosition(
                aligned, aligned + first, span.first, mask
            )
        aligned = windows.predictive_position(
            query,
            span.length,
            self.position_kernel,
            self.position_vector,
        )
        centre = windows.floor_position(aligned, span.length) + first
        return windows.AlignedPosition(aligned, centre, span.first, mask)

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

    @property
    def gaussian_width(self):
        """Sigma of eq. 10, D / 2 in the paper."""
        return self.sigma or self.half_width / 2

    @property
    def gaussian_form(self):
        """The form of the Gaussian, "auto" resolved."""
        if self.gaussian != "auto":
            return self.gaussian
        return "none" if self.alignment == "monotonic" else "after_softmax"

    def get_config(self):
        config = super().get_config()
        # `location` alone has these, and a window refuses it.
        del config["max_length"], config["mask_location"]
        return {
            **config,
            "alignment": self.alignment,
            "half_width": self.half_width,
            "gaussian": self.gaussian,
            "sigma": self.sigma,
            "clamp_position": self.clamp_position,
        }


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
        windows.AlignedPosition(*map(cut, place)),
        cut(dropout_mask),
    )
