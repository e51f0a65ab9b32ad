"""First steps of a user who has installed only the wheel.

Each test is one program or command of a user. `make test-all` runs the tests,
which take minutes, most of them for the installation.
"""

import random

import pytest

from tests.stranger.conftest import ROOT

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


def test_editor_completes_names_and_shows_arguments(stranger):
    shown = stranger.python(
        "import jedi\n"
        "code = 'import luong_keras\\nluong_keras.'\n"
        "print(*[c.name for c in jedi.Script(code).complete()])\n"
        "code += 'layers.LocalAttention('\n"
        "(signature,) = jedi.Script(code).get_signatures()\n"
        "print(*[parameter.name for parameter in signature.params])"
    )
    names, arguments = map(str.split, shown.splitlines())
    assert {"LocalAttention", "Translator", "layers"} <= set(names)
    assert {"half_width", "name", "dtype"} <= set(arguments)


def test_a_wrong_argument_is_refused(stranger):
    done = stranger.run(
        *("python", "-c"),
        "import luong_keras; luong_keras.LocalAttention(half_widht=3)",
        check=False,
    )
    assert done.returncode and "half_widht" in done.stderr


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


@pytest.mark.parametrize(
    "name", ["beam_search_functional", "beam_search_transformer"]
)
def test_user_defined_models_are_searched(stranger, name):
    (stranger.folder / f"{name}.py").write_text(
        (ROOT / "examples" / f"{name}.py").read_text(encoding="utf-8")
    )
    printed = stranger.python(f"import {name}; {name}.main(300, 1, 20)")
    assert printed.count("% right") == 2 and "beam 5" in printed


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


@pytest.mark.parametrize(
    "imports", ["import luong_keras, keras", "import keras, luong_keras"]
)
def test_models_load_in_another_process(stranger, imports):
    if not (stranger.folder / "model.keras").exists():
        stranger.python(
            "import keras, numpy as np\n"
            "from luong_keras import Encoder, InputFeedingLSTM\n"
            "from luong_keras import LocalAttention, OutputProjection\n"
            "source = keras.Input((None, 3)); target = keras.Input((None, 2))\n"
            "memory, *states = Encoder(4)(source)\n"
            "vectors = InputFeedingLSTM(4, attention=LocalAttention())(\n"
            "    target, memory=memory, initial_state=states)\n"
            "logits = OutputProjection(5)(vectors)\n"
            "model = keras.Model([source, target], logits)\n"
            "model.save('model.keras')\n"
            "inputs = [np.ones((2, 6, 3)), np.ones((2, 4, 2))]\n"
            "np.save('logits.npy', model.predict(inputs, verbose=0))"
        )
    stranger.python(
        f"{imports}\n"
        "import numpy as np\n"
        "model = keras.models.load_model('model.keras')\n"
        "inputs = [np.ones((2, 6, 3)), np.ones((2, 4, 2))]\n"
        "found = model.predict(inputs, verbose=0)\n"
        "np.testing.assert_allclose(found, np.load('logits.npy'), atol=1e-6)"
    )


def test_padding_on_the_left_gives_the_same_results(stranger):
    """`keras.utils.pad_sequences` pads on the left by default."""
    stranger.python(
        "import keras, numpy as np\n"
        "from luong_keras import Encoder, LocalAttention\n"
        "rows = [[4, 5, 6, 7, 8, 9], [4, 5, 6]]\n"
        "query = np.random.default_rng(0).normal(size=(2, 3, 8))\n"
        "embedding = keras.layers.Embedding(10, 8)\n"
        "for options in ({}, {'bidirectional': True}, {'reverse': True}):\n"
        "    encoder, attention = Encoder(8, **options), LocalAttention(\n"
        "        'predictive', half_width=2)\n"
        "    found = []\n"
        "    for padding in ('post', 'pre'):\n"
        "        ids = keras.utils.pad_sequences(rows, padding=padding)\n"
        "        mask = ids != 0\n"
        "        memory, *states = encoder(embedding(ids), mask=mask)\n"
        "        context, weights = attention(query, memory, value_mask=mask,\n"
        "            return_attention_scores=True)\n"
        "        weights = np.asarray(weights)\n"
        "        words = [w[:, m] for w, m in zip(weights, mask)]\n"
        "        found.append([*states, context, *words])\n"
        "    for right, left in zip(*found):\n"
        "        np.testing.assert_allclose(right, left, atol=1e-5)"
    )


SCORE = '''
import keras
from luong_keras.layers import Score


@keras.saving.register_keras_serializable(package="mine")
class Distance(Score):
    """Minus the squared distance to a projection of the memory."""

    def build(self, add_weight, query_shape, value_shape):
        shape = value_shape[-1], query_shape[-1]
        self.kernel = add_weight(name="kernel", shape=shape)

    def project_keys(self, value):
        return value @ self.kernel

    def __call__(self, query, keys):
        between = query[:, :, None] - keys[:, None]
        return -keras.ops.sum(keras.ops.square(between), axis=-1)
'''


def test_user_defined_score_trains_and_is_saved(stranger):
    (stranger.folder / "distance.py").write_text(SCORE)
    arrays = (
        "import numpy as np\n"
        "generator = np.random.default_rng(0)\n"
        "source = generator.normal(size=(16, 6, 3))\n"
        "target = generator.normal(size=(16, 4, 2))\n"
        "words = generator.integers(1, 5, (16, 4))\n"
    )
    stranger.python(
        f"{arrays}import keras\n"
        "from distance import Distance\n"
        "from luong_keras import Encoder, InputFeedingLSTM\n"
        "from luong_keras import LuongAttention, OutputProjection\n"
        "from luong_keras.losses import MaskedSparseCategoricalCrossentropy\n"
        "inputs = keras.Input((6, 3)), keras.Input((4, 2))\n"
        "memory, *states = Encoder(4)(inputs[0])\n"
        "vectors = InputFeedingLSTM(4, attention=LuongAttention(Distance()))(\n"
        "    inputs[1], memory=memory, initial_state=states)\n"
        "model = keras.Model(inputs, OutputProjection(5)(vectors))\n"
        "loss = MaskedSparseCategoricalCrossentropy()\n"
        "model.compile(keras.optimizers.Adam(0.05), loss)\n"
        "log = model.fit((source, target), words, epochs=20, verbose=0)\n"
        "losses = log.history['loss']\n"
        "assert losses[-1] < 0.8 * losses[0], losses\n"
        "model.save('distance.keras')\n"
        "np.save('distance.npy', model.predict((source, target), verbose=0))"
    )
    stranger.python(
        f"{arrays}import luong_keras, distance, keras\n"
        "model = keras.models.load_model('distance.keras')\n"
        "found = model.predict((source, target), verbose=0)\n"
        "np.testing.assert_allclose(found, np.load('distance.npy'), atol=1e-6)"
    )
