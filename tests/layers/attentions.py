"""Attentions of every kind, with every score and every form."""

from keras import ops

import luong_keras as lk
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import CONCAT_FORMS
from luong_keras.ops.windows import GAUSSIANS


class Distance(Score):
    """A score with a weight that is not linear in the query."""

    def build(self, add_weight, query_shape, value_shape):
        self.sharpness = add_weight("sharpness", (query_shape[-1],))

    def __call__(self, query, keys):
        difference = ops.expand_dims(query, 2) - ops.expand_dims(keys, 1)
        return -ops.sum(ops.square(difference) * self.sharpness, axis=-1)


class Positions(Score):
    """A location-based score, which reads only the query."""

    location_based = True

    def build(self, add_weight, query_shape, value_shape):
        self.kernel = add_weight("kernel", (query_shape[-1], 5))

    def __call__(self, query, keys):
        return ops.tanh(ops.matmul(query, self.kernel))


class SquaredWeights(lk.LuongAttention):
    """An attention that squares the weights of its score."""

    def _attention_weights(self, query, value, value_mask, keys):
        weights = super()._attention_weights(query, value, value_mask, keys)
        return weights * weights


# The arguments of each, and its class if they do not imply it.
ATTENTIONS = {
    "dot": {"score_mode": "dot"},
    "scaled_dot": {"score_mode": "scaled_dot", "use_scale": True},
    "cosine": {"score_mode": "cosine", "use_scale": True},
    "general": {"score_mode": "general"},
    **{
        f"concat-{form}": {
            "score_mode": "concat",
            "concat_form": form,
            "use_scale": True,
        }
        for form in CONCAT_FORMS
    },
    **{
        f"location-{length}-{mask}": {
            "score_mode": "location",
            "max_length": length,
            "mask_location": mask,
            "use_scale": True,
        }
        for length in (3, 9)
        for mask in (True, False)
    },
    **{
        f"{alignment}-{gaussian}-{width}": {
            "alignment": alignment,
            "gaussian": gaussian,
            "half_width": width,
        }
        for alignment in ("monotonic", "predictive")
        for gaussian in GAUSSIANS
        for width in (1, 5)
    },
    "predictive-concat": {"half_width": 2, "score_mode": "concat"},
    "monotonic-unclamped": {
        "alignment": "monotonic",
        "half_width": 1,
        "clamp_position": False,
    },
    "bahdanau": {"class": lk.BahdanauAttention},
    "bahdanau-normalized": {"class": lk.BahdanauAttention, "normalize": True},
    "user-score": {"score_mode": Distance, "use_scale": True},
    "user-positions": {"score_mode": Positions},
    "user-score-in-windows": {"half_width": 1, "score_mode": Distance},
    "user-attention": {"class": SquaredWeights},
}


def is_local(name):
    return "half_width" in ATTENTIONS[name]


def attention_named(name, dtype="float64"):
    """Make an attention of the table."""
    options = {"dtype": dtype, **ATTENTIONS[name]}
    if isinstance(options.get("score_mode"), type):
        options["score_mode"] = options["score_mode"]()
    implied = lk.LocalAttention if is_local(name) else lk.LuongAttention
    return options.pop("class", implied)(**options)
