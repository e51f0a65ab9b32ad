"""Model settings reach their layers, and no other attributes."""

from dataclasses import fields

import numpy as np
import pytest

from luong_keras.config import AttentionConfig, ModelConfig
from luong_keras.models.translation_model import TranslationModel
from tests.layer_checks import to_numpy
from tests.wiring.attribute_paths import ABSENT, changed, values_at

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

# Attributes of the layers of that model, by their paths.
EXPECTED = {
    "source_embedding.name": "source_embedding",
    "target_embedding.name": "target_embedding",
    "source_embedding.input_dim": 11,
    "source_embedding.output_dim": 5,
    "source_embedding.embeddings_initializer": UNIFORM,
    "source_embedding.dtype_policy": "float32",
    "target_embedding.input_dim": 9,
    "target_embedding.output_dim": 5,
    "target_embedding.embeddings_initializer": UNIFORM,
    "target_embedding.dtype_policy": "float32",
    "encoder.units": 6,
    "encoder.num_layers": 1,
    "encoder.recurrence": "lstm",
    "encoder.bidirectional": False,
    "encoder.reverse": True,
    "encoder.dropout": 0.0,
    "encoder.dropout_style": "zaremba",
    "encoder.use_bias": True,
    "encoder.cell_clip": None,
    "encoder.gradient_clip": None,
    "encoder.kernel_initializer": UNIFORM,
    "encoder.dtype_policy": "float32",
    "encoder.stacks.0.0": "LSTM",
    "encoder.stacks.0.0.cell.units": 6,
    "encoder.stacks.0.0.cell.use_bias": True,
    "encoder.stacks.0.0.cell.cell_clip": ABSENT,
    "encoder.stacks.0.0.cell.gradient_clip": ABSENT,
    "encoder.stacks.0.0.dtype_policy": "float32",
    "encoder.stacks.0.1": ABSENT,
    "encoder.stacks.1.0": ABSENT,
    "decoder.dropout": 0.0,
    "decoder.dropout_style": "zaremba",
    "decoder.return_sequences": True,
    "decoder.return_state": False,
    "decoder.deferred_gradients": "auto",
    "decoder.dtype_policy": "float32",
    "decoder.cell": "InputFeedingLSTMCell",
    "decoder.cell.units": 6,
    "decoder.cell.num_layers": 2,
    "decoder.cell.input_feeding": True,
    "decoder.cell.use_bias": True,
    "decoder.cell.attentional_bias": False,
    "decoder.cell.attentional_activation": "tanh",
    "decoder.cell.cell_clip": None,
    "decoder.cell.gradient_clip": None,
    "decoder.cell.kernel_initializer": UNIFORM,
    "decoder.cell.recurrent_initializer": UNIFORM,
    "decoder.cell.bias_initializer": "Zeros",
    "decoder.cell.dtype_policy": "float32",
    "decoder.cell.attention": "LocalAttention",
    "decoder.cell.attention.score_mode": "general",
    "decoder.cell.attention.concat_form": None,
    "decoder.cell.attention.alignment": "predictive",
    "decoder.cell.attention.half_width": 10,
    "decoder.cell.attention.gaussian": "auto",
    "decoder.cell.attention.sigma": None,
    "decoder.cell.attention.clamp_position": True,
    "decoder.cell.attention.max_length": None,
    "decoder.cell.attention.mask_location": True,
    "decoder.cell.attention.use_scale": False,
    "decoder.cell.attention.dropout": 0.0,
    "decoder.cell.attention.units": None,
    "decoder.cell.attention.kernel_initializer": UNIFORM,
    "decoder.cell.attention.dtype_policy": "float32",
    "bridge.units": 6,
    "bridge.num_states": 4,
    "bridge.kernel_initializer": UNIFORM,
    "bridge.dtype_policy": "float32",
    "projection.name": "output_projection",
    "projection.vocabulary_size": 9,
    "projection.embedding": None,
    "projection.use_bias": False,
    "projection.kernel_initializer": UNIFORM,
    "projection.dtype_policy": "float32",
    "losses.label_smoothing": 0.0,
    "losses.sampled": None,
    "losses.seed": None,
    "losses.pad_id": 0,
    "losses.projection": "OutputProjection",
    "losses.dtype_policy": "float32",
}


def paths_with_prefix(prefix, value):
    return {path: value for path in EXPECTED if path.startswith(prefix)}


def paths_with_suffix(ending, value):
    return {path: value for path in EXPECTED if path.endswith(ending)}


GLOBAL = {
    "decoder.cell.attention": "LuongAttention",
    **{
        f"decoder.cell.attention.{name}": ABSENT
        for name in (
            "alignment",
            "half_width",
            "gaussian",
            "sigma",
            "clamp_position",
        )
    },
}
# Layers of Keras cannot clip.
CLIPPING = {"encoder.stacks.0.0": "AttentionRNN"}


def changed_attention(field, value):
    return changed(field, value, f"decoder.cell.attention.{field}")


# Field: its value with other necessary settings, and the changed attributes.
MODEL_ROWS = {
    **changed("source_vocabulary_size", 13, "source_embedding.input_dim"),
    **changed(
        *("target_vocabulary_size", 14),
        *("target_embedding.input_dim", "projection.vocabulary_size"),
    ),
    "source_features": (
        {"source_features": 3},
        paths_with_prefix("source_embedding", ABSENT),
    ),
    "embedding_size": (
        {"embedding_size": 4},
        {"source_embedding.output_dim": 4, "target_embedding.output_dim": 4},
    ),
    **changed(
        *("units", 8, "encoder.units", "encoder.stacks.0.0.cell.units"),
        *("decoder.cell.units", "bridge.units"),
    ),
    "encoder_layers": (
        {"encoder_layers": 2},
        {
            "encoder.num_layers": 2,
            "encoder.stacks.1.0": "LSTM",
            **paths_with_prefix("bridge", ABSENT),
        },
    ),
    "decoder_layers": (
        {"decoder_layers": 3},
        {"decoder.cell.num_layers": 3, "bridge.num_states": 6},
    ),
    "recurrence": (
        {"recurrence": "gru"},
        {
            "encoder.recurrence": "gru",
            "encoder.stacks.0.0": "GRU",
            "decoder.cell": "InputFeedingGRUCell",
            "bridge.num_states": 2,
        },
    ),
    "bidirectional": (
        {"bidirectional": True, "reverse_source": False},
        {
            "encoder.bidirectional": True,
            "encoder.reverse": False,
            "encoder.stacks.0.0.cell.units": 3,
            "encoder.stacks.0.1": "LSTM",
        },
    ),
    **changed("reverse_source", False, "encoder.reverse"),
    "decoder": (
        {"decoder": "bahdanau"},
        {
            "decoder.cell": "BahdanauLSTMCell",
            "decoder.cell.input_feeding": False,
        },
    ),
    "attention": (
        {"attention": AttentionConfig(kind="none")},
        paths_with_prefix("decoder.cell.attention.", ABSENT)
        | {"decoder.cell.attention": ABSENT},
    ),
    **changed("input_feeding", False, "decoder.cell.input_feeding"),
    **changed("dropout", 0.3, "encoder.dropout", "decoder.dropout"),
    "dropout_style": (
        {"dropout_style": "sequence"},
        paths_with_suffix(".dropout_style", "sequence"),
    ),
    **changed(
        *("use_bias", False, "encoder.use_bias"),
        *("encoder.stacks.0.0.cell.use_bias", "decoder.cell.use_bias"),
    ),
    **changed("attentional_bias", True, "decoder.cell.attentional_bias"),
    **changed("output_bias", True, "projection.use_bias"),
    "cell_clip": (
        {"cell_clip": 0.25},
        CLIPPING | paths_with_suffix(".cell_clip", 0.25),
    ),
    "gradient_clip": (
        {"gradient_clip": 0.125},
        CLIPPING | paths_with_suffix(".gradient_clip", 0.125),
    ),
    "shared_embeddings": (
        {"shared_embeddings": True, "source_vocabulary_size": 9},
        {
            "source_embedding.name": "shared_embedding",
            "target_embedding.name": "shared_embedding",
            "source_embedding.input_dim": 9,
        },
    ),
    "tied_embeddings": (
        {"tied_embeddings": True},
        {"projection.embedding": "Embedding"},
    ),
    "initial_range": (
        {"initial_range": 0.3},
        {
            k: ("uniform", -0.3, 0.3)
            for k, v in EXPECTED.items()
            if v == UNIFORM
        },
    ),
    "precision": (
        {"precision": "mixed_bfloat16"},
        paths_with_suffix(".dtype_policy", "mixed_bfloat16"),
    ),
    # Masks are tested below, ids of the search in test_decoding_config.
    **changed("source_pad_id", 7),
    **changed("target_pad_id", 6, "losses.pad_id"),
    **changed("bos_id", 5),
    **changed("eos_id", 5),
}

ATTENTION_ROWS = {
    "kind": ({"kind": "global"}, GLOBAL),
    **changed_attention("score_mode", "cosine"),
    "concat_form": (
        {"score_mode": "concat", "concat_form": "separate"},
        {
            "decoder.cell.attention.score_mode": "concat",
            "decoder.cell.attention.concat_form": "separate",
        },
    ),
    **changed_attention("alignment", "monotonic"),
    **changed_attention("half_width", 3),
    **changed_attention("gaussian", "renormalized"),
    **changed_attention("clamp_position", False),
    "max_length": (
        {"kind": "global", "score_mode": "location", "max_length": 7},
        {
            **GLOBAL,
            "decoder.cell.attention.score_mode": "location",
            "decoder.cell.attention.max_length": 7,
        },
    ),
    "mask_location": (
        {"kind": "global", "score_mode": "location", "mask_location": False},
        {
            **GLOBAL,
            "decoder.cell.attention.score_mode": "location",
            "decoder.cell.attention.max_length": 50,
            "decoder.cell.attention.mask_location": False,
        },
    ),
    **changed_attention("use_scale", True),
}

# Combinations of several fields.
COMBINED_ROWS = {
    "gated Bahdanau": (
        {
            "decoder": "bahdanau",
            "recurrence": "gru",
            "use_bias": False,
            "attentional_bias": True,
        },
        {
            "encoder.recurrence": "gru",
            "encoder.stacks.0.0": "GRU",
            "decoder.cell": "BahdanauGRUCell",
            "decoder.cell.input_feeding": False,
            "decoder.cell.attentional_bias": True,
            "bridge.num_states": 2,
            "encoder.use_bias": False,
            "encoder.stacks.0.0.cell.use_bias": False,
            "decoder.cell.use_bias": False,
        },
    ),
    "global concat": (
        {
            "attention": AttentionConfig(
                kind="global",
                score_mode="concat",
                concat_form="query_only",
                use_scale=True,
            ),
            "precision": "mixed_float16",
        },
        {
            **GLOBAL,
            **paths_with_suffix(".dtype_policy", "mixed_float16"),
            "decoder.cell.attention.score_mode": "concat",
            "decoder.cell.attention.concat_form": "query_only",
            "decoder.cell.attention.use_scale": True,
        },
    ),
    "Keras' own initializers": (
        {"initial_range": None},
        {
            **paths_with_suffix(
                "embedding.embeddings_initializer", ("uniform", -0.05, 0.05)
            ),
            "encoder.kernel_initializer": None,
            "decoder.cell.kernel_initializer": "GlorotUniform",
            "decoder.cell.recurrent_initializer": "Orthogonal",
            "decoder.cell.attention.kernel_initializer": "GlorotUniform",
            "bridge.kernel_initializer": "GlorotUniform",
            "projection.kernel_initializer": "GlorotUniform",
        },
    ),
}

ROWS = {
    **MODEL_ROWS,
    **{
        f"attention.{name}": (
            {"attention": AttentionConfig(**values)},
            differences,
        )
        for name, (values, differences) in ATTENTION_ROWS.items()
    },
    **COMBINED_ROWS,
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
    for kind, rows in (
        (ModelConfig, MODEL_ROWS),
        (AttentionConfig, ATTENTION_ROWS),
    ):
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
    encoder = make(
        bidirectional=True,
        reverse_source=False,
        cell_clip=0.25,
        gradient_clip=0.125,
        encoder_layers=2,
    ).encoder
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
