import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from luong_keras import Translator
from luong_keras.data.phrasebook import split_pairs

pytest.importorskip("snakemake", reason="pip install snakemake")
pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]
ROOT = Path(__file__).parents[2]

PLAN = """
inherits: builtin
title: A trial
text: Too small to say anything.
settings:
  data.train_size: 600
  model.units: 16
  model.embedding_size: 16
  model.precision: auto
  training.epochs: 3
  training.first_halved_epoch: 3
  training.snapshot_steps: 1
  decoding.beam_size: 2
  decoding.max_length_ratio: 0.8
run: [few]
rows:
  both:
    after: feed-unk
    models: 2
tables:
  few:
    title: A few
    lines:
      - {row: feed, name: global (location), bleu: 18.1}
      - {row: feed-unk, name: + unk replacement, bleu: 19.3}
      - {row: both, name: + ensemble}
"""


@pytest.fixture
def snakemake(tmp_path):
    """Return a function that starts the workflow in its own session."""
    processes = []

    def start(plan, *config):
        command = [sys.executable, "-m", "snakemake", "--cores", "2"]
        command += ["-s", str(ROOT / "examples/reproduction/Snakefile")]
        command += ["--config", f"plan={plan}", *config]
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        process = subprocess.Popen(
            command,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": path},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()


def finish(process):
    """Wait for the end of the workflow, which must succeed."""
    printed, _ = process.communicate()
    assert process.returncode == 0, printed


def records(output):
    return {p.name: json.loads(p.read_text()) for p in output.glob("rows/*")}


def epochs(run):
    log = run / "log.jsonl"
    lines = log.read_text().splitlines() if log.exists() else []
    return [json.loads(line)["epoch"] for line in lines]


def test_interrupted_workflows_resume_and_make_the_page(snakemake, tmp_path):
    (tmp_path / "trial.yaml").write_text(PLAN)
    output = tmp_path / "runs" / "reproduction" / "trial"
    runs = [output / "runs" / f"feed-{seed}" for seed in (1, 2)]

    # Kill the whole session, then interrupt it like Ctrl-C.
    for number in (signal.SIGKILL, signal.SIGINT):
        before = max(len(epochs(run)) for run in runs)
        process = snakemake("trial.yaml")
        while max(len(epochs(run)) for run in runs) == before:
            assert process.poll() is None, process.stdout.read()
            time.sleep(0.2)
        os.killpg(process.pid, number)
        assert process.wait(timeout=120) != 0
        assert not (output / "index.html").exists()
    log = (output / "logs" / "feed-1.log").read_text()
    assert "Stopped with a snapshot" in log

    finish(snakemake("trial.yaml"))
    for run in runs:
        assert epochs(run) == [1, 2, 3]
        sessions = (run / "sessions.jsonl").read_text().splitlines()
        assert len(sessions) > 1
    rows = records(output)
    names = ["both-1to2.json", "feed-1.json", "feed-unk-1.json"]
    assert sorted(rows) == names
    both, feed, replaced = (rows[name] for name in names)
    assert len(feed["curves"]["val_bleu"]) == 3
    assert 0 < feed["scores"]["aer"]["score"] < 1
    # The perplexity is that of the references' words.
    lines = (runs[0] / "test.jsonl").read_text().splitlines()
    pairs = [json.loads(line)[:2] for line in lines]
    sides = map(list, zip(*pairs, strict=True))
    scored = Translator.from_run(runs[0]).score(*sides)
    logarithms = np.concatenate([x.word_log_probabilities for x in scored])
    assert feed["scores"]["perplexity"]["score"] == pytest.approx(
        np.exp(-logarithms.mean()), rel=1e-3
    )
    precision = feed["settings"]["model.precision"]
    assert precision in ("float32", "mixed_bfloat16")
    assert len(feed["text"]["corpus"]) == 64
    assert feed["made"]["training_seconds"] > 0
    # Both rows share a run, so the references have the same scores.
    for name in ("negative_log_likelihood", "alignment_hits"):
        assert feed["sentences"][name] == replaced["sentences"][name]
    assert both["seeds"] == [1, 2] and both["curves"] == {}
    assert both["scores"]["perplexity"]["score"] > 1
    assert feed["samples"][0]["percent"]
    page = (output / "index.html").read_text()
    assert "+ ensemble" in page and "Too small to say" in page

    # A lost record is scored again from the existing run, with the same
    # result. Nothing else is done: other records do not need their runs.
    (output / "rows" / "feed-unk-1.json").unlink()
    (output / "runs" / "feed-2.trained").unlink()
    times = {p: p.stat().st_mtime_ns for p in output.glob("r*/*")}
    finish(snakemake("trial.yaml"))
    made = records(output)["feed-unk-1.json"]
    assert made["scores"] == replaced["scores"]
    for path, time_before in times.items():
        assert path.stat().st_mtime_ns == time_before, path


DISTILLED = """
title: A student
text: Too small to say anything.
preset: demo
files: train, dev and test
settings:
  data.dataset: files
  data.train: "{data}/train"
  data.dev: "{data}/dev"
  data.test: "{data}/test"
  data.max_length: 60
  model.units: 16
  model.embedding_size: 16
  training.epochs: 1
  training.samples: 0
  decoding.beam_size: 2
run: [student]
rows:
  teacher:
    models: 2
  student:
    settings:
      data.train: ["{data}/train", "{distilled}/teacher.tsv"]
"""


def test_a_student_is_trained_on_an_ensembles_translations(snakemake, tmp_path):
    texts = tmp_path / "the texts"
    texts.mkdir()
    for part, size in (("train", 300), ("dev", 20), ("test", 20)):
        pairs = split_pairs(part, size)
        for side, name in (("source", "en"), ("target", "de")):
            lines = [getattr(pair, side) for pair in pairs]
            (texts / f"{part}.{name}").write_text("\n".join(lines) + "\n")
    (tmp_path / "plan.yaml").write_text(DISTILLED)
    output = tmp_path / "out put"
    finish(snakemake("plan.yaml", f"files={texts}", f"output={output}"))
    assert list(records(output)) == ["student-1.json"]
    lines = (output / "distilled" / "teacher.tsv").read_text().splitlines()
    sources = (texts / "train.en").read_text().splitlines()
    assert [line.split("\t")[0] for line in lines] == sources
    log = (output / "logs" / "student-1.log").read_text()
    assert "600 training pairs" in log


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (["multi30k"], "with train, val and test_2016_flickr"),
        (["buildin"], "Did you mean builtin"),
        (["builtin", "rows=tabel1"], "Did you mean table1"),
    ],
)
def test_errors_are_reported_before_any_job_runs(snakemake, config, message):
    process = snakemake(*config)
    printed, _ = process.communicate()
    assert process.returncode != 0 and message in printed
