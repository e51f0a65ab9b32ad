import pytest

from luong_keras import PRESETS, config_to_dict, override
from luong_keras.config.values import leaf_values
from reproduction.plan import Claim, read_plan, with_folders
from tests.reproduction.made_up_records import OWN_PLAN, own_plan

CLAIM = OWN_PLAN + 'claims: [{claim: c, section: "5", positive: %s}]'
CORRELATION = OWN_PLAN + (
    'correlations: [{claim: c, section: "5", of: [bleu, aer], sign: 1, '
    "table: others}]"
)


@pytest.fixture(scope="module")
def plan():
    return read_plan("builtin")


def settings(row):
    model, data = row.config.model, row.config.data
    attention = model.attention
    values = (
        attention.kind,
        attention.score_mode if attention.kind != "none" else "-",
        attention.alignment if attention.kind == "local" else "-",
        model.input_feeding,
        model.reverse_source,
        model.dropout,
        row.config.decoding.replace_unknown,
        data.source_language,
    )
    return " ".join(map(str, values))


# Section 4 of the paper, system by system.
@pytest.mark.parametrize(
    "expected",
    [
        "base: none - - False False 0.0 False en",
        "reverse: none - - False True 0.0 False en",
        "dropout: none - - False True 0.2 False en",
        "location: global location - False True 0.2 False en",
        "feed: global location - True True 0.2 False en",
        "local-p: local general predictive True True 0.2 False en",
        "local-p-unk: local general predictive True True 0.2 True en",
        "local-m-dot: local dot monotonic True True 0.2 False en",
        "global-general-unk: global general - True True 0.2 True en",
        "turned-base: none - - False True 0.0 False de",
        "turned-dot-unk: global dot - True True 0.2 True de",
        "unreversed: global dot - True False 0.2 False en",
    ],
)
def test_rows_have_the_papers_settings(plan, expected):
    name, values = expected.split(": ")
    assert settings(plan.rows[name]) == values


def test_rows_beyond_the_paper(plan):
    rows = {name: row.config for name, row in plan.rows.items()}
    assert rows["bahdanau"].model.decoder == "bahdanau"
    assert rows["bahdanau"].model.attention.score_mode == "concat"
    assert rows["gru"].model.recurrence == "gru"
    assert rows["bidirectional"].model.bidirectional
    assert rows["subwords"].data.tokenizer == "sentencepiece"
    assert plan.rows["ensemble"].models == 4


def test_rows_differ_from_the_previous_one_only_by_their_changes(plan):
    for row in plan.rows.values():
        if row.after is None:
            continue
        before = leaf_values(config_to_dict(plan.rows[row.after].config))
        now = leaf_values(config_to_dict(row.config))
        differ = {name for name in now if now[name] != before[name]}
        assert differ <= set(row.changes), row.name
        assert differ or row.models > 1, row.name


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "name", ["builtin", "multi30k", "multi30k_small", "wmt14"]
)
def test_rows_and_tables_of_all_plans_can_be_chosen(name):
    plan = read_plan(name)
    assert plan.select_rows() and plan.select_rows(plan.file.tables)
    assert (plan.file.files is not None) == name.startswith("multi30k")


def test_plans_override_inherited_rows():
    wmt14 = read_plan("wmt14").rows
    assert wmt14["ensemble"].models == 8
    assert wmt14["turned-dot-unk"].config.data.test == "wmt15"
    assert wmt14["turned-dot-unk"].config.data.source_language == "de"


@pytest.mark.slow
def test_user_defined_rows_inherit_a_plan(tmp_path):
    path = tmp_path / "mine.yaml"
    cosine = "{after: feed, settings: {model.attention.score_mode: cosine}}"
    rows = f"inherits: builtin\nrows: {{cosine: {cosine}}}\n"
    path.write_text(rows + "settings: {training.epochs: 1}\n")
    plan = read_plan(path)
    (row,) = plan.select_rows()
    assert row.config.model.attention.score_mode == "cosine"
    assert row.config.model.input_feeding and row.config.training.epochs == 1
    assert plan.select_rows(["base"])[0].config.training.epochs == 1
    assert plan.file.claims == read_plan("builtin").file.claims


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            "x: {after: fed}",
            "rows.x: Expected: after .*'fed'. Did you mean feed",
        ),
        ("x: {after: x}", "after a row that stands above. Received: 'x'"),
        ("x: {settings: {model.unit: 3}}", "rows.x: .*model.units"),
        ("x: {setting: {}}", "rows.x.setting: Unexpected"),
        ("a/b: {}", "letters, digits, .*'a/b'"),
        (".x: {}", "letters, digits"),
        ("x: {models: 0}", "1 or more models.* models=0"),
        ("x: {settings: {training.seed: 7}}", "no training.seed .*seeds=3"),
    ],
)
def test_invalid_rows_are_refused(tmp_path, row, message):
    path = tmp_path / "mine.yaml"
    path.write_text(f"inherits: builtin\nrows:\n  {row}\n")
    with pytest.raises(ValueError, match=f"mine.yaml: .*{message}"):
        read_plan(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- x", "mine.yaml: .*dict"),
        ("rows: {x: [", "is not YAML"),
        ("inherits: paper", "mine.yaml: Expected: a preset, .*preset=''"),
        (OWN_PLAN + "seeds: 0", "seeds of at least 1. Received: .*seeds=0"),
        (OWN_PLAN.replace("small\n", "smal\n"), "preset.* Received: .*'smal'"),
        (OWN_PLAN.replace("row: wide", "row: wid"), "does not have: wid"),
        ("inherits: buildin", "a plan of builtin, .*Did you mean builtin"),
        (CLAIM % "wide / small", "with . or - between.*'wide / small'"),
        (CLAIM % "wide -", "with . or - between.*'wide -'"),
        (CLAIM % "''", "with . or - between.*''"),
        (CORRELATION, "does not have: others"),
        (OWN_PLAN + "  none: {title: None, lines: []}", "tables.none: .*line"),
    ],
)
def test_invalid_plans_are_refused(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_plan(path)


def test_user_defined_plans_need_no_parent(tmp_path):
    plan = own_plan(tmp_path)
    assert plan.select_rows() == list(plan.rows.values())
    assert list(plan.rows) == ["small", "wide"] and not plan.file.claims
    # They do not inherit the paper's settings.
    small = override(PRESETS["small"], ["training.epochs=1"])
    assert plan.rows["small"].config == small
    wide = override(small, ["model.units=640"])
    assert plan.rows["wide"].config == wide


def test_unknown_plans_and_tables_are_refused(plan):
    with pytest.raises(ValueError, match="Did you mean builtin"):
        read_plan("buildin")
    with pytest.raises(FileNotFoundError, match=r"mine\.yaml"):
        read_plan("mine.yaml")
    with pytest.raises(ValueError, match="'table7'. Did you mean table"):
        plan.select_rows(["table7"])


def test_rows_are_chosen_by_name(plan):
    chosen = plan.select_rows(["local-m-dot", "table1", "base", "gru"])
    names = [row.name for row in chosen]
    assert names[:2] == ["local-m-dot", "base"] and names[-1] == "gru"
    assert len(names) == len(set(names)) == 10
    # A table takes precedence over a row of the same name.
    chosen = read_plan("multi30k_small").select_rows(["small"])
    assert [row.name for row in chosen] == ["small", "ensemble"]


def test_trials_share_training_runs(plan):
    assert plan.rows["feed"].trials(2) == ["feed-1", "feed-2"]
    assert plan.rows["ensemble"].trials(3) == ["ensemble-1to4"]
    row, seeds = plan.trial("local-p-unk-3")
    assert (row.name, seeds) == ("local-p-unk", (3,))
    assert plan.trial("ensemble-1to4")[1] == (1, 2, 3, 4)
    # Rows that differ only in their search share the run of the first row.
    assert plan.runs("local-p-unk-3") == plan.runs("local-p-3") == ["local-p-3"]
    assert plan.runs("ensemble-1to4") == [f"local-p-{n}" for n in (1, 2, 3, 4)]
    assert plan.runs("feed-1") != plan.runs("location-1")
    wmt14 = read_plan("wmt14")
    assert wmt14.runs("newstest2015-1to8") == wmt14.runs("ensemble-1to8")


def test_folders_and_distilled_texts_are_filled_in(plan):
    small = read_plan("multi30k_small")
    assert small.distilled("taught-2") == ["ensemble.tsv"]
    assert small.distilled("small-2") == []
    config = small.rows["taught"].config
    filled = with_folders(config, '/te"xts', "/out").data
    assert filled.train == ('/te"xts/train', "/out/ensemble.tsv")
    assert filled.dev == '/te"xts/val'
    builtin = plan.rows["base"].config
    assert with_folders(builtin, None, "/out") == builtin


def test_claims_are_parsed_into_signed_terms():
    claim = Claim("c", "a-b - c + d-e", "5")
    assert claim.terms == [(1, "a-b"), (-1, "c"), (1, "d-e")]
