import base64
import json
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow.python.framework import op_def_registry

from luong_keras.serving.export import export_saved_model
from luong_keras.special_tokens import SPECIAL_TOKENS
from tests.serving.tiny_translator import SOURCE_WORDS, tiny_translator

TEXTS = [
    b"the cat sees a zebra .",
    b"",
    b"caf\xe9 house \xff",
    b"the the " * 20,
    "Straße .".encode(),
]
RESULTS = {
    "translations",
    "scores",
    "tokens",
    "lengths",
    "alignments",
    "source_tokens",
}

FRESH_PROCESS = """
import base64, json, sys
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
texts = [base64.b64decode(text) for text in json.load(sys.stdin)]
answer = {}
for name, signature in model.signatures.items():
    found = signature(text=tf.constant(texts, tf.string))
    answer[name] = {
        key: [base64.b64encode(x).decode() for x in t.numpy().ravel()]
        if t.dtype == tf.string else t.numpy().ravel().tolist()
        for key, t in found.items()
    }
assert "luong_keras" not in sys.modules
json.dump(answer, sys.stdout)
"""


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(unknown_logit=2.0, length_penalty=1.0)


@pytest.fixture(scope="module")
def exported(translator, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny" / "1"
    assert export_saved_model(translator, folder) == folder
    return folder


@pytest.fixture(scope="module")
def expected(translator):
    found = translator.translate_batch(tf.constant(TEXTS))
    return {name: value.numpy() for name, value in found.items()}


def run(command, job):
    process = subprocess.run(
        command, input=json.dumps(job), capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return json.loads(process.stdout)


def encoded(texts):
    return [base64.b64encode(text).decode() for text in texts]


def check(values, expected, name):
    if expected.dtype.kind == "O":
        assert values == encoded(expected.ravel()), name
    else:
        np.testing.assert_allclose(
            values, expected.ravel(), rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_a_fresh_process_translates_alike(exported, expected):
    answer = run(
        [sys.executable, "-I", "-c", FRESH_PROCESS, str(exported)],
        encoded(TEXTS),
    )
    assert set(answer) == {"serving_default", "translate"}
    assert set(answer["translate"]) == RESULTS
    for name, values in answer["translate"].items():
        check(values, expected[name], name)
    best = answer["serving_default"]
    assert set(best) == {"translation", "score"}
    check(best["translation"], expected["translations"][:, 0], "translation")
    check(best["score"], expected["scores"][:, 0], "score")


def graph_of(folder):
    saved = saved_model_pb2.SavedModel()
    saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    (meta_graph,) = saved.meta_graphs
    return meta_graph


@pytest.mark.skipif(
    not sys.platform.startswith("linux"),
    reason="the C API is loaded from the libraries of the Linux packages",
)
@pytest.mark.parametrize("texts", [TEXTS, [b"a cat"], []])
def test_the_loader_of_the_server_translates_alike(exported, translator, texts):
    signature = graph_of(exported).signature_def["translate"]
    answer = run(
        [
            sys.executable,
            "-I",
            str(Path(__file__).with_name("saved_model_runner.py")),
        ],
        {
            "site": str(Path(tf.__file__).parents[1]),
            "folder": str(exported),
            "inputs": {signature.inputs["text"].name: encoded(texts)},
            "outputs": {k: v.name for k, v in signature.outputs.items()},
        },
    )
    found = translator.translate_batch(tf.constant(texts, tf.string))
    assert set(answer) == RESULTS
    for name, tensor in found.items():
        assert answer[name]["shape"] == tensor.shape.as_list()
        check(answer[name]["values"], tensor.numpy(), name)


def test_a_server_knows_every_operation(exported):
    meta_graph = graph_of(exported)
    nodes = list(meta_graph.graph_def.node)
    for function in meta_graph.graph_def.library.function:
        nodes += function.node_def
        assert not function.attr["_XlaMustCompile"].b
    names = {node.op for node in nodes}
    assert "While" in names or "StatelessWhile" in names
    functions = {
        f.signature.name for f in meta_graph.graph_def.library.function
    }
    unknown = {
        name
        for name in names - functions
        # TensorFlow's own: words need no others.
        if op_def_registry.get(name) is None
    }
    assert not unknown
    for refused in ("PyFunc", "Xla", "Cudnn", "Addons"):
        assert not [name for name in names if refused in name]


def test_the_export_carries_its_vocabularies(exported):
    words = sorted(
        path.read_text(encoding="utf-8").splitlines()
        for path in (exported / "assets").iterdir()
    )
    assert len(words) == 2
    assert [*SPECIAL_TOKENS, *SOURCE_WORDS] in words


def test_a_version_is_never_written_twice(translator, exported):
    before = sorted(path.name for path in exported.parent.iterdir())
    with pytest.raises(FileExistsError, match="another version number"):
        export_saved_model(translator, exported)
    assert sorted(path.name for path in exported.parent.iterdir()) == before


def test_a_failed_export_leaves_nothing(translator, tmp_path, monkeypatch):
    class Failing:
        def track(self, resource):
            pass

        def add_endpoint(self, *arguments, **options):
            pass

        def write_out(self, path, **options):
            Path(path).mkdir()
            (Path(path) / "saved_model.pb").write_bytes(b"half")
            raise OSError("disk full")

    monkeypatch.setattr(keras.export, "ExportArchive", Failing)
    with pytest.raises(OSError, match="disk full"):
        export_saved_model(translator, tmp_path / "models" / "2")
    assert list((tmp_path / "models").iterdir()) == []
