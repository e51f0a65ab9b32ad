"""Text of a user, and the languages that a run takes from it."""

import collections
import types

import numpy as np
import pytest

from luong_keras.config import DataConfig, RunConfig
from luong_keras.config.values import with_values
from luong_keras.data.datasets import load_datasets
from luong_keras.files.atomic_file import json_lines
from luong_keras.recipe.user_text import decide_languages, text_settings
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


@pytest.mark.parametrize(
    ("names", "settings", "languages"),
    [
        # For the default languages, the settings stay None.
        (("German", "English"), {}, (None, None)),
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
