"""docs/private_apis.md lists every private name of others that is used."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "private_apis.md"
# Parts of a module's path that its project does not document.
PRIVATE_PART = re.compile(r"^(_.*|src|python|core)$")
LIBRARIES = {"google", "jax", "keras", "sentencepiece", "sacrebleu"}
LIBRARIES |= {"tensorflow", "tensorflow_text", "tensorflow_datasets"}
NAMED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
# Public, though Python's named tuples and `os` spell them so.
PUBLIC = {"_asdict", "_replace", "_fields", "_exit"}


def own_names(trees):
    """Names with an underscore that the package itself gives."""
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


def private_names(tree, own):
    """Attributes, by a dot or by `getattr`, and symbols of libraries."""
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.Call) and len(node.args) > 1:
            if getattr(node.func, "id", "") in ("getattr", "hasattr"):
                name = getattr(node.args[1], "value", "")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            if re.search(r"\.so(\.\d+)?$", node.value):
                yield node.value
            elif re.match(r"TF_[A-Z][a-z]\w*$", node.value):
                yield "TF_*"
        if re.match(r"_[^_]", str(name)) and name not in PUBLIC | own:
            yield name


def used(folder, with_names):
    trees = {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted((ROOT / folder).rglob("*.py"))
    }
    own = set(own_names(trees.values()))
    for path, tree in trees.items():
        found = set(private_imports(tree))
        if with_names:
            found |= set(private_names(tree, own))
        for name in found:
            yield path.relative_to(ROOT).as_posix(), name


def listed():
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+\.py)` \| `([^`]+)` \|", text, re.MULTILINE)
    return {(path, name) for path, name in rows}


def test_the_list_is_what_is_used():
    found = set(used("luong_keras", with_names=True))
    for folder in ("tests", "benchmarks", "examples", "export"):
        for path, name in used(folder, with_names=False):
            if not name.startswith("tensorflow.core."):  # its messages
                found.add((path, name))
    assert found == listed(), "change docs/private_apis.md with the code"


def test_what_counts_as_private():
    tree = ast.parse(
        "import jax._src.core, keras\n"
        "from keras.src import ops\n"
        "from tensorflow.python.eager import backprop\n"
        "layer._callable(1)\nself._own\ngetattr(x, '_keras_mask', None)\n"
        "pair._replace(a=1)\nx.__class__\n'libx.so.2', 'TF_Run'\n"
    )
    assert set(private_imports(tree)) == {
        "jax._src.core",
        "keras.src.ops",
        "tensorflow.python.eager.backprop",
    }
    assert set(private_names(tree, {"_own"})) == {
        *("_callable", "_keras_mask", "libx.so.2", "TF_*")
    }
