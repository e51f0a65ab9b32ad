"""`luong-keras reproduce`: what is asked for, and what it refuses."""

import json

import pytest

from luong_keras.cli.main import main
from tests.reproduction.made_up_rows import record, write_rows


@pytest.fixture
def call(capsys, tmp_path):
    """Runs the command; the lines of the status that is expected."""

    def call(*arguments, status=0):
        arguments = ["reproduce", *arguments, "--output", tmp_path / "out"]
        assert main(list(map(str, arguments))) == status
        printed = capsys.readouterr()
        return (printed.err if status == 2 else printed.out).splitlines()

    return call


def test_the_list_says_what_would_run(call, tmp_path):
    write_rows(tmp_path / "out" / "rows", record("base"), record("reverse"))
    first, *rest = call("--list")
    assert first == "2 rows are finished; to run: 7 trainings, 1 ensembles"
    assert "  local-p-1: for local-p, local-p-unk" in rest
    assert "  ensemble: of local-p-1, local-p-2, local-p-3, local-p-4" in rest
    first, *_ = call("--list", "--only", "table4", "--seeds", 3)
    # Eight architectures.
    assert first == "0 rows are finished; to run: 24 trainings, 0 ensembles"


def test_settings_of_every_row_are_other_rows(call, tmp_path):
    write_rows(tmp_path / "out" / "rows", record("base"))
    first, second, *_ = call("--list", "--set", "training.epochs=9")
    assert first.endswith("made again: training.epochs: 8 → 9")
    assert second.startswith("0 rows are finished")


def test_a_page_of_what_there_is(call, tmp_path):
    write_rows(tmp_path / "out" / "rows", record("base"), record("reverse"))
    *_, told, page, summary = call("--page")
    assert told.startswith("not decided    Reversing the source helps. ")
    assert page == str(tmp_path / "out" / "index.html")
    found = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert found["scale"] == "builtin" and summary.endswith("summary.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--scale", "multi"], "a scale of builtin, multi30k, wmt14"),
        (["--scale", "multi30k"], "--files FOLDER, with train, val and"),
        (["--scale", "multi30k", "--files", "nowhere"], "is no folder"),
        (["--only", "table9"], "tables of table1, table3, table4, today"),
        (["--seeds", "0"], "--seeds must be at least 1"),
        (["--jobs", "0"], "--jobs must be at least 1"),
        (["--rows", "mine.yaml"], "mine.yaml, which does not exist"),
        (["--set", "model.unit=1"], "Did you mean model.units?"),
        (["--page"], "Expected: finished rows of builtin in "),
    ],
)
def test_what_is_wrong_is_one_line(call, arguments, message):
    (line,) = call(*arguments, status=2)
    assert message in line
