"""Global attention of Luong, Pham and Manning (2015), section 3.1."""

import keras
from keras import ops

from luong_keras.config.checks import check_fraction, check_integers
from luong_keras.layers import argument_checks
from luong_keras.layers.attention import scores
from luong_keras.layers.checked_layer import CheckedLayer
from luong_keras.layers.initializers import fresh_initializer
from luong_keras.ops import masking
from luong_keras.ops.backends import dropout
from luong_keras.ops.products import weighted_sums


@keras.saving.register_keras_serializable(package="luong_keras")
class LuongAttention(CheckedLayer):
    """Attention over all source positions, with the paper's scores.

    For every query h_t and memory vector h̄_s:

        scores   s_ts = score(h_t, h̄_s)    (below eq. 7; "location": eq. 8)
        weights  a_t  = softmax(s_t)       (eq. 7)
        context  c_t  = sum_s a_ts h̄_s     (section 3.1)

    `LocalAttention` attends only to a window. The output is the context, from
    which the cells make the attentional vector tanh(W_c [c_t; h_t]) (eq. 5).

    Args:
        score_mode: `"dot"` h_t . h̄_s; `"scaled_dot"`, divided by the square
            root of the width (Vaswani et al. 2017); `"cosine"`, the cosine
            of their angle (Graves et al. 2014), best with `use_scale`;
            `"general"` h_t^T W_a h̄_s; `"concat"` v_a . tanh(W_a [h_t; h̄_s]);
            `"location"` (W_a h_t)_s, which does not read the memory; or a
            user-defined `Score`.
        concat_form: The argument of the tanh in `"concat"`: `"joint"`
            W_a [h_t; h̄_s], as in the paper (the default); `"separate"`
            W_a h_t + U_a h̄_s, the same function with two matrices, as in
            later texts; `"query_only"` W_a h_t + h̄_s, as in the authors'
            program. An error for other scores.
        units: Width of the comparison inside `"concat"`; the query's width
            when None. An error for other scores.
        use_scale: Whether a learned scalar multiplies the scores, as in
            `keras.layers.Attention`.
        max_length: Number of positions that `"location"` scores (50 when
            None); later positions have weight 0. An error for other scores.
        mask_location: For `"location"`, True restricts the softmax to the
            sentence. False is the form of the authors' program: the softmax
            runs over all `max_length` positions, and the weight of positions
            beyond the sentence is lost.
        dropout: Fraction of the weights set to zero in training; the remaining
            weights are divided by 1 - dropout.
        seed: Seed of the dropout.
        kernel_initializer: Initializer of every learned matrix and vector.
        name, dtype, trainable: As in every Keras layer.

    Call arguments:
        query: (B, T, U), or (B, U) for a single step.
        value: The memory h̄, (B, S, M); the query itself when None.
        query_mask: Boolean (B, T) or (B,); rows with False give a context
            of zeros. Taken from the query's Keras mask when None, which
            `keras.layers.TimeDistributed` does not pass on. The Keras mask of
            the outputs is that of the query, not this argument.
        value_mask: Boolean (B, S), True = may be attended, with padding on
            either side. When None, the value's Keras mask, or `query_mask` if
            the value is the query. A row without True gives zeros. Values
            at False must be finite: zero times NaN is NaN.
        keys: The result of `project_keys(value)`, to project it once for many
            calls; None projects the value in this call.
        training: Whether dropout applies.
        return_attention_scores: Whether to return the weights (B, T, S) after
            the softmax too, as in Keras.
        dropout_mask: (B, T, S), multiplied with the weights instead of a
            drawn mask: for loops, where no step may draw.

    Output:
        context (B, T, M), or (B, M) for a query (B, U); with
        `return_attention_scores` the pair (context, weights). An empty batch
        or query gives empty results, an empty memory a context of zeros.

    Raises:
        ValueError: For arguments that do not fit together, masks that are
            not boolean or not as long as the tensor they mask, and ids as
            queries.

    Example:

    >>> import numpy as np
    >>> from luong_keras import LuongAttention
    >>> query, memory = np.ones((2, 4, 8)), np.ones((2, 6, 10))
    >>> context, weights = LuongAttention("general")(
    ...     query, memory, return_attention_scores=True
    ... )
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 4, 10), (2, 4, 6))

    Reference:
        Luong, Pham and Manning (2015), "Effective Approaches to
        Attention-based Neural Machine Translation", arXiv:1508.04025.
    """

    uses_position = False

    def __init__(
        self,
        score_mode="general",
        units=None,
        concat_form=None,
        use_scale=False,
        max_length=None,
        mask_location=True,
        dropout=0.0,
        seed=None,
        kernel_initializer="glorot_uniform",
        name=None,
        dtype=None,
        trainable=True,
    ):
        if isinstance(score_mode, dict):  # from a saved configuration
            score_mode = keras.saving.deserialize_keras_object(score_mode)
        score = scores.get(
            score_mode,
            {
                "units": units,
                "concat_form": concat_form,
                "max_length": max_length,
                # The other scores always behave as with True.
                "mask_location": None if mask_location else False,
            },
        )
        check_integers(optional=True, units=units, max_length=max_length)
        check_fraction(dropout=dropout)
        super().__init__(name=name, dtype=dtype, trainable=trainable)
        self.supports_masking = True
        self.score_mode = score_mode
        self.score = score
        self.units = units
        self.concat_form = concat_form
        self.use_scale = use_scale
        self.max_length = max_length
        self.mask_location = mask_location
        self.dropout = dropout
        self.seed = seed
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def check_build(self, query_shape, value_shape=None):
        """Check that the layer can be built, before it has weights."""
        scores.check_owner(self.score, self)
        self.score.check_shapes(query_shape, value_shape or query_shape)

    def build(self, query_shape, value_shape=None):
        self.check_build(query_shape, value_shape)
        self.score.owner = self
        self.score.build(
            self._add_attribute_weight, query_shape, value_shape or query_shape
        )
        if self.use_scale:
            self.scale = self.add_weight(
                name="scale", shape=(), initializer="ones"
            )
        self.built = True

    def _add_attribute_weight(self, name, shape, initializer=None, **options):
        if hasattr(self, name):
            raise ValueError(
                "A weight of a score becomes an attribute of its layer, which "
                f"already has one of this name. Received: name={name!r}, in "
                f"{type(self.score).__name__}.build. Choose another name, or, "
                "if the layer was built already, make another layer."
            )
        weight = self.add_weight(
            name=name,
            shape=shape,
            initializer=initializer
            or fresh_initializer(self.kernel_initializer),
            **options,
        )
        # TensorFlow's checkpoints find the weight by this attribute.
        setattr(self, name, weight)
        return weight

    # Parts of a call, for loops over the decoder steps.

    def project_keys(self, value):
        """Project the memory once, for the call argument `keys`.

        The keys are W_a h̄_s for "general". A score without a projection
        returns `value` (B, S, M) itself. The layer must be built.
        """
        return self.score.project_keys(value)

    def project_values(self, value, kernel):
        """Return the values and the kernel left for the context, or None.

        Attention is linear in its values: attending to h̄ W gives c W, so one
        product gives values (B, S, U) and leaves no kernel. The steps multiply
        by the kernel if the product would widen the memory, which every step
        reads, and in local attention, which reads only a few positions.
        """
        if kernel.shape[-1] > kernel.shape[0]:
            return value, kernel
        return ops.matmul(value, kernel), None

    def call(
        self,
        query,
        value=None,
        query_mask=None,
        value_mask=None,
        keys=None,
        training=False,
        return_attention_scores=False,
        dropout_mask=None,
    ):
        return self._call(
            query,
            value,
            query_mask,
            value_mask,
            keys,
            training,
            return_attention_scores,
            dropout_mask,
        )

    def _call(
        self,
        query,
        value,
        query_mask,
        value_mask,
        keys,
        training,
        return_attention_scores,
        dropout_mask,
        **options,
    ):
        """Run a call; `_context_and_weights` also gets the `options`."""
        if value is None:  # Keras' TimeDistributed calls `call` directly.
            value = query
            value_mask = query_mask if value_mask is None else value_mask
        single_step = len(query.shape) == 2
        if single_step:
            query = ops.expand_dims(query, 1)
            query_mask, dropout_mask = (
                None if mask is None else ops.expand_dims(mask, 1)
                for mask in (query_mask, dropout_mask)
            )
        if 0 in (*query.shape, *value.shape):
            context, weights = self._zero_outputs(query, value)
        else:
            context, weights = self._context_and_weights(
                query,
                value,
                value_mask,
                keys,
                dropout_mask,
                training,
                **options,
            )
        if query_mask is not None:
            context = masking.zero_where_masked(context, query_mask)
        if single_step:
            context, weights = (ops.squeeze(x, 1) for x in (context, weights))
        return (context, weights) if return_attention_scores else context

    def _context_and_weights(
        self, query, value, value_mask, keys, dropout_mask, training
    ):
        """Return context (B, T, M), weights (B, T, S) in the value's dtype."""
        weights = self._attention_weights(query, value, value_mask, keys)
        return self._attend(weights, value, dropout_mask, training)

    def _zero_outputs(self, query, value):
        """Return zero context and weights for an empty query or memory."""
        rows = ops.shape(query)[:2]
        return (
            ops.zeros((*rows, value.shape[-1]), dtype=self.compute_dtype),
            ops.zeros((*rows, ops.shape(value)[1]), dtype=self.compute_dtype),
        )

    def _attention_weights(self, query, value, value_mask, keys):
        """Return weights (B, T, S) in at least float32, before dropout."""
        if keys is None:
            keys = self.project_keys(value)
        query_scores = self._scores(query, keys)
        if self.score.location_based:
            return scores.location_weights(
                query_scores,
                ops.shape(value)[1],
                value_mask,
                self.score.mask_location,
            )
        if value_mask is not None:
            value_mask = ops.expand_dims(value_mask, -2)
        return masking.masked_softmax(query_scores, value_mask)

    def _scores(self, query, keys):
        raw_scores = self.score(query, keys)
        return raw_scores * self.scale if self.use_scale else raw_scores

    def _attend(self, weights, value, dropout_mask, training):
        """Return the context and its weights, in the value's dtype."""
        weights = self._apply_dropout(weights, dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        context = ops.cast(weighted_sums(weights, value), value.dtype)
        return context, weights

    def _apply_dropout(self, weights, dropout_mask, training):
        if dropout_mask is not None:
            return weights * ops.cast(dropout_mask, weights.dtype)
        if training and self.dropout > 0:
            return dropout(weights, self.dropout, self.seed_generator)
        return weights

    def _check_call(
        self,
        query,
        value=None,
        query_mask=None,
        value_mask=None,
        keys=None,
        position=None,
        **others,
    ):
        argument_checks.check_call(
            self, query, value, query_mask, value_mask, keys, position
        )

    def _check_widths(self, keys=None, **arguments):
        if keys is not None:
            # Cells project the values, which are then only averaged.
            arguments.pop("value", None)
        super()._check_widths(**arguments)

    def compute_output_spec(
        self,
        query,
        value=None,
        *others,
        return_attention_scores=False,
        **options,
    ):
        value = query if value is None else value
        steps = tuple(query.shape[:-1])
        dtype = self.compute_dtype
        context = keras.KerasTensor((*steps, value.shape[-1]), dtype=dtype)
        if not return_attention_scores:
            return context
        weights = keras.KerasTensor((*steps, value.shape[1]), dtype=dtype)
        return context, weights

    def __call__(self, query, value=None, *args, **kwargs):
        if isinstance(query, (list, tuple)):
            raise ValueError(
                f"`{type(self).__name__}` takes the query and the value as "
                "two arguments, not as a list: call it as "
                "`layer(query, value)`, with masks as `query_mask=` and "
                f"`value_mask=`. Received: a {type(query).__name__} of "
                f"{len(query)} as `query`."
            )
        if value is None:
            # Passed twice, so that Keras fills in both masks.
            value = query
            mask = args[0] if args else kwargs.get("query_mask")
            if len(args) < 2 and kwargs.get("value_mask") is None:
                kwargs = {**kwargs, "value_mask": mask}
        return super().__call__(query, value, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "score_mode": keras.saving.serialize_keras_object(self.score_mode),
            "units": self.units,
            "concat_form": self.concat_form,
            "use_scale": self.use_scale,
            "max_length": self.max_length,
            "mask_location": self.mask_location,
            "dropout": self.dropout,
            "seed": self.seed,
            "kernel_initializer": keras.initializers.serialize(
                self.kernel_initializer
            ),
        }
