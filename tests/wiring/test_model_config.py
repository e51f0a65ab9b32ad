"""Model settings reach their layers, and no other attributes."""

from dataclasses import fields

import numpy as np
import pytest

from luong_keras.config import AttentionConfig, ModelConfig
from luong_keras.models.translation_model import TranslationModel
from tests.layer_checks import to_numpy
from tests.wiring.attribute_paths import ABSENT, at, changed, row, values_at

BASE = {
    "source_vocabulary_size": 11,
    "target_vocabulary_size": 9,
    "embedding_size": 5,
    "units": 6,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "dropout": 0.0,
    "initial_range": 0.7,
}
UNIFORM = ("uniform", -0.7, 0.7)

NUMBERS = {"output_dim": 5, "embeddings_initializer": UNIFORM}
CELL = {"units": 6, "use_bias": True}
UNCLIPPED = {"cell_clip": None, "gradient_clip": None}
DROPOUT = {"dropout": 0.0, "dropout_style": "zaremba"}


def attention(**values):
    return at("decoder.cell.attention", **values)


# Attributes of the layers of that model, by their paths.
EXPECTED = {
    **at("source_embedding", name="source_embedding", input_dim=11, **NUMBERS),
    **at("target_embedding", name="target_embedding", input_dim=9, **NUMBERS),
    **at("encoder", num_layers=1, recurrence="lstm", bidirectional=False),
    **at("encoder", reverse=True, **CELL, **DROPOUT, **UNCLIPPED),
    "encoder.stacks.0.0": "LSTM",
    "encoder.stacks.0.1": ABSENT,
    **at("encoder.stacks.0.0.cell", **CELL, **UNCLIPPED),
    "encoder.stacks.1.0": ABSENT,
    **at("decoder", return_sequences=True, return_state=False, **DROPOUT),
    **at("decoder", deferred_gradients="auto", cell="InputFeedingLSTMCell"),
    **at("decoder.cell", num_layers=2, input_feeding=True, **CELL, **UNCLIPPED),
    **at("decoder.cell", attentional_bias=False, attentional_activation="tanh"),
    **at("decoder.cell", recurrent_initializer=UNIFORM),
    **at("decoder.cell", bias_initializer="Zeros", attention="LocalAttention"),
    **attention(score_mode="general", concat_form=None, half_width=10),
    **attention(alignment="predictive", gaussian="auto", sigma=None),
    **attention(clamp_position=True, max_length=None, mask_location=True),
    **attention(use_scale=False, dropout=0.0, units=None),
    **at("bridge", units=6, num_states=4),
    **at("projection", name="output_projection", vocabulary_size=9),
    **at("projection", embedding=None, use_bias=False),
    **at("losses", label_smoothing=0.0, sampled=None, seed=None, pad_id=0),
    "losses.projection": "OutputProjection",
}
WITH_KERNEL = (
    "encoder",
    "decoder.cell",
    "decoder.cell.attention",
    "bridge",
    "projection",
)
WITH_DTYPE = (
    *WITH_KERNEL,
    "source_embedding",
    "target_embedding",
    "encoder.stacks.0.0",
    "decoder",
    "losses",
)
EXPECTED |= {f"{part}.kernel_initializer": UNIFORM for part in WITH_KERNEL}
EXPECTED |= {f"{part}.dtype_policy": "float32" for part in WITH_DTYPE}


def by_prefix(prefix, value):
    return {path: value for path in EXPECTED if path.startswith(prefix)}


def by_suffix(ending, value):
    return {path: value for path in EXPECTED if path.endswith(ending)}


ONLY_LOCAL = "alignment", "half_width", "gaussian", "sigma", "clamp_position"
GLOBAL = {
    "decoder.cell.attention": "LuongAttention",
    **attention(**dict.fromkeys(ONLY_LOCAL, ABSENT)),
}
LOCATION = {"kind": "global", "score_mode": "location"}
BOTH_DIRECTIONS = {"bidirectional": True, "reverse_source": False}
# Layers of Keras cannot clip.
CLIPPING = {"encoder.stacks.0.0": "AttentionRNN"}
GRU = {
    "encoder.recurrence": "gru",
    "encoder.stacks.0.0": "GRU",
    "decoder.cell": "InputFeedingGRUCell",
    "bridge.num_states": 2,
}
USE_BIAS = (
    "encoder.use_bias",
    "decoder.cell.use_bias",
    "encoder.stacks.0.0.cell.use_bias",
)


def changed_attention(field, value):
    return row(field, value, attention(**{field: value}))


# Field: its value with other necessary settings, and the changed attributes.
MODEL_ROWS = {
    **changed("source_vocabulary_size", 13, "source_embedding.input_dim"),
    **changed(
        *("target_vocabulary_size", 14),
        *("target_embedding.input_dim", "projection.vocabulary_size"),
    ),
    **row("source_features", 3, by_prefix("source_embedding", ABSENT)),
    **row("embedding_size", 4, by_suffix(".output_dim", 4)),
    **changed(
        *("units", 8, "encoder.units", "encoder.stacks.0.0.cell.units"),
        *("decoder.cell.units", "bridge.units"),
    ),
    **row(
        *("encoder_layers", 2),
        {"encoder.num_layers": 2, "encoder.stacks.1.0": "LSTM"}
        | by_prefix("bridge", ABSENT),
    ),
    **row(
        *("decoder_layers", 3),
        {"decoder.cell.num_layers": 3, "bridge.num_states": 6},
    ),
    **row("recurrence", "gru", GRU),
    "bidirectional": (
        BOTH_DIRECTIONS,
        at("encoder", bidirectional=True, reverse=False)
        | {"encoder.stacks.0.0.cell.units": 3, "encoder.stacks.0.1": "LSTM"},
    ),
    **changed("reverse_source", False, "encoder.reverse"),
    **row(
        *("decoder", "bahdanau"),
        at("decoder", cell="BahdanauLSTMCell")
        | {"decoder.cell.input_feeding": False},
    ),
    **row(
        *("attention", AttentionConfig(kind="none")),
        by_prefix("decoder.cell.attention.", ABSENT)
        | {"decoder.cell.attention": ABSENT},
    ),
    **changed("input_feeding", False, "decoder.cell.input_feeding"),
    **changed("dropout", 0.3, "encoder.dropout", "decoder.dropout"),
    **row("dropout_style", "sequence", by_suffix("dropout_style", "sequence")),
    **changed("use_bias", False, *USE_BIAS),
    **changed("attentional_bias", True, "decoder.cell.attentional_bias"),
    **changed("output_bias", True, "projection.use_bias"),
    **row("cell_clip", 0.25, CLIPPING | by_suffix("cell_clip", 0.25)),
    **row("gradient_clip", 0.125, CLIPPING | by_suffix("gradient_clip", 0.125)),
    "shared_embeddings": (
        {"shared_embeddings": True, "source_vocabulary_size": 9},
        by_suffix("embedding.name", "shared_embedding")
        | {"source_embedding.input_dim": 9},
    ),
    **row("tied_embeddings", True, {"projection.embedding": "Embedding"}),
    **row(
        *("initial_range", 0.3),
        {
            k: ("uniform", -0.3, 0.3)
            for k, v in EXPECTED.items()
            if v == UNIFORM
        },
    ),
    **row(
        *("precision", "mixed_bfloat16"),
        by_suffix(".dtype_policy", "mixed_bfloat16"),
    ),
    # Masks are tested below, ids of the search in test_decoding_config.
    **changed("source_pad_id", 7),
    **changed("target_pad_id", 6, "losses.pad_id"),
    **changed("bos_id", 5),
    **changed("eos_id", 5),
}

ATTENTION_ROWS = {
    **row("kind", "global", GLOBAL),
    **changed_attention("score_mode", "cosine"),
    "concat_form": (
        {"score_mode": "concat", "concat_form": "separate"},
        attention(score_mode="concat", concat_form="separate"),
    ),
    **changed_attention("alignment", "monotonic"),
    **changed_attention("half_width", 3),
    **changed_attention("gaussian", "renormalized"),
    **changed_attention("clamp_position", False),
    "max_length": (
        LOCATION | {"max_length": 7},
        GLOBAL | attention(score_mode="location", max_length=7),
    ),
    "mask_location": (
        LOCATION | {"mask_location": False},
        GLOBAL
        | attention(score_mode="location", max_length=50, mask_location=False),
    ),
    **changed_attention("use_scale", True),
}

# Combinations of several fields.
CONCAT = {
    "score_mode": "concat",
    "concat_form": "query_only",
    "use_scale": True,
}
COMBINED_ROWS = {
    "gated Bahdanau": (
        {
            "decoder": "bahdanau",
            "recurrence": "gru",
            "use_bias": False,
            "attentional_bias": True,
        },
        GRU
        | {"decoder.cell": "BahdanauGRUCell"}
        | at("decoder.cell", input_feeding=False, attentional_bias=True)
        | dict.fromkeys(USE_BIAS, False),
    ),
    "global concat": (
        {
            "attention": AttentionConfig(kind="global", **CONCAT),
            "precision": "mixed_float16",
        },
        GLOBAL
        | by_suffix(".dtype_policy", "mixed_float16")
        | attention(**CONCAT),
    ),
    "Keras' own initializers": (
        {"initial_range": None},
        by_suffix(".embeddings_initializer", ("uniform", -0.05, 0.05))
        | by_suffix(".kernel_initializer", "GlorotUniform")
        | {
            "encoder.kernel_initializer": None,
            "decoder.cell.recurrent_initializer": "Orthogonal",
        },
    ),
}

ROWS = MODEL_ROWS | COMBINED_ROWS
ROWS |= {
    f"attention.{name}": ({"attention": AttentionConfig(**values)}, changes)
    for name, (values, changes) in ATTENTION_ROWS.items()
}


class Parts:
    """Layers of a translation model, by the names used above."""

    def __init__(self, translation_model):
        vars(self).update(vars(translation_model))
        model = translation_model.training_model
        self.losses = model.get_layer("word_losses")


def make(label_smoothing=0.0, sampled=None, **changes):
    config = ModelConfig(**{**BASE, **changes})
    return TranslationModel(config, label_smoothing, sampled)


def test_all_fields_are_tested():
    tables = (ModelConfig, MODEL_ROWS), (AttentionConfig, ATTENTION_ROWS)
    for kind, rows in tables:
        usual = {field.name: field.default for field in fields(kind)}
        assert set(rows) == set(usual)
        usual |= BASE
        for name, (values, _) in rows.items():
            assert values[name] != usual[name], f"{name} has its default"


def test_default_layers():
    assert values_at(Parts(make()), EXPECTED) == EXPECTED


@pytest.mark.slow_after_first
@pytest.mark.tensorflow  # does not depend on the backend
@pytest.mark.parametrize("row", ROWS)
def test_settings_change_only_these_attributes(row):
    changes, differences = ROWS[row]
    assert set(differences) <= set(EXPECTED)
    found = values_at(Parts(make(**changes)), EXPECTED)
    assert found == EXPECTED | differences


def test_both_directions_are_clipped():
    clips = {"cell_clip": 0.25, "gradient_clip": 0.125}
    encoder = make(**BOTH_DIRECTIONS, **clips, encoder_layers=2).encoder
    cells = [layer.cell for stack in encoder.stacks for layer in stack]
    assert len(cells) == 4
    assert {(c.cell_clip, c.gradient_clip) for c in cells} == {(0.25, 0.125)}


@pytest.mark.parametrize(
    "name, value", [("label_smoothing", 0.1), ("sampled", 5)]
)
def test_loss_options_reach_the_losses(name, value):
    assert getattr(Parts(make(**{name: value})).losses, name) == value


def test_models_share_their_layers():
    translation_model = make(tied_embeddings=True)
    parts = Parts(translation_model)
    assert parts.losses.projection is parts.projection
    assert parts.projection.embedding is parts.target_embedding
    for model in (parts.model, parts.training_model):
        for part in (parts.encoder, parts.decoder, parts.bridge):
            assert part in model.layers


def test_masks_use_the_configured_pad_ids():
    translation_model = make(source_pad_id=7, target_pad_id=6)
    source = np.array([[4, 0, 3, 7, 7], [10, 5, 7, 7, 7]], "int32")
    _, mask, _ = translation_model.encode(source)
    np.testing.assert_array_equal(mask, source != 7)
    target = np.array([[4, 0, 3, 6], [8, 3, 6, 6]], "int32")
    outputs = translation_model.training_model([source, target, target])
    np.testing.assert_array_equal(to_numpy(outputs["word"]) > 0, target != 6)
