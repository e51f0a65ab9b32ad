"""A training text as a teacher translates it, and what an end midway leaves."""

import types

import pytest

from luong_keras.config import RunConfig
from luong_keras.config_values import with_values
from luong_keras.files.folder_lock import FolderInUseError, locked
from reproduction import taught_text


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes the text with a translator that turns words round."""
    asked = []

    def nbest(lines):
        if len(asked) == write.most:
            raise KeyboardInterrupt
        asked.append(list(lines))
        return [[types.SimpleNamespace(text=t[::-1])] for t in lines]

    translator = types.SimpleNamespace(nbest=nbest)
    monkeypatch.setattr(taught_text, "load_run", lambda *_, **__: [])
    monkeypatch.setattr(taught_text, "TextTranslator", lambda: translator)
    monkeypatch.setattr(taught_text, "_BATCHES", 1)
    sources = [f"word {number} ä" for number in range(7)]
    (tmp_path / "train.en").write_text("\n".join([*sources, "lonely"]) + "\n")
    (tmp_path / "train.de").write_text("x\n" * 7 + "\n")
    settings = {
        "data.dataset": "files",
        "data.train": str(tmp_path / "train"),
        "data.dev": str(tmp_path / "train"),
        "data.test": str(tmp_path / "train"),
        "decoding.batch_size": 2,
    }

    def write(path):
        taught_text.write_taught_text(
            path, with_values(RunConfig(), settings), ["run"]
        )
        return path.read_bytes().decode().split("\n")

    write.asked, write.most = asked, None
    write.expected = [f"{text}\t{text[::-1]}" for text in sources] + [""]
    return write


def test_every_source_has_a_translation(write, tmp_path):
    path = tmp_path / "taught" / "teacher.tsv"
    assert write(path) == write.expected
    assert [len(lines) for lines in write.asked] == [2, 2, 2, 1]
    assert write(path) == write.expected and len(write.asked) == 4
    assert [p.name for p in path.parent.glob("[!.]*")] == ["teacher.tsv"]


def test_one_process_alone_writes_it(write, tmp_path):
    path = tmp_path / "teacher.tsv"
    with locked(tmp_path, path.name), pytest.raises(FolderInUseError):
        write(path)
    assert write(path) == write.expected


@pytest.mark.parametrize("cut", [0, 3])
def test_one_that_was_interrupted_goes_on(write, tmp_path, cut):
    path, write.most = tmp_path / "teacher.tsv", 2
    with pytest.raises(KeyboardInterrupt):
        write(path)
    assert not path.exists()
    partial = path.with_suffix(".partial")
    # The power was lost within a line, or between two bytes of a letter.
    left = partial.read_bytes()
    partial.write_bytes(left[: len(left) - cut])
    write.most = None
    assert write(path) == write.expected
    finished = 3 if cut else 4
    assert write.asked[2][0] == f"word {finished} ä"


def test_what_was_begun_of_another_text_is_no_part_of_it(write, tmp_path):
    path = tmp_path / "teacher.tsv"
    path.with_suffix(".partial").write_text("word 0 ä\tone\nother\ttwo\n")
    assert write(path) == ["word 0 ä\tone", *write.expected[1:]]
