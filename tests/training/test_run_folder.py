import pytest

from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder, epoch_path


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_damaged_configurations_are_reported(tmp_path, text):
    run = RunFolder(tmp_path)
    run.config.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="configuration of a run in .*config"):
        run.read_config()


@pytest.mark.parametrize("name", ["dev", "test"])
def test_other_data_and_flipped_bits_of_the_pairs_are_detected(tmp_path, name):
    run = RunFolder(tmp_path)
    run.dev.write_text('["a", "b"]\n')
    run.test.write_text('["c", "d", null]\n')
    run.write_data("abc")
    run.check_pairs()
    run.write_data("abc")
    with pytest.raises(ValueError, match="not those that the run began with"):
        run.write_data("abd")
    content = bytearray(getattr(run, name).read_bytes())
    content[2] ^= 1
    getattr(run, name).write_bytes(content)
    for check in (run.check_pairs, lambda: run.write_data("abc")):
        with pytest.raises(ValueError, match=rf"{name}\.jsonl is not the file"):
            check()
    # Older runs have no checksums.
    run.data.write_text('{"fingerprint": "abc"}')
    run.check_pairs()


def test_reading_a_missing_run_makes_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match="without config.json"):
        RunFolder(tmp_path / "typo").read_config()
    assert not (tmp_path / "typo").exists()


def test_weights_are_found_by_name(tmp_path):
    run = RunFolder(tmp_path)
    run.checkpoints.mkdir()
    for name, path in (
        ("best", "best"),
        ("last", "last"),
        ("epoch-7", "checkpoints/epoch-007"),
        ("epoch-007", "checkpoints/epoch-007"),
        ("epoch-1234", "checkpoints/epoch-1234"),
    ):
        file = tmp_path / f"{path}.weights.h5"
        file.touch()
        assert run.weights(name) == file, name


@pytest.mark.parametrize(
    "name, error, message",
    [
        ("lst", ValueError, "epoch-7, those of an epoch. Received: lst"),
        ("lst", ValueError, "mean last\\? .* has best, epoch-003. "),
        ("epoch-", ValueError, "Received: epoch-"),
        ("../best", ValueError, "Received: ../best"),
        ("epoch-7", FileNotFoundError, "epoch-007.weights.h5. .* has best, "),
        ("last", FileNotFoundError, "last.weights.h5.*`training.keep` keeps"),
    ],
)
def test_errors_of_missing_weights_list_the_alternatives(
    tmp_path, name, error, message
):
    run = RunFolder(tmp_path)
    run.best_weights.touch()
    run.checkpoints.mkdir()
    epoch_path(run.checkpoints, 3).touch()
    with pytest.raises(error, match=message):
        run.weights(name)


def test_missing_weights_of_a_new_run_are_reported(tmp_path):
    with pytest.raises(FileNotFoundError, match="finished its first epoch"):
        RunFolder(tmp_path).weights("best")


def test_the_tree_shows_files_and_sizes(tmp_path, monkeypatch):
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.snapshot.write_bytes(b"x" * 2_500_000)
    run.samples.mkdir()
    (run.samples / "epoch-001.txt").write_text("y" * 999)
    (run.samples / "epoch-002.txt").write_text("y" * 201)
    # A tokenizer may have two files.
    WordTokenizer.from_words(["a"]).save(run.path, "source_vocabulary")
    run.target_subwords.write_bytes(b"a model")
    first, *lines = run.tree().splitlines()
    assert first == "run/"
    monkeypatch.chdir(run.path)
    assert RunFolder(".").tree().splitlines() == [first, *lines]
    names = [line.split()[0] for line in lines]
    assert names[:2] == ["source_vocabulary.json", "source_vocabulary.vocab"]
    assert [line.split()[:3] for line in lines[2:]] == [
        ["target_vocabulary.model", "7", "bytes"],
        ["snapshot.npz", "2.5", "MB"],
        ["samples/", "1.2", "kB"],
    ]
