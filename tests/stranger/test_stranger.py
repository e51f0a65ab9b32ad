"""First steps of a user who has installed only the wheel.

Each test is one program or command of a user. `make test-all` runs the tests,
which take minutes, most of them for the installation.
"""

import random

import pytest

pytestmark = pytest.mark.stranger

WORDS = dict(
    pair.split("/")
    for pair in [
        "the/die",
        "red/rote",
        "blue/blaue",
        "old/alte",
        "new/neue",
        "small/kleine",
        "big/große",
        "cat/Katze",
        "lamp/Lampe",
        "city/Stadt",
        "street/Straße",
        "sees/sieht",
        "has/hat",
        "finds/findet",
        "today/heute",
        "here/hier",
        "often/oft",
    ]
)


def sentences(count):
    """Yield random pairs that are translated word for word."""
    generator = random.Random(1)
    for _ in range(count):
        words = generator.choices(sorted(WORDS), k=generator.randint(3, 7))
        yield " ".join(words), " ".join(WORDS[word] for word in words)


@pytest.fixture(scope="module")
def trained(stranger):
    """Train by the command; return the folder of the run."""
    lines = [f"{source}\t{target}\n" for source, target in sentences(300)]
    file = stranger.folder / "pairs.tsv"
    file.write_text("".join(lines), encoding="utf-8")
    stranger.run(
        *("luong-keras", "train", "pairs.tsv", "--preset", "small"),
        *("--run-dir", "runs/mine", "--epochs", "1"),
    )
    return stranger.folder / "runs" / "mine"


def test_the_installed_package_is_the_wheel(stranger):
    where = stranger.python("import luong_keras; print(luong_keras.__file__)")
    assert str(stranger.environment) in where


def test_command_trains(trained):
    assert (trained / "best.weights.h5").is_file()
    assert (trained / "config.json").is_file()


def test_command_translates(stranger, trained):
    text = "the old cat sees the lamp\nthe city\n"
    command = "luong-keras", "translate", "--run-dir", str(trained)
    lines = stranger.run(*command, text=text).stdout.splitlines()
    assert len(lines) == 2


def test_command_evaluates_with_a_signature(stranger, trained):
    command = "luong-keras", "evaluate", "--run-dir", str(trained)
    printed = stranger.run(*command).stdout
    assert "BLEU" in printed.upper() and "nrefs:1" in printed


def test_command_fine_tunes_and_compares_with_the_parent(stranger, trained):
    other = [f"{source} .\t{target} .\n" for source, target in sentences(120)]
    (stranger.folder / "other.tsv").write_text("".join(other), encoding="utf-8")
    stranger.run(
        *("luong-keras", "train", "other.tsv", "--init-from", str(trained)),
        *("--run-dir", "runs/tuned", "--epochs", "1"),
    )
    printed = stranger.run(
        *("luong-keras", "evaluate", "other.tsv", "--run-dir", "runs/tuned"),
        *("--baseline", str(trained), "--metric", "chrf"),
    ).stdout
    assert "chrf" in printed and "signature" in printed
    assert "baseline" in printed.splitlines()[-4]


def test_command_exports(stranger, trained):
    stranger.run(
        *("luong-keras", "export", "--run-dir", str(trained)),
        *("--output", "models/mine/1"),
    )
    folder = stranger.folder / "models" / "mine" / "1"
    assert (folder / "saved_model.pb").is_file()


USER_DEFINED_SEARCH = """
from keras import ops
from luong_keras import Translator
from luong_keras.decoding import Greedy, Scorer
from luong_keras.serving.export import exported_translations

class NoLamp(Scorer):
    "Forbids a word, and everything that repeats the word before."
    def __init__(self, word):
        self.word = word
    def start(self, batch, source_length, max_steps):
        return [ops.full((batch, 1), -1, dtype="int32")]
    def add(self, states, words, position):
        return [words]
    def suppressed(self, states, position, vocabulary_size):
        words = ops.arange(vocabulary_size)
        return (words == self.word) | (words == states[0][..., None])

class SecondBest(Greedy):
    "A choice that takes the second word where that is no end."
    def pick(self, turn, barred):
        gains = ops.log_softmax(turn.logits, axis=-1)
        forbidden = turn.suppressed
        values, words = ops.top_k(ops.where(forbidden, -1e30, gains), 2)
        words = ops.cast(words, "int32")
        ends = words[..., 0] == turn.eos_id
        taken = ops.where(ends & ~barred, words[..., 0], words[..., 1])
        taken = ops.where(taken == turn.eos_id, words[..., 0], taken)
        gain = ops.take_along_axis(gains, taken[..., None], axis=-1)[..., 0]
        return gain, taken

lines = ["the old cat sees the lamp", "the city", ""]
plain = Translator.from_run({run!r})
word = int(plain.target_tokenizer.encode(["Lampe"])[0][0])
found = {{}}
for number, parts in enumerate(
    [dict(scorers=[NoLamp(word)]),
     dict(scorers=[NoLamp(word)], strategy=SecondBest())], start=1):
    translator = Translator.from_run({run!r}, **parts)
    found[number] = translator.translate(lines)
    assert not any("Lampe" in line for line in found[number])
    folder = translator.export(f"models/own/{{number}}")
    assert exported_translations(folder, lines) == found[number]
assert found[1] != found[2]
samples = [t.text for t in plain.nbest(lines, temperature=1.5, n_best=4)[0]]
assert len(samples) == 4
assert "Stadt" in plain.translate(lines, required=["", "Stadt", ""])[1]
"""


def test_user_defined_scorers_and_strategies_are_exported(stranger, trained):
    stranger.python(USER_DEFINED_SEARCH.format(run=str(trained)))
