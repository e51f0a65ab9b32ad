"""Local attention of Luong, Pham and Manning (2015), section 3.2."""

import numbers

import keras
from keras import ops

from luong_keras.layers.argument_checks import (
    check_choice,
    check_numbers,
)
from luong_keras.layers.attention.attention_step import LocalStep
from luong_keras.layers.attention.looking import Looking
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.ops import masking, windows


@keras.saving.register_keras_serializable(package="luong_keras")
class LocalAttention(Looking, LuongAttention):
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
            them, a False inside a sentence, keeps its position and is never
            attended.
        position: integer decoder step t for monotonic alignment, a scalar,
            (B,) for a single step, or broadcastable to (B, T). None means
            0 ... T - 1 for queries (B, T, U), and is an error for a single
            step (B, U). Ignored by predictive alignment.

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
    step_class = LocalStep

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
        if self.score.by_position:
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
        """The memory itself, and what multiplies the context: few are seen."""
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
        if value is None:
            value = query
            value_mask = query_mask if value_mask is None else value_mask
        single_step = len(query.shape) == 2
        successive = self.alignment == "monotonic" and position is None
        position = self.step_position(query, position, single_step)
        if single_step:
            query = ops.expand_dims(query, 1)
            query_mask, dropout_mask = (
                None if mask is None else ops.expand_dims(mask, 1)
                for mask in (query_mask, dropout_mask)
            )
        if value_mask is not None:
            value_mask = ops.cast(value_mask, "bool")
        if 0 in (*query.shape, *value.shape):
            context, weights = self._nothing(query, value)
        else:
            span = windows.sentence_span(value, value_mask)
            place = self.place(query, span, position, value_mask)
            context, weights = self._look(
                self._blocks(query, position, successive),
                *(query, keys, value, place, dropout_mask, training),
            )
        if query_mask is not None:
            query_mask = ops.cast(query_mask, "bool")
            context = masking.zero_where_masked(context, query_mask)
        if single_step:
            context, weights = (ops.squeeze(x, 1) for x in (context, weights))
        return (context, weights) if return_attention_scores else context

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
