"""The attention of a decoder, by a name or as a layer."""

import keras

from luong_keras.layers.attention.bahdanau_attention import BahdanauAttention
from luong_keras.layers.attention.local_attention import LocalAttention
from luong_keras.layers.attention.luong_attention import LuongAttention
from luong_keras.layers.attention.score import Score
from luong_keras.layers.attention.scores import OTHER_NAMES, SCORES
from luong_keras.near_names import did_you_mean


def _with_alignment(alignment):
    return lambda **options: LocalAttention(alignment, **options)


def _with_score(name):
    return lambda **options: LuongAttention(name, **options)


# Name -> what makes the layer.
ATTENTIONS = {
    **{name: _with_score(name) for name in SCORES},
    "local-m": _with_alignment("monotonic"),
    "local-p": _with_alignment("predictive"),
    "bahdanau": BahdanauAttention,
}


def attention_of(attention, dtype=None):
    """The attention layer that a decoder is told to have.

    Args:
        attention: a layer; a name of `ATTENTIONS`, which are those of the
            scores, `"local-m"`, `"local-p"` (section 3.2) and `"bahdanau"`;
            what `keras.saving.serialize_keras_object` made of a layer; or
            None.
        dtype: of a layer that is made here.

    Returns:
        The layer, or None.

    Raises:
        ValueError: for anything else.
    """
    if attention is None or isinstance(attention, LuongAttention):
        return attention
    if isinstance(attention, dict):
        return attention_of(keras.saving.deserialize_keras_object(attention))
    if isinstance(attention, str) and attention in ATTENTIONS:
        return ATTENTIONS[attention](dtype=dtype)
    fix = "Pass one of them."
    if isinstance(attention, type):
        fix = f"Pass an object, `{attention.__name__}()`."
    elif isinstance(attention, Score):
        fix = "Pass `LuongAttention(score)`."
    elif isinstance(attention, keras.layers.Attention):
        fix = 'Pass "dot", which gives the same numbers.'
    elif isinstance(attention, keras.layers.Layer):
        fix = "Derive yours from `LuongAttention`, or make it a `Score`."
    elif isinstance(attention, str):
        fix = _spelled(attention)
    raise ValueError(
        "`attention` must be a `LuongAttention`, `LocalAttention` or "
        f"`BahdanauAttention`, one of the names {tuple(ATTENTIONS)}, or None. "
        f"Received: attention={attention!r}. {fix}"
    )


def _spelled(name):
    """Suggestion for an unknown name of an attention layer."""
    plain = name.lower().replace(" ", "-").replace("_", "-")
    others = {**OTHER_NAMES, "scaled-dot": "scaled_dot"}
    others |= {"monotonic": "local-m", "predictive": "local-p"}
    for known in (plain, others.get(plain)):
        if known in ATTENTIONS:
            return f"Write {known!r}."
    return f"Pass one of them.{did_you_mean(plain, ATTENTIONS)}"
