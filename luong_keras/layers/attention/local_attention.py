"""Local attention of Luong, Pham and Manning (2015), section 3.2."""

import keras
from keras import backend, ops, tree

from luong_keras.config.checks import (
    check_choice,
    check_integers,
    check_positive_or_none,
)
from luong_keras.layers.argument_checks import check_single_step
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking, windows
from luong_keras.ops.backends import rows_of_each
from luong_keras.ops.products import (
    gather_windows,
    spread_windows,
    weighted_sums,
)


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

    Use it if each query needs few positions of a long source: predictive for
    translation, monotonic if both sides keep step (one label per frame).

    Args:
        alignment: `"predictive"` or `"monotonic"`.
        half_width: D, at least 1; the paper uses 10.
        score_mode: Any content score of `LuongAttention`, or a user-defined
            `Score`. `"location"` is refused because it scores absolute
            positions.
        gaussian: `"after_softmax"`, the paper's eq. 10, whose weights sum to
            less than 1; `"renormalized"`, the same scaled to sum 1;
            `"inside_softmax"`, score times Gaussian before the softmax (the
            authors' later program); `"none"`. The default `"auto"` is
            `"after_softmax"` for predictive and `"none"` for monotonic
            alignment, as in the paper.
        sigma: Width of the Gaussian; D / 2 when None, as in the paper.
        clamp_position: For monotonic alignment, whether p_t stays at the
            last word once t has passed it, as in the authors' program.
            False is the paper's p_t = t: beyond t = S - 1 + D the window is
            empty, and the context is zero.
        units, concat_form, use_scale, dropout, seed, kernel_initializer: As
            in `LuongAttention`.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        query, value, query_mask, value_mask, keys, training,
        return_attention_scores, dropout_mask: As in `LuongAttention`.
            S counts the positions from a sentence's first word to its last:
            the side of the padding does not change the result. A False
            inside a sentence (a hole) keeps its position and has weight 0;
            its values must be finite.
        position: Integer decoder step t, only for monotonic alignment: a
            scalar, (B,) for a single step, or broadcastable to (B, T), which
            may rise at any rate. None counts queries (B, T, U) from 0, without
            those at a False of `query_mask`; an error for a query (B, U).

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
        check_choice(
            windows.ALIGNMENTS,
            " The paper's local-m is 'monotonic', local-p is 'predictive'; a "
            "score is `score_mode=`.",
            alignment=alignment,
        )
        check_choice(("auto", *windows.GAUSSIANS), gaussian=gaussian)
        check_integers(half_width=half_width)
        check_positive_or_none(sigma=sigma)
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
        self.check_build(query_shape, value_shape)
        if self.alignment == "predictive":
            # Rounded in mixed precision, these weights would move p_t by S
            # times the error of the sigmoid.
            units, options = query_shape[-1], {"autocast": False}
            self.position_kernel = self._add_attribute_weight(
                "position_kernel", (units, units), **options
            )
            self.position_vector = self._add_attribute_weight(
                "position_vector", (units,), **options
            )
        super().build(query_shape, value_shape)

    def project_values(self, value, kernel):
        """Return the memory itself and the kernel left for the context."""
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
            query,
            value,
            query_mask,
            value_mask,
            keys,
            training,
            return_attention_scores,
            dropout_mask,
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
        aligned = self._align(query, value, value_mask, position)
        keys = self.project_keys(value) if keys is None else keys
        tensors = query, keys, value, aligned, dropout_mask
        blocks, min_length = windows.choose_blocks(
            self.half_width, query.shape[1], position, successive
        )
        length = ops.shape(value)[1]
        # Exports of JAX cannot compare a length that is not known yet.
        if backend.backend() == "jax" and not isinstance(length, int):
            return self._read_all(*tensors, training)
        if min_length == 0 or (
            isinstance(length, int) and length >= min_length
        ):
            return self._read_windows(blocks, *tensors, training)
        if isinstance(length, int):
            return self._read_all(*tensors, training)
        # The length is not known yet: one route gets all sentences, the other
        # none, as `count` is the batch size or 0. XLA and ONNX accept no
        # condition here, because the shapes inside its branches would differ.
        count = ops.where(length < min_length, ops.shape(query)[0], 0)
        results = zip(
            self._read_all(*_slice_batch(tensors, 0, count), training),
            self._read_windows(
                blocks, *_slice_batch(tensors, count, None), training
            ),
            strict=True,
        )
        return tuple(ops.concatenate(parts, axis=0) for parts in results)

    # Two routes give the same result. A short source is read as a whole, in
    # one product, and positions outside the window are masked. For a long
    # source the windows are gathered first.

    def _read_all(self, query, keys, value, aligned, dropout_mask, training):
        """Return the context and weights from the whole source."""
        positions = masking.all_indices(ops.shape(value)[1])
        window = self._window_at(aligned, positions)
        weights = windows.local_weights(
            self._scores(query, keys),
            window,
            self.gaussian_form,
        )
        return self._attend(weights, value, dropout_mask, training)

    def _read_windows(
        self, blocks, query, keys, value, aligned, dropout_mask, training
    ):
        """Return the context and weights from gathered windows."""
        steps, source_length = ops.shape(query)[1], ops.shape(value)[1]
        positions = windows.window_indices(
            aligned.centre, self.half_width, source_length, blocks
        )
        window_keys = gather_windows(keys, positions)
        window_values = window_keys
        if keys is not value:
            window_values = gather_windows(value, positions)
        if blocks.size > 1:
            positions = ops.repeat(positions, blocks.size, axis=1)[:, :steps]
        if dropout_mask is not None:
            dropout_mask = ops.take_along_axis(dropout_mask, positions, axis=-1)
        window = self._window_at(aligned, positions)
        shape = ops.shape(query)[:2]
        queries = windows.cut_into_blocks(query, blocks.size)
        weights = windows.local_weights(
            windows.join_blocks(self._scores(queries, window_keys), *shape),
            window,
            self.gaussian_form,
        )
        weights = self._apply_dropout(weights, dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        block_weights = windows.cut_into_blocks(weights, blocks.size)
        context = windows.join_blocks(
            weighted_sums(block_weights, window_values), *shape
        )
        context = ops.cast(context, value.dtype)
        first = positions[..., :1]
        return context, spread_windows(weights, first, source_length)

    @property
    def uses_position(self):
        """True for monotonic alignment, which reads the decoder step."""
        return self.alignment == "monotonic"

    def _step_position(self, query, position, query_mask=None):
        """Return the step, broadcastable to (B, T), or None for local-p."""
        if self.alignment == "predictive":
            return None
        if position is not None:
            position = ops.cast(position, masking.INDEX_DTYPE)
            is_single = len(query.shape) == 2 and len(position.shape) == 1
            return ops.expand_dims(position, -1) if is_single else position
        check_single_step(query)
        if query_mask is None:
            return masking.all_indices(ops.shape(query)[1])
        mask = ops.cast(query_mask, masking.INDEX_DTYPE)
        return ops.maximum(ops.cumsum(mask, axis=1) - 1, 0)

    def window(
        self, query, value, value_mask=None, position=None, query_mask=None
    ):
        """Return the `Window` of each query (B, T, U), for plots and checks.

        The arguments are those of a call. The layer must be built.
        """
        position = self._step_position(query, position, query_mask)
        positions = masking.all_indices(ops.shape(value)[1])
        aligned = self._align(query, value, value_mask, position)
        return self._window_at(aligned, positions)

    def _align(self, query, value, value_mask, position):
        """Return the `AlignedPosition` of each query (B, T, U)."""
        span = windows.sentence_span(value, value_mask)
        if self.alignment == "monotonic":
            aligned_position = windows.monotonic_position(
                position, span.length, self.clamp_position
            )
            # One position may serve several queries, as in a beam.
            aligned_position = ops.broadcast_to(
                aligned_position, ops.shape(query)[:2]
            )
            centre = aligned_position
        else:
            aligned_position = windows.predictive_position(
                query,
                span.length,
                self.position_kernel,
                self.position_vector,
            )
            centre = windows.floor_position(aligned_position, span.length)
        centre = centre + span.first[:, None]
        return windows.AlignedPosition(
            aligned_position, centre, span.first, value_mask
        )

    def _window_at(self, aligned, positions):
        """Return the `Window` at these positions, (S,) or (B, T, W)."""
        inside = windows.window_mask(aligned.centre, self.half_width, positions)
        if aligned.mask is not None:
            mask = aligned.mask[:, None]
            if len(positions.shape) > 1:
                mask = rows_of_each(aligned.mask, positions)
            inside = ops.logical_and(inside, mask)
        aligned_position = ops.cast(
            aligned.aligned_position, masking.wider_dtype(self.compute_dtype)
        )
        log_gaussian = windows.log_gaussian(
            aligned_position,
            self.gaussian_width,
            positions - aligned.first[:, None, None],
        )
        place = aligned.aligned_position, aligned.centre, inside
        return windows.Window(*place, ops.exp(log_gaussian), log_gaussian)

    @property
    def gaussian_width(self):
        """Sigma of eq. 10, D / 2 in the paper."""
        return self.sigma or self.half_width / 2

    @property
    def gaussian_form(self):
        """Form of the Gaussian, with "auto" resolved."""
        if self.gaussian != "auto":
            return self.gaussian
        return "none" if self.alignment == "monotonic" else "after_softmax"

    def get_config(self):
        config = super().get_config()
        # Only `location` has these, and local attention refuses it.
        del config["max_length"], config["mask_location"]
        return {
            **config,
            "alignment": self.alignment,
            "half_width": self.half_width,
            "gaussian": self.gaussian,
            "sigma": self.sigma,
            "clamp_position": self.clamp_position,
        }


def _slice_batch(structure, begin, end):
    """Cut all tensors (B, ...) to the sentences from `begin` to `end`."""
    # Keys and values that are one tensor stay one.
    tensors = [x for x in tree.flatten(structure) if x is not None]
    slices = {id(x): x[begin:end] for x in tensors}
    return tree.map_structure(lambda x: slices.get(id(x)), structure)
