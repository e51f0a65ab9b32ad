"""Copies of the text in the run folder."""

import json
import re
import shutil

import pytest

from luong_keras.config import DataConfig, DecodingConfig, RunConfig
from luong_keras.config.values import with_values
from luong_keras.data import datasets
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.recipe import preparation
from luong_keras.recipe.preparation import evaluation_pairs, prepare_text
from luong_keras.recipe.training import (
    describe_batch,
    training_batches,
    validation_batches,
)
from luong_keras.recipe.user_text import text_settings
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder

TOKENIZED = {
    "lowercase": True,
    "tokenize": True,
    "source_language": "en",
    "target_language": "de",
}
LINES = ["a b\tx y\n", "c\tz\n", "d e\tw\n"]


@pytest.fixture
def config(tmp_path):
    files = {}
    for part in ("train", "dev", "test"):
        path = tmp_path / f"{part}.tsv"
        path.write_text("".join(f"{part} {line}" for line in LINES))
        files[part] = str(path)
    return RunConfig(data=DataConfig("files", **files))


@pytest.fixture
def run(tmp_path, config):
    run = RunFolder(tmp_path / "run")
    prepare_text(config, run)
    run.write_data("the fingerprint of the batches")
    return run


def texts(datasets, corpus):
    sides = [list(corpus.side_lines(side)) for side in ("source", "target")]
    return sides, datasets.dev, datasets.test, datasets.test_links


def file_states(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_runs_keep_a_copy_of_their_text(tmp_path, config, run, capsys):
    first = texts(*prepare_text(config, run))
    source = ["train a b", "train c", "train d e"]
    assert first[0] == [source, ["x y", "z", "w"]]
    assert first[1] == [("dev a b", "x y"), ("dev c", "z"), ("dev d e", "w")]
    assert "changed" not in capsys.readouterr().out
    (tmp_path / "train.tsv").unlink()
    (tmp_path / "test.tsv").write_text("new\tneu\n")
    before = file_states(run.path)
    assert texts(*prepare_text(config, run)) == first
    message = r"data.train=\S+, data.test=\S+: the size, time or place differs"
    assert re.search(message, capsys.readouterr().out)
    assert file_states(run.path) == before


def test_evaluation_pairs_in_the_training_text_are_reported(
    tmp_path, config, capsys
):
    (tmp_path / "test.tsv").write_text(f"train {LINES[1]}new\tneu\n")
    prepare_text(config, RunFolder(tmp_path / "run"))
    printed = capsys.readouterr().out
    assert "also in the training text: 1 pair of data.test" in printed
    assert "data.dev" not in printed


@pytest.mark.parametrize("has_begun", [True, False])
@pytest.mark.parametrize("settings", [{"lowercase": True}, TOKENIZED])
def test_pairs_that_version_0_3_0_held_out_stay_in_a_begun_run(
    tmp_path, monkeypatch, capsys, settings, has_begun
):
    path, run = tmp_path / "copies.tsv", RunFolder(tmp_path / "run")
    path.write_text("".join(f"a{i}\tb{i}\nA{i}\tB{i}\n" for i in range(50)))
    data = DataConfig("files", train=str(path), **settings)
    config = RunConfig(data=data)
    with monkeypatch.context() as older:
        # It chose them by hashes of the text before the preparation.
        older.setattr(datasets, "preprocessors", lambda data: (None, None))
        first = texts(*prepare_text(config, run))
    stat = path.stat()
    stamps = [[[str(path), stat.st_size, stat.st_mtime_ns]]]
    names = ["lowercase", "normalize_punctuation", "tokenize"]
    filters = {
        "length_ratio": None,
        "length_unit": "words",
        "identical": False,
        "duplicates": False,
        "scripts": None,
    }
    key = [
        json.dumps([stamps, None, ["dev", "test"]]),
        {name: name in settings for name in names} | {"filters": filters},
    ]
    description = run.corpus / "corpus.json"
    values = json.loads(description.read_text()) | {"key": json.dumps(key)}
    description.write_text(json.dumps(values))
    if has_begun:
        run.write_data("begun")
    second = texts(*prepare_text(config, run))
    assert (second == first) == has_begun
    assert "changed" not in capsys.readouterr().out
    path.write_text("new\tneu\n")
    if has_begun:
        assert texts(*prepare_text(config, run)) == first
        assert "copies.tsv: the size, tim" in capsys.readouterr().out
    held_out = {source.lower() for source, _ in second[1] + second[2]}
    assert has_begun or not held_out & {*second[0][0]}


def test_text_that_grows_while_it_is_read_is_refused(
    tmp_path, config, monkeypatch
):
    def growing(*given):
        found = datasets.load_datasets(*given)
        with open(config.data.train, "a", encoding="utf-8") as file:
            file.write("f\tv\n")
        return found

    run = RunFolder(tmp_path / "run")
    with monkeypatch.context() as while_read:
        while_read.setattr(preparation, "load_datasets", growing)
        with pytest.raises(ValueError, match="changed while it was read"):
            prepare_text(config, run)
    assert len(prepare_text(config, run)[1]) == len(LINES) + 1


def test_a_damaged_corpus_is_written_again(config, run, capsys):
    first = texts(*prepare_text(config, run))
    (run.corpus / "source.txt").write_text("damaged")
    assert texts(*prepare_text(config, run)) == first
    assert "The training text is read again." in capsys.readouterr().out
    assert texts(*prepare_text(config, run)) == first
    assert "changed" not in capsys.readouterr().out


@pytest.mark.parametrize("row", ['["c"', '["c", "d"]', '"c/d"'])
def test_errors_of_damaged_copies_name_the_line(config, run, row):
    run.test.write_text(f'["a", "b", null]\n{row}\n')
    with pytest.raises(ValueError, match=r"3 texts in .*test\.jsonl, line 2"):
        prepare_text(config, run)
    run.test.unlink()
    prepare_text(config, run)
    assert len(run.test.read_text().splitlines()) == 3


def test_evaluation_uses_the_copied_pairs(tmp_path, config, run):
    expected = evaluation_pairs(config.data, run)
    assert expected.dev[0] == ("dev a b", "x y")
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.tsv").unlink()
    assert evaluation_pairs(config.data, run).test == expected.test
    run.test.write_text(run.test.read_text().replace("z", "y"))
    with pytest.raises(ValueError, match="run wrote: its checksum differs"):
        evaluation_pairs(config.data, run)


def test_lost_pairs_are_not_replaced_by_others(tmp_path, config, run):
    kept = file_states(run.path)
    _, dev = kept.pop(run.dev)
    run.dev.unlink()
    for part in ("dev", "test"):
        (tmp_path / f"{part}.tsv").write_text("new\tneu\n")
    assert evaluation_pairs(config.data, run).test[0] == ("test a b", "x y")
    for call in (
        lambda: evaluation_pairs(config.data, run, "dev"),
        lambda: prepare_text(config, run),
    ):
        with pytest.raises(ValueError, match=r"dev\.jsonl is missing, and"):
            call()
        assert file_states(run.path) == kept
    (tmp_path / "dev.tsv").write_text("".join(f"dev {x}" for x in LINES))
    prepare_text(config, run)
    assert run.dev.read_bytes() == dev


def test_another_text_does_not_replace_a_lost_one(tmp_path, config):
    run = RunFolder(tmp_path / "run")
    _, corpus = prepare_text(config, run)
    run.write_data("begun", corpus.fingerprint)
    shutil.rmtree(run.corpus)
    text = tmp_path / "train.tsv"
    before = text.read_bytes()
    text.write_bytes(before.replace(b"train a", b"train b"))
    for _ in range(2):
        with pytest.raises(ValueError, match="are not those that"):
            prepare_text(config, run)
        assert not run.corpus.exists()
    text.write_bytes(before)
    _, again = prepare_text(config, run)
    assert again.fingerprint == corpus.fingerprint


def test_alignment_links_are_kept(tmp_path):
    config = RunConfig(data=DataConfig("phrasebook", train_size=40))
    run = RunFolder(tmp_path / "run")
    first = texts(*prepare_text(config, run))
    run.write_data("begun")
    assert texts(*prepare_text(config, run)) == first
    assert first[3] and all(isinstance(line, str) for line in first[3])


def test_runs_without_copies_write_them(config, run, monkeypatch):
    run.dev.unlink()
    run.test.unlink()
    before = file_states(run.corpus)
    prepare_text(config, run)
    assert run.dev.exists() and file_states(run.corpus) == before
    monkeypatch.setattr(preparation, "load_datasets", None)
    prepare_text(config, run)


def test_different_pairs_in_memory_do_not_replace_the_old_ones(tmp_path):
    run = RunFolder(tmp_path)
    text_settings(run, [("a", "b")])
    run.write_data("begun")
    with pytest.raises(ValueError, match="are not those that"):
        text_settings(run, [("a", "c")])
    assert (run.pairs / "train.jsonl").read_text() == '["a", "b"]\n'
    text_settings(run, [("a", "b")])


def test_moved_runs_make_their_text_again_from_their_own_pairs(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    run = RunFolder("run")  # a path that means another folder elsewhere
    pairs = [("a", "b"), ("c", "d")]
    extra = tmp_path / "extra.tsv"
    extra.write_text("e\tf\n")
    settings = text_settings(run, [pairs, extra], pairs[:1], pairs)
    config = with_values(RunConfig(), settings)
    first, corpus = prepare_text(config, run)
    run.write_data("begun", corpus.fingerprint)
    moved = RunFolder(shutil.move(run.path, tmp_path / "moved"))
    monkeypatch.chdir(tmp_path.parent)
    prepare_text(config, moved)
    assert "differs" not in capsys.readouterr().out
    shutil.rmtree(moved.corpus)
    moved.test.unlink()
    assert evaluation_pairs(config.data, moved).test == pairs
    again, new_corpus = prepare_text(config, moved)
    assert new_corpus.fingerprint == corpus.fingerprint
    assert (again.dev, again.test) == (first.dev, first.test)
    # Other files may have changed.
    extra.write_text("g\th\n")
    capsys.readouterr()
    prepare_text(config, moved)
    assert "data.train=('" in capsys.readouterr().out


def test_validation_pairs_that_are_cut_are_reported(capsys):
    config = RunConfig(decoding=DecodingConfig(max_source_length=2))
    tokenizers = [WordTokenizer.from_words(["a"])] * 2
    validation_batches(tokenizers, [("a a a", "a"), ("a a", "a")], config)
    printed = capsys.readouterr().out
    assert printed.startswith("1 of 2 validation pairs cut: ")
    assert "decoding.max_source_length=2 tokens" in printed


def test_validation_targets_are_prepared_by_their_language():
    data = DataConfig(source_language="de", target_language="fr", tokenize=True)
    words = WordTokenizer.from_words(["l'", "homme"])
    pairs = [("x", "l'homme")]
    config = RunConfig(data=data)
    ((_, targets),) = validation_batches([words] * 2, pairs, config)
    assert words.decode(targets["word"]).numpy().tolist() == [b"l' homme"]


def test_a_batch_is_described_by_its_lines_and_longest_pair(tmp_path):
    corpus = write_corpus([("a", "x"), ("a b c", "y"), ("a b", "z")], tmp_path)
    tokenizers = [WordTokenizer.from_words(["a"])] * 2
    batches = training_batches(corpus, tokenizers, RunConfig())
    found = describe_batch(batches, 0)
    assert "the lines 1, 2, 3 of" in found and "'a b c ||| y'" in found
