"""Private names of other libraries, listed in docs/private_apis.md."""

import ast
import contextlib
import importlib.metadata
import re
from pathlib import Path

import keras
import numpy as np
import pytest

import luong_keras
from luong_keras import OutputProjection, missing_package
from luong_keras.layers import output_projection
from luong_keras.missing_package import KNOWN, private_name
from luong_keras.serving import check_saved_model
from luong_keras.training.optimizers import make_optimizer

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "private_apis.md"
# Parts of module paths that mark private modules.
PRIVATE_PART = re.compile(r"^(_.*|src|python|core)$")
LIBRARIES = {"google", "jax", "keras", "sentencepiece", "sacrebleu"}
LIBRARIES |= {"tensorflow", "tensorflow_text", "tensorflow_datasets"}
NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Public names of named tuples and `os`, despite the underscore.
PUBLIC = {"_asdict", "_replace", "_fields", "_exit"}


def defined_names(trees):
    """Yield the names that the package defines."""
    for tree in trees:
        for node in ast.walk(tree):
            if isinstance(node, NAMED):
                yield node.name
            elif isinstance(getattr(node, "ctx", None), ast.Store):
                yield getattr(node, "attr", None) or getattr(node, "id", "")


def private_imports(tree):
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        for name in names:
            first, *rest = name.split(".")
            if first in LIBRARIES and any(map(PRIVATE_PART.match, rest)):
                yield name


def private_names(tree, defined):
    """Yield private attributes and symbols of shared libraries."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.Call) and node.args:
            function = getattr(node.func, "id", "")
            if function == "private_name" and isinstance(
                node.args[0], ast.Constant
            ):
                yield node.args[0].value
            elif function in ("getattr", "hasattr") and len(node.args) > 1:
                name = getattr(node.args[1], "value", "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.search(r"\.so(\.\d+)?$", node.value):
                yield node.value
            elif re.match(r"TF_[A-Z][a-z]\w*$", node.value):
                yield "TF_*"
        if re.match(r"_[^_]", str(name)) and name not in PUBLIC | defined:
            yield name


def used_names(folder, with_attributes):
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    defined = set(defined_names(trees.values()))
    for path, tree in trees.items():
        found = set(private_imports(tree))
        if with_attributes:
            found |= set(private_names(tree, defined))
        for name in found:
            yield path.relative_to(ROOT).as_posix(), name


def listed_names():
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+\.py)` \| `([^`]+)` \|", text, re.MULTILINE)
    return {(path, name) for path, name in rows}


def test_page_lists_the_private_names():
    found = set(used_names("luong_keras", with_attributes=True))
    for folder in ("tests", "benchmarks", "examples", "export"):
        for path, name in used_names(folder, with_attributes=False):
            if not name.startswith("tensorflow.core."):  # messages
                found.add((path, name))
    assert found == listed_names(), "change docs/private_apis.md with the code"


def test_private_names_are_used_through_private_name():
    bare = {
        (path, name)
        for path, name in listed_names()
        if path.startswith("luong_keras") and name.split(".")[0] not in KNOWN
    }
    assert bare == {
        # Read with a default value.
        ("luong_keras/layers/output_projection.py", "_keras_history"),
    }
    for path in (ROOT / "luong_keras").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert not set(private_imports(tree)), path


def test_known_versions_begin_with_the_oldest_supported():
    setup = (ROOT / "setup.py").read_text(encoding="utf-8")
    for package, versions in KNOWN.items():
        oldest = versions.split(" to ")[0]
        name = package.replace("_", "-")
        assert re.search(rf'"{name}>={re.escape(oldest)}[",]', setup), package


def test_private_names_are_found():
    tree = ast.parse(
        "import jax._src.core, keras\n"
        "from keras.src import ops\n"
        "from tensorflow.python.eager import backprop\n"
        "layer._callable(1)\nself._own\ngetattr(x, '_keras_mask', None)\n"
        "pair._replace(a=1)\nx.__class__\n'libx.so.2', 'TF_Run'\n"
        "private_name('keras.Layer._losses', x)\nprivate_name(name, x)\n"
    )
    assert set(private_imports(tree)) == {
        "jax._src.core",
        "keras.src.ops",
        "tensorflow.python.eager.backprop",
    }
    assert set(private_names(tree, {"_own"})) == {
        *("_callable", "_keras_mask", "libx.so.2", "TF_*"),
        "keras.Layer._losses",
    }


# Errors if a private name no longer exists.


@contextlib.contextmanager
def missing_name_error(name, *advice):
    """Expect an error of one line that has the name and the versions."""
    with pytest.raises(ImportError) as caught:
        yield
    message = str(caught.value)
    package = re.split("[./]", name)[0]
    installed = importlib.metadata.version(package)
    assert "\n" not in message
    for part in (f"`{name}`", installed, KNOWN[package], *advice):
        assert part in message


@pytest.mark.parametrize(
    "name, advice, call, error",
    [
        (
            "keras.src.backend.common.dtypes.BIT64_TO_BIT32_DTYPE",
            "on the TensorFlow backend",
            luong_keras.enable_float64,
            AttributeError,
        ),
        (
            "tensorflow.core.protobuf.saved_model_pb2",
            "",
            lambda: check_saved_model("models/1"),
            ImportError,
        ),
    ],
)
def test_error_of_a_missing_name(monkeypatch, name, advice, call, error):
    def resolve(path):
        assert path == name
        raise error(path)

    monkeypatch.setattr(missing_package.pkgutil, "resolve_name", resolve)
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")
    with missing_name_error(name, advice):
        call()


def test_error_of_a_copied_tied_projection(monkeypatch):
    """Check that a Keras without this name does not untie a copy silently."""
    name = "keras.KerasTensor._keras_history"
    embedding = keras.layers.Embedding(5, 4)
    projection = OutputProjection(5, embedding=embedding)
    copy = OutputProjection.from_config(projection.get_config())
    other = keras.layers.Embedding.from_config(embedding.get_config())
    vectors = keras.layers.Dropout(0.1)(other(keras.Input((3,))))

    def renamed(path, owner=None, instead=""):
        gone = path == name
        return private_name(path, object() if gone else owner, instead)

    monkeypatch.setattr(output_projection, "private_name", renamed)
    with missing_name_error(name):
        copy(vectors)


def test_error_of_optimizer_variables():
    optimizer = make_optimizer()
    optimizer.build([keras.Variable(1.0)])
    optimizer.apply([np.float32(1)])
    del optimizer._trainable_variables
    name = "keras.optimizers.Optimizer._trainable_variables"
    with missing_name_error(name, "pass the variables to `apply`"):
        optimizer.apply([np.float32(1)])
