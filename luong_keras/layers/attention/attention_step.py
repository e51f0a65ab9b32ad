"""One step of an attention layer and the gradient of its query.

For loops whose backward is written by hand. All else that an attention layer
reads gets its gradient from one call for all steps, see `feeding_sequence`.
To give a new score a gradient, write it in `scores` and call it in
`_score_gradient`; without one, decoders differentiate automatically.
"""

from keras import ops

from luong_keras.layers.attention import scores
from luong_keras.layers.attention.bahdanau_attention import BahdanauAttention
from luong_keras.layers.attention.local_attention import LocalAttention
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking, windows


def attention_step(attention, keys, values, mask):
    """The `GlobalStep` or `LocalStep` over a memory; None without attention.

    keys (B, S, ...) from `project_keys`, values (B, S, M), mask boolean
    (B, S) or None.
    """
    if attention is None:
        return None
    return _STEPS[type(attention)](attention, keys, values, mask)


def has_step(attention):
    """Whether the layer is of a type that is known here, no subclass of it.

    A subclass may compute something else.
    """
    return attention is None or type(attention) in _STEPS


class GlobalStep:
    """A step of `LuongAttention` or `BahdanauAttention`."""

    def __init__(self, attention, keys, values, mask):
        self.layer = attention
        self.keys = keys
        self.values = values
        self.mask = mask

    def attend(self, query, position=None, dropout_mask=None):
        """Context (B, M) of a query (B, U), and what the softmax gave.

        The same numbers as a call of the layer.
        """
        query = ops.expand_dims(query, 1)
        weights = self.layer._weights(query, self.values, self.mask, self.keys)
        weights = weights[:, 0]
        kept = _dropped(weights, dropout_mask)
        return masking.widen(masking.rows_times(kept, self.values)), weights

    def query_gradient(
        self, d_context, query, weights, position=None, dropout_mask=None
    ):
        """The query's gradient (B, U) from the context's (B, M).

        `weights` are the second result of `attend`.
        """
        d_weights = masking.rows_dot(self.values, d_context)
        d_weights = _dropped(d_weights, dropout_mask)
        if self.layer.score_mode == "location":
            return self._location_gradient(d_weights, query, weights)
        d_scores = masking.softmax_gradient(weights, d_weights)
        return _score_gradient(self.layer, d_scores, query, self.keys)

    def _location_gradient(self, d_weights, query, weights):
        layer = self.layer
        kernel = ops.convert_to_tensor(layer.location_kernel)
        positions = kernel.shape[-1]
        if layer.mask_location:
            d_fitted = masking.softmax_gradient(weights, d_weights)
            d_scores = scores.fit_positions_gradient(d_fitted, positions)
        else:
            if self.mask is not None:
                d_weights = ops.where(self.mask, d_weights, 0.0)
            by_position = masking.masked_softmax(
                layer._scaled(scores.location_scores(query, kernel))
            )
            d_scores = masking.softmax_gradient(
                by_position, scores.fit_positions_gradient(d_weights, positions)
            )
        d_scores = ops.cast(layer._scaled(d_scores), kernel.dtype)
        return masking.widen(ops.matmul(d_scores, ops.transpose(kernel)))


class LocalStep(GlobalStep):
    """A step of `LocalAttention`, in gathered windows of any source length."""

    def attend(self, query, position=None, dropout_mask=None):
        layer = self.layer
        window, _ = self._window(query, position, dropout_mask)
        favour, form = window.where.gaussian, layer._gaussian_form()
        weights = windows.softmax_weights(
            layer._window_scores(window), window.where.mask, favour, form
        )
        kept = windows.favoured(weights, favour, form)
        kept = _dropped(kept, window.dropout_mask)[:, 0]
        context = masking.rows_times(kept, window.values)
        return masking.widen(context), weights[:, 0]

    def query_gradient(
        self, d_context, query, weights, position=None, dropout_mask=None
    ):
        layer = self.layer
        window, lengths = self._window(query, position, dropout_mask)
        favour, form = window.where.gaussian, layer._gaussian_form()
        in_softmax = form == "inside_softmax"
        d_local = ops.expand_dims(masking.rows_dot(window.values, d_context), 1)
        d_scores, d_favour = windows.local_weights_gradient(
            layer._window_scores(window) if in_softmax else None,
            ops.expand_dims(weights, 1),
            favour,
            form,
            _dropped(d_local, window.dropout_mask),
        )
        d_query = _score_gradient(layer, d_scores[:, 0], query, window.keys)
        if layer.alignment == "monotonic" or d_favour is None:
            return d_query
        d_position = windows.gaussian_gradient(
            window.where.aligned_position,
            layer._gaussian_width,
            window.positions,
            favour,
            d_favour,
        )
        through_position = windows.predictive_position_gradient(
            ops.expand_dims(query, 1),
            lengths,
            ops.convert_to_tensor(layer.position_kernel),
            ops.convert_to_tensor(layer.position_vector),
            d_position,
        )
        return d_query + through_position[:, 0]

    def _window(self, query, position, dropout_mask):
        """The gathered window of a query (B, U), and the lengths (B,)."""
        layer = self.layer
        position = layer._step_position(query, position, single_step=True)
        query = ops.expand_dims(query, 1)
        if dropout_mask is not None:
            dropout_mask = ops.expand_dims(dropout_mask, 1)
        lengths = windows.source_lengths(self.values, self.mask)
        place = *layer._centre(query, lengths, position), lengths
        window = layer._gather(
            query, self.keys, self.values, place, dropout_mask
        )
        return window, lengths


_STEPS = {
    LuongAttention: GlobalStep,
    BahdanauAttention: GlobalStep,
    LocalAttention: LocalStep,
}


def _score_gradient(layer, d_scores, query, keys):
    """The query's gradient (B, U) from that of its scores (B, S)."""
    d_scores = ops.expand_dims(layer._scaled(d_scores), 1)
    query = ops.expand_dims(query, 1)
    if layer.score_mode == "scaled_dot":
        d_scores = d_scores / query.shape[-1] ** 0.5
    if layer.score_mode == "concat":
        kernel = layer._concat_kernels()[0]
        d_projected = scores.concat_query_gradient(
            ops.matmul(query, kernel),
            keys,
            ops.cast(layer._score_vector(), query.dtype),
            ops.cast(d_scores, query.dtype),
        )
        d_query = ops.matmul(d_projected, ops.transpose(kernel))
    else:
        d_query = scores.dot_query_gradient(d_scores, keys)
    if layer.score_mode == "general" and layer.in_windows:
        kernel = ops.cast(layer.attention_kernel, d_query.dtype)
        d_query = ops.matmul(d_query, kernel)
    if layer.score_mode == "cosine":
        d_query = scores.unit_vectors_gradient(query, d_query)
    return masking.widen(d_query)[:, 0]


def _dropped(weights, mask):
    return weights if mask is None else weights * ops.cast(mask, weights.dtype)
