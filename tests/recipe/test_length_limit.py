"""Maximum lengths and precision, chosen when a run begins."""

import json

import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.recipe import stages as recipe
from luong_keras.recipe.stored_settings import run_config
from luong_keras.text.loading import load_tokenizer
from luong_keras.text.word_tokenizer import WordTokenizer

pytestmark = pytest.mark.tensorflow

TINY = [
    "model.units=4",
    "model.embedding_size=4",
    "model.source_vocabulary_size=60",
    "model.target_vocabulary_size=60",
]
RATIO, OFFSET = "decoding.max_length_ratio", "decoding.max_length_offset"


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """Return a function that prepares a run and returns its decoding."""
    monkeypatch.setattr(recipe, "train", lambda *_, **__: False)

    def prepare(pairs, *settings, run="run"):
        text = "".join(f"{s}\t{t}\n" for s, t in pairs)
        (tmp_path / "text.tsv").write_text(text)
        path, run = str(tmp_path / "text.tsv"), tmp_path / run
        sets = [x for each in (*TINY, *settings) for x in ("--set", each)]
        parts = ["--dev", path, "--test", path]
        main(["train", path, *parts, "--run-dir", str(run), *sets])
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
    pairs = [
        (repeat(s, "a"), repeat(t)) for s, t in zip(source, target, strict=True)
    ]
    found = prepared(pairs)
    ratio = 1.5 * slope_of(source, target)
    assert found.max_length_ratio == pytest.approx(ratio, abs=1e-4)
    over = max(t - ratio * s for s, t in zip(source, target, strict=True))
    assert found.max_length_offset == pytest.approx(max(over, 0) + 10, abs=0.01)
    assert found.min_length_ratio == 0
    line = f"{found.max_length_ratio} x source tokens + "
    assert line in capsys.readouterr().out
    again = ["decoding.max_length_ratio=3"], ["decoding.max_length_ratio=null"]
    assert [prepared(pairs, *call) == found for call in ((), *again)] == [
        *(True, False, True)
    ]


def test_sources_of_one_length_use_the_longest_target(prepared):
    pairs = [(f"{n}", repeat(20 + n)) for n in range(25)]
    found = prepared(pairs)
    for tokens in (1, 200):
        assert found.max_symbols(tokens) == 44 + 10


def test_the_limit_covers_all_but_one_pair_in_a_thousand(prepared):
    longest = [("a b", repeat(30))] * 15 + [("a b", repeat(45))]
    assert prepared([("a b", "x")] * 2000 + longest).max_symbols(2) == 30 + 10


def test_two_lengths_give_a_slope(prepared):
    pairs = [("a", repeat(2)), ("a a", repeat(4))]
    assert prepared(pairs).max_length_ratio == 1.5 * 2


def test_targets_that_do_not_grow_have_a_constant_limit(prepared):
    pairs = [(repeat(1 + n % 30, "a"), repeat(30 - n % 30)) for n in range(90)]
    found = prepared(pairs)
    assert (found.max_length_ratio, found.max_length_offset) == (0, 40)


@pytest.mark.slow
def test_pairs_excluded_from_training_are_ignored(prepared):
    pairs = [(repeat(n % 7 + 1, "a"), repeat(n % 7 + 1)) for n in range(70)]
    more = [*pairs, ("a", repeat(500)), ("a a", repeat(21))]
    limit = "data.max_length=20"
    found = [
        prepared(each, limit, run=f"{len(each)}") for each in (pairs, more)
    ]
    assert found[0] == found[1]
    assert found[0].max_symbols(7) < 21


def test_pairs_cut_in_training_count_with_their_cut_length(prepared):
    settings = "data.max_length=20", "data.over_long=truncate"
    found = prepared([("a", repeat(30))] * 9, *settings)
    assert found.max_symbols(1) == 20 + 10


def test_the_limit_allows_every_pair_of_a_small_text(prepared):
    pairs = [("a", repeat(30))] + [(repeat(8, "a"), "x")] * 40
    assert prepared(pairs).max_symbols(1) == 40


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
