import dataclasses
import math
import typing

import numpy as np
import pytest

from luong_keras.config import (
    AttentionConfig,
    DataConfig,
    DecodingConfig,
    FilterConfig,
    ModelConfig,
    RunConfig,
    SentencePieceConfig,
    TrainingConfig,
)
from luong_keras.config.values import (
    config_from_dict,
    config_to_dict,
    convert_values,
    override,
    read_values,
    with_values,
)
from luong_keras.layers.attention.scores import SCORES
from luong_keras.presets import PRESETS

# Type checks need the extra `train`.
pytest.importorskip("pydantic", reason="settings are checked by pydantic")


def test_assignments_override_single_settings():
    config = override(
        PRESETS["paper"],
        [
            "model.units=64",
            "model.attention.kind=global",
            " training.clip_norm = null",
            "model.tied_embeddings=true",
            "training.learning_rate=5e-1",
            "data.dataset=files",
            "data.train=corpus/train=1",
            "training.epochs=3",
            "training.epochs=4",
        ],
    )
    assert config.model.units == 64
    assert config.model.attention.kind == "global"
    assert config.training.clip_norm is None
    assert config.model.tied_embeddings is True
    assert config.training.learning_rate == 0.5
    assert config.data.train == "corpus/train=1"
    assert config.training.epochs == 4
    # No other setting changes, and the preset stays the same.
    assert config.decoding == PRESETS["paper"].decoding
    assert config.model.embedding_size == 1000
    assert PRESETS["paper"].model.units == 1000


@pytest.mark.parametrize(
    "assignment",
    [
        "model.unitz=4",
        "unitz=4",
        "models.units=4",
        "model.units",
        "model.units.x=4",
        "=4",
        "",
    ],
)
def test_error_for_an_unknown_setting_lists_the_sections(assignment):
    with pytest.raises(ValueError) as caught:
        override(RunConfig(), [assignment])
    message = str(caught.value)
    assert f"Received: {assignment!r}" in message
    assert "model, data, training, decoding" in message


def test_error_for_a_misspelt_setting_names_no_assignment():
    with pytest.raises(ValueError, match=r"Did you mean epochs\?") as caught:
        convert_values({"epoch": 3})
    assert "assignment" not in str(caught.value)


def test_all_wrong_values_are_reported_together():
    with pytest.raises(ValueError, match=r"(?s)model\.units.*training\.seed"):
        override(RunConfig(), ["model.units=x", "training.seed=y"])


def test_unknown_names_in_a_dictionary_are_refused():
    values = config_to_dict(RunConfig())
    values["model"]["attention"]["windo"] = 3
    with pytest.raises(ValueError, match="model.attention.windo"):
        config_from_dict(values)


@pytest.mark.parametrize(
    "section, values, message",
    [
        ("model", {"units": "many"}, "model.units: Expected int. .*: 'many'"),
        ("model", {"recurrence": "lsmt"}, "'lstm', 'gru'.* mean lstm"),
        (
            "data",
            {"train": 3},
            r"train: Expected str or a list of \(str or \[str, str\]\) or null",
        ),
        ("data", {"columns": ["a"]}, r"columns: Expected \[str, str\] or null"),
        ("training", {"clip_norm": "x", "seed": 1.5}, "clip_norm: .*seed: "),
        ("model", {"attention": 4}, "attention: Expected settings of this sec"),
        ("training", {"unit": 4}, "training.unit: .* Received: 4"),
    ],
)
def test_wrong_values_in_a_dictionary_are_named_once(section, values, message):
    nested = config_to_dict(RunConfig())
    nested[section] |= values
    with pytest.raises(ValueError, match=message) as caught:
        config_from_dict(nested)
    assert str(caught.value).count("Received") == len(values)


@pytest.mark.parametrize("value", [True, math.nan, math.inf])
def test_booleans_and_non_finite_numbers_are_refused(value):
    values = config_to_dict(RunConfig())
    values["training"]["learning_rate"] = value
    with pytest.raises(ValueError, match="learning_rate: .*Received"):
        config_from_dict(values)


@pytest.mark.parametrize("name", ["(old).tsv", "[old].tsv"])
def test_file_names_may_begin_with_a_bracket(name):
    config = override(RunConfig(), ["data.dataset=files", f"data.train={name}"])
    assert config.data.train == name


def test_a_single_section_is_read():
    decoding = DecodingConfig(beam_size=3)
    assert (
        config_from_dict(config_to_dict(decoding), DecodingConfig) == decoding
    )


@pytest.mark.parametrize(
    "kind", [ModelConfig, AttentionConfig, DecodingConfig, TrainingConfig]
)
def test_values_outside_the_choices_are_refused(kind):
    """Configurations made in Python are checked too."""
    defaults = {
        field.name: field.default
        for field in dataclasses.fields(kind)
        if isinstance(field.default, str) and field.name != "metric"
    }
    assert len(defaults) >= 4
    for name, default in defaults.items():
        with pytest.raises(
            ValueError, match=f"`{name}` must be one of .*{default}"
        ):
            kind(**{name: "nonsense"})
    with pytest.raises(ValueError, match="Did you mean sampling"):
        DecodingConfig(search="samplng")


def test_score_modes_are_those_of_the_layers():
    hint = typing.get_type_hints(AttentionConfig)["score_mode"]
    assert typing.get_args(hint) == tuple(SCORES)


# Each configuration, and each of its settings that may be a float.
FLOATS = [
    (kind, name)
    for kind in (
        *(AttentionConfig, DataConfig, DecodingConfig, FilterConfig),
        *(ModelConfig, SentencePieceConfig, TrainingConfig),
    )
    for name, hint in typing.get_type_hints(kind).items()
    if float in (hint, *typing.get_args(hint))
]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("kind, name", FLOATS)
def test_every_number_is_finite(kind, name, value):
    others = {"max_length_ratio": 2.0} if name == "max_length_offset" else {}
    with pytest.raises(ValueError, match=f"{name}.*Received: .*{value}"):
        kind(**others, **{name: value})


@pytest.mark.parametrize("value", [".nan", ".inf"])
def test_settings_files_have_finite_numbers(tmp_path, value):
    path = tmp_path / "settings.yaml"
    path.write_text(f"training:\n  clip_norm: {value}\n")
    with pytest.raises(ValueError, match="training.clip_norm: Expected float"):
        with_values(RunConfig(), read_values(path))


TWO_SOURCES = {"dataset": "files", "train": ("a", "b")}


@pytest.mark.parametrize(
    "section, value, message",
    [
        (ModelConfig, {"units": "a"}, "units must be int. Received: units='a'"),
        (ModelConfig, {"units": math.nan}, "units must be int.*units=nan"),
        (ModelConfig, {"units": math.inf}, "units must be int.*units=inf"),
        (ModelConfig, {"units": 2.5}, "units must be int. Received: units=2.5"),
        (ModelConfig, {"units": None}, "units must be int. Received: .*None"),
        (ModelConfig, {"use_bias": 1}, "use_bias must be bool. Received: .*1"),
        (TrainingConfig, {"epochs": True}, "epochs must be int. .*=True"),
        (TrainingConfig, {"learning_rate": "x"}, "must be float. .*='x'"),
        (TrainingConfig, {"patience": "x"}, "must be int or None. .*='x'"),
        *(
            (ModelConfig, {"units": value}, f"must be int.*units={value}")
            for value in (math.nan, math.inf)
        ),
        *(
            (
                DataConfig,
                {**TWO_SOURCES, "weights": (1.0, value)},
                f"weights are .*, {value}",
            )
            for value in (math.nan, math.inf)
        ),
        *(
            (DecodingConfig, {name: -1.0}, f"Received: {name}=-1.0")
            for name in (
                *("length_penalty", "coverage_penalty"),
                *("temperature", "top_p"),
            )
        ),
        *(
            (DecodingConfig, {name: ""}, f"a file as {name}, or none")
            for name in ("dictionary", "shortlist")
        ),
    ],
)
def test_wrong_values_are_refused_in_python(section, value, message):
    """Flags and Python bypass the checks of configuration files."""
    with pytest.raises(ValueError, match=message):
        section(**value)


def test_numbers_of_numpy_are_settings():
    config = ModelConfig(units=np.int64(4), dropout=np.float32(0.5))
    assert config.units == 4 and config.dropout == 0.5


def test_configurations_are_immutable():
    config = PRESETS["demo"]
    sections = [config, *vars(config).values(), config.model.attention]
    for section in (*sections, config.data.filters, config.data.sentencepiece):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(section, dataclasses.fields(section)[0].name, 3)


@pytest.mark.parametrize(
    "row",
    [
        "model.units=0 -> units must be at least 1. Received: units=0",
        "model.dropout=1 -> dropout must be at least 0 and less than 1",
        "model.attention.score_mode=location -> kind='local' looks at a window",
        "model.bidirectional=true -> exclude each other",
        "model.bidirectional=true model.reverse_source=false model.units=7 -> "
        "Expected: an even number. Received: units=7",
        "model.decoder=bahdanau model.attention.kind=none -> "
        "needs attention. Received: attention.kind='none'",
        "model.recurrence=gru model.cell_clip=1 -> belong to recurrence='lstm'",
        "model.eos_id=7 -> ids of this library's tokenizers",
        "training.batch_size=0 -> batch_size must be at least 1",
        "training.label_smoothing=2 -> label_smoothing=2",
        "training.normalization=word training.nominal_batch_size=true -> "
        "belongs to normalization='sentence'",
        "training.halving=by_iteration -> go together",
        "training.keep=-1 -> keep must be at least 0.*keep=-1",
        "training.learning_rate=-1 -> learning_rate must be at least 0",
        "training.learning_rate=nan -> Expected float. Received: 'nan'",
        "training.learning_rate=Infinity -> float. Received: inf",
        "training.learning_rate=true -> Expected float. Received: True",
        "model.units=false -> Expected int. Received: False",
        "training.seed=-1 -> seed must be at least 0",
        "training.samples=-1 -> samples must be at least 0",
        "training.seed=4294967296 -> at most 4294967295. Received: seed=42",
        "decoding.seed=2147483648 -> at most 2147483647. Received: seed=21",
        "decoding.top_k=2147483648 -> at most 2147483647. Received: top_k=",
        "decoding.top_k=0 -> top_k must be at least 1",
        "training.clip_norm=0 -> clip_norm must be positive .*, or null",
        "model.initial_range=-1 -> initial_range must be at least 0",
        "model.cell_clip=0 -> cell_clip must be positive .*, or null",
        "data.new_words=-1 -> new_words must be at least 0",
        "data.new_words=2 -> of training.init_from. Received: new_words=2",
        "data.new_words=2 data.tokenizer=sentencepiece -> "
        "Expected: tokenizer='words'. Received: new_words=2",
        "data.max_skipped=1.1 -> must be 0 to 1. Received: max_skipped=1.1",
        "model.attention.half_width=0 -> half_width must be at least 1",
        "model.source_features=0 -> source_features must be at least 1",
        "model.source_features=3 -> The source of a run is text",
        "training.patience=0 -> patience must be at least 1",
        "training.final_weights=average -> Expected one of 'best', 'last'",
        "decoding.beam_size=0 -> beam_size must be at least 1",
        "decoding.min_length_ratio=3 -> None, which is 2.0. Set both",
        "decoding.min_length_ratio=2 decoding.max_length_ratio=1.5 -> "
        "Received: 2.0 and 1.5",
        "decoding.max_length_offset=5 -> needs max_length_ratio",
        "decoding.max_length_ratio=2 decoding.max_length_offset=-1 -> "
        "max_length_offset must be at least 0",
        "decoding.coverage_penalty=0.2 model.attention.kind=none -> "
        "needs attention weights. Received: coverage_penalty=0.2",
        "data.joint_vocabulary=true model.source_vocabulary_size=9 -> "
        "Received: 9 and 50000. .* set data.joint_vocabulary=false",
        "model.shared_embeddings=true -> Expected: data.joint_vocabulary=true",
        "model.shared_embeddings=true model.source_vocabulary_size=9 -> "
        "one vocabulary.* Received: 9 and 50000",
        "model.shared_embeddings=true model.source_features=3 -> "
        "words on both sides. Received: source_features=3",
        "data.sentencepiece.byte_fallback=true -> "
        "Expected: tokenizer='sentencepiece'. Received: "
        ".*byte_fallback=True.* with tokenizer='words'",
        "data.sentencepiece.model_type=word -> "
        "Expected one of 'bpe', 'unigram', 'char'. Received: 'word'",
        "data.sentencepiece.character_coverage=0.9 -> "
        "0.98 to 1. Received: character_coverage=0.9",
        "data.dataset=phrasebook data.train=my/text -> "
        "'phrasebook' would not use `train`. Expected: dataset='files'. "
        "Received: train='my/text'",
        "data.dataset=phrasebook data.dev=a.tsv -> not use `dev`",
        "data.dataset=phrasebook data.test=a.tsv -> not use `test`",
        "data.train=my/text -> 'wmt14_translate' would not use `train`",
        "data.pretokenized=true data.tokenizer=sentencepiece -> "
        "pretokenized=True with tokenizer='sentencepiece'",
        "data.pretokenized=true data.tokenize=true -> "
        "pretokenized=True with tokenize=True",
        "data.pretokenized=true data.normalize_punctuation=true -> "
        "pretokenized=True with normalize_punctuation=True",
    ],
)
def test_invalid_combinations_and_ranges_are_refused(row):
    assignments, message = row.split(" -> ")
    with pytest.raises(ValueError, match=message):
        override(PRESETS["paper"], assignments.split())


@pytest.mark.parametrize("symbol", ["<x>", "", "a b", "▁a", "</s>", "<0xFF>"])
def test_unusable_symbols_are_refused(symbol):
    setting = f'data.sentencepiece.user_defined_symbols=["<x>","{symbol}"]'
    message = f"no byte such as <0x41>. Received: '{symbol}'"
    with pytest.raises(ValueError, match=message):
        override(PRESETS["paper"], [setting])
