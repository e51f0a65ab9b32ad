import dataclasses
import gzip
import os
import re

import pytest

from luong_keras.config import DataConfig, FilterConfig, RunConfig
from luong_keras.data import phrasebook, public_sets
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.datasets import load_datasets, pairs_key
from luong_keras.data.text_files import read_given_pairs
from luong_keras.recipe.preparation import left_out_report, prepare_text
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.run_folder import RunFolder

SMALL = {"dataset": "phrasebook", "train_size": 20}


def test_phrasebook_parts_are_disjoint_and_test_has_links():
    found = load_datasets(DataConfig(**SMALL))
    train = list(found.train())
    assert (len(train), len(found.dev), len(found.test)) == (20, 300, 1000)
    assert train == list(found.train())
    assert not {*train} & {*found.dev} and not {*train} & {*found.test}
    pairs = phrasebook.split_pairs("test")
    assert found.test == [(pair.source, pair.target) for pair in pairs]
    assert found.test_links == [pair.links for pair in pairs]


def test_phrasebook_can_be_reversed():
    forward = load_datasets(DataConfig(**SMALL))
    languages = {"source_language": "de", "target_language": "en"}
    backward = load_datasets(DataConfig(**SMALL, **languages))
    assert backward.test == [(t, s) for s, t in forward.test]
    assert list(backward.train()) == [(t, s) for s, t in forward.train()]
    for there, back in zip(
        forward.test_links[:20], backward.test_links, strict=False
    ):
        links = {tuple(re.split("([-p])", link)) for link in there.split()}
        assert links == {
            tuple(re.split("([-p])", link))[::-1] for link in back.split()
        }
    assert backward.train_key != forward.train_key


def test_phrasebook_refuses_other_languages():
    with pytest.raises(ValueError, match=r"Received: \('en', 'fr'\)"):
        load_datasets(DataConfig(**SMALL, target_language="fr"))


@pytest.fixture
def file_config(tmp_path):
    """Write three pairs of files, one gzipped, and return their settings."""
    for part in ("train", "dev", "test"):
        for language in ("en", "fr"):
            text = f"{part} {language} 1\n{part} {language} 2\n"
            (tmp_path / f"{part}.{language}").write_text(text)
    plain = tmp_path / "test.fr"
    (tmp_path / "test.fr.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    prefixes = {p: str(tmp_path / p) for p in ("train", "dev", "test")}
    return DataConfig("files", target_language="fr", **prefixes)


@pytest.mark.parametrize("source, target", [("en", "fr"), ("fr", "en")])
def test_each_part_and_side_has_its_own_file(file_config, source, target):
    config = {"source_language": source, "target_language": target}
    found = load_datasets(dataclasses.replace(file_config, **config))
    # Each call reads the training files anew.
    for train in (list(found.train()), list(found.train())):
        parts = {"train": train, "dev": found.dev, "test": found.test}
        assert parts == {
            p: [(f"{p} {source} {i}", f"{p} {target} {i}") for i in (1, 2)]
            for p in ("train", "dev", "test")
        }
    assert found.test_links is None


@pytest.mark.parametrize("part", ["train", "dev", "test"])
@pytest.mark.parametrize("max_skipped", [0.05, 0.0])
def test_bad_bytes_are_tolerated_only_in_the_training_text(
    file_config, tmp_path, part, max_skipped
):
    (tmp_path / f"{part}.en").write_bytes(b"good\n\xff bad\n")
    config = dataclasses.replace(file_config, max_skipped=max_skipped)
    if part == "train" and max_skipped:
        pairs = [("good", "train fr 1"), ("\udcff bad", "train fr 2")]
        assert list(load_datasets(config).train()) == pairs
        return
    with pytest.raises(ValueError, match=rf"Line 2 of .*{part}\.en is not"):
        list(load_datasets(config).train())


def test_phrasebook_key_depends_on_its_size():
    keys = {
        size: load_datasets(DataConfig("phrasebook", train_size=size)).train_key
        for size in (7, 8, None, 24_000)
    }
    assert keys[None] == keys[24_000]
    assert len(set(keys.values())) == 3
    with pytest.raises(ValueError, match=r"0 to 24,000. Received: 24,001"):
        load_datasets(DataConfig("phrasebook", train_size=24_001))


def test_key_depends_on_the_files(file_config, tmp_path):
    keys = {load_datasets(file_config).train_key}
    for language in ("en", "fr"):
        path = tmp_path / f"train.{language}"
        stamp = path.stat().st_mtime_ns
        path.write_text(path.read_text() + "more\n")
        os.utime(path, ns=(stamp, stamp))  # only the size differs
        keys.add(load_datasets(file_config).train_key)
        os.utime(path, ns=(1, 1))  # only the time differs
        keys.add(load_datasets(file_config).train_key)
    for other in ("dev.en", "test.en"):
        (tmp_path / other).write_text("1\n2\n")
        keys.add(load_datasets(file_config).train_key)
    assert len(keys) == 7


def test_key_depends_on_the_languages_of_a_file(tmp_path):
    path = tmp_path / "several.tmx"
    path.touch()
    english = {"train": str(path), "source_language": "en"}
    german, french = (
        pairs_key(DataConfig("files", **english, target_language=code))
        for code in ("de", "fr")
    )
    assert german != french


def test_missing_prefixes_and_files_are_named(file_config, tmp_path):
    with pytest.raises(ValueError, match="--set data.train=path/train"):
        load_datasets(dataclasses.replace(file_config, train=None))
    (tmp_path / "dev.en").unlink()
    with pytest.raises(FileNotFoundError, match=r"dev\.en, .*dev\.en\.gz"):
        load_datasets(file_config)


def test_other_names_are_tfds_builders_with_public_test_sets(monkeypatch):
    calls = []

    def test_set(name, *languages):
        calls.append((name, *languages))
        return [f"{name} {i}" for i in range(3)], ["a", "b", "c"]

    def pairs(name, split, *languages):
        calls.append((name, split, *languages))
        return iter([("x", "y")])

    monkeypatch.setattr(public_sets, "test_set", test_set)
    monkeypatch.setattr(public_sets, "tfds_pairs", pairs)
    found = load_datasets(DataConfig())
    assert list(found.train()) == [("x", "y")]
    assert calls == [
        ("wmt13", "en", "de"),
        ("wmt14/full", "en", "de"),
        ("wmt14_translate", "train", "en", "de"),
    ]
    assert found.dev == [("wmt13 0", "a"), ("wmt13 1", "b"), ("wmt13 2", "c")]
    assert found.test[2:] == [("wmt14/full 2", "c")]
    assert found.test_links is None
    calls.clear()
    other = {"source_language": "fr", "target_language": "en"}
    turned = load_datasets(DataConfig("wmt15_x", dev="d", test="t", **other))
    list(turned.train())
    assert calls == [
        ("d", "fr", "en"),
        ("t", "fr", "en"),
        ("wmt15_x", "train", "fr", "en"),
    ]
    assert [s for s, _ in turned.test] == ["t 0", "t 1", "t 2"]
    assert turned.train_key != found.train_key


@pytest.fixture
def column_files(tmp_path):
    """Write 200 pairs as one file of two columns, and as two files."""
    pairs = [(f"word {i}", f"Wort {i}") for i in range(200)]
    text = "".join(f"{s}\t{t}\n" for s, t in pairs)
    (tmp_path / "pairs.tsv").write_text(text)
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(text.encode()))
    for name, side in (("one.txt", 0), ("other.txt", 1)):
        lines = "".join(pair[side] + "\n" for pair in pairs)
        (tmp_path / name).write_text(lines)
    return tmp_path, pairs


@pytest.mark.parametrize(
    "names", [("pairs.tsv",), ("pairs.tsv.gz",), ("one.txt", "other.txt")]
)
def test_dev_and_test_are_held_out_of_other_files(column_files, names):
    folder, pairs = column_files
    paths = tuple(str(folder / name) for name in names)
    given = paths[0] if len(paths) == 1 else paths
    found = load_datasets(DataConfig("files", train=given))
    train = list(found.train())
    assert sorted([*train, *found.dev, *found.test]) == sorted(pairs)
    assert (len(found.dev), len(found.test)) == (20, 20)
    assert train == [pair for pair in pairs if pair in set(train)]
    assert "20 as data.dev and 20 as data.test" in found.note
    # A given part is not held out; the other one still is.
    again = load_datasets(DataConfig("files", train=given, dev=given))
    assert again.dev == pairs and len(list(again.train())) == 180
    assert len(again.test) == 20
    assert again.train_key != found.train_key


def test_filtered_pairs_are_not_held_out(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a{i}\ta{i}\na{i}\tb{i}\n" for i in range(50)))
    filters = FilterConfig(identical=True)
    found = load_datasets(DataConfig("files", train=str(path), filters=filters))
    assert all(source != target for source, target in found.dev + found.test)


@pytest.mark.parametrize(
    "setting, text, copy",
    [
        ("pretokenized", "word {}", " word {} "),
        ("lowercase", "Word {}", "WORD {}"),
        ("normalize_punctuation", "'{}'", "\u2019{}\u2019"),
        ("tokenize", "word {}.", "word {} ."),
    ],
)
def test_copies_are_held_out_together(tmp_path, setting, text, copy):
    path = tmp_path / "twice.tsv"
    lines = [form.format(i) for i in range(200) for form in (text, copy)]
    path.write_text("".join(f"{line}\t{line}\n" for line in lines))
    data = DataConfig("files", train=str(path), **{setting: True})
    config = RunConfig(data=data)
    found, corpus = prepare_text(config, RunFolder(tmp_path / "run"))
    prepare = preprocessors(data)[0] or str.strip
    held_out = {prepare(source) for source, _ in [*found.dev, *found.test]}
    assert len(found.dev) == len(found.test) == 20 and len(held_out) == 40
    assert len(corpus) == 320
    assert not held_out & {*corpus.side_lines("source")}


@pytest.mark.parametrize("bad", ["a\t \n", "\tb\n", f"{'x' * 20_001}\tb\n"])
@pytest.mark.parametrize("part", ["dev", "test"])
def test_bad_pairs_of_dev_and_test_are_refused(column_files, part, bad):
    folder, _ = column_files
    train, path = folder / "pairs.tsv", folder / "part.tsv"
    path.write_text(f"a\tb\n{bad}")
    config = DataConfig("files", train=str(train), **{part: str(path)})
    message = rf"Pair part\.tsv:2 of data\.{part} cannot be used: .*sentence"
    with pytest.raises(ValueError, match=message):
        load_datasets(config)


@pytest.mark.parametrize(
    "header, expected, message",
    [
        ("German\tEnglish", ("x", "y"), ""),
        ("de\ten", ("x", "y"), "source = 'de', target = 'en' (guessed"),
        ("en\tde", ("y", "x"), "source = 'de', target = 'en' (guessed"),
        ("source\ttarget", ("x", "y"), "source = 'source'"),
    ],
)
@pytest.mark.parametrize("target", ["English", "simple"])
def test_a_later_file_is_read_in_the_direction_of_the_run(
    tmp_path, capsys, header, expected, message, target
):
    path = tmp_path / "a.tsv"
    path.write_text(f"{header}\nx\ty\n")
    # With named columns only, a run keeps no languages.
    data = DataConfig("files", train="t.tsv", columns=("German", target))
    assert list(read_given_pairs((path,), data)) == [expected]
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("settings", [("zh", None), (None, "en")])
@pytest.mark.parametrize(
    "name, content",
    [
        ("a.tsv", "English\tChinese\ny\tx\n"),
        ("a.csv", "id,English,Chinese\n1,y,x\n"),
        ("a.jsonl", '{"id": "1", "en": "y", "zh": "x"}\n'),
        (
            "a.tmx",
            '<tmx><tu><tuv lang="en-US"><seg>y</seg></tuv><tuv lang="zh">'
            "<seg>x</seg></tuv></tu></tmx>",
        ),
    ],
    ids=["tsv", "csv", "jsonl", "tmx"],
)
def test_one_language_tells_the_direction(tmp_path, name, content, settings):
    path = tmp_path / name
    path.write_text(content)
    found = read_given_pairs((path,), DataConfig("files", *settings))
    assert list(found) == [("x", "y")]


def test_a_prefix_with_one_known_language_is_english_and_german(tmp_path):
    for language in ("en", "de"):
        (tmp_path / f"text.{language}").write_text(f"{language}\n")
    prefix = str(tmp_path / "text")
    data = DataConfig("files", "de", train=prefix, dev=prefix, test=prefix)
    assert load_datasets(data).dev == [("de", "en")]


@pytest.mark.parametrize("columns", [None, ("German", "English")])
def test_a_later_file_without_header_is_reported(tmp_path, capsys, columns):
    path = tmp_path / "a.tsv"
    path.write_text("words\tdigits\nx\ty\n")
    data = DataConfig("files", train="t.tsv", columns=columns)
    found = list(read_given_pairs((path,), data))
    assert found == [("words", "digits"), ("x", "y")]
    message = capsys.readouterr().err
    assert "first line is a pair, 'words' → 'digits'" in message
    assert "--columns words digits" in message


@pytest.mark.parametrize("lowercase", [False, True])
def test_training_pairs_in_dev_and_test_are_counted(
    tmp_path, lowercase, capsys
):
    for part, text in (
        ("train", "a\tb\nc\td\nc\td\ne\tf\ng\th\n"),
        ("dev", "x\ty\n"),
        ("test", "c\td\nc\td\n e\tf\nc\tb\n"),
    ):
        text = text.upper() if lowercase and part == "test" else text
        (tmp_path / f"{part}.tsv").write_text(text)
    files = {p: str(tmp_path / f"{p}.tsv") for p in ("train", "dev", "test")}
    config = DataConfig("files", lowercase=lowercase, **files)
    run = RunFolder(tmp_path / "run")
    _, corpus = prepare_text(RunConfig(data=config), run)
    assert len(corpus) == 5
    printed = capsys.readouterr().out
    assert "2 pairs of data.test" in printed and "data.dev" not in printed
    # A held-out pair is no longer in the training text.
    config = dataclasses.replace(config, dev=None)
    found, corpus = prepare_text(RunConfig(data=config), run)
    assert found.dev == [("e", "f")] and len(corpus) == 4
    printed = capsys.readouterr().out
    assert "1 pair of data.test" in printed and "pairs of" not in printed


def test_bad_lines_are_reported_with_their_file(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"a\tb\nno tab\n\tempty\nc\t\xff\nd\te\nf\tg\nh\ti\n")
    found = load_datasets(DataConfig("files", train=str(path)))
    corpus = write_corpus(found.train(), tmp_path / "corpus")
    assert len(corpus) == 2
    assert corpus.skipped == {
        "no second column": {"count": 1, "first_lines": ["bad.tsv:2"]},
        "empty source": {"count": 1, "first_lines": ["bad.tsv:3"]},
        "not UTF-8": {"count": 1, "first_lines": ["bad.tsv:4"]},
    }
    _, line, _ = left_out_report(corpus)
    empty = "skipped, the source sentence is empty: 1 pair, first bad.tsv:3"
    assert line == empty
    strict = DataConfig("files", train=str(path), max_skipped=0.0)
    message = r"Line 2 of .*bad\.tsv does not have 2 c"
    with pytest.raises(ValueError, match=message):
        load_datasets(strict)
    path.write_text("a\tb\n\tempty\nc\td\ne\tf\n")
    found = load_datasets(strict)
    with pytest.raises(ValueError, match=r"Pair bad\.tsv:2 .* is empty"):
        write_corpus(found.train(), tmp_path / "corpus", max_skipped=0.0)


def test_standard_input_is_one_file_of_two():
    with pytest.raises(ValueError, match="for one of the two files"):
        read_given_pairs(("-", "-"), DataConfig("files"))
