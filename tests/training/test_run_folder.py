import pytest

from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.training.run_folder import RunFolder, epoch_path


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_damaged_configurations_are_reported(tmp_path, text):
    run = RunFolder(tmp_path)
    run.config.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="configuration of a run in .*config"):
        run.read_config()


def test_the_fingerprint_of_the_data_cannot_change(tmp_path):
    run = RunFolder(tmp_path)
    run.write_data("abc")
    run.write_data("abc")
    with pytest.raises(ValueError, match="not those that the run began with"):
        run.write_data("abd")


@pytest.mark.parametrize("name", ["dev", "test"])
def test_flipped_bits_of_the_pairs_are_detected(tmp_path, name):
    run = RunFolder(tmp_path)
    run.dev.write_text('["a", "b"]\n')
    run.test.write_text('["c", "d", null]\n')
    run.write_data("abc")
    run.check_pairs()
    run.write_data("abc")
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
    with pytest.raises(FileNotFoundError):
        RunFolder(tmp_path / "typo").read_config()
    assert not (tmp_path / "typo").exists()


def test_errors_name_the_missing_configuration(tmp_path):
    with pytest.raises(FileNotFoundError, match="without config.json"):
        RunFolder(tmp_path).read_config()


def test_weights_are_found_by_name(tmp_path):
    run = RunFolder(tmp_path)
    for path in (run.best_weights, run.last_weights):
        path.touch()
    run.checkpoints.mkdir()
    for number in (7, 1234):
        epoch_path(run.checkpoints, number).touch()
    names = {
        "best": "best.weights.h5",
        "last": "last.weights.h5",
        "epoch-7": "checkpoints/epoch-007.weights.h5",
        "epoch-007": "checkpoints/epoch-007.weights.h5",
        "epoch-1234": "checkpoints/epoch-1234.weights.h5",
    }
    for name, path in names.items():
        assert run.weights(name) == tmp_path / path


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
    lines = run.tree().splitlines()
    assert lines[0] == "run/"
    monkeypatch.chdir(run.path)
    assert RunFolder(".").tree().splitlines() == lines
    assert [line.split()[:3] for line in lines[1:]] == [
        ["snapshot.npz", "2.5", "MB"],
        ["samples/", "1.2", "kB"],
    ]


def test_the_tree_shows_both_files_of_a_tokenizer(tmp_path):
    run = RunFolder(tmp_path)
    WordTokenizer.from_words(["a"]).save(run.path, "source_vocabulary")
    run.target_subwords.write_bytes(b"a model")
    names = [line.split()[0] for line in run.tree().splitlines()[1:]]
    assert names == [
        "source_vocabulary.json",
        "source_vocabulary.vocab",
        "target_vocabulary.model",
    ]
