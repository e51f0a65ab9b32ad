"""Type checking, completion and signatures in editors."""

import re
import subprocess
import sys

import pytest

import luong_keras

ROOT = luong_keras.__path__[0].rpartition("/")[0]
# Lines of a user's program, and whether each has a type error.
PROGRAM = {
    "LocalAttention(half_width=3)": False,
    "LocalAttention(half_widht=3)": True,
    "luong_keras.layers.LuongAttention('dot')": False,
    "luong_keras.losses.TranslationLoss(label_smothing=0.1)": True,
    "luong_keras.optimizers.make_optimizer('sgd', 1.0)": False,
    "luong_keras.optimizers.make_optimiser('sgd', 1.0)": True,
    "luong_keras.ModelConfig(units=3)": False,
    "luong_keras.ModelConfig(unit=3)": True,
    "TranslationClient(timeout='soon')": True,
    "TranslationClient(timeout=3.0).translate(['a'])": False,
    "luong_keras.serving.export_saved_model('run')": True,
    "luong_keras.data.phrasebook.split_pairs('test')[0].links": False,
}
IMPORTS = (
    "import luong_keras\n"
    "from luong_keras import LocalAttention\n"
    "from luong_keras_client import TranslationClient\n"
)


@pytest.fixture(scope="module")
def wrong_lines(tmp_path_factory):
    """Return the lines in which the type checker finds an error."""
    pytest.importorskip("mypy")
    file = tmp_path_factory.mktemp("types") / "program.py"
    file.write_text(IMPORTS + "\n".join(PROGRAM))
    command = [sys.executable, "-m", "mypy", "--config-file"]
    command += [f"{ROOT}/pyproject.toml", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 1), done.stderr
    # The cache of mypy may name the file of an earlier run.
    found = re.findall(r"program\.py:(\d+): error: ", done.stdout)
    lines = file.read_text().splitlines()
    return {lines[int(number) - 1] for number in found}


@pytest.mark.slow
@pytest.mark.parametrize("line", PROGRAM)
def test_type_checker_finds_wrong_arguments(line, wrong_lines):
    assert (line in wrong_lines) == PROGRAM[line]


def script(code):
    jedi = pytest.importorskip("jedi")
    return jedi.Script(code, project=jedi.Project(ROOT))


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("luong_keras.", {"LocalAttention", "layers", "Translator", "PRESETS"}),
        ("luong_keras.layers.", {"LocalAttention", "Encoder", "AttentionRNN"}),
        ("luong_keras.losses.", {"TranslationLoss"}),
        ("luong_keras.serving.", {"export_saved_model"}),
        ("luong_keras.LocalAttention(", {"half_width=", "score_mode="}),
    ],
)
def test_editors_complete_names_and_arguments(code, expected):
    found = script(f"import luong_keras\n{code}").complete()
    assert expected <= {completion.name for completion in found}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("LocalAttention", {"alignment", "half_width", "gaussian"}),
        ("layers.Encoder", {"units", "num_layers", "dropout_style"}),
        ("decoding.beam_search", {"step", "beam_size"}),
    ],
)
def test_editors_show_signatures_and_docstrings(name, arguments):
    code = f"import luong_keras\nluong_keras.{name}("
    (signature,) = script(code).get_signatures()
    assert arguments <= {parameter.name for parameter in signature.params}
    assert len(signature.docstring()) > 200
