"""Calculations of the speed benchmarks."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import luong_keras

BENCHMARKS = pathlib.Path(luong_keras.__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def path(monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)


def test_floating_point_operations_of_a_training_step():
    from speed.configurations import Configuration

    size = Configuration(1, 2, 5, 1, 3, 1)
    encoder = 3 * (2 * 2 * 8 + 2 * 2 * 8)  # S steps: W x, R h
    decoder = 2 * 2 * 8 * 3  # W x, input feeding, R h
    attention = 2 * 2 * 2 + 2 * (2 * 3 * 2) + 2 * 4 * 2
    output = 2 * 2 * 5
    forward = encoder + decoder + attention + output
    assert size.training_flops((1, 3, 1)) == 3 * forward


def test_batches_survive_writing_and_reading(tmp_path):
    from speed.batches import (
        batch_shape,
        count_words,
        read_batches,
        static_batches,
        write_batches,
    )

    written = static_batches("tiny", 2)
    written[1]["target_out"][0, -2:] = 0
    write_batches(tmp_path / "batches.npz", written)
    read = read_batches(tmp_path / "batches.npz")
    for one, other in zip(written, read, strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name])
    assert batch_shape(read[0]) == (4, 6, 5)
    assert count_words(read) == 2 * 4 * 5 - 2
    assert (written[0]["source"] != written[1]["source"]).any()


def test_time_of_an_operation_excludes_nested_operations():
    from operations import operation_of, own_times

    def event(name, start, duration):
        return argparse.Namespace(
            metadata_id=name, offset_ps=start, duration_ps=duration
        )

    events = [event("b", 2, 3), event("a", 0, 10), event("c", 3, 1)]
    events += [event("b", 6, 2), event("d", 10, 4)]
    names = {name: argparse.Namespace(name=name) for name in "abcd"}
    times = own_times(argparse.Namespace(events=events), names)
    assert times == {"a": 5, "b": 4, "c": 1, "d": 4}
    assert operation_of("some/while/node:MatMul") == "MatMul"
    assert operation_of("Kernel::Run") is operation_of("search") is None


def test_report_takes_ratios_round_by_round(tmp_path, capsys):
    from speed.driver import Measured, Program, Report

    options = argparse.Namespace(
        output=tmp_path, table="table", clock="cpu", reference="slow bf16"
    )
    results = {
        name: Measured(
            Program(name, ""), {}, {}, [{"cpu": t, "wall": t} for t in times]
        )
        for name, times in (
            ("slow bf16", (4, 6, 9)),
            ("ours bf16", (2, 2, 9)),
            ("ours f32", (7, 7, 7)),
        )
    }
    report = Report(options)
    report.times("group", results)
    printed = capsys.readouterr().out
    slow, ours, _ = (
        re.findall(r"\d\.\d\d \(.*?\)", line)
        for line in printed.splitlines()
        if line.startswith(("slow", "ours"))
    )
    # The ratio to the reference, and that to "ours" in the same precision.
    assert slow == ["1.00 (1.00-1.00)", "2.00 (1.00-3.00)"]
    assert ours == ["2.00 (1.00-3.00)", "1.00 (1.00-1.00)"]
    report.write("title")
    assert len((tmp_path / "table.csv").read_text().splitlines()) == 10
    assert (tmp_path / "table.png").stat().st_size > 0


def test_target_words_are_read_from_the_log_of_marian():
    from speed.marian_options import labels

    line = "Ep. 1 : Up. 2 : Sen. 128 : Cost 8.9 * 1,408 @ 640 after "
    log = f"Training started\n{line}1,408 : Time 2s\n{line}3,456 : Time 2s\n"
    assert labels(log) == 3456
    with pytest.raises(ValueError, match="counts no words"):
        labels("Ep. 1 : Up. 2 : Sen. 128 : Cost 8.97425842 : Time 2s")


def test_lexicon_is_written_in_the_format_of_marian():
    from speed.marian_options import lexical_table

    entries = [("door", "Tür", 0.5), ("a", "▁ein", 1.0)]
    lines = ["Tür door 0.5\n", "▁ein a 1\n"]
    assert list(lexical_table(entries)) == lines


def test_results_of_a_run_replace_measured_times():
    from speed.worker import Work, timed

    work = Work(lambda steps: {"cpu": 5.0, "words": steps})
    answer = timed(work, 3)
    assert answer["cpu"] == 5.0 and answer["words"] == 3
    assert answer["wall"] < 5.0


def test_times_per_thousand_words_and_per_sentence():
    from speed.driver import Measured, Program, per_words
    from translate_file import a_sentence, drawn

    rounds = [{"cpu": 2.0, "wall": 3.0, "words": 500}]
    results = {"ours": Measured(Program("ours", ""), {}, {}, rounds)}
    per_words(results, steps=4, count=1000)
    assert rounds == [{"cpu": 16.0, "wall": 24.0, "words": 500}]
    few = {"wall": 5.0, "cpu": 4.0, "characters": 1000}
    many = {"wall": 25.0, "cpu": 34.0, "characters": 7000}
    assert a_sentence(few, many, lines=132, cores=2) == {
        "wall": 0.2,
        "cpu": 0.3,
        "characters": 60.0,
        "start": 5.0,
        "whole": 25.0,
        "utilisation": 34 / 50,
    }
    lines = drawn(["a", "b"], 100, seed=1)
    assert lines == drawn(["a", "b"], 100, seed=1)
    assert drawn(["a", "b"], 10, seed=1) == lines[:10]


@pytest.mark.tensorflow
def test_responses_have_the_layout_of_the_server():
    from speed.server_answers import write

    weights = np.array([[0.5, 1 / 30], [2, 1e6]], "float32")
    arrays = {"weights": weights, "count": np.array([7, -1])}
    rows, columns = (write(arrays, in_rows).decode() for in_rows in (1, 0))
    assert rows.splitlines()[2:6] == [
        "        {",
        '            "weights": [0.5, 0.0333333351],',
        '            "count": 7',
        "        },",
    ]
    assert rows.endswith("\n    ]\n}")
    first = ("[", "    0.5,", "    0.0333333351", "],")
    assert columns.splitlines()[3:7] == [" " * 12 + line for line in first]
    texts = {"text": np.array([["€".encode()], [b'\x1f\n"']], object)}
    expected = '[["€"], ["\\u001F\\n\\""]\n    ]'
    assert write(texts, 1).decode() == f'{{\n    "predictions": {expected}\n}}'


@pytest.mark.tensorflow
def test_floats_of_responses_have_six_or_all_nine_digits():
    from speed.server_numbers import decimals

    random = np.random.default_rng(0)
    bits = random.integers(0, 256, 8 * 5000, np.uint8).view("float32")
    short = random.integers(-(10**6), 10**6, 5000)
    short = (short * 10.0 ** random.integers(-30, 30, 5000)).astype("float32")
    array = np.concatenate([bits[np.isfinite(bits)], short])
    for number, text in zip(array, decimals(array).numpy(), strict=True):
        expected = f"{number:.6g}"
        if np.float32(expected) != number:
            expected = f"{number:.9g}"
        expected += ".0" * ("." not in expected and "e" not in expected)
        assert text.decode() == expected


@pytest.mark.tensorflow
def test_requests_of_a_batch_get_their_own_rows():
    from speed.server_batching import Batching

    class Doubling:
        def run(self, inputs, outputs):
            sizes.append(len(inputs["x:0"]))
            return {name: inputs["x:0"] * 2 for name in outputs}

    def ask(size):
        return batched.run({"x:0": np.full(size, size)}, {"y": "y:0"})["y"]

    sizes = []
    # Longer than a test: a batch runs when it is full.
    wait = {"batch_timeout_micros": 100_000_000}
    batched = Batching(wait | {"max_batch_size": 6}).wrap(Doubling())
    with ThreadPoolExecutor(3) as threads:
        for size, found in enumerate(threads.map(ask, (1, 2, 3)), start=1):
            assert found.tolist() == [2 * size] * size
    assert sizes == [6]
    batched = Batching({"batch_timeout_micros": 1000}).wrap(Doubling())
    assert ask(3).tolist() == [6, 6, 6]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_served_model_module_loads_without_pythonpath(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    code = f"import sys; sys.path.insert(0, {str(BENCHMARKS)!r})\n"
    code += "import speed.served_model"
    subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True
    )


def test_speed_ups_compare_work_per_time(tmp_path):
    from cores import report, speed_ups
    from speed.driver import Measured, Program

    seconds = {
        "products on 1": (2.0, 2.0),
        "training, ours on 1": (3.0, 3.3),
        "training, torch on 1": (1.0, 1.0),
        "products on 4": (4.0, 2.0),
        "training, ours on 4": (2.0, 1.1),
    }
    built = {"versions": {}, "threads": {}, "parameters": 0}
    results = {
        name: Measured(
            Program(name, ""), built, {}, [{"wall": x} for x in found]
        )
        for name, found in seconds.items()
    }
    found = speed_ups(results, 4)
    # Four products in the time of two products, and of one.
    assert found.pop("products") == [2.0, 4.0]
    assert found.pop("training, ours") == pytest.approx([1.5, 3.0])
    # Torch ran only on one core, so it has no speed-up.
    assert found == {}
    options = argparse.Namespace(
        **{"output": tmp_path, "table": "cores", "config": "tiny", "many": 4},
        **{"clock": "wall", "reference": ""},
    )
    report(options, results)
    rows = (tmp_path / "cores.csv").read_text()
    assert all(rows.count(f"training, ours on {n}") == 2 for n in (1, 4))


@pytest.mark.tensorflow
def test_words_of_rounds_across_epochs_are_counted(tmp_path, monkeypatch):
    from speed import ours_epoch

    from luong_keras.tokenizers import SentencePieceTokenizer

    train, pairs = SentencePieceTokenizer.train, [("a b", "c d e")] * 12
    monkeypatch.setattr(
        SentencePieceTokenizer, "train", lambda text, size: train(text, 12)
    )
    monkeypatch.setattr(ours_epoch, "multi30k_pairs", lambda: pairs)
    program = ours_epoch.epoch("tiny", tmp_path, "float32")
    # Three batches an epoch, of four equal targets.
    words = [program.run(steps)["words"] for steps in (1, 3, 2)]
    assert words[1:] == [3 * words[0], 2 * words[0]] and words[0] >= 4 * 4


def test_minutes_of_a_run_are_those_of_all_its_calls(tmp_path):
    from small_texts import minutes_of

    lines = '{"seconds": 90}\n{"seconds": 30}\n'
    (tmp_path / "sessions.jsonl").write_text(lines)
    assert minutes_of(tmp_path) == 2


def test_files_of_more_lines_than_there_are_have_no_empty_line(
    tmp_path, monkeypatch
):
    from speed import trained

    monkeypatch.setattr(
        trained, "write_multi30k", lambda _, part: tmp_path / part
    )
    (tmp_path / "val.de").write_text("a\nb\n")
    options = argparse.Namespace(output=tmp_path)
    models = trained.Trained(options, "tiny", 1)
    models.text = tmp_path
    assert models.path("val.de", 3).read_text() == "a\nb"


def test_targets_of_the_date_task_are_iso_dates():
    import datetime

    from attention_tasks import dates, new_dates

    (source, mask, shifted), target = dates(200, 1)
    forms = set()
    for row in range(200):
        assert not source[row][~mask[row]].any()
        text = bytes(source[row][mask[row]].tolist()).decode()
        form = "%d %B %Y" if text[0].isdigit() else "%B %d, %Y"
        form = "%A, %d %B %Y" if "day" in text else form
        found = datetime.datetime.strptime(text, form).date().isoformat()
        assert bytes(target[row].tolist()).decode() == found
        assert (shifted[row, 1:] == target[row, :-1]).all()
        forms.add(form)
    assert len(forms) == 3 and not shifted[:, 0].any()
    days = [{*map(bytes, f(30_000, 1)[1])} for f in (dates, new_dates)]
    assert len(days[1]) > 4_000 and not days[0] & days[1]


def test_parameter_counts_of_the_forms_of_attention():
    from speed.attention_forms import FORMS, count_parameters

    matrix, vector = 4 * 4, 4
    both = 2 * matrix + vector
    expected = {
        **dict.fromkeys(("dot", "scaled_dot", "none"), 0),
        **dict.fromkeys(("general", "no feeding", "local-m"), matrix),
        "cosine": 1,
        "location": 4 * 7,
        **dict.fromkeys(("concat", "bahdanau"), both),
        "local-p": both,
    }
    assert {form: count_parameters(form, 4, 7) for form in FORMS} == expected
