"""Files named by the settings of a run, which must be in its folder."""

import gzip
import json
import shutil

import pytest

from luong_keras.config import DecodingConfig, RunConfig
from luong_keras.config.values import config_to_dict, read_values, with_values
from luong_keras.files.path_checks import safe_join
from luong_keras.recipe.resumption import (
    is_finished,
    mark_finished,
    resumed_settings,
)
from luong_keras.recipe.stored_settings import copy_word_lists, run_config
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder

# Settings of version 0.3.0: a value without effect, and another one.
REMOVED = [("training.average_epochs", None, 3)]
REMOVED += [("training.max_skipped", 0, 100)]
LINES = "door Tor 0.2\ndoor Tür 0.7\n"


@pytest.fixture
def run(tmp_path):
    return RunFolder(tmp_path / "runs" / "mine")


@pytest.fixture
def elsewhere(tmp_path):
    path = tmp_path / "en-de.txt"
    path.write_text(LINES, encoding="utf-8")
    return path


def settings(dictionary):
    return RunConfig(decoding=DecodingConfig(dictionary=str(dictionary)))


def test_runs_continue_with_the_original_or_the_saved_settings(
    run, elsewhere, tmp_path, monkeypatch
):
    first = copy_word_lists(settings(elsewhere), run)
    run.write_config(config_to_dict(first))
    mark_finished(first, run)
    monkeypatch.chdir(tmp_path)
    # the same call, config.json as `--config`, and the result of `run_config`
    original, saved = settings(elsewhere), settings("dictionary.txt")
    for config in (original, saved, run_config(run.path)):
        resumed_settings(config, run)
        again = copy_word_lists(config, run)
        assert again == first
        assert is_finished(again, run)
    assert copy_word_lists(RunConfig(), run) == RunConfig()


def write_setting(run, name, value):
    values = config_to_dict(RunConfig())
    section, name = name.split(".")
    values[section][name] = value
    run.write_config(values)


def test_runs_of_other_versions_are_refused(run):
    write_setting(run, "training.averaged", "last")
    with pytest.raises(ValueError, match="averaged: .* Correct the setting in"):
        run_config(run.path)


@pytest.mark.parametrize("name, value, other", REMOVED)
def test_runs_of_older_versions_have_removed_settings(run, name, value, other):
    write_setting(run, name, value)
    assert run_config(run.path) == RunConfig()
    assert with_values(RunConfig(), read_values(run.config)) == RunConfig()
    write_setting(run, name, other)
    message = f"{name}={other} has no effect: .* removed.* {run.config}"
    with pytest.warns(UserWarning, match=message):
        assert run_config(run.path) == RunConfig()
    with pytest.warns(UserWarning, match=message):
        read_values(run.config)


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_training_copies_the_word_lists(run, tmp_path, suffix):
    path = tmp_path / f"en-de.txt{suffix}"
    data = LINES.encode()
    path.write_bytes(gzip.compress(data) if suffix else data)
    decoding = DecodingConfig(dictionary=str(path), shortlist=str(path))
    config = copy_word_lists(RunConfig(decoding=decoding), run)
    run.write_config(config_to_dict(config))
    saved = json.loads(run.config.read_text())["decoding"]
    for name in ("dictionary", "shortlist"):
        assert getattr(config.decoding, name) == saved[name] == f"{name}.txt"
        assert getattr(run, name).read_text(encoding="utf-8") == LINES
    assert run_config(run.path, resolve_paths=False) == config
    path.unlink()
    moved = shutil.move(run.path, tmp_path / "moved")
    found = run_config(moved).decoding.dictionary
    assert found == str(tmp_path / "moved" / "dictionary.txt")


def test_a_file_with_the_name_of_the_dictionary_does_not_replace_it(
    run, elsewhere, tmp_path, monkeypatch
):
    copy_word_lists(settings(elsewhere), run)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dictionary.txt").write_text("maison house 1\n")
    with pytest.raises(ValueError, match="decoding.dictionary=./dictionary"):
        copy_word_lists(settings("dictionary.txt"), run)
    assert run.dictionary.read_text(encoding="utf-8") == LINES
    kept = copy_word_lists(settings(run.dictionary), run)
    assert kept.decoding.dictionary == "dictionary.txt"
    copy_word_lists(settings("./dictionary.txt"), run)
    assert run.dictionary.read_text() == "maison house 1\n"


def test_invalid_dictionaries_are_refused_before_training(run, elsewhere):
    with pytest.raises(FileNotFoundError, match="none., which does not"):
        copy_word_lists(settings(elsewhere.with_name("none")), run)
    elsewhere.write_text("door Tür many\n")
    with pytest.raises(ValueError, match="a number. Received: .door T"):
        copy_word_lists(settings(elsewhere), run)
    assert not run.dictionary.exists()
    elsewhere.write_text("door Tor\n")
    shortlist = RunConfig(decoding=DecodingConfig(shortlist=str(elsewhere)))
    with pytest.raises(ValueError, match="Line 1 of the dictionary"):
        copy_word_lists(shortlist, run)


@pytest.mark.parametrize(
    "path",
    [
        "../../../../../../etc/passwd",
        "../theirs/dictionary.txt",
        "/etc/passwd",
        "samples/../../x",
        "..",
    ],
)
def test_runs_cannot_name_files_outside_their_folder(run, path):
    run.write_config(config_to_dict(settings(path)))
    with pytest.raises(ValueError, match="leads out of it") as refused:
        run_config(run.path)
    # The message says how to add a trusted file.
    for part in (path, str(run.config), f"copy it to {run.dictionary}"):
        assert part in str(refused.value)
    # The path is not read if the caller gives the decoding settings.
    found = run_config(run.path, resolve_paths=False)
    assert found.decoding.dictionary == path


def test_relative_paths_replace_refused_absolute_paths(run, elsewhere):
    # Absolute paths are refused even in the folder, because runs may move.
    write_setting(run, "decoding.dictionary", str(run.path / "own.txt"))
    with pytest.raises(ValueError, match="leads out of it"):
        run_config(run.path)
    resumed_settings(settings(elsewhere), run)
    write_setting(run, "decoding.dictionary", "own.txt")
    found = run_config(run.path).decoding.dictionary
    assert found == str(run.path / "own.txt")


def test_links_out_of_the_folder_are_refused(run, elsewhere):
    run.write_config(config_to_dict(settings("dictionary.txt")))
    run.dictionary.symlink_to(elsewhere)
    with pytest.raises(ValueError, match="leads out of it"):
        run_config(run.path)
    run.dictionary.unlink()
    (run.path / "folder").symlink_to(elsewhere.parent)
    run.write_config(config_to_dict(settings(f"folder/{elsewhere.name}")))
    with pytest.raises(ValueError, match="leads out of it"):
        run_config(run.path)


@pytest.mark.parametrize("suffix", [".json", WordTokenizer.file_suffix])
def test_vocabularies_linked_out_of_the_folder_are_refused(tmp_path, suffix):
    folder, other = tmp_path / "run", tmp_path / "other"
    for place in (folder, other):
        place.mkdir()
        WordTokenizer.from_words(["a"]).save(place, "source_vocabulary")
    file = folder / f"source_vocabulary{suffix}"
    file.unlink()
    file.symlink_to(other / file.name)
    with pytest.raises(ValueError, match="leads out of it"):
        load_tokenizer(folder, "source_vocabulary")
    with pytest.raises(ValueError, match="leads out of it"):
        load_tokenizer(folder, "../other/source_vocabulary")


def test_the_folder_itself_can_be_a_link(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "real")
    assert safe_join(link, "x") == link / "x"
    (tmp_path / "real" / "y").symlink_to("x")
    assert safe_join(link, "y") == link / "y"
    monkeypatch.chdir(tmp_path)
    assert safe_join("link", "x").as_posix() == "link/x"


def test_given_decoding_settings_need_no_files_of_the_folder(
    run, elsewhere, monkeypatch
):
    from luong_keras.recipe import loading

    run.write_config(config_to_dict(settings("/etc/passwd")))
    calls = []

    def stop(folder, weights, precision, resolve_paths):
        calls.append(resolve_paths)
        raise InterruptedError

    monkeypatch.setattr(loading, "_load_single_run", stop)
    for decoding in (settings(elsewhere).decoding, None):
        with pytest.raises(InterruptedError):
            loading.load_run(run.path, decoding=decoding)
    assert calls == [False, True]
