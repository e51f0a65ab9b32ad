import pytest

from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import (
    SHORT_NAMES,
    config_to_dict,
    convert_values,
    leaf_values,
    override,
    read_values,
    with_values,
)
from luong_keras.presets import PRESETS

pytest.importorskip("pydantic", reason="settings are checked by pydantic")


@pytest.mark.parametrize(
    "before, changes, after",
    [
        # (beam_size, stack_size, max_beam_size) before and after the changes.
        ((10, 100, None), {"beam_size": 1}, (1, None, None)),
        ((10, 100, None), {"beam_size": 10}, (10, 100, None)),
        ((10, 100, None), {"beam_size": 5, "stack_size": 7}, (5, 7, None)),
        ((10, 100, None), {"stack_size": 7}, (10, 7, None)),
        ((10, 100, None), {"length_penalty": 1.0}, (10, 100, None)),
        ((10, None, 12), {"beam_size": 11}, (11, None, 12)),
        ((10, None, 12), {"beam_size": 20}, (20, None, None)),
        ((10, 5, 12), {"beam_size": 20}, (20, None, None)),
        ((10, None, 12), {"max_beam_size": 30}, (10, None, 30)),
        ((5, None, None), {"n_best": 5}, (5, None, None)),
        ((5, None, None), {"n_best": 8}, (8, None, None)),
        ((5, None, 6), {"n_best": 8}, (8, None, None)),
        ((10, 100, None), {"n_best": 50}, (10, 100, None)),
        ((10, 100, None), {"n_best": 150}, (150, 150, None)),
        ((2, 4, 3), {"n_best": 6}, (6, 6, None)),
        ((10, 100, None), {"n_best": 8, "beam_size": 2}, (2, 8, None)),
        ((5, None, None), {"n_best": 8, "beam_size": 2}, (2, 8, None)),
        ((5, None, None), {"n_best": 8, "stack_size": 9}, (5, 9, None)),
        ((5, 7, 9), {"search": "sampling"}, (1, None, 9)),
        ((5, None, None), {"search": "sampling", "n_best": 8}, (8, None, None)),
        (
            (5, None, None),
            {"search": "sampling", "beam_size": 3, "n_best": 2},
            (3, None, None),
        ),
    ],
)
def test_beam_and_stack_sizes_follow_changed_settings(before, changes, after):
    names = ("beam_size", "stack_size", "max_beam_size")
    decoding = DecodingConfig(**dict(zip(names, before, strict=True)))
    found = decoding.with_(**changes)
    assert tuple(getattr(found, name) for name in names) == after
    # Other settings stay the same.
    assert found.replace_unknown == decoding.replace_unknown
    assert found.length_penalty == changes.get("length_penalty", 0.0)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"beam_size": 8, "max_beam_size": 4}, "at least beam_size"),
        ({"n_best": 8, "stack_size": 4}, "n_best=8 and stack_size=4"),
        (
            {"search": "sampling", "beam_size": 3, "n_best": 5},
            "the number of samples. Received: n_best=5 and beam_size=3",
        ),
        ({"beam_size": 0}, "at least 1"),
        ({"top_k": 0}, "top_k must be at least 1"),
        ({"no_repeat_ngram": 0}, "no_repeat_ngram must be at least 1"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"top_p": float("nan")}, "top_p must be above 0.*top_p=nan"),
        ({"top_p": 90}, "above 0 and at most 1. Received: top_p=90"),
        ({"top_p": 1.01}, "above 0 and at most 1. Received: top_p=1.01"),
        ({"coverage_penalty": -1.0}, "coverage_penalty must be at least 0"),
        ({"length_penalty": -1.0}, "length_penalty must be at least 0"),
        ({"temperature": -1.0}, "Received: temperature=-1.0"),
        ({"top_p": -1.0}, "Received: top_p=-1.0"),
        ({"no_repeat_ngram": 9}, "no_repeat_ngram must be 8 or less"),
    ],
)
def test_invalid_search_settings_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        DecodingConfig().with_(**changes)


def test_the_largest_search_settings_are_accepted():
    decoding = DecodingConfig().with_(no_repeat_ngram=8, top_p=1)
    assert decoding.no_repeat_ngram == 8


def test_a_new_length_ratio_removes_the_old_offset():
    decoding = DecodingConfig(max_length_ratio=1.2, max_length_offset=11.0)
    assert decoding.with_(max_length_ratio=2.0).max_length_offset is None
    assert decoding.with_(max_length_offset=3.0).max_length_ratio == 1.2
    both = decoding.with_(max_length_ratio=2.0, max_length_offset=3.0)
    assert both.max_symbols(10) == 23
    assert decoding.with_(beam_size=3).max_length_offset == 11


def test_assignments_adjust_dependent_search_settings():
    authors = PRESETS["authors"]
    assert override(authors, ["decoding.beam_size=1"]).decoding == (
        authors.decoding.with_(beam_size=1)
    )
    both = ["decoding.beam_size=1", "decoding.stack_size=3"]
    assert override(authors, both).decoding.stack_size == 3


@pytest.mark.parametrize(
    "assignment, message",
    [
        ("model.unit=4", "mean model.units.*Received: 'model.unit=4'"),
        ("model.kind=none", "mean model.attention.kind"),
        ("dropot=3", "mean dropout\\?"),
        ("layer=3", "no setting 'layer'. Did you mean layers\\? Expected an"),
        ("xyzzy=3", "no setting 'xyzzy'. Expected an"),
        ("training.max_skipped=1", "max_skipped has been removed. Exp"),
        ("units", "`section.name=value`.* Received: 'units'"),
        ("model=4", "Wrong settings: model: Expected settings.* Received: 4"),
        ("model.units=many", "settings: model.units: Expected int.*: 'many'"),
        ("model.units=1.5", "Wrong settings: model.units: .*int.*: 1.5"),
        ("model.units={}", "Wrong settings: model.units: .*int.*: {}"),
        ("decoding.shortlist=", "shortlist: Expected str or null. .*: ''"),
        ("data.source_language=", "language: Expected str or null. .*: ''"),
        ("model.units=null", "Wrong settings: model.units: .*int.*: None"),
        ("training.clip_norm=x", "clip_norm: Expected float or null.*: 'x'"),
        ("model.recurrence=rnn", "Wrong settings: model.recurrence: .*: 'rnn'"),
        (
            "model.attention.kind=nearby",
            "Wrong settings: model.attention.kind: .*: 'nearby'",
        ),
        ("data.over_long=keep", "Wrong settings: data.over_long: .*: 'keep'"),
        (
            "training.optimizer=[]",
            r"Wrong settings: training.optimizer: .*'sgd', 'adam'.*: \[\]",
        ),
        ("training.optimizer=adm", "'sgd', 'adam'.*: 'adm'.*mean adam\\?"),
    ],
)
def test_errors_name_the_setting_and_the_expected_value(assignment, message):
    with pytest.raises(ValueError, match=message) as caught:
        override(RunConfig(), [assignment])
    assert "Received: " in str(caught.value)


def test_the_last_assignment_counts():
    assignments = ["model.units=8", 'model={"units":16}', "units=32"]
    assert override(RunConfig(), assignments).model.units == 32


def test_values_of_text_settings_are_not_parsed():
    changes = ["data.train=2014", 'data.dev=["a.en", "b"]']
    config = override(RunConfig(), ["data.dataset=files", *changes])
    assert config.data.train == "2014"
    assert config.data.dev == ("a.en", "b")


def test_short_names_set_the_full_settings():
    leaves = leaf_values(config_to_dict(RunConfig()))
    for name, fulls in SHORT_NAMES.items():
        assert set(fulls) <= set(leaves)
        texts = {"optimizer": "adam", "precision": "float64", "metric": "ter"}
        texts["init_from"] = "runs/base"
        texts["columns"] = ("a", "b")
        value = texts.get(name, 3)
        value = 0.25 if name in ("dropout", "length_penalty") else value
        changed = leaf_values(
            config_to_dict(with_values(RunConfig(), {name: value}))
        )
        assert {n for n in leaves if changed[n] != leaves[n]} == set(fulls)
        assert {changed[n] for n in fulls} == {value}


@pytest.mark.parametrize(
    "name, text",
    [
        ("run.json", '\ufeff{"model": {"units": 7}, "seed": 3}'),
        ("run.yaml", "model:\n  units: 7\nseed: 3\n"),
    ],
)
def test_settings_are_read_from_files(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    config = with_values(RunConfig(), read_values(path))
    assert (config.model.units, config.training.seed) == (7, 3)


@pytest.mark.parametrize(
    "name, text, message",
    [
        ("a.json", "{", "is not JSON"),
        ("a.yaml", "a: [", "is not YAML"),
        ("a.yaml", "- 1", "sections of settings"),
        ("a.json", '{"model": {"unit": 3}}', "Did you mean model.units"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.yaml", "[" * 1_500, "is not YAML"),
        ("a.yaml", "model: &a {units: *a}", "`&a` of a list or section"),
        (
            "a.yaml",
            # Expands to 3 ** 40 words.
            "a: &a [x, x, x]\n"
            + "".join(f"b{n}: &b{n} [*a, *a, *a]\n" for n in range(40)),
            "`&a` .* line 1. Write",
        ),
        (
            "a.yaml",
            "model:\n  a: {&a x: 1, <<: &b {units: 3}}\n  <<: *b",
            "`&b` .* line 2",
        ),
        ("a.yaml", "seed: 1\nmodel: {}\nseed: 2\n", "a.yaml, .* 'seed' twice"),
        ("a.yaml", "model: {units: 3, units: 4}", "'units' twice"),
        ("a.yaml", "model: {[a]: 3}", "is not YAML"),
        ("a.json", '{"model": {"units": 3, "units": 3}}', "'units' twice"),
        ("a.yaml", "epochs: 7\ntraining: {epochs: 3}", "'training.epochs' twi"),
        ("a.yaml", "training.seed: 5\ntraining: {seed: 3}", "ing.seed' twice"),
    ],
)
def test_invalid_files_of_settings_are_refused(tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=message):
        read_values(tmp_path / name)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_values(tmp_path / "other.yaml")


@pytest.mark.parametrize(
    "text, values",
    [
        ("{units: &u 64, seed: *u}", [64, 64]),
        ("model: {<<: {units: 3}}", [3]),
        ("batch_size: 010", [10]),
        ("max_length: 1_000", [1000]),
        ("{learning_rate: 1, dropout: .5}", [1, 0.5]),
        ("model: {bidirectional: no, use_bias: True}", [False, True]),
        ("data: {source_language: no, dev: 2020-01-01}", ["no", "2020-01-01"]),
        ("columns: [1, 2]", [("1", "2")]),
        ("data: {weights: [3, 1.5]}", [(3, 1.5)]),
        (
            "data: {sentencepiece: {user_defined_symbols: [yes, 2024]}}",
            [("yes", "2024")],
        ),
        (
            "training: {clip_norm: ~, patience: , metric: !!int x}",
            [None, None, "x"],
        ),
    ],
)
def test_settings_give_the_values_of_yaml_their_types(tmp_path, text, values):
    (tmp_path / "a.yaml").write_text(text)
    converted = convert_values(read_values(tmp_path / "a.yaml"))
    assert list(converted.values()) == values
