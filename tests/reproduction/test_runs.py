"""What is run, in which order, and what becomes of a part that fails."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from luong_keras.config_values import with_values
from luong_keras.recipe.resumption import write_config
from reproduction import processes
from reproduction.processes import Processes
from reproduction.record import record_path, write_record
from reproduction.runs import Runs
from reproduction.tasks import text_key, work_of
from luong_keras.text.threads import available_cores
from luong_keras.training.run_folder import RunFolder
from tests.reproduction.made_up_rows import builtin_plan, record, taught_plan


@pytest.fixture
def work_in(tmp_path, monkeypatch):
    """Runs rows with a worker that only takes notes."""
    monkeypatch.setattr(processes, "_MODULE", "tests.reproduction.fake_worker")
    records = tmp_path / "rows"
    records.mkdir()

    def work(*names, seeds=1, jobs=2, plan=None):
        plan = plan or builtin_plan()
        rows = [plan.rows[name] for name in names]
        made = Runs(
            plan, tmp_path / "runs", records, jobs=jobs, say=said.append
        )
        failed = made.run(work_of(plan, rows, seeds, records))
        notes = (records / "notes").read_text().splitlines()
        return failed, notes

    said = []
    work.said, work.records, work.folder = said, records, tmp_path / "runs"
    return work


def names(found):
    return [training.name for training in found]


def test_rows_of_one_training_share_it(tmp_path):
    plan = builtin_plan()
    rows = [plan.rows[n] for n in ("local-p", "local-p-unk", "feed-unk")]
    work = work_of(plan, rows, 2, tmp_path)
    assert names(work.trainings) == [
        "local-p-1",
        "local-p-2",
        "feed-1",
        "feed-2",
    ]
    assert [row.name for row in work.trainings[0].rows] == [
        "local-p",
        "local-p-unk",
    ]
    # The row that chooses the best epoch is the same whoever asks.
    assert not work.trainings[2].config.decoding.replace_unknown
    assert [t.config.training.seed for t in work.trainings] == [1, 2, 1, 2]


def test_an_ensemble_trains_what_it_lacks(tmp_path):
    plan = builtin_plan()
    work = work_of(plan, [plan.rows["ensemble"]], 1, tmp_path)
    assert names(work.trainings) == [f"local-p-{n}" for n in (1, 2, 3, 4)]
    assert not any(training.rows for training in work.trainings)
    (ensemble,) = work.ensembles
    assert ensemble.runs == tuple(names(work.trainings))


def test_a_finished_row_is_not_made_again(tmp_path):
    plan = builtin_plan()
    rows = [plan.rows["base"], plan.rows["reverse"]]
    write_record(tmp_path, record("base"))
    work = work_of(plan, rows, 1, tmp_path)
    assert names(work.trainings) == ["reverse-1"]
    assert [wanted.row.name for wanted in work.finished] == ["base"]


def test_a_row_of_other_settings_is_made_again_and_told_of(tmp_path):
    plan = builtin_plan()
    other = record("base")
    other.settings["model.units"] = 7
    path = write_record(tmp_path, other)
    work = work_of(plan, [plan.rows["base"]], 1, tmp_path)
    assert names(work.trainings) == ["base-1"]
    assert work.outdated == {path: "model.units: 7 → 160"}


def test_a_setting_that_came_later_has_its_default(tmp_path):
    plan = builtin_plan()
    older = record("base")
    del older.settings["model.cell_clip"]
    write_record(tmp_path, older)
    assert not work_of(plan, [plan.rows["base"]], 1, tmp_path).trainings


def test_everything_is_run_and_ensembles_last(work_in):
    failed, notes = work_in("base", "reverse", "local-p", "ensemble")
    assert failed == []
    share = f"threads={max(1, available_cores() // 2)}"
    assert all(note.endswith(share) for note in notes)
    words = [note.split()[:2] for note in notes]
    # One text, before all trainings; the ensemble after its parts.
    assert [w[0] for w in words].count("prepared") == 1
    assert words[0][0] == "prepared"
    assert words[-1] == ["scored", "ensemble"]
    parts = [f"local-p-{n}" for n in (1, 2, 3, 4)]
    assert notes[-1].startswith(" ".join(["scored ensemble", *parts]))
    trained = sorted(w[1] for w in words if w[0] == "trained")
    assert trained == sorted(["base-1", "reverse-1", *parts])
    assert work_in.said[-1].startswith("ensemble: done, 7 of 7")
    assert not list(work_in.folder.glob("*.task.json"))


def test_one_that_fails_does_not_keep_the_others(work_in, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "local-p-2")
    failed, notes = work_in("base", "local-p", "ensemble")
    told = {failure.name: failure for failure in failed}
    assert set(told) == {"local-p-2", "ensemble"}
    assert told["local-p-2"].why == "the memory is full"
    assert told["local-p-2"].log.read_text().startswith("the memory is full")
    assert told["ensemble"].why == "needs local-p-2, which did not end"
    assert any(note.startswith("scored base") for note in notes)
    assert any(note.startswith("trained local-p-4") for note in notes)


def test_a_teacher_is_trained_before_those_it_teaches(tmp_path):
    plan = taught_plan(tmp_path)
    rows = [plan.rows[name] for name in ("pupil", "pupils", "plain")]
    work = work_of(plan, rows, 2, tmp_path)
    assert {training.name for training in work.trainings} == {
        *("plain-1", "plain-2", "plain-3", "pupil-1", "pupil-2", "pupil-3")
    }
    by_name = {training.name: training for training in work.trainings}
    teacher = by_name["pupil-3"].teacher
    assert teacher.row.name == "teacher"
    assert teacher.runs == ("plain-1", "plain-2", "plain-3")
    assert by_name["plain-3"].teacher is None
    # It is a part of the teacher, and no row.
    assert [r.name for r in by_name["plain-2"].rows] == ["plain"]
    assert by_name["plain-3"].rows == by_name["pupil-3"].rows == ()


def test_a_taught_text_is_made_between_the_trainings(work_in, tmp_path):
    failed, notes = work_in("pupils", "plain", plan=taught_plan(tmp_path))
    assert failed == []
    words = [note.split()[:-1] for note in notes]
    taught = words.index(["taught", "plain-1", "plain-2", "plain-3"])
    assert [w[0] for w in words].count("taught") == 1
    at = {w[1]: number for number, w in enumerate(words) if w[0] == "trained"}
    for seed in "123":
        assert at[f"plain-{seed}"] < taught < at[f"pupil-{seed}"]
    assert words[-1] == ["scored", "pupils", *[f"pupil-{n}" for n in "123"]]


def test_without_its_teacher_none_is_trained(work_in, tmp_path, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "plain-2")
    failed, notes = work_in("pupil", "plain", plan=taught_plan(tmp_path))
    assert {failure.name: failure.why for failure in failed} == {
        "plain-2": "the memory is full",
        "pupil-1": "needs plain-2, which did not end",
    }
    assert any(note.startswith("scored plain") for note in notes)
    assert not any("taught" in note or "pupil" in note for note in notes)


def test_nothing_is_trained_on_a_text_that_cannot_be_read(work_in, monkeypatch):
    monkeypatch.setenv("FAKE_FAILS", "text")
    work_in.records.joinpath("notes").touch()
    failed, notes = work_in("base", "ensemble", "gru")
    told = {failure.name: failure.why for failure in failed}
    assert notes == [] and told.pop("ensemble").startswith("needs local-p-1, ")
    assert set(told) == {"base-1", "gru-1"} | {f"local-p-{n}" for n in "1234"}
    assert set(told.values()) == {"no such corpus"}


def test_a_text_that_cannot_be_read_keeps_nobody_else(work_in, monkeypatch):
    plan = builtin_plan()
    config = plan.rows["subwords"].config
    digest = hashlib.sha256(text_key(config).encode()).hexdigest()[:12]
    monkeypatch.setenv("FAKE_FAILS", digest)
    (failure,), notes = work_in("base", "subwords", "ensemble")
    assert (failure.name, failure.why) == ("subwords-1", "no such corpus")
    assert failure.log.name == f"{digest}.log"
    assert any(note.startswith("scored base") for note in notes)
    assert any(note.startswith("scored ensemble") for note in notes)


def test_one_that_is_killed_says_so(work_in, monkeypatch):
    monkeypatch.setenv("FAKE_KILLED", "base-1")
    work_in.folder.mkdir()
    # What an earlier call has written is not what is wrong now.
    (work_in.folder / "base-1.log").write_text("epoch 3\n")
    (failure,), _ = work_in("base", "reverse")
    assert failure.why.startswith("ended by signal 9, perhaps")
    monkeypatch.delenv("FAKE_KILLED")
    monkeypatch.setenv("FAKE_FAILS", "base-1")
    monkeypatch.setattr(processes.sys, "executable", "/bin/false")
    (failure, *_), _ = work_in("base")
    assert failure.why == "it wrote nothing"


def test_a_run_of_other_settings_is_put_aside(work_in):
    plan = builtin_plan()
    run = RunFolder(work_in.folder / "base-1")
    run.path.mkdir(parents=True)
    config = plan.rows["base"].with_seed(1)
    other = with_values(config, {"model.units": 7})
    write_config(other, run)
    (run.path / "trained").touch()
    failed, _ = work_in("base")
    assert failed == []
    told = work_in.said[0]
    assert told.startswith("base-1: A run goes on with the configuration")
    assert "model.units" in told and told.endswith("base-1.before-1.")
    aside = RunFolder(work_in.folder / "base-1.before-1")
    assert aside.config.exists() and (aside.path / "trained").exists()
    assert not run.config.exists()
    # The next one has the next name; one of the same settings goes on.
    write_config(other, run)
    assert work_in("base")[0] == []
    assert (work_in.folder / "base-1.before-2").exists()
    write_config(config, run)
    assert work_in("base")[0] == [] and run.config.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_stops_what_runs_and_begins_nothing_more(
    work_in, monkeypatch, request, number
):
    monkeypatch.setenv("FAKE_WAITS", "base-1")
    # As in a terminal, though the tests themselves may run under `nohup`.
    outside = signal.signal(number, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(number, outside))

    def interrupt():
        notes = work_in.records / "notes"
        while not (notes.exists() and "waits" in notes.read_text()):
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    before = signal.getsignal(number)
    failed, notes = work_in("base", "reverse", jobs=1)
    thread.join()
    assert signal.getsignal(number) is before
    assert {failure.name: failure.why for failure in failed} == {
        "base-1": "stopped; the same command goes on",
        "reverse-1": "not begun",
    }
    assert not any("reverse" in note for note in notes)


def test_a_terminal_that_closes_stops_nothing_under_nohup(tmp_path):
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Processes(tmp_path, jobs=1).stopped_by_signals():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_worker_ends_with_the_process_that_began_it(tmp_path):
    code = (
        "import signal, sys, threading, time\n"
        "from reproduction import worker\n"
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))\n"
        "watch = worker._end_with_parent\n"
        "threading.Thread(target=watch, daemon=True).start()\n"
        "print('here', flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout.readline() == b"here\n"
    assert process.poll() is None
    process.stdin.close()
    assert process.wait(20) == 3
    process.stdout.close()


def test_files_of_rows(tmp_path):
    assert record_path(tmp_path, "feed", [3]).name == "feed-3.json"
    name = record_path(tmp_path, "ensemble", [1, 2, 3]).name
    assert name == "ensemble-1to3.json"
