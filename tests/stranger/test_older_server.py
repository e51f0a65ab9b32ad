"""Exports in the runtime of an older TensorFlow, as in a server.

The newest image of TensorFlow Serving may be one version behind. Its runtime is
that of the TensorFlow package of the same version, which is installed here.
"""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from luong_keras.serving.export import probe_sentences
from luong_keras.serving.saved_model_checks import compare_answers
from luong_keras.serving.saved_model_session import run_in_server_runtime
from luong_keras.serving.signatures import INPUTS, probes
from tests.serving.tiny_translator import tiny_translator

pytestmark = [
    pytest.mark.stranger,
    pytest.mark.tensorflow,
]
ROOT = Path(__file__).parents[2]
OLDER = ("tensorflow==2.20.0", "tensorflow-text==2.20.1")


@pytest.fixture(scope="module")
def older(tmp_path_factory):
    """Install an older TensorFlow; return the path of its Python."""
    folder = tmp_path_factory.mktemp("older")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    install = ["-m", "pip", "install", "--quiet", *OLDER, "lazy_loader"]
    subprocess.run([python, *install], check=True)
    return python


def test_older_runtime_gives_the_same_responses(
    older, exported_models, monkeypatch
):
    sentences = probe_sentences(tiny_translator())
    calls = [
        (name, {key: tensor.numpy() for key, tensor in inputs.items()})
        for name, inputs in probes(sentences).items()
    ]
    folder = exported_models / "1"
    expected = run_in_server_runtime(folder, calls)
    monkeypatch.setattr(sys, "executable", str(older))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    found = run_in_server_runtime(folder, calls)
    for name, response, reference in zip(INPUTS, found, expected, strict=True):
        assert set(response) == set(reference)
        compare_answers(name, response, reference)
