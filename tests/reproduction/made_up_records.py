"""Made-up records of rows, without training."""

import dataclasses
import functools

import numpy as np

from reproduction.plan import read_plan, trial_name
from reproduction.record import Record, comparable_settings, write_record

SENTENCES = 60
# Rows of the first table, from the weakest system to the best.
TABLE_1 = ("base", "reverse", "dropout", "location", "feed", "local-p")


# Systems outside the paper, with a preset other than the paper's.
OWN_PLAN = """
title: My text
text: Sentences of mine.
preset: small
settings: {training.epochs: 1}
run: [mine]
rows:
  small: {}
  wide:
    after: small
    settings: {model.units: 640}
tables:
  mine:
    title: Mine
    lines:
      - {row: small, name: as it is}
      - {row: wide, name: wider}
"""


def own_plan(folder, settings="{model.units: 640}"):
    """Write the plan above, with settings of `wide`, into a folder; read it."""
    path = folder / "mine.yaml"
    path.write_text(OWN_PLAN.replace("{model.units: 640}", settings))
    return read_plan(str(path))


@functools.cache
def builtin_plan():
    """Return the plan of the built-in corpus."""
    return read_plan("builtin")


def record(
    row, seed=1, share=0.5, likelihood=2.0, aer=None, plan=None, **changes
):
    """Make up the record of a row.

    Args:
        row: The name of the row.
        seed: The seed of its model.
        share: The share of matching n-grams, varied a little by sentence.
        likelihood: The negative log-probability of a token.
        aer: The alignment error rate; no alignments when None.
        plan: The plan of the row; the built-in one when None.
        **changes: Other values of the record's attributes.
    """
    plan = plan or builtin_plan()
    random = np.random.default_rng([seed, *row.encode()])
    lengths = 5 + np.arange(SENTENCES) % 20
    shares = np.clip(share + random.uniform(-0.1, 0.1, SENTENCES), 0, 1)
    sentences = {"source_lengths": lengths.tolist()}
    for n in range(1, 5):
        right = np.rint(shares * (lengths - n + 1))
        sentences[f"matches_{n}"] = right.astype(int).tolist()
    sentences["length"] = sentences["reference_length"] = lengths.tolist()
    sentences["tokens"] = (lengths + 1).tolist()
    losses = likelihood * (lengths + 1)
    sentences["negative_log_likelihood"] = losses.tolist()
    scores = {
        "bleu": {"score": 100 * share, "signature": "tok:none"},
        "bleu_13a": {"score": 99 * share, "signature": "tok:13a"},
        "chrf": {"score": 98 * share, "signature": "chrF2"},
        "perplexity": {"score": float(np.exp(likelihood))},
    }
    if aer is not None:
        sentences["alignment_total"] = [100] * SENTENCES
        hits = [round(100 * (1 - aer))] * SENTENCES
        sentences["alignment_hits"] = hits
        scores["aer"] = {"score": aer}
    tokens = ["a", "<b>"]
    sample = {
        "text": f"{row} says <b>",
        "percent": [[90, 10], [0, 100]],
        "source_tokens": tokens,
        "tokens": tokens,
    }
    made = {"training_seconds": 90, "machine": {"processor": "made up"}}
    found = Record(
        row,
        (seed,),
        comparable_settings(plan.rows[row].config),
        scores,
        sentences,
        {"val_bleu": [10.0, 20.0], "val_perplexity": [9.0, 4.0]},
        [dict(sample) for _ in plan.file.samples],
        {"test": "s", "pairs": SENTENCES},
        made | {"version": "0", "revision": None},
    )
    return dataclasses.replace(found, **changes)


def write_rows(folder, *records):
    """Write the files of some records."""
    for one in records:
        path = folder / f"{trial_name(one.row, one.seeds)}.json"
        write_record(path, one)
