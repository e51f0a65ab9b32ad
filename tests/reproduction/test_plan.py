"""Plans: what a row is made of, and what is wrong in a file."""

import pytest

from luong_keras.config_values import override
from luong_keras.presets import PRESETS
from luong_keras.reproduction.plan import SCALES, read_plan, with_text
from luong_keras.reproduction.plan_files import Claim
from tests.reproduction.made_up_rows import own_plan


@pytest.fixture(scope="module")
def plan():
    return read_plan("builtin")


def settings(row):
    model, data = row.config.model, row.config.data
    attention = model.attention
    return (
        attention.kind,
        attention.score_mode if attention.kind != "none" else None,
        attention.alignment if attention.kind == "local" else None,
        model.input_feeding,
        model.reverse_source,
        model.dropout,
        row.config.decoding.replace_unknown,
        data.source_language,
    )


# Section 4 of the paper, system by system.
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("base", ("none", None, None, False, False, 0.0, False, "en")),
        ("reverse", ("none", None, None, False, True, 0.0, False, "en")),
        ("dropout", ("none", None, None, False, True, 0.2, False, "en")),
        (
            "location",
            ("global", "location", None, False, True, 0.2, False, "en"),
        ),
        ("feed", ("global", "location", None, True, True, 0.2, False, "en")),
        (
            "local-p",
            ("local", "general", "predictive", True, True, 0.2, False, "en"),
        ),
        (
            "local-p-unk",
            ("local", "general", "predictive", True, True, 0.2, True, "en"),
        ),
        (
            "local-m-dot",
            ("local", "dot", "monotonic", True, True, 0.2, False, "en"),
        ),
        (
            "global-general-unk",
            ("global", "general", None, True, True, 0.2, True, "en"),
        ),
        ("turned-base", ("none", None, None, False, True, 0.0, False, "de")),
        (
            "turned-dot-unk",
            ("global", "dot", None, True, True, 0.2, True, "de"),
        ),
        ("unreversed", ("global", "dot", None, True, False, 0.2, False, "en")),
    ],
)
def test_the_systems_of_the_paper(plan, name, expected):
    assert settings(plan.rows[name]) == expected


def test_other_systems(plan):
    rows = {name: row.config for name, row in plan.rows.items()}
    assert rows["bahdanau"].model.decoder == "bahdanau"
    assert rows["bahdanau"].model.attention.score_mode == "concat"
    assert rows["gru"].model.recurrence == "gru"
    assert rows["bidirectional"].model.bidirectional
    assert rows["subwords"].data.tokenizer == "sentencepiece"
    assert plan.rows["ensemble"].models == 4
    assert plan.rows["ensemble"].seeds_of(3) == [(1, 2, 3, 4)]
    assert plan.rows["feed"].seeds_of(2) == [(1,), (2,)]
    assert plan.rows["feed"].with_seed(7).training.seed == 7


def test_one_change_a_row(plan):
    # Nothing but what the row says differs from the row before.
    from luong_keras.config_values import config_to_dict, leaf_values

    for row in plan.rows.values():
        if row.after is None:
            continue
        before = leaf_values(config_to_dict(plan.rows[row.after].config))
        now = leaf_values(config_to_dict(row.config))
        differ = {name for name in now if now[name] != before[name]}
        assert differ <= set(row.changes), row.name
        assert differ or row.models > 1, row.name


def test_every_scale_is_a_plan():
    for scale in SCALES:
        plan = read_plan(scale)
        assert plan.chosen(plan.usual) and plan.chosen(plan.tables)
        assert (plan.files is None) == (scale != "multi30k")
    wmt14 = read_plan("wmt14").rows
    assert wmt14["ensemble"].models == 8
    assert wmt14["turned-dot-unk"].config.data.test_set == "wmt15"
    assert wmt14["turned-dot-unk"].config.data.source_language == "de"


def test_rows_of_ones_own(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "rows:\n  cosine:\n    after: feed\n    settings:\n"
        "      model.attention.score_mode: cosine\n"
    )
    plan = read_plan("builtin", path, {"training.epochs": 1})
    (row,) = plan.chosen(["own"])
    assert row.config.model.attention.score_mode == "cosine"
    assert row.config.model.input_feeding and row.config.training.epochs == 1
    assert "own" in plan.usual


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rows: {x: {after: fed}}", "'fed', which there is not. Did you mean"),
        ("rows: {x: {after: x}}", "'x' comes after itself: x after x"),
        (
            "rows: {x: {settings: {model.unit: 3}}}",
            "The row 'x': .*model.units",
        ),
        ("rows: {x: {setting: {}}}", "rows.x.setting: Unexpected"),
        ("rows: {feed: {}}", "names rows that the paper's plan has: feed"),
        ("- x", "Expected in .*mine.yaml: rows. Received: list"),
        ("rows: {x: [", "is not YAML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_plan("builtin", path)


def test_systems_without_the_papers(tmp_path):
    plan = own_plan(tmp_path)
    assert list(plan.rows) == ["small", "wide"] and not plan.paper
    assert plan.chosen(plan.usual) == list(plan.rows.values())
    assert not plan.claims and not plan.correlations
    # What the paper begins with is no part of them.
    small = override(PRESETS["small"], ["training.epochs=1"])
    assert plan.rows["small"].config == small
    wide = override(small, ["model.units=640"])
    assert plan.rows["wide"].config == wide


def test_an_unknown_scale_or_table(plan):
    with pytest.raises(ValueError, match="Did you mean builtin"):
        read_plan("buildin")
    with pytest.raises(FileNotFoundError, match=r"mine\.yaml"):
        read_plan("mine.yaml")
    with pytest.raises(ValueError, match="'table7'. Did you mean table"):
        plan.chosen(["table7"])


def test_a_claim_is_a_sum():
    claim = Claim("c", "a-b - c + d-e", "5")
    assert claim.terms == [(1, "a-b"), (-1, "c"), (1, "d-e")]


def test_the_folder_of_the_text_is_filled_in(plan):
    from luong_keras.config_values import with_values

    files = {"data.dataset": "files", "data.train": "{data}/train"}
    config = with_values(plan.rows["base"].config, files)
    assert with_text(config, "/texts").data.train == "/texts/train"
    assert with_text(plan.rows["base"].config, None).data.train is None
