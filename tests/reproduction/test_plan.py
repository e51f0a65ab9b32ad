"""Plans: what a row is made of, and what is wrong in a file."""

import dataclasses
import shlex

import pytest

from reproduction import command as reproduce
from luong_keras.config_values import override, parse_assignments
from luong_keras.presets import PRESETS
from reproduction.plan import (
    SCALES,
    read_plan,
    with_text,
)
from reproduction.plan_files import Claim
from reproduction.rows import taught_text
from tests.reproduction.made_up_rows import (
    OWN_PLAN,
    TAUGHT_PLAN,
    own_plan,
    taught_plan,
)


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
        ("rows: {a/b: {}}", "letters, digits, _, - and . alone. .*'a/b'"),
        ("rows: {.x: {}}", "letters, digits"),
        ("rows: {x: {models: 0}}", "The row 'x': .*at least 1. Received: 0"),
        (
            "rows: {x: {settings: {training.seed: 7}}}",
            "The row 'x': training.seed is no setting .*training.seed=7",
        ),
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


def test_seeds_are_no_setting():
    with pytest.raises(ValueError, match="^training.seed is no .*--seeds N"):
        read_plan("builtin", None, {"training.seed": 7})


@pytest.mark.parametrize("name", ["seeds", "ensemble"])
def test_at_least_one_of_each(tmp_path, name):
    path = tmp_path / "plan.yaml"
    path.write_text(OWN_PLAN + f"{name}: 0\n")
    with pytest.raises(ValueError, match=f"{name}: Expected: at least 1"):
        read_plan(str(path))


def test_single_rows_are_chosen_by_name(plan, tmp_path):
    chosen = plan.chosen(["local-m-dot", "table1", "base", "gru"])
    names = [row.name for row in chosen]
    assert names[:2] == ["local-m-dot", "base"] and names[-1] == "gru"
    assert len(names) == len(set(names)) == 10
    # Where a table has the name, it is meant.
    text = TAUGHT_PLAN.replace("row: pupil,", "row: taught,")
    path = tmp_path / "mine.yaml"
    path.write_text(
        text.replace("  pupil:", "  taught:").replace(": pupil", ": taught")
    )
    names = [row.name for row in read_plan(str(path)).chosen(["taught"])]
    assert names == ["plain", "taught"]
    with pytest.raises(ValueError, match="rows such as base. Received: 'grü'"):
        plan.chosen(["grü"])


def test_the_command_makes_the_same_plan(tmp_path):
    own = tmp_path / "rows of mine.yaml"
    own.write_text("rows: {wide: {after: feed, settings: {model.units: 640}}}")
    settings = {
        "training.epochs": 2,
        "model.source_vocabulary_size": 500,
        "data.train": ["one text", "another"],
        "training.optimizer": "sgd",
        "decoding.stack_size": None,
        "data.lowercase": True,
    }
    plan = read_plan("multi30k", own, settings)
    words = shlex.split(shlex.join([*plan.command, "--only", "wide"]))
    assert words[:2] == ["luong-keras", "reproduce"]
    asked = reproduce.parse(words[2:])
    assert asked.files is not None and asked.rows == own
    again = read_plan(
        asked.scale, asked.rows, parse_assignments(asked.settings)
    )
    assert again == plan and again.chosen(asked.only) == [plan.rows["wide"]]
    assert read_plan("builtin").command == (
        *("luong-keras", "reproduce", "--scale", "builtin"),
    )


def test_a_claim_is_a_sum():
    claim = Claim("c", "a-b - c + d-e", "5")
    assert claim.terms == [(1, "a-b"), (-1, "c"), (1, "d-e")]


def test_how_many_models_an_ensemble_has(tmp_path):
    scale = "title: t\ntext: t\npreset: demo\nsettings: {}\ntables: [table1]\n"
    path = tmp_path / "mine.yaml"
    path.write_text(scale + "ensemble: 2\n")
    assert read_plan(str(path)).rows["ensemble"].models == 2
    # A row of the scale's own stands in the place of the paper's.
    path.write_text(
        scale + "ensemble: 2\nrows: {ensemble: {after: feed, models: 3}}\n"
    )
    row = read_plan(str(path)).rows["ensemble"]
    assert (row.models, row.after) == (3, "feed")


def test_what_a_teacher_translates_is_read_beside_the_text(tmp_path):
    plan = taught_plan(tmp_path)
    pupil = plan.rows["pupil"]
    text, taught = pupil.config.data.train
    assert text == "{data}/train"
    assert taught == "{taught}/" + taught_text(plan.rows["teacher"])
    assert pupil.teacher == plan.rows["pupils"].teacher == "teacher"
    assert plan.rows["pupils"].config == pupil.config
    assert plan.rows["plain"].teacher is None
    assert pupil.changes == {"teacher": "teacher"}
    # As many models as it says: the other number is for the paper's.
    assert plan.rows["pupils"].models == 3
    filled = with_text(pupil.config, "/texts", "/runs/taught").data.train
    name = taught_text(plan.rows["teacher"])
    assert filled == ("/texts/train", f"/runs/taught/{name}")
    # Other translations are another text, and so are other settings.
    wider = taught_plan(tmp_path, **{"model.units": 640}).rows
    assert wider["pupil"].config.data.train[1] != taught
    fewer = dataclasses.replace(plan.rows["teacher"], models=2)
    assert taught_text(fewer) != name


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{teacher: techer}", "'techer', which there is not. Did you mean"),
        ("{teacher: x}", "comes after itself: x after x"),
        ("{after: plain, teacher: pupil}", "a teacher without one of its own"),
        (
            "{after: plain, teacher: plain, turned: true}",
            "other text. Expected: data.source_language='de'. Received: 'en'",
        ),
        (
            "{teacher: plain, settings: {data.lowercase: true}}",
            "Expected: data.lowercase=True. Received: False",
        ),
    ],
)
def test_a_teacher_that_cannot_teach(tmp_path, entry, message):
    path = tmp_path / "taught.yaml"
    path.write_text(
        TAUGHT_PLAN.replace("  plain: {}", f"  plain: {{}}\n  x: {entry}")
    )
    with pytest.raises(ValueError, match=message):
        read_plan(str(path))


def test_the_builtin_corpus_cannot_be_taught(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text("rows: {x: {after: feed, teacher: base}}")
    with pytest.raises(ValueError, match="Expected: a training text in files"):
        read_plan("builtin", path)


def test_the_folder_of_the_text_is_filled_in(plan):
    from luong_keras.config_values import with_values

    files = {"data.dataset": "files", "data.train": "{data}/train"}
    config = with_values(plan.rows["base"].config, files)
    assert with_text(config, "/texts").data.train == "/texts/train"
    assert with_text(plan.rows["base"].config, None).data.train is None
