"""Text of a user, and the languages that a run takes from it."""

import collections
import types

import numpy as np
import pytest

from luong_keras.config import DataConfig, RunConfig
from luong_keras.config.values import config_to_dict, with_values
from luong_keras.data.datasets import load_datasets
from luong_keras.files.atomic_file import json_lines
from luong_keras.recipe.initial_settings import decide_languages
from luong_keras.recipe.user_text import text_settings
from luong_keras.training.run_folder import RunFolder

PAIRS = [("a\tb\ncat", "eine Katze"), ["a dog", "ein Hund"]]


def data_of(settings):
    fields = {n.removeprefix("data."): v for n, v in settings.items()}
    return DataConfig(**fields)


def test_pairs_in_memory_are_written_once(tmp_path):
    run = RunFolder(tmp_path / "run")
    settings = text_settings(run, iter(PAIRS), dev=PAIRS[:1], test=PAIRS)
    found = load_datasets(data_of(settings))
    expected = [("a b cat", "eine Katze"), ("a dog", "ein Hund")]
    assert list(found.train()) == found.test == expected
    assert found.dev == expected[:1]
    before = (run.pairs / "train.jsonl").stat().st_mtime_ns
    assert text_settings(run, PAIRS, PAIRS[:1], PAIRS) == settings
    assert (run.pairs / "train.jsonl").stat().st_mtime_ns == before
    text_settings(run, PAIRS[1:])
    written = (run.pairs / "train.jsonl").read_text()
    assert written == '["a dog", "ein Hund"]\n'


@pytest.mark.parametrize(
    "pair",
    [
        ("source", "target"),
        ("en", "de"),
        ("1", "2"),
        ("[1]", '{"a": 1}'),
        ('"a" b', '"c"'),
        ('"', '""'),
        ('"a', '"b'),
        ("c", 'd"e"'),
        ('"Yes""No"', '"Ja"'),
        ('"Yes"', '"Ja" "'),
        ("a\\tb", "\\"),
        (" a ", "ß 猫 \U0001f600"),
    ],
)
def test_pairs_in_memory_are_read_back_unchanged(tmp_path, pair):
    others = [("c", "d"), ("e", "f")]
    run = RunFolder(tmp_path / "run")
    settings = text_settings(run, [pair, *others], others, [pair])
    found = load_datasets(data_of(settings))
    assert list(found.train()) == [pair, *others]
    assert found.test == [pair]


def test_sources_in_memory_may_have_one_pair(tmp_path):
    pairs = [("a", "b"), ("c", "d")]
    run = RunFolder(tmp_path / "run")
    settings = text_settings(run, [[pair] for pair in pairs], pairs, pairs)
    assert len(settings["data.train"]) == 2
    assert sorted(load_datasets(data_of(settings)).train()) == pairs


@pytest.mark.parametrize(
    "train, expected",
    [
        ("x/pairs.tsv", {"train": "x/pairs.tsv"}),
        (("a.txt", "b.txt"), {"train": ("a.txt", "b.txt")}),
        (
            ("a.fr", "b.de.gz"),
            {"train": ("a.fr", "b.de.gz")}
            | {"source_language": "fr", "target_language": "de"},
        ),
    ],
)
def test_file_names_are_passed_on_unchanged(tmp_path, train, expected):
    settings = text_settings(RunFolder(tmp_path / "run"), train)
    named = {f"data.{name}": value for name, value in expected.items()}
    defaults = {"data.dataset": "files", "data.dev": None, "data.test": None}
    assert settings == defaults | named
    assert not (tmp_path / "run").exists()


def test_run_that_has_begun_keeps_its_languages(tmp_path):
    (tmp_path / "config.json").touch()
    settings = text_settings(RunFolder(tmp_path), ("a.cz", "a.de"))
    assert not [name for name in settings if name.endswith("language")]


TWO = [("a0", "b0"), ("a1", "b1")]
RECORDS = [{"en": source, "de": target} for source, target in TWO]


@pytest.mark.parametrize(
    "pairs",
    [
        [collections.OrderedDict(record) for record in RECORDS],
        [types.MappingProxyType(record) for record in RECORDS],
        np.array(TWO, "U2"),
        np.array(TWO, "S2"),
    ],
    ids=["ordered", "proxies", "text", "bytes"],
)
def test_pairs_may_be_mappings_or_rows_of_an_array(tmp_path, pairs):
    settings = text_settings(RunFolder(tmp_path), pairs, pairs, pairs)
    assert list(load_datasets(data_of(settings)).train()) == TWO


NO_TEXT = "sentences, as text.* in pair 2"


@pytest.mark.parametrize(
    "pairs, message",
    [
        ([RECORDS[0], {"en": np.array(["a", "b"]), "de": "d"}], NO_TEXT),
        ([RECORDS[0], {"en": [1], "de": "d"}], NO_TEXT),
        ([("a", "b"), ("c",)], r"Received: \('c',\) as pair 2"),
        ([("a", "b"), "cd", "ef"], "Received: 'cd' as pair 2"),
        ([("a", 3)], "str or bytes"),
        ([{"a", "b"}], "str or bytes"),
        ([("a", "b"), {"en": "c", "de": "d"}], "Received: {.* as pair 2"),
        ([RECORDS[0], ("a", "b")], r"Received: \('a'.* as record 2"),
        ([("a", "\udcff")], "Pair 1 cannot be written as UTF-8"),
        ([["a.tsv", "b.en"], "c.tsv"], "Received: a.tsv and b.en"),
        ([("a.en", "a.fr"), ("b.fr", "b.en"), "c.tsv"], "the other way round"),
        (3, "Received: int"),
        ([], "Received: none"),
    ],
)
def test_values_that_are_not_pairs_are_refused(tmp_path, pairs, message):
    with pytest.raises(ValueError, match=message):
        text_settings(RunFolder(tmp_path), pairs)


# Languages.

FRENCH = [(f"chat {i}", f"cat {i}") for i in range(12)]


def csv(names, pairs):
    return "".join(f"{a},{b}\n" for a, b in [names, *pairs])


def jsonl(names, pairs):
    return json_lines(dict(zip(names, pair, strict=True)) for pair in pairs)


def decided(**settings):
    values = {f"data.{name}": value for name, value in settings.items()}
    config = with_values(RunConfig(), {"data.dataset": "files", **values})
    return decide_languages(config).data


def check_french(data):
    assert (data.source_language, data.target_language) == ("fr", "en")
    found = load_datasets(data)
    assert found.dev == found.test == FRENCH
    assert [(pair[0], pair[1]) for pair in found.train()] == FRENCH * 2


@pytest.mark.parametrize(("kind", "write"), [("csv", csv), ("jsonl", jsonl)])
def test_later_files_are_read_in_the_direction_of_the_first(
    kind, write, tmp_path
):
    reverse = [(b, a) for a, b in FRENCH]
    paths = {}
    for name in ("train", "more", "dev", "test"):
        path = tmp_path / f"{name}.{kind}"
        path.write_text(write(("English", "French"), reverse))
        paths[name] = str(path)
    first = tmp_path / f"train.{kind}"
    first.write_text(write(("French", "English"), FRENCH))
    train = (paths["train"], paths["more"])
    check_french(decided(train=train, dev=paths["dev"], test=paths["test"]))


@pytest.mark.parametrize("frames", [False, True])
def test_later_objects_are_read_in_the_direction_of_the_first(frames, tmp_path):
    kind = pytest.importorskip("pandas").DataFrame if frames else list
    records = [{"French": a, "English": b} for a, b in FRENCH]
    others = [{"English": b, "French": a} for a, b in FRENCH]
    run = RunFolder(tmp_path)
    train = [kind(records), kind(others)]
    settings = text_settings(run, train, kind(others), kind(others))
    check_french(with_values(RunConfig(), settings).data)


@pytest.mark.parametrize("in_memory", [False, True])
def test_two_files_decide_the_direction_of_all_sources(tmp_path, in_memory):
    for language, side in (("fr", 0), ("en", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in FRENCH)
        (tmp_path / f"a.{language}").write_text(lines)
    table = tmp_path / "b.csv"
    table.write_text(csv(("English", "French"), [(b, a) for a, b in FRENCH]))
    train = [str(table), (str(tmp_path / "a.fr"), str(tmp_path / "a.en"))]
    if not in_memory:
        return check_french(
            decided(train=train, dev=str(table), test=str(table))
        )
    run = RunFolder(tmp_path / "run")
    records = [{"English": b, "French": a} for a, b in FRENCH]
    settings = text_settings(run, train, records, str(table))
    check_french(with_values(RunConfig(), settings).data)


def test_pairs_in_memory_have_the_direction_of_a_training_file(tmp_path):
    table = tmp_path / "b.csv"
    table.write_text(csv(("French", "English"), FRENCH))
    run = RunFolder(tmp_path / "run")
    records = [{"English": b, "French": a} for a, b in FRENCH]
    settings = text_settings(run, [table, records], records, records)
    check_french(with_values(RunConfig(), settings).data)


def begin(run, config):
    run.path.mkdir()
    run.write_config(config_to_dict(config))
    run.best_weights.touch()


@pytest.mark.parametrize("begun", [False, True])
def test_pairs_in_memory_have_the_direction_of_the_old_run(tmp_path, begun):
    old = RunFolder(tmp_path / "old")
    languages = {"data.source_language": "de", "data.target_language": "en"}
    config = with_values(RunConfig(), languages)
    begin(old, config)
    run, given = old, {}
    if not begun:
        run = RunFolder(tmp_path / "run")
        given = {"training.init_from": str(old.path)}
    settings = text_settings(run, RECORDS, RECORDS, RECORDS, given)
    found = load_datasets(with_values(config, settings).data)
    assert next(iter(found.train())) == TWO[0][::-1]


@pytest.mark.parametrize("names", ["columns", "languages"])
def test_rules_of_a_parent_without_languages_stay(tmp_path, names):
    """Its weights belong to text that was prepared by the usual rules."""
    old = RunFolder(tmp_path / "old")
    config = with_values(RunConfig(), {"data.tokenize": True})
    begin(old, config)
    given = {"training.init_from": str(old.path)}
    if names == "columns":
        records = [{"French": a, "English": b} for a, b in FRENCH]
        text = text_settings(RunFolder(tmp_path / "run"), records, given=given)
    else:
        path = tmp_path / "a.csv"
        path.write_text(csv(("French", "English"), FRENCH))
        text = {"data.dataset": "files", "data.train": str(path)}
    data = decide_languages(with_values(config, {**given, **text})).data
    assert (data.source_language, data.target_language) == (None, None)


def test_pairs_of_names_of_files_are_sources(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run, pandas = RunFolder("run"), pytest.importorskip("pandas")
    names = [("a.en", "a.de"), ("b.en", "b.de")]
    frame = pandas.DataFrame(TWO, columns=["en", "de"])
    # Without such files they are sentences, unless something else is a source.
    assert text_settings(run, names)["data.train"].endswith("train.jsonl")
    weights = {"data.weights": (1, 3)}
    assert text_settings(run, names, given=weights)["data.train"] == (*names,)
    for name in ("a.en", "a.de"):
        (tmp_path / name).write_text("one\n")
    assert text_settings(run, names)["data.train"] == (*names,)
    assert text_settings(run, names[:1])["data.train"] == (names[0])
    found = text_settings(run, [frame, names[0]])["data.train"]
    assert found[1] == names[0] and found[0].endswith("train.1.jsonl")


COLUMNS = {"data.columns": ("2", "1")}


@pytest.mark.parametrize("kind", ["two files", "jsonl", "memory", "mixed"])
def test_columns_of_text_without_columns_are_refused(tmp_path, kind):
    lines = [tmp_path / "a.x", tmp_path / "a.y"]
    for path in lines:
        path.write_text("one\n")
    pairs = tmp_path / "a.jsonl"
    pairs.write_text(json_lines(TWO))
    run = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match="Received: 2 and 1, for a text with"):
        if kind in ("memory", "mixed"):
            dev = pairs if kind == "mixed" else None
            text_settings(run, TWO, dev, given=COLUMNS)
        else:
            train = pairs if kind == "jsonl" else (*map(str, lines),)
            settings = text_settings(run, train, train, train, COLUMNS)
            load_datasets(with_values(RunConfig(), settings | COLUMNS).data)


def test_columns_may_belong_to_one_of_several_texts(tmp_path):
    table = tmp_path / "a.csv"
    table.write_text("x,y\n")
    pairs = tmp_path / "a.jsonl"
    pairs.write_text(json_lines(TWO))
    table.write_text(csv(("x", "y"), TWO))
    for train in (pairs, TWO):
        run = RunFolder(tmp_path / "run")
        settings = text_settings(run, train, table, pairs, COLUMNS)
        found = load_datasets(with_values(RunConfig(), settings | COLUMNS).data)
        assert [*found.train()] == found.test == TWO
        assert found.dev[1:] == [pair[::-1] for pair in TWO]


@pytest.mark.parametrize(
    ("names", "settings", "languages"),
    [
        (("German", "English"), {}, ("en", "de")),
        (("source", "target"), {}, (None, None)),
        (("German", "English"), {"columns": ("1", "2")}, ("de", "en")),
        (("German", "English"), {"source_language": "de"}, ("de", None)),
    ],
)
def test_other_columns_or_settings_name_the_languages(
    names, settings, languages, tmp_path
):
    path = tmp_path / "train.csv"
    path.write_text(csv(names, FRENCH))
    data = decided(train=str(path), **settings)
    assert (data.source_language, data.target_language) == languages


@pytest.mark.parametrize(
    "settings",
    [
        {"dataset": "wmt14_translate"},
        {"dataset": "phrasebook"},
        {"train": "corpus/train"},  # for corpus/train.de and corpus/train.en
    ],
)
def test_named_data_sets_and_prefixes_have_known_languages(settings):
    data = decided(target_language="en", **settings)
    assert (data.source_language, data.target_language) == ("de", "en")
