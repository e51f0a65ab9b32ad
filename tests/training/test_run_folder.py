import pytest

from luong_keras.training.run_folder import RunFolder


def test_a_run_keeps_its_configuration(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.write_config({"units": 8, "epochs": 3, "layers": (1, 2)})
    run.write_config({"units": 8, "epochs": 3, "layers": (1, 2)})
    with pytest.raises(ValueError, match="units: 8 there, 9 now"):
        run.write_config({"units": 9, "epochs": 3, "layers": (1, 2)})
    assert run.read_config() == {"units": 8, "epochs": 3, "layers": [1, 2]}


def test_a_run_goes_on_with_its_data(tmp_path):
    run = RunFolder(tmp_path)
    run.write_data("abc")
    run.write_data("abc")
    with pytest.raises(ValueError, match="not the one that the run began"):
        run.write_data("abd")


def test_looking_for_a_run_makes_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        RunFolder(tmp_path / "typo").read_config()
    assert not (tmp_path / "typo").exists()


def test_an_empty_folder_has_no_configuration(tmp_path):
    with pytest.raises(FileNotFoundError, match="without config.json"):
        RunFolder(tmp_path).read_config()


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
