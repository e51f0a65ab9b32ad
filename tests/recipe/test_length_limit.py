"""Maximum lengths and precision, chosen when a run begins."""

import json

import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.recipe import stages as recipe
from luong_keras.recipe.stored_settings import run_config
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from tests.recipe.quick_runs import write_tsv

pytestmark = pytest.mark.tensorflow

TINY = ["units=4", "embedding_size=4", "vocabulary_size=60"]
RATIO, OFFSET = "decoding.max_length_ratio", "decoding.max_length_offset"


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Return a function that prepares a run and returns its decoding."""
    monkeypatch.setattr(recipe, "train", lambda *_, **__: False)

    def prepare(pairs, *settings, run="run"):
        path, run = write_tsv(tmp_path / "text.tsv", pairs), tmp_path / run
        parts = ["--dev", path, "--test", path, "--run-dir", str(run)]
        main(["train", path, *parts, "--set", *TINY, *settings])
        return run_config(run).decoding

    prepare.run = tmp_path / "run"
    return prepare


def repeat(count, word="x"):
    return " ".join([word] * count)


def slope_of(source, target):
    """Compute the slope of the least-squares line with NumPy."""
    return np.polyfit(source, target, 1)[0]


def test_the_limit_follows_the_slope_of_the_lengths(prepared, capsys):
    source = [1 + n % 17 for n in range(300)]
    target = [3 * s + n % 5 for n, s in enumerate(source)]
    lengths = list(zip(source, target, strict=True))
    pairs = [(repeat(s, "a"), repeat(t)) for s, t in lengths]
    found = prepared(pairs)
    ratio = 1.5 * slope_of(source, target)
    assert found.max_length_ratio == pytest.approx(ratio, abs=1e-4)
    over = max(t - ratio * s for s, t in lengths)
    assert found.max_length_offset == pytest.approx(max(over, 0) + 10, abs=0.01)
    assert found.min_length_ratio == 0
    line = f"{found.max_length_ratio} x source tokens + "
    assert line in capsys.readouterr().out
    assert prepared(pairs) == found
    assert prepared(pairs, f"{RATIO}=3") != found
    assert prepared(pairs, f"{RATIO}=null") == found


LONGEST = [("a b", repeat(30))] * 15 + [("a b", repeat(45))]
CUT = "data.max_length=20", "data.over_long=truncate"
LIMITS = {
    "sources of one length": ([(f"{n}", repeat(n)) for n in range(20, 45)], 44),
    "all but one pair in a thousand": ([("a b", "x")] * 2000 + LONGEST, 30),
    "pairs cut in training": ([("a", repeat(30))] * 9, 20, *CUT),
    "every pair of a small text": (
        [("a", repeat(30))] + [(repeat(8, "a"), "x")] * 40,
        30,
    ),
    "targets that do not grow": (
        [(repeat(1 + n % 30, "a"), repeat(30 - n % 30)) for n in range(90)],
        30,
    ),
}


@pytest.mark.parametrize("case", LIMITS)
def test_the_limit_follows_the_longest_targets(prepared, case):
    pairs, longest, *settings = LIMITS[case]
    found = prepared(pairs, *settings)
    limit = found.max_length_ratio, found.max_length_offset
    assert limit == (0, longest + 10)


def test_two_lengths_give_a_slope(prepared):
    pairs = [("a", repeat(2)), ("a a", repeat(4))]
    assert prepared(pairs).max_length_ratio == 1.5 * 2


@pytest.mark.slow
def test_pairs_excluded_from_training_are_ignored(prepared):
    pairs = [(repeat(n % 7 + 1, "a"), repeat(n % 7 + 1)) for n in range(70)]
    more = [*pairs, ("a", repeat(500)), ("a a", repeat(21))]
    found = prepared(pairs, "data.max_length=20")
    assert prepared(more, "data.max_length=20", run="more") == found
    assert found.max_symbols(7) < 21


def test_lengths_are_counted_in_subwords(prepared):
    pairs = [(f"number {n}", f"Nummer {n * 7919}") for n in range(80)]
    found = prepared(pairs, "data.tokenizer=sentencepiece")
    counts = []
    for name, side in (("source_vocabulary", 0), ("target_vocabulary", 1)):
        tokenizer = load_tokenizer(prepared.run, name)
        lines = [pair[side] for pair in pairs]
        counts.append(tokenizer.encode(lines).row_lengths().numpy())
    source, target = counts
    ratio = max(0, 1.5 * slope_of(source, target))
    assert found.max_length_ratio == pytest.approx(ratio, abs=1e-4)
    over = max(0, (target - ratio * source).max())
    assert found.max_length_offset == pytest.approx(over + 10, abs=1e-2)


def test_given_limits_are_kept(prepared):
    found = prepared([("a b", "x y")] * 9, f"{RATIO}=3", f"{OFFSET}=2")
    assert (found.max_length_ratio, found.max_length_offset) == (3, 2)


@pytest.mark.parametrize("ratio", [0.5, 0.33333])
def test_the_limit_is_at_least_the_given_minimum(prepared, ratio):
    pairs = [("a b c d", "x")] * 9
    found = prepared(pairs, f"decoding.min_length_ratio={ratio}")
    assert (found.max_length_ratio, found.max_length_offset) == (ratio, 10)


def test_older_runs_keep_their_limit(prepared):
    pairs = [("a b", "x y")] * 9
    prepared(pairs)
    path = prepared.run / "config.json"
    values = json.loads(path.read_text())
    del values["decoding"]["max_length_offset"]
    values["decoding"]["max_length_ratio"] = 1.5
    path.write_text(json.dumps(values))
    for found in (run_config(prepared.run).decoding, prepared(pairs)):
        assert found.max_length_ratio == 1.5
        assert found.max_length_offset is None
        assert found.max_symbols(9) == 15


def test_a_new_run_records_the_precision_it_measured(prepared, monkeypatch):
    measured = iter(["mixed_bfloat16", "float32"])
    monkeypatch.setattr(recipe, "resolve_precision", lambda _: next(measured))
    for _ in range(2):  # Another machine would choose float32.
        prepared([("a b", "x y")] * 9, "model.precision=auto")
        found = run_config(prepared.run).model.precision
        assert found == "mixed_bfloat16"


def test_changed_vocabularies_leave_the_settings_of_a_run(prepared, capsys):
    call = [("a b", "x y")] * 9, "data.joint_vocabulary=false"
    prepared(*call)
    before = run_config(prepared.run)
    WordTokenizer.from_words(["x"]).save(prepared.run, "target_vocabulary")
    prepared(*call)
    assert "text or the tokenizers of" in capsys.readouterr().err
    assert run_config(prepared.run) == before
