"""How long translations may become, from the text of a run."""

import json

import numpy as np
import pytest

from luong_keras.cli.main import main
from luong_keras.recipe import run as recipe
from luong_keras.recipe.run_settings import run_config
from luong_keras.text.loading import load_tokenizer

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
    """The search of a run, as its folder has it before it is trained."""
    monkeypatch.setattr(recipe, "train", lambda *_, **__: False)

    def prepare(pairs, *settings):
        text = "".join(f"{s}\t{t}\n" for s, t in pairs)
        (tmp_path / "text.tsv").write_text(text)
        path, run = str(tmp_path / "text.tsv"), tmp_path / "run"
        sets = [x for each in (*TINY, *settings) for x in ("--set", each)]
        parts = ["--dev", path, "--test", path]
        main(["train", path, *parts, "--run-dir", str(run), *sets])
        return run_config(run).decoding

    prepare.run = tmp_path / "run"
    return prepare


def spoken(count, length):
    return [(f"{n}", " ".join(["one"] * length(n))) for n in range(1, count)]


def test_one_word_sources(prepared):
    found = prepared(
        spoken(60, lambda n: 2 + n % 5),
        "data.tokenizer=words",
        "data.joint_vocabulary=false",
        "model.tied_embeddings=false",
    )
    total = sum(2 + n % 5 for n in range(1, 60))
    ratio = 1.5 * total / 59
    assert found.max_length_ratio == pytest.approx(ratio, abs=1e-4)
    over = np.quantile([2 + n % 5 - ratio for n in range(1, 60)], 0.999)
    expected = max(0, over) + 10
    assert found.max_length_offset == pytest.approx(expected, abs=1e-3)
    assert found.most_symbols(1) >= 6 + 1
    assert found.min_length_ratio == 0


def test_constant_lengths(prepared, capsys):
    found = prepared([("a b c d", "x y")] * 20)
    assert (found.max_length_ratio, found.max_length_offset) == (0.75, 10)
    assert "0.75 x source tokens + 10.0" in capsys.readouterr().out
    # A run that goes on, and one that is told its own settings.
    again = prepared([("a b c d", "x y")] * 20)
    assert again == found


def test_long_targets_of_short_sources_have_room(prepared):
    pairs = [("a", " ".join(["x"] * 30))] + [("a b c d e f g h", "x")] * 40
    found = prepared(pairs)
    # Of 41 pairs the longest is the quantile, but for little.
    assert 30 < found.most_symbols(1) < 42


def test_subwords(prepared):
    pairs = [(f"number {n}", f"Nummer {n * 7919}") for n in range(80)]
    found = prepared(pairs, "data.tokenizer=sentencepiece")
    counts = []
    for name, side in (("source_vocabulary", 0), ("target_vocabulary", 1)):
        tokenizer = load_tokenizer(prepared.run, name)
        lines = [pair[side] for pair in pairs]
        counts.append(tokenizer.encode(lines).row_lengths().numpy())
    source, target = counts
    ratio = 1.5 * target.sum() / source.sum()
    assert found.max_length_ratio == pytest.approx(ratio, abs=1e-4)
    over = max(0, np.quantile(target - ratio * source, 0.999))
    assert found.max_length_offset == pytest.approx(over + 10, abs=1e-2)


def test_what_is_given_stays(prepared):
    found = prepared([("a b", "x y")] * 9, f"{RATIO}=3", f"{OFFSET}=2")
    assert (found.max_length_ratio, found.max_length_offset) == (3, 2)


def test_a_minimum_above_the_text_is_no_contradiction(prepared):
    pairs = [("a b c d", "x")] * 9
    found = prepared(pairs, "decoding.min_length_ratio=0.5")
    assert (found.max_length_ratio, found.max_length_offset) == (0.5, 10)


def test_a_run_of_before_keeps_its_length(prepared):
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
        assert found.most_symbols(9) == 15
