"""Local attention of Luong, Pham and Manning (2015), section 3.2."""

import keras
from keras import ops

from luong_keras.layers.attention import scores
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking, windows


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
    for translation, monotonic where both sides run in step (speech, OCR).

    Args:
        alignment: `"predictive"` or `"monotonic"`.
        half_width: D, at least 1; the paper uses 10.
        score_mode: any content score of `LuongAttention`. `"location"` is
            refused: its scores are absolute positions already.
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
        **kwargs: `units`, `concat_form`, `use_scale`, `dropout`, `seed`,
            `kernel_initializer` of `LuongAttention`, and `name`, `dtype`, ….

    Call arguments:
        query, value, query_mask, value_mask, keys, training,
        return_attention_scores, dropout_mask: as in `LuongAttention`.
            `value_mask` must be a right-padded prefix: its sum is S.
        position: integer decoder step t for monotonic alignment, a scalar or
            broadcastable to (B, T). None means 0 ... T - 1 for queries
            (B, T, U), and is an error for a single step (B, U). Ignored by
            predictive alignment.

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

    score_modes = scores.CONTENT_SCORES
    uses_position = True
    in_windows = True

    def __init__(
        self,
        alignment="predictive",
        half_width=10,
        score_mode="general",
        gaussian="auto",
        sigma=None,
        clamp_position=True,
        **kwargs,
    ):
        # Before super().__init__, which checks them.
        arguments = (alignment, half_width, gaussian, sigma)
        self._check_window(*arguments)
        super().__init__(score_mode=score_mode, **kwargs)
        self.alignment, self.half_width, self.gaussian, self.sigma = arguments
        self.clamp_position = clamp_position

    @staticmethod
    def _check_window(alignment, half_width, gaussian, sigma):
        if alignment not in windows.ALIGNMENTS:
            raise ValueError(
                f"`alignment` must be one of {windows.ALIGNMENTS}. "
                f"Received: alignment={alignment!r}."
            )
        if half_width < 1:
            raise ValueError(
                "`half_width` is D, the positions on each side of the "
                "window's centre, and must be at least 1. "
                f"Received: half_width={half_width}."
            )
        if gaussian not in ("auto", *windows.GAUSSIANS):
            raise ValueError(
                f"`gaussian` must be 'auto' or one of {windows.GAUSSIANS}. "
                f"Received: gaussian={gaussian!r}."
            )
        if sigma is not None and sigma <= 0:
            raise ValueError(
                f"`sigma` must be positive. Received: sigma={sigma}."
            )

    def build(self, query_shape, value_shape):
        units = query_shape[-1]
        if self.alignment == "predictive":
            self.position_kernel = self._add_kernel(
                "position_kernel", (units, units)
            )
            self.position_vector = self._add_kernel("position_vector", (units,))
        super().build(query_shape, value_shape)

    def call(
        self,
        query,
        value,
        query_mask=None,
        value_mask=None,
        keys=None,
        position=None,
        training=False,
        return_attention_scores=False,
        dropout_mask=None,
    ):
        single_step = len(query.shape) == 2
        successive = self.alignment == "monotonic" and position is None
        position = self._step_position(query, position, single_step)
        if single_step:
            query = ops.expand_dims(query, 1)
            query_mask, dropout_mask = (
                None if mask is None else ops.expand_dims(mask, 1)
                for mask in (query_mask, dropout_mask)
            )
        lengths = windows.source_lengths(value, value_mask)
        source_length = ops.shape(value)[1]
        if successive:
            keys, value, dropout_mask = self._within_reach(
                ops.shape(query)[1], keys, value, dropout_mask
            )
        if keys is None:
            keys = self.project_keys(value)
        blocks, long = self._blocks(query, position, successive)
        place = *self._centre(query, lengths, position), lengths
        arguments = query, keys, value, place, dropout_mask, training
        context, weights = _either(
            ops.shape(value)[1] >= long,
            lambda: self._look_in_windows(blocks, *arguments),
            lambda: self._look_at_all(*arguments),
        )
        if query_mask is not None:
            query_mask = ops.cast(query_mask, "bool")
            context = masking.zero_where_masked(context, query_mask)
        if single_step:
            context = ops.squeeze(context, 1)
        if not return_attention_scores:
            return context
        if successive:
            weights = windows.lengthened(weights, source_length)
        return context, ops.squeeze(weights, 1) if single_step else weights

    def _within_reach(self, steps, keys, value, dropout_mask):
        """The first T + D positions: no window of T steps goes further."""
        reach = steps + self.half_width
        near = value[:, :reach]
        if keys is not None:
            keys = near if keys is value else keys[:, :reach]
        if dropout_mask is not None:
            dropout_mask = dropout_mask[..., :reach]
        return keys, near, dropout_mask

    def _blocks(self, query, position, successive):
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

    def _look_at_all(self, query, keys, value, place, dropout_mask, training):
        """Context (B, T, M) and weights (B, T, S), of the whole source."""
        positions = ops.arange(ops.shape(value)[1], dtype="int32")
        where = self._where(*place, positions)
        weights = windows.local_weights(
            self.score(query, keys),
            where.mask,
            where.gaussian,
            self._gaussian_form(),
        )
        return self._attend(weights, value, None, dropout_mask, training)

    def _look_in_windows(
        self, blocks, query, keys, value, place, dropout_mask, training
    ):
        """The same, of the windows gathered in `blocks`."""
        window = self._gather(query, keys, value, place, dropout_mask, blocks)
        weights = windows.local_weights(
            self._window_scores(window),
            window.where.mask,
            window.where.gaussian,
            self._gaussian_form(),
        )
        weights = self._drop(weights, window.dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        context = windows.out_of_blocks(
            ops.matmul(windows.in_blocks(weights, blocks.size), window.values),
            *ops.shape(query)[:2],
        )
        source_length = ops.shape(value)[1]
        return context, windows.spread(weights, window.positions, source_length)

    def _gather(
        self,
        query,
        keys,
        value,
        place,
        dropout_mask,
        blocks=windows.SINGLE,
    ):
        """The windows of the queries (B, T, U), gathered from the source."""
        _, centre, _ = place
        positions = windows.slots(
            centre, self.half_width, ops.shape(value)[1], blocks
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
            self._where(*place, positions),
            dropout_mask,
        )

    def _window_scores(self, window):
        """The scores (B, T, W) inside of gathered windows."""
        return windows.out_of_blocks(
            self.score(window.queries, window.keys),
            *ops.shape(window.positions)[:2],
        )

    def _step_position(self, query, position, single_step):
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
        position = self._step_position(query, position, single_step=False)
        lengths = windows.source_lengths(value, value_mask)
        positions = ops.arange(ops.shape(value)[1], dtype="int32")
        place = self._centre(query, lengths, position)
        return self._where(*place, lengths, positions)

    def _centre(self, query, lengths, position):
        """p_t and the middle of its window, both (B, T)."""
        if self.alignment == "monotonic":
            aligned = windows.monotonic_position(
                position, lengths, self.clamp_position
            )
            # One position may serve several queries, as in a beam.
            aligned = ops.broadcast_to(aligned, ops.shape(query)[:2])
            return aligned, aligned
        aligned = windows.predictive_position(
            query,
            lengths,
            ops.convert_to_tensor(self.position_kernel),
            ops.convert_to_tensor(self.position_vector),
        )
        return aligned, windows.window_centre(aligned, lengths)

    def _where(self, aligned, centre, lengths, positions):
        """The `Window` at these positions, (S,) or (B, T, W)."""
        lengths = ops.reshape(lengths, (-1, 1, 1))
        mask = ops.logical_and(
            windows.window_mask(centre, self.half_width, positions),
            positions < lengths,
        )
        aligned_real = ops.cast(
            aligned, masking.wider_dtype(self.compute_dtype)
        )
        favour = windows.gaussian(aligned_real, self._gaussian_width, positions)
        return windows.Window(aligned, centre, mask, favour)

    @property
    def _gaussian_width(self):
        """Sigma of eq. 10, D / 2 in the paper."""
        return self.sigma or self.half_width / 2

    def _gaussian_form(self):
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


def _either(condition, when_true, when_false):
    """`ops.cond`, of one side alone where the condition is known."""
    if isinstance(condition, bool):
        return when_true() if condition else when_false()
    return ops.cond(condition, when_true, when_false)
