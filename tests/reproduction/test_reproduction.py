"""Two rows from the command to the page, and one of a stranger's own."""

import json
import subprocess
import sys

import numpy as np
import pytest

from luong_keras import Translator
from luong_keras.data.phrasebook import split_pairs

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow]

OWN = """
rows:
  cosine:
    after: feed
    settings: {model.attention.score_mode: cosine}
"""
SCALE = """
title: A trial
text: Too small to say anything.
preset: demo
settings:
  data.train_size: 600
  model.units: 16
  model.embedding_size: 16
  model.precision: auto
  training.epochs: 2
  training.samples: 0
ensemble: 2
tables: [few]
rows:
  gate:
    after: feed
    settings: {model.recurrence: gru}
  both:
    after: feed-unk
    models: 2
own_tables:
  few:
    title: A few
    lines:
      - {row: feed, name: global (location), bleu: 18.1}
      - {row: feed-unk, name: + unk replacement, bleu: 19.3}
      - {row: both, name: + ensemble}
samples:
  - {source: The old teacher sings., reference: Der alte Lehrer singt.}
"""


def test_rows_from_the_command_to_the_page(tmp_path):
    (tmp_path / "trial.yaml").write_text(SCALE)
    (tmp_path / "mine.yaml").write_text(OWN)
    output = tmp_path / "out"

    def reproduce(*more):
        command = [sys.executable, "-m", "luong_keras", "reproduce"]
        command += ["--scale", tmp_path / "trial.yaml"]
        command += ["--rows", tmp_path / "mine.yaml"]
        command += ["--output", output, "--jobs", "2", *more]
        return subprocess.run(
            list(map(str, command)), capture_output=True, text=True, check=False
        )

    done = reproduce()
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {p.name: json.loads(p.read_text()) for p in output.glob("rows/*")}
    assert sorted(rows) == [
        "both-1to2.json",
        "cosine-1.json",
        "feed-1.json",
        "feed-unk-1.json",
    ]
    feed, replaced = rows["feed-1.json"], rows["feed-unk-1.json"]
    assert len(feed["curves"]["val_bleu"]) == 2
    assert 0 < feed["scores"]["aer"]["score"] < 1
    # The perplexity is that of the references, word by word.
    pairs = [
        json.loads(line)[:2]
        for line in (output / "runs" / "feed-1" / "test.jsonl")
        .read_text()
        .splitlines()
    ]
    scored = Translator.from_run(output / "runs" / "feed-1").score(
        *map(list, zip(*pairs, strict=True))
    )
    logarithms = np.concatenate([x.word_log_probabilities for x in scored])
    assert feed["scores"]["perplexity"]["score"] == pytest.approx(
        np.exp(-logarithms.mean()), rel=1e-3
    )
    precision = feed["settings"]["model.precision"]
    assert precision in ("float32", "mixed_bfloat16")
    assert len(feed["text"]["corpus"]) == 64
    assert feed["made"]["training_seconds"] > 0
    # One training, so the references are as probable and aligned alike.
    for name in ("negative_log_likelihood", "alignment_hits"):
        assert feed["sentences"][name] == replaced["sentences"][name]
    assert rows["both-1to2.json"]["seeds"] == [1, 2]
    assert rows["both-1to2.json"]["scores"]["perplexity"]["score"] > 1
    assert feed["samples"][0]["percent"]
    page = (output / "index.html").read_text()
    assert "Rows of one&#39;s own" in page and "Too small to say" in page

    # What is finished stays as it is; nothing is trained again.
    times = {p: p.stat().st_mtime_ns for p in output.glob("rows/*")}
    again = reproduce()
    assert again.returncode == 0
    assert "4 rows are finished; to run: 0 trainings" in again.stdout
    assert times == {p: p.stat().st_mtime_ns for p in output.glob("rows/*")}

    # A lost row is scored again, from the run that is there: to the same.
    (output / "rows" / "feed-unk-1.json").unlink()
    assert reproduce().returncode == 0
    made = json.loads((output / "rows" / "feed-unk-1.json").read_text())
    assert made["scores"] == replaced["scores"]


TAUGHT = """
title: A trial of teachers
text: Too small to say anything.
preset: demo
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
files: train, dev and test
tables: [taught]
paper: false
rows:
  plain: {}
  teacher:
    after: plain
    models: 2
  pupil:
    after: plain
    teacher: teacher
own_tables:
  taught:
    title: Taught
    lines:
      - {row: plain, name: as it is}
      - {row: pupil, name: taught by two}
"""


def test_a_row_that_two_models_teach(tmp_path):
    texts = tmp_path / "texts"
    texts.mkdir()
    for part, size in (("train", 300), ("dev", 20), ("test", 20)):
        pairs = split_pairs(part, size, seed=1)
        for side, name in (("source", "en"), ("target", "de")):
            lines = [getattr(pair, side) for pair in pairs]
            (texts / f"{part}.{name}").write_text("\n".join(lines) + "\n")
    plan = tmp_path / "taught.yaml"
    plan.write_text(TAUGHT)
    output = tmp_path / "out"
    command = [sys.executable, "-m", "luong_keras", "reproduce", "--scale"]
    command += [plan, "--files", texts, "--output", output, "--jobs", "2"]
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = {p.name: json.loads(p.read_text()) for p in output.glob("rows/*")}
    assert sorted(rows) == ["plain-1.json", "pupil-1.json"]
    (taught,) = output.glob("runs/taught/[!.]*")
    assert len(taught.read_text().splitlines()) == 300
    settings = rows["pupil-1.json"]["settings"]
    assert settings["data.train"] == ["{data}/train", "{taught}/" + taught.name]
    log = (output / "runs" / "pupil-1.log").read_text()
    text = rows["pupil-1.json"]["text"]
    assert text != rows["plain-1.json"]["text"]
    assert "600 training pairs" in log
