"""Scores that compare the queries of attention layers with the memory.

Luong, Pham and Manning (2015), section 3.1. A score is an object that holds
its weights, projects the memory once per sentence, and scores the queries. B
batch, T target length, S source length, U width of the query, M width of the
memory, A width of the comparison.

To add a score, write a subclass of `Score` here and add its name to `SCORES`.
User-defined scores need no name: attention layers accept the object.
"""

import numbers

import keras
from keras import ops

from luong_keras.config.checks import check_choice
from luong_keras.layers.attention.score import Score
from luong_keras.ops import masking
from luong_keras.ops.backends import take_last
from luong_keras.ops.products import dots, product
from luong_keras.suggestions import did_you_mean

CONCAT_FORMS = ("joint", "separate", "query_only")


@keras.saving.register_keras_serializable(package="luong_keras")
class DotScore(Score):
    """score(h_t, h̄_s) = h_t . h̄_s ("dot", below eq. 7)."""

    name = "dot"

    def check_shapes(self, query_shape, value_shape):
        # A subclass that makes weights may project to equal widths.
        has_weights = type(self).build is not Score.build
        if not has_weights and query_shape[-1] != value_shape[-1]:
            raise ValueError(
                f"`score_mode={self.name!r}` compares `query` and "
                "`value` directly, so their last dimensions must be equal. "
                f"Received: query.shape={tuple(query_shape)}, "
                f"value.shape={tuple(value_shape)}. Use "
                "`score_mode='general'`, which learns a projection, or make "
                "the two widths equal."
            )

    def __call__(self, query, keys):
        return dots(query, keys)


@keras.saving.register_keras_serializable(package="luong_keras")
class ScaledDotScore(DotScore):
    """score(h_t, h̄_s) = h_t . h̄_s / sqrt(U) (Vaswani et al. 2017, eq. 1)."""

    name = "scaled_dot"

    def __call__(self, query, keys):
        return super().__call__(query, keys) / query.shape[-1] ** 0.5


@keras.saving.register_keras_serializable(package="luong_keras")
class CosineScore(DotScore):
    """Cosine of query and key (Graves et al. 2014, section 3.3.1, eq. 6)."""

    name = "cosine"

    def project_keys(self, value):
        return masking.unit_vectors(value)

    def __call__(self, query, keys):
        return super().__call__(masking.unit_vectors(query), keys)


@keras.saving.register_keras_serializable(package="luong_keras")
class GeneralScore(Score):
    """score(h_t, h̄_s) = h_t^T W_a h̄_s ("general", below eq. 7).

    The memory is projected once per sentence.
    """

    def build(self, add_weight, query_shape, value_shape):
        self.attention_kernel = add_weight(
            "attention_kernel", (value_shape[-1], query_shape[-1])
        )

    def project_keys(self, value):
        return ops.matmul(value, ops.cast(self.attention_kernel, value.dtype))

    __call__ = DotScore.__call__

    def for_windows(self):
        # A subclass may compute something else.
        if type(self) is not GeneralScore:
            return self
        return QueryProjectedGeneralScore()


class QueryProjectedGeneralScore(GeneralScore):
    """`GeneralScore` that projects the query instead, for few positions."""

    def project_keys(self, value):
        return value

    def __call__(self, query, keys):
        projected = product(query, self.attention_kernel, view=ops.transpose)
        return dots(projected, keys)


@keras.saving.register_keras_serializable(package="luong_keras")
class ConcatScore(Score):
    """score(h_t, h̄_s) = v_a . tanh(W_a [h_t; h̄_s]) ("concat", below eq. 7).

    Args:
        units: A, the width of the comparison; the query's width when None.
        concat_form: `"joint"`, `"separate"` or `"query_only"`, as in
            `LuongAttention`; joint when None.
    """

    options = ("units", "concat_form")

    def __init__(self, units=None, concat_form=None):
        check_choice((None, *CONCAT_FORMS), concat_form=concat_form)
        if concat_form == "query_only" and units is not None:
            raise ValueError(
                "`concat_form='query_only'` compares in the width of the "
                "memory, which it does not project. Received: "
                f"units={units}. Leave `units` out."
            )
        self.units = units
        self.concat_form = concat_form or "joint"

    def build(self, add_weight, query_shape, value_shape):
        query_units, memory_units = query_shape[-1], value_shape[-1]
        width = self.units or query_units
        if self.concat_form == "query_only":
            width = memory_units
        if self.concat_form == "joint":
            # W_a [h; h̄]: the first rows are the query's.
            self.attention_kernel = add_weight(
                "attention_kernel", (query_units + memory_units, width)
            )
            self._query_units = query_units
        else:
            self.query_kernel = add_weight("query_kernel", (query_units, width))
        if self.concat_form == "separate":
            self.key_kernel = add_weight("key_kernel", (memory_units, width))
        self.attention_vector = add_weight("attention_vector", (width,))

    def _score_vector(self):
        """Return v_a."""
        return self.attention_vector

    def project_keys(self, value):
        if self.concat_form == "query_only":
            return value
        if self.concat_form == "separate":
            return ops.matmul(value, ops.cast(self.key_kernel, value.dtype))
        kernel = ops.cast(self.attention_kernel, value.dtype)
        return ops.matmul(value, kernel[self._query_units :])

    def __call__(self, query, keys):
        if self.concat_form == "joint":
            projected = product(
                query,
                self.attention_kernel,
                view=lambda kernel: kernel[: self._query_units],
            )
        else:
            projected = product(query, self.query_kernel)
        projected = ops.cast(projected, query.dtype)
        vector = ops.cast(self._score_vector(), query.dtype)
        # tanh(W_a [h_t; h̄_s]) of each pair, (B, T, S, A).
        pairs = ops.tanh(
            ops.expand_dims(projected, -2) + ops.expand_dims(keys, -3)
        )
        return ops.matmul(pairs, vector)


@keras.saving.register_keras_serializable(package="luong_keras")
class LocationScore(Score):
    """a_t = softmax(W_a h_t) (eq. 8): scores of positions, not of words.

    Args:
        max_length: P, the number of positions with a score; 50 when None.
        mask_location: As in `LuongAttention`.
    """

    location_based = True
    options = ("max_length", "mask_location")

    def __init__(self, max_length=None, mask_location=True):
        self.max_length = max_length or 50
        self.mask_location = mask_location

    def build(self, add_weight, query_shape, value_shape):
        self.location_kernel = add_weight(
            "location_kernel",
            (query_shape[-1], self.max_length),
            autocast=False,  # as the scan of a float32 decoder reads it
        )

    def __call__(self, query, keys):
        # Beyond the range of float16 the softmax would be NaN.
        return product(query, self.location_kernel, view=masking.upcast)


def location_weights(scores, length, value_mask, mask_location):
    """Return the weights (B, T, S) of the scores (B, T, P) of positions.

    Args:
        scores: Scores of the positions 0 ... P - 1 of a sentence.
        length: S, the number of source positions.
        value_mask: Boolean (B, S), or None.
        mask_location: As in `LuongAttention`.
    """
    positions = masking.all_indices(length)[None]
    if value_mask is not None:
        positions = positions - masking.span(value_mask).first[:, None]
    inside = positions < scores.shape[-1]
    if value_mask is not None:
        inside = ops.logical_and(inside, value_mask)
    inside = ops.expand_dims(inside, -2)
    if mask_location:
        return masking.masked_softmax(_at_positions(scores, positions), inside)
    weights = _at_positions(masking.masked_softmax(scores), positions)
    return ops.where(inside, weights, ops.zeros((), weights.dtype))


def _at_positions(scores, positions):
    """Return the scores (B, T, P) of positions 0 ... P - 1 at others, (B, S).

    Positions without a score get the value of another one, which the
    caller masks.
    """
    index = ops.clip(positions, 0, scores.shape[-1] - 1)
    steps = ops.shape(scores)[:2]
    index = ops.broadcast_to(index[:, None], (*steps, ops.shape(positions)[1]))
    return take_last(scores, index)


# Names in other papers and libraries -> the name here.
OTHER_NAMES = {
    "multiplicative": "general",
    "bilinear": "general",
    "luong": "general",
    "additive": "concat",
    "mlp": "concat",
    "bahdanau": "concat",
    "monotonic": "local-m",
    "predictive": "local-p",
}
SCORES = {
    "dot": DotScore,
    "scaled_dot": ScaledDotScore,
    "cosine": CosineScore,
    "general": GeneralScore,
    "concat": ConcatScore,
    "location": LocationScore,
}


def get(score_mode, options):
    """Return the score of an attention layer from a name or an object.

    Args:
        score_mode: A name of `SCORES`, or a `Score`.
        options: Dict of all arguments of the layer that belong to a score,
            None if not given.

    Raises:
        ValueError: For an unknown name or object, or an option of another
            score; the message names the score with that option.
    """
    arguments = {name: x for name, x in options.items() if x is not None}
    if isinstance(score_mode, Score):
        _check_options(type(score_mode).__name__, (), arguments)
        return score_mode
    if isinstance(score_mode, type) and issubclass(score_mode, Score):
        raise ValueError(
            "`score_mode` must be an object. Received: the class "
            f"{score_mode.__name__}. Write `{score_mode.__name__}()`."
        )
    if not isinstance(score_mode, str) or score_mode not in SCORES:
        raise ValueError(
            f"`score_mode` must be one of {tuple(SCORES)}, or an object of a "
            f"subclass of `Score`. Received: score_mode={score_mode!r}."
            + _suggest_score(score_mode)
        )
    score_class = SCORES[score_mode]
    _check_options(score_mode, score_class.options, arguments)
    return score_class(**arguments)


def _suggest_score(score_mode):
    """Suggest a fix for an unknown `score_mode`."""
    if isinstance(score_mode, str):
        if OTHER_NAMES.get(score_mode, score_mode).startswith("local-"):
            return " `LocalAttention('predictive')` is local-p."
        return suggest_name(score_mode, SCORES)
    if isinstance(score_mode, numbers.Number):
        return (
            " The first argument is the score, not the units, and the memory "
            "is an argument of the call: `LuongAttention('general')(query, "
            "memory)`."
        )
    if callable(score_mode):
        return (
            " Turn the function into a class: `class Mine(Score)` with `def "
            "__call__(self, query, keys)`, and pass `Mine()`."
        )
    return ""


def suggest_name(name, names):
    """Suggest one of `names` for the unknown name of a score or layer."""
    plain = name.lower().replace("-", "_").replace(" ", "_")
    for candidate in (plain, plain.replace("_", "-"), OTHER_NAMES.get(plain)):
        if candidate in names:
            return f" Write {candidate!r}."
    return did_you_mean(name, names)


def _check_options(score, allowed, arguments):
    for name, value in arguments.items():
        if name not in allowed:
            owner = next(o for o, s in SCORES.items() if name in s.options)
            raise ValueError(
                f"`{name}` belongs only to `score_mode={owner!r}`. "
                f"Received: score_mode={score!r}, {name}={value!r}. Leave "
                f"`{name}` out."
            )


def check_owner(score, layer):
    """Check that a score belongs to no other layer, and holds no layers."""
    for name, value in vars(score).items():
        if name != "owner" and isinstance(value, keras.Layer):
            raise ValueError(
                "A score makes its weights by `add_weight` in `build`; those "
                "of a layer in it would be neither trained nor saved. "
                f"Received: the attribute {name!r} of {type(score).__name__}, "
                f"a {type(value).__name__}. Add the weights in `build`, or "
                f"write a subclass of `{type(layer).__name__}` with the layer."
            )
    owner = getattr(score, "owner", layer)
    if owner is not layer:
        raise ValueError(
            "A score belongs to one attention layer, which holds its "
            f"weights. Received: score_mode={layer.score_mode!r}, which "
            f"already belongs to {owner.name!r}. Create another object."
        )
