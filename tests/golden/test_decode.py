import functools
import json
import re

import numpy as np
import pytest
from keras import ops

from luong_keras import beam_search
from luong_keras.alignment.aer import best_links
from luong_keras.decoding import ensemble_step
from tests.golden.authors_models import authors_model
from tests.golden.golden_files import golden_path, open_case
from tests.layer_checks import to_numpy

FILE, MODELS = "decode.json", "decode_models.npz"
FREE = re.compile(r"beam(\d+)_stack(\d+)(?:_min(\d+)_max(\d+))?")
PREFIX = re.compile(r"prefix\d+_beam(\d+)")
TASKS = json.loads(golden_path(FILE).read_text(encoding="utf-8"))["tasks"]


@functools.cache
def load_model(name):
    arrays, meta = open_case(MODELS, name)
    return authors_model(meta, arrays)


def options_of(run):
    """Return beam size, stack size and length ratios from a run's name."""
    if run == "force":
        return 1, 1, 0.0, None
    if found := PREFIX.fullmatch(run):
        return int(found[1]), 1, 0.5, 1.5
    beam, stack, least, maximum = FREE.fullmatch(run).groups()
    tenths = (least or 5, maximum or 15)
    return int(beam), int(stack), *(int(n) / 10 for n in tenths)


def rectangle(rows, fill=0):
    width = max(len(row) for row in rows)
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows])


def decode(task, run, entries, **options):
    """Return our n-best lists: ids, lengths, scores and alignments."""
    models = [load_model(name) for name in task["models"]]
    config = models[0].config
    beam, stack, least, maximum = options_of(run)
    lengths = np.array([len(words) for words in task["src"]])
    source = rectangle(task["src"], config.source_pad_id).astype("int32")
    steps, states, counts = [], [], []
    for model in models:
        memory, mask, first = model.encode(source)
        steps.append(model.decoding_step(memory, mask))
        states += first
        counts.append(len(first))
    step = steps[0] if len(steps) == 1 else ensemble_step(steps, counts)
    prefix = {}
    if "prefix_ids" in entries[0]:
        imposed = [entry.get("prefix_ids", [0]) for entry in entries]
        prefix["prefix"] = rectangle(imposed)
        prefix["prefix_lengths"] = np.array([len(ids) for ids in imposed])
    max_lengths = (
        prefix["prefix_lengths"]
        if maximum is None
        else np.floor((lengths + 1) * maximum).astype(int)
    )
    found = beam_search(
        step,
        states,
        max_lengths,
        int(max_lengths.max()),
        min_lengths=np.floor((lengths + 1) * least).astype(int),
        beam_size=beam,
        bos_id=config.bos_id,
        eos_id=config.eos_id,
        pad_id=config.eos_id,
        # The rule of the authors' stack.
        **{"stack_size": stack, "stack_keeps": "first", **options},
        **prefix,
    )
    return [np.asarray(ops.convert_to_numpy(part)) for part in found]


@pytest.mark.parametrize(
    "name, run",
    [(name, run) for name, task in TASKS.items() for run in task["runs"]],
)
def test_search_matches_the_authors(name, run, compare, float64):
    task = TASKS[name]
    entries = task["runs"][run]
    ids, lengths, scores, weights = decode(task, run, entries)
    assert len(entries) == len(ids)
    for row, entry in enumerate(entries):
        if "authors_error" in entry:
            continue
        if run != "force" and repeats_a_stale_word(task, row, run, entry):
            continue
        attended = "attn_argmax" in entry["nbest"][0] and any(
            model.decoder.cell.attention is not None
            for model in map(load_model, task["models"])
        )
        check_sentence(
            compare,
            entry,
            (ids[row], lengths[row], scores[row], weights[row]),
            len(task["src"][row]),
            run == "force",
            attended,
        )


@pytest.mark.parametrize("name", ["toy_localp", "toy_global"])
def test_small_stack_holds_the_first_finished_hypotheses(
    name, compare, float64
):
    # The authors' lists are in the order of completion, so the list of a
    # smaller stack is the beginning of that of a larger one.
    task = TASKS[name]
    runs = [task["runs"][f"beam4_stack{size}"] for size in (10, 100)]
    for ten, hundred in zip(*runs, strict=True):
        assert [one["ids"] for one in ten["nbest"]] == [
            one["ids"] for one in hundred["nbest"][:10]
        ]
    size, num_different = 5, 0
    ids, lengths, scores, weights = decode(
        *(task, "beam4_stack100", runs[1]),
        stack_size=size,
    )
    for row, entry in enumerate(runs[1]):
        kept = entry["nbest"][:size]
        check_sentence(
            compare,
            {"nbest": kept},
            (ids[row], lengths[row], scores[row], weights[row]),
            len(task["src"][row]),
            False,
            True,
        )
        worst = min(one["score"] for one in kept)
        completed = len(kept[-1]["ids"])
        num_different += any(
            one["score"] > worst
            for one in entry["nbest"][size:]
            if len(one["ids"]) == completed
        )
    assert num_different, "keeping the best would give the same"


def repeats_a_stale_word(task, row, run, entry):
    """Test whether a beam of one met a defect of the authors' program.

    If its only candidate was the end symbol before the minimum length, the
    program kept nothing and repeated the last word.
    """
    beam, _, least, _ = options_of(run)
    if beam > 1:
        return False
    source = np.array([task["src"][row]], "int32")
    words = entry["nbest"][0]["ids"][:-1]
    logits = []
    for model in map(load_model, task["models"]):
        target_in = np.array([[model.config.bos_id, *words]], "int32")
        logits.append(to_numpy(model.model([source, target_in]))[0])
    best = np.mean(logits, 0).argmax(-1)
    shortest = int(np.floor((source.shape[1] + 1) * least))
    first = max(len(entry.get("prefix_ids", [])), 1)
    early = best[first : min(shortest, len(words))]
    return bool((early == model.config.eos_id).any())


def check_sentence(compare, entry, found, source_length, forced, attended):
    # The authors' hypotheses are in the order of completion.
    nbest = sorted(entry["nbest"], key=lambda one: -one["score"])
    ids, lengths, scores, weights = found
    count = int(np.isfinite(scores).sum())
    assert count == len(nbest)
    words = [one["ids"][:-1] for one in nbest]
    expected = {
        "scores": np.array([one["score"] for one in nbest]),
        "words": np.concatenate(words),
        "lengths": np.array([len(one) for one in words]),
    }
    # The authors' entry for the end symbol belongs to another hypothesis or
    # step.
    if attended:
        expected["attn_argmax"] = np.concatenate(
            [
                one["attn_argmax"][: len(w)]
                for one, w in zip(nbest, words, strict=True)
            ]
        )
    check = compare(expected)
    check.check("scores", scores[:count])
    check.check("lengths", lengths[:count])
    check.check(
        "words",
        np.concatenate([ids[n, : lengths[n]] for n in range(count)]),
    )
    if attended:
        best = weights[..., :source_length].argmax(-1)
        check.check(
            "attn_argmax",
            np.concatenate([best[n, : lengths[n]] for n in range(count)]),
        )
    if attended and "printed_align_of_best" in entry:
        check_links(compare, entry, weights[0], lengths[0], forced)


def check_links(compare, entry, weights, length, forced):
    """Check the links that the authors print: of the step that reads a word."""
    printed = sorted(
        tuple(int(n) for n in link.split("-"))
        for link in entry["printed_align_of_best"].split()
    )
    source_length = weights.shape[-1]
    # Forced decoding has no step that reads the last word.
    rows = weights[:length] if forced else weights[: length + 1]
    links = sorted(best_links(rows, source_length, int(length), step="reads"))
    if not forced:  # The last link has the defect named above.
        printed = [link for link in printed if link[1] < length - 1]
        links = [link for link in links if link[1] < length - 1]
    check = compare({"links": np.array(printed)})
    check.check("links", np.array(links).reshape(-1, 2) if printed else [])
