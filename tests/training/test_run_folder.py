import pytest

from luong_keras.training.run_folder import RunFolder, epoch_path


def test_a_run_keeps_its_configuration(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config({"units": 8, "epochs": 3, "layers": (1, 2)})
    run.write_config({"units": 8, "epochs": 3, "layers": (1, 2)})
    with pytest.raises(ValueError, match="units: 8 → 9"):
        run.write_config({"units": 9, "epochs": 3, "layers": (1, 2)})
    assert run.read_config() == {"units": 8, "epochs": 3, "layers": [1, 2]}


def test_what_may_change_and_what_is_new_is_let_pass(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config({"model": {"units": 8}, "fit": {"epochs": 3, "size": 64}})
    new = {"model": {"units": 8, "layers": 2}, "fit": {"epochs": 5, "size": 32}}
    free = ("fit.epochs",)
    with pytest.raises(ValueError) as caught:
        run.write_config(new, free, {"model": {"layers": 1}})
    # Every one that may not change, by its full name, and no other.
    message = str(caught.value)
    assert "fit.size: 64 → 32; model.layers: 1 → 2." in message
    assert "fit.epochs: 3" not in message and "fit.epochs" in message
    assert run.read_config()["fit"]["epochs"] == 3
    with pytest.raises(ValueError, match="fit.epochs: 3 → 5"):
        run.write_config(new, ("fit.epoch", "fit.size", "model"))
    run.write_config(new, ("fit",), {"model": {"layers": 2}})
    assert run.read_config() == new


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_a_damaged_configuration_is_told(tmp_path, text):
    run = RunFolder(tmp_path)
    run.config.write_bytes(text.encode("latin-1"))
    with pytest.raises(ValueError, match="configuration of a run in .*config"):
        run.read_config()


def test_a_run_goes_on_with_its_data(tmp_path):
    run = RunFolder(tmp_path)
    run.write_data("abc")
    run.write_data("abc")
    with pytest.raises(ValueError, match="not those that the run began with"):
        run.write_data("abd")


@pytest.mark.parametrize("name", ["dev", "test"])
def test_a_flipped_bit_of_its_pairs_is_noticed(tmp_path, name):
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
    # A run of before has no checksums.
    run.data.write_text('{"fingerprint": "abc"}')
    run.check_pairs()


def test_looking_for_a_run_makes_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        RunFolder(tmp_path / "typo").read_config()
    assert not (tmp_path / "typo").exists()


def test_an_empty_folder_has_no_configuration(tmp_path):
    with pytest.raises(FileNotFoundError, match="without config.json"):
        RunFolder(tmp_path).read_config()


def test_weights_are_found_by_name(tmp_path):
    run = RunFolder(tmp_path)
    for path in (*(run.best_weights, run.last_weights, run.average_weights),):
        path.touch()
    run.checkpoints.mkdir()
    for number in (7, 1234):
        epoch_path(run.checkpoints, number).touch()
    names = {
        "best": "best.weights.h5",
        "last": "last.weights.h5",
        "average": "average.weights.h5",
        "epoch-7": "checkpoints/epoch-007.weights.h5",
        "epoch-007": "checkpoints/epoch-007.weights.h5",
        "epoch-1234": "checkpoints/epoch-1234.weights.h5",
    }
    for name, path in names.items():
        assert run.weights(name) == tmp_path / path


@pytest.mark.parametrize(
    "name, kind, said",
    [
        ("avrage", ValueError, "epoch-7, those of an epoch. Received: avrage"),
        ("avrage", ValueError, "mean average\\? .* has best, epoch-003. "),
        ("epoch-", ValueError, "Received: epoch-"),
        ("../best", ValueError, "Received: ../best"),
        ("epoch-7", FileNotFoundError, "epoch-007.weights.h5. .* has best, "),
        ("average", FileNotFoundError, "average.weights.h5.*average_epochs"),
    ],
)
def test_weights_that_are_not_there_are_told(tmp_path, name, kind, said):
    run = RunFolder(tmp_path)
    run.best_weights.touch()
    run.checkpoints.mkdir()
    epoch_path(run.checkpoints, 3).touch()
    with pytest.raises(kind, match=said):
        run.weights(name)


def test_a_run_without_weights_is_told(tmp_path):
    with pytest.raises(FileNotFoundError, match="finished its first epoch"):
        RunFolder(tmp_path).weights("best")


def test_the_tree_shows_what_is_there(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.path.mkdir()
    run.snapshot.write_bytes(b"x" * 2_500_000)
    run.samples.mkdir()
    (run.samples / "epoch-001.txt").write_text("y" * 999)
    (run.samples / "epoch-002.txt").write_text("y" * 201)
    lines = run.tree().splitlines()
    assert lines[0] == "run/"
    assert [line.split()[:3] for line in lines[1:]] == [
        ["snapshot.npz", "2.5", "MB"],
        ["samples/", "1.2", "kB"],
    ]
