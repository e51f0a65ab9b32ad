"""One step of an attention layer and the gradient of its query.

For loops whose backward is written by hand, and for those that run their
steps again. All else that an attention layer reads gets its gradient from one
call for all steps, see `feeding_sequence` and `deferred_attention`.
"""

from keras import ops

from luong_keras.ops import masking, windows
from luong_keras.ops.vector_jacobian import vector_jacobian


class AttentionStep:
    """A step of any attention layer, its gradient by the backend.

    Args:
        attention: the layer, built.
        keys: (B, S, ...) from its `project_keys`.
        values: (B, S, M).
        mask: boolean (B, S) or None.
    """

    def __init__(self, attention, keys, values, mask):
        self.layer = attention
        self.keys = keys
        self.values = values
        self.mask = mask

    def attend(self, query, position=None, dropout_mask=None):
        """Context (B, M) of a query (B, U), and what `query_gradient` reads.

        The same numbers as a call of the layer.
        """
        context, weights = call_for_masks(
            self.layer,
            *(query, self.keys, self.values, self.mask),
            *(position, dropout_mask),
        )
        return masking.widen(context), masking.widen(weights)

    def query_gradient(
        self, d_context, query, weights, position=None, dropout_mask=None
    ):
        """The query's gradient (B, U) from the context's (B, M).

        `weights` are the second result of `attend`.
        """

        def context_of(query):
            return self.attend(query, position, dropout_mask)[0]

        return masking.widen(vector_jacobian(context_of, query, d_context))


class GlobalStep(AttentionStep):
    """A step of `LuongAttention` or `BahdanauAttention`."""

    def attend(self, query, position=None, dropout_mask=None):
        weights = self.weights(query)
        kept = dropped(weights, dropout_mask)
        return masking.widen(masking.rows_times(kept, self.values)), weights

    def weights(self, query):
        """The weights (B, S) of a query (B, U), in at least float32."""
        query = ops.expand_dims(query, 1)
        return self.layer._weights(query, self.values, self.mask, self.keys)[
            :, 0
        ]

    def query_gradient(
        self, d_context, query, weights, position=None, dropout_mask=None
    ):
        d_weights = masking.rows_dot(self.values, d_context)
        d_weights = dropped(d_weights, dropout_mask)
        if self.layer.score.by_position:
            found = vector_jacobian(self.weights, query, d_weights)
            return masking.widen(found)
        d_scores = masking.softmax_gradient(weights, d_weights)
        return self._score_gradient(query, self.keys, d_scores)

    def _score_gradient(self, query, keys, d_scores):
        """The query's gradient (B, U) from that of its scores (B, S)."""
        d_query = self.layer.score.query_gradient(
            ops.expand_dims(query, 1),
            keys,
            ops.expand_dims(self.layer.scaled(d_scores), 1),
        )
        return masking.widen(d_query)[:, 0]


class LocalStep(GlobalStep):
    """A step of `LocalAttention`, in gathered windows of any source length."""

    def __init__(self, attention, keys, values, mask):
        super().__init__(attention, keys, values, mask)
        self.span = windows.sentence_span(values, mask)

    def attend(self, query, position=None, dropout_mask=None):
        layer = self.layer
        window = self._window(query, position, dropout_mask)
        factor, form = window.where.gaussian, layer.gaussian_form
        weights = windows.softmax_weights(
            layer.window_scores(window), window.where.mask, factor, form
        )
        kept = windows.times_gaussian(weights, factor, form)
        kept = dropped(kept, window.dropout_mask)[:, 0]
        context = masking.rows_times(kept, window.values)
        return masking.widen(context), weights[:, 0]

    def query_gradient(
        self, d_context, query, weights, position=None, dropout_mask=None
    ):
        layer = self.layer
        window = self._window(query, position, dropout_mask)
        factor, form = window.where.gaussian, layer.gaussian_form
        in_softmax = form == "inside_softmax"
        d_local = ops.expand_dims(masking.rows_dot(window.values, d_context), 1)
        d_scores, d_factor = windows.local_weights_gradient(
            layer.window_scores(window) if in_softmax else None,
            ops.expand_dims(weights, 1),
            factor,
            form,
            dropped(d_local, window.dropout_mask),
        )
        d_query = self._score_gradient(query, window.keys, d_scores[:, 0])
        if layer.alignment == "monotonic" or d_factor is None:
            return d_query
        d_position = windows.gaussian_gradient(
            window.where.aligned_position,
            layer.gaussian_width,
            window.positions - self.span.first[:, None, None],
            factor,
            d_factor,
        )
        through_position = windows.predictive_position_gradient(
            ops.expand_dims(query, 1),
            self.span.length,
            ops.convert_to_tensor(layer.position_kernel),
            ops.convert_to_tensor(layer.position_vector),
            d_position,
        )
        return d_query + through_position[:, 0]

    def _window(self, query, position, dropout_mask):
        """The gathered window of a query (B, U)."""
        layer = self.layer
        position = layer.step_position(query, position, single_step=True)
        query = ops.expand_dims(query, 1)
        if dropout_mask is not None:
            dropout_mask = ops.expand_dims(dropout_mask, 1)
        place = layer.place(query, self.span, position, self.mask)
        return layer.gather(query, self.keys, self.values, place, dropout_mask)


def dropped(weights, mask):
    """The weights times their dropout mask, if there is one."""
    return weights if mask is None else weights * ops.cast(mask, weights.dtype)


def call_for_masks(
    attention, query, keys, values, mask, position=None, dropout_mask=None
):
    """Context and weights, with the dropout of a mask that was drawn."""
    options = {"position": position} if attention.uses_position else {}
    return attention(
        query,
        values,
        value_mask=mask,
        keys=keys,
        dropout_mask=dropout_mask,
        # The masks decide: no step draws a dropout of its own.
        training=False,
        return_attention_scores=True,
        **options,
    )
