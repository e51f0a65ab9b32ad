"""Values of all presets, spelled out independently of the code."""

import ast
import json

import pytest

from luong_keras.config import (
    AttentionConfig,
    DataConfig,
    DecodingConfig,
    ModelConfig,
    RunConfig,
    TrainingConfig,
)
from luong_keras.config.values import config_from_dict, config_to_dict
from luong_keras.presets import PRESETS


def settings(**sections):
    """Read `name=value` pairs of each section, by full names."""
    pairs = [
        (section, *word.split("="))
        for section, text in sections.items()
        for word in text.split()
    ]
    return {f"{s}.{name}": ast.literal_eval(value) for s, name, value in pairs}


# The defaults of all settings, which are the paper's.
DEFAULTS = settings(
    model="source_vocabulary_size=50_000 target_vocabulary_size=50_000 "
    "source_features=None embedding_size=1000 units=1000 encoder_layers=4 "
    "decoder_layers=4 recurrence='lstm' bidirectional=False "
    "reverse_source=True decoder='luong' attention.kind='local' "
    "attention.score_mode='general' attention.concat_form=None "
    "attention.alignment='predictive' attention.half_width=10 "
    "attention.gaussian='auto' attention.clamp_position=True "
    "attention.max_length=50 attention.mask_location=True "
    "attention.use_scale=False input_feeding=True dropout=0.2 "
    "dropout_style='zaremba' use_bias=True attentional_bias=False "
    "output_bias=False cell_clip=None gradient_clip=None "
    "tied_embeddings=False shared_embeddings=False initial_range=0.1 "
    "precision='float32' source_pad_id=0 target_pad_id=0 bos_id=2 eos_id=3",
    data="dataset='wmt14_translate' source_language=None target_language=None "
    "train=None dev=None test=None columns=None weights=None "
    "train_size=None tokenizer='words' sentencepiece.model_type='bpe' "
    "sentencepiece.normalization='nmt_nfkc' "
    "sentencepiece.character_coverage=1.0 "
    "sentencepiece.byte_fallback=False "
    "sentencepiece.user_defined_symbols=() joint_vocabulary=False "
    "new_words=0 lowercase=False normalize_punctuation=False "
    "tokenize=False pretokenized=False max_length=50 over_long='drop' "
    "batching='sorted_pools' filters.length_ratio=None "
    "filters.length_unit='words' filters.identical=False "
    "filters.duplicates=False filters.scripts=None processes=None "
    "max_skipped=0.05",
    training="batch_size=128 gradient_accumulation_steps=1 "
    "parallel_microbatches=1 epochs=12 optimizer='sgd' learning_rate=1.0 "
    "clip_norm=5.0 clip_counts_embeddings=True halving='start' "
    "iterations_per_epoch=None first_halved_epoch=9 halvings_per_epoch=1 "
    "normalization='sentence' nominal_batch_size=False label_smoothing=0.0 "
    "sampled_softmax=None init_from=None frozen=() seed=1 snapshot_steps=1000 "
    "samples=5 keep=0 metric='auto' patience=None final_weights='best'",
    decoding="beam_size=10 max_beam_size=None stack_size=None "
    "stack_keeps='best' search='beam' temperature=1.0 top_k=None top_p=1.0 "
    "seed=0 length_penalty=0.0 length_penalty_form='power' "
    "coverage_penalty=0.0 no_repeat_ngram=None min_length_ratio=0.0 "
    "max_length_ratio=None max_length_offset=None replace_unknown=True "
    "alignment_step='produces' batch_size=32 max_source_length=200 "
    "dictionary=None shortlist=None",
)

SMALL_FAST = settings(
    model="source_vocabulary_size=8000 target_vocabulary_size=8000 "
    "embedding_size=256 units=512 encoder_layers=1 decoder_layers=1 "
    "bidirectional=True reverse_source=False attention.kind='global' "
    "dropout=0.3 output_bias=True tied_embeddings=True initial_range=0.15",
    data="dataset='files' tokenizer='sentencepiece' joint_vocabulary=True "
    "max_length=80",
    training="batch_size=64 epochs=8 optimizer='adam' learning_rate=0.001 "
    "clip_norm=1.0 first_halved_epoch=6 normalization='word' "
    "label_smoothing=0.1 snapshot_steps=200",
    decoding="length_penalty=1.0 max_source_length=100",
)

ENGLISH_GERMAN = settings(data="source_language='en' target_language='de'")
# Changes of each preset from the defaults.
DIFFERENCES = {
    "paper": ENGLISH_GERMAN,
    "authors": ENGLISH_GERMAN
    | settings(
        model="attention.concat_form='query_only' "
        "attention.mask_location=False dropout_style='authors' use_bias=False "
        "cell_clip=50.0 gradient_clip=1000.0",
        data="over_long='truncate_source_left' batching='authors'",
        training="clip_counts_embeddings=False halving='after_epoch' "
        "nominal_batch_size=True",
        decoding="stack_size=100 stack_keeps='first' min_length_ratio=0.5 "
        "max_length_ratio=1.5 alignment_step='reads'",
    ),
    "small": SMALL_FAST
    | settings(model="dropout=0.5", training="epochs=27 first_halved_epoch=23"),
    "small-fast": SMALL_FAST,
    "tiny": SMALL_FAST
    | settings(
        model="source_vocabulary_size=500 target_vocabulary_size=500 "
        "embedding_size=128 units=256 dropout=0.2",
        data="max_length=200",
        training="batch_size=32 epochs=60 first_halved_epoch=50 samples=1",
        decoding="max_source_length=250",
    ),
    "demo": ENGLISH_GERMAN
    | settings(
        model="source_vocabulary_size=1000 target_vocabulary_size=1000 "
        "embedding_size=80 units=160 encoder_layers=1 decoder_layers=1 "
        "bidirectional=True reverse_source=False attention.kind='global' "
        "dropout=0.0 output_bias=True initial_range=0.25",
        data="dataset='phrasebook' train_size=24_000 max_length=100",
        training="batch_size=64 epochs=4 optimizer='adam' learning_rate=0.004 "
        "clip_norm=1.0 first_halved_epoch=3 normalization='word' "
        "snapshot_steps=200 samples=2",
        decoding="beam_size=5 length_penalty=1.0",
    ),
}


def values_of(values, prefix=""):
    """Return the settings of an object or of nested dictionaries."""
    found = {}
    for name, value in getattr(values, "__dict__", values).items():
        if isinstance(value, dict) or hasattr(value, "__dataclass_fields__"):
            found |= values_of(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found


def test_defaults():
    # Compare types too, because `True == 1` and `1.0 == 1`.
    assert repr(values_of(RunConfig())) == repr(DEFAULTS)
    for section, kind in (
        ("model", ModelConfig),
        ("data", DataConfig),
        ("training", TrainingConfig),
        ("decoding", DecodingConfig),
        ("model.attention", AttentionConfig),
    ):
        for name, value in values_of(kind(), f"{section}.").items():
            assert value == DEFAULTS[name]


def test_all_presets_are_tested():
    assert list(PRESETS) == list(DIFFERENCES)


@pytest.mark.parametrize("name", DIFFERENCES)
def test_presets_have_these_values_and_keep_them_as_json(name):
    expected = repr(DEFAULTS | DIFFERENCES[name])
    assert repr(values_of(PRESETS[name])) == expected
    pytest.importorskip("pydantic", reason="settings are checked by pydantic")
    written = json.loads(json.dumps(config_to_dict(PRESETS[name])))
    found = config_from_dict(written)
    assert repr(values_of(found)) == expected
    assert type(found.model.attention) is AttentionConfig
