"""Global attention of Luong, Pham and Manning (2015), section 3.1."""

import keras
from keras import ops

from luong_keras.layers.attention import scores
from luong_keras.ops import masking


@keras.saving.register_keras_serializable(package="luong_keras")
class LuongAttention(keras.layers.Layer):
    """Attention over all source positions, with the paper's scores.

    For every query h_t and memory vector h̄_s:

        scores   s_ts = score(h_t, h̄_s)    (below eq. 7; "location": eq. 8)
        weights  a_t  = softmax(s_t)       (eq. 7)
        context  c_t  = sum_s a_ts h̄_s     (section 3.1)

    Use it where every source position may matter; `LocalAttention` looks at
    a window only. It returns the context: the attentional vector
    tanh(W_c [c_t; h_t]) (eq. 5) is made by the input-feeding cells.

    Args:
        score_mode: `"dot"` h_t . h̄_s; `"scaled_dot"`, divided by the square
            root of the width (Vaswani et al. 2017); `"cosine"`, the cosine
            of their angle (Graves et al. 2014), best with `use_scale`;
            `"general"` h_t^T W_a h̄_s; `"concat"` v_a . tanh(W_a [h_t; h̄_s]);
            `"location"` (W_a h_t)_s, which does not look at the memory.
        concat_form: what stands inside the tanh of `"concat"`: `"joint"`
            W_a [h_t; h̄_s], the paper's (the default); `"separate"`
            W_a h_t + U_a h̄_s, the same function with two matrices, as later
            texts have it; `"query_only"` W_a h_t + h̄_s, the authors'
            program. Refused elsewhere.
        units: width of the comparison inside `"concat"`; the query's width
            when None. Refused elsewhere.
        use_scale: whether a learned scalar multiplies the scores, as in
            `keras.layers.Attention`.
        max_length: number of positions that `"location"` knows (50 when
            None); later ones are never attended. Refused elsewhere.
        mask_location: for `"location"`, True restricts the softmax to the
            sentence; False is the form of the authors' program, where the
            softmax runs over all `max_length` positions and the weight of
            absent ones is lost.
        dropout: share of the weights set to zero in training; the others
            are divided by 1 - dropout.
        seed: seed of the dropout.
        kernel_initializer: initializer of every learned matrix and vector.
        **kwargs: `name`, `dtype` and the other arguments of a Keras layer.

    Call arguments:
        query: (B, T, U), or (B, U) for a single step.
        value: the memory h̄, (B, S, M).
        query_mask: boolean (B, T) or (B,); rows with False give a context
            of zeros. Taken from the query's Keras mask when None.
        value_mask: boolean (B, S), True = may be attended; a right-padded
            prefix. Taken from the value's Keras mask when None. A sentence
            with no True position gives zeros.
        keys: what `project_keys(value)` returned, to project once and use
            often; None projects here.
        training: whether dropout applies.
        return_attention_scores: also returns the weights (B, T, S), after
            the softmax, as in Keras.
        dropout_mask: (B, T, S), multiplied with the weights in place of a
            drawn dropout: for loops, where no step may draw.

    Output:
        context (B, T, M), or (B, M) for a query (B, U); with
        `return_attention_scores` the pair (context, weights).

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

    score_modes = scores.SCORE_MODES
    uses_position = False
    # Whether it looks at few positions, so that nothing should be computed
    # for all of them.
    in_windows = False

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
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.score_mode = score_mode
        self.units = units
        self.concat_form = concat_form
        self.use_scale = use_scale
        self.max_length = max_length
        self.mask_location = mask_location
        self.dropout = dropout
        self.seed = seed
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self._check_arguments()
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)

    def _check_arguments(self):
        if self.score_mode not in self.score_modes:
            raise ValueError(
                f"`score_mode` must be one of {self.score_modes}. "
                f"Received: score_mode={self.score_mode!r}."
            )
        if self.max_length is not None and self.score_mode != "location":
            raise ValueError(
                "`max_length` belongs to `score_mode='location'` alone; the "
                "other scores take sources of any length. Received: "
                f"score_mode={self.score_mode!r}, "
                f"max_length={self.max_length}. Leave `max_length` out."
            )
        if self.units is not None and self.score_mode != "concat":
            raise ValueError(
                "`units` is the width inside `score_mode='concat'`; the "
                "other scores have none. Received: "
                f"score_mode={self.score_mode!r}, units={self.units}. "
                "Leave `units` out."
            )
        if self.concat_form is not None:
            self._check_concat_form()
        for name in ("max_length", "units"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(
                    f"`{name}` must be at least 1. Received: {name}={number}."
                )
        if not 0 <= self.dropout < 1:
            raise ValueError(
                "`dropout` must be at least 0 and less than 1. "
                f"Received: dropout={self.dropout}."
            )

    def _check_concat_form(self):
        if self.score_mode != "concat":
            raise ValueError(
                "`concat_form` belongs to `score_mode='concat'` alone. "
                f"Received: score_mode={self.score_mode!r}, "
                f"concat_form={self.concat_form!r}. Leave `concat_form` out."
            )
        if self.concat_form not in scores.CONCAT_FORMS:
            raise ValueError(
                f"`concat_form` must be one of {scores.CONCAT_FORMS}. "
                f"Received: concat_form={self.concat_form!r}."
            )
        if self.concat_form == "query_only" and self.units is not None:
            raise ValueError(
                "`concat_form='query_only'` compares in the width of the "
                "memory, which it does not project. Received: "
                f"units={self.units}. Leave `units` out."
            )

    def build(self, query_shape, value_shape):
        query_units, memory_units = query_shape[-1], value_shape[-1]
        if self.score_mode in ("dot", "scaled_dot", "cosine"):
            self._check_equal_widths(query_shape, value_shape)
        elif self.score_mode == "general":
            self.attention_kernel = self._add_kernel(
                "attention_kernel", (memory_units, query_units)
            )
        elif self.score_mode == "concat":
            self._build_concat(query_units, memory_units)
        else:
            self.location_kernel = self._add_kernel(
                "location_kernel", (query_units, self.max_length or 50)
            )
        if self.use_scale:
            self.scale = self.add_weight(
                name="scale", shape=(), initializer="ones"
            )
        self.built = True

    def _build_concat(self, query_units, memory_units):
        width = self.units or query_units
        if self.concat_form == "query_only":
            width = memory_units
            self.query_kernel = self._add_kernel(
                "query_kernel", (query_units, width)
            )
        elif self.concat_form == "separate":
            self.query_kernel = self._add_kernel(
                "query_kernel", (query_units, width)
            )
            self.key_kernel = self._add_kernel(
                "key_kernel", (memory_units, width)
            )
        else:
            # W_a [h; h̄]: the first rows are the query's.
            self.attention_kernel = self._add_kernel(
                "attention_kernel", (query_units + memory_units, width)
            )
            self._query_units = query_units
        self.attention_vector = self._add_kernel("attention_vector", (width,))

    def _concat_kernels(self):
        """The halves of W_a for the query and for the memory, or None."""
        if self.concat_form == "query_only":
            return ops.convert_to_tensor(self.query_kernel), None
        if self.concat_form == "separate":
            kernels = self.query_kernel, self.key_kernel
            return tuple(ops.convert_to_tensor(kernel) for kernel in kernels)
        kernel = ops.convert_to_tensor(self.attention_kernel)
        return kernel[: self._query_units], kernel[self._query_units :]

    def _check_equal_widths(self, query_shape, value_shape):
        if query_shape[-1] != value_shape[-1]:
            raise ValueError(
                f"`score_mode={self.score_mode!r}` compares `query` and "
                "`value` directly, so their last dimensions must be equal. "
                f"Received: query.shape={tuple(query_shape)}, "
                f"value.shape={tuple(value_shape)}. Use "
                "`score_mode='general'`, which learns a projection, or make "
                "the two widths equal."
            )

    def _add_kernel(self, name, shape):
        return self.add_weight(
            name=name, shape=shape, initializer=self.kernel_initializer.clone()
        )

    def project_keys(self, value):
        """W_a h̄_s for all positions, to be passed as `keys`.

        (h̄_s / |h̄_s| for the cosine.)

        `value` (B, S, M); returns `value` itself where the score projects
        nothing. The layer must be built.
        """
        if self.score_mode == "general" and not self.in_windows:
            return ops.matmul(value, self.attention_kernel)
        if self.score_mode == "concat":
            _, kernel = self._concat_kernels()
            return value if kernel is None else ops.matmul(value, kernel)
        if self.score_mode == "cosine":
            return scores.unit_vectors(value)
        return value

    def call(
        self,
        query,
        value,
        query_mask=None,
        value_mask=None,
        keys=None,
        training=False,
        return_attention_scores=False,
        dropout_mask=None,
    ):
        single_step = len(query.shape) == 2
        if single_step:
            query = ops.expand_dims(query, 1)
            query_mask, dropout_mask = (
                None if mask is None else ops.expand_dims(mask, 1)
                for mask in (query_mask, dropout_mask)
            )
        weights = self._weights(query, value, value_mask, keys)
        context, weights = self._attend(
            weights, value, query_mask, dropout_mask, training
        )
        if single_step:
            context = ops.squeeze(context, 1)
            weights = ops.squeeze(weights, 1)
        return (context, weights) if return_attention_scores else context

    def _weights(self, query, value, value_mask, keys):
        """Weights (B, T, S) in at least float32, before dropout."""
        source_length = ops.shape(value)[1]
        if self.score_mode == "location":
            return self._location_weights(query, value_mask, source_length)
        mask = None
        if value_mask is not None:
            mask = ops.expand_dims(ops.cast(value_mask, "bool"), -2)
        if keys is None:
            keys = self.project_keys(value)
        return masking.masked_softmax(self.score(query, keys), mask)

    def score(self, query, keys):
        """The score of every pair h_t, h̄_s, (B, T, S), before the softmax.

        query (B, T, U) and keys from `project_keys`; not for "location".
        """
        if self.score_mode == "concat":
            result = scores.concat_scores(
                ops.matmul(query, self._concat_kernels()[0]),
                keys,
                ops.cast(self._score_vector(), query.dtype),
            )
        else:
            if self.score_mode == "cosine":
                query = scores.unit_vectors(query)
            if self.score_mode == "general" and self.in_windows:
                kernel = ops.convert_to_tensor(self.attention_kernel)
                query = ops.matmul(query, ops.transpose(kernel))
            result = scores.dot_scores(query, keys)
        if self.score_mode == "scaled_dot":
            result = result / query.shape[-1] ** 0.5
        return self._scaled(result)

    def _score_vector(self):
        """v_a of the "concat" score."""
        return self.attention_vector

    def _scaled(self, result):
        return result * self.scale if self.use_scale else result

    def _location_weights(self, query, value_mask, source_length):
        by_position = self._scaled(
            scores.location_scores(query, self.location_kernel)
        )
        inside = masking.combine_masks(
            scores.positions_within(by_position.shape[-1], source_length),
            value_mask,
        )
        if len(inside.shape) == 2:
            inside = ops.expand_dims(inside, -2)
        if self.mask_location:
            fitted = scores.fit_positions(by_position, source_length)
            return masking.masked_softmax(fitted, inside)
        weights = masking.masked_softmax(by_position)
        weights = scores.fit_positions(weights, source_length)
        return ops.where(inside, weights, ops.zeros((), weights.dtype))

    def _attend(self, weights, value, query_mask, dropout_mask, training):
        """Context and the weights it was made with, in the value's dtype."""
        weights = self._drop(weights, dropout_mask, training)
        weights = ops.cast(weights, value.dtype)
        context = ops.matmul(weights, value)
        if query_mask is not None:
            query_mask = ops.cast(query_mask, "bool")
            context = masking.zero_where_masked(context, query_mask)
        return context, weights

    def _drop(self, weights, dropout_mask, training):
        if dropout_mask is not None:
            return weights * ops.cast(dropout_mask, weights.dtype)
        if training and self.dropout > 0:
            return keras.random.dropout(
                weights, self.dropout, seed=self.seed_generator
            )
        return weights

    def compute_output_spec(
        self, query, value, return_attention_scores=False, **kwargs
    ):
        steps = tuple(query.shape[:-1])
        dtype = self.compute_dtype
        context = keras.KerasTensor((*steps, value.shape[-1]), dtype=dtype)
        if not return_attention_scores:
            return context
        weights = keras.KerasTensor((*steps, value.shape[1]), dtype=dtype)
        return context, weights

    def __call__(self, query, *args, **kwargs):
        if isinstance(query, (list, tuple)):
            raise ValueError(
                f"`{type(self).__name__}` takes the query and the value as "
                "two arguments, not as a list: call it as "
                "`layer(query, value)`, with masks as `query_mask=` and "
                f"`value_mask=`. Received: a {type(query).__name__} of "
                f"{len(query)} as `query`."
            )
        return super().__call__(query, *args, **kwargs)

    def get_config(self):
        return {
            **super().get_config(),
            "score_mode": self.score_mode,
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
