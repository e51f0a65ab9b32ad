"""The import law and the other rules of the layout, from the syntax trees."""

import ast
import importlib.util
import os
import pathlib
import re
import subprocess
import sys

import keras
import pytest

import luong_keras

ROOT = pathlib.Path(luong_keras.__file__).parent
PACKAGE = ROOT.name
# The first part of a module's path and its level; a module imports from
# lower levels and from its own folder.
LEVELS = {
    "special_tokens": 0,
    "truncation": 0,
    "config": 0,
    "presets": 0,
    "missing_package": 0,
    "with_tensorflow": 0,
    "lazy_names": 0,
    "suggestions": 0,
    "progress": 0,
    "tables": 0,
    "files": 0,
    "ops": 1,
    "alignment": 1,
    "layers": 2,
    "text": 2,
    "models": 3,
    "data": 3,
    "decoding": 4,
    "interop": 4,
    "evaluation": 5,
    "training": 6,
    "inference": 7,
    "serving": 8,
    "recipe": 9,
    "translator": 10,
    "report": 10,
    "cli": 11,
    "__main__": 12,
    # Namespaces: names of other modules, which nothing imports.
    "callbacks": 13,
    "losses": 13,
    "metrics": 13,
    "optimizers": 13,
    "tokenizers": 13,
}
# Those of `ops` import it inside of functions, where it has what `keras.ops`
# has not: loops over several sequences, reading some rows of a variable, and
# the replicas of a strategy, which `training.mirrored` makes.
WITH_TENSORFLOW = (
    *("with_tensorflow", "text", "data", "inference", "serving"),
    *("ops.loops", "ops.backends", "ops.devices", "training.mirrored"),
    *("models.microbatches", "recipe.devices"),
    "recipe.validation_callbacks",
)
# A gradient inside a loop, and float64: Keras has neither. A program on each
# device, the processes of a run, and one that is compiled outside of `fit`. And
# what a GPU can do.
WITH_JAX = (
    *("ops.loops", "ops.backends", "ops.devices"),
    *("models.microbatches", "recipe.devices", "inference.jax_translator"),
)
# Gradients of many results, which Keras has not there. And
# what a GPU can do.
WITH_TORCH = ("ops.loops", "ops.devices")
TENSORFLOW = ("tensorflow", "tensorflow_text", "tensorflow_datasets")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imports(path):
    """Absolute names of all imported modules, inside functions as well."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def own_imports(path):
    """Those of this package, without its name: 'layers.attention_rnn'."""
    for name in imports(path):
        first, _, rest = name.partition(".")
        if first == PACKAGE and rest:
            yield rest


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_down(module):
    if module == "__init__":
        # What saved models name; all else loads on first use.
        names = {name.split(".")[0] for name in own_imports(MODULES[module])}
        assert names == {"layers", "losses", "metrics", "optimizers", "models"}
        return
    folder = module.split(".")[0]
    for name in own_imports(MODULES[module]):
        other = name.split(".")[0]
        # In the package a module is imported from where it is, never as a
        # public name of `luong_keras`.
        assert other in LEVELS, f"{module} imports {name} of no level"
        same_folder = other == folder or LEVELS[other] == LEVELS[folder] < 2
        assert same_folder or LEVELS[other] < LEVELS[folder], (
            f"{module} (level {LEVELS[folder]}) imports {name} "
            f"(level {LEVELS[other]})"
        )


def test_every_module_has_a_level():
    folders = {module.split(".")[0] for module in MODULES} - {"__init__"}
    assert folders == set(LEVELS)


def test_the_page_has_these_levels():
    page = (ROOT.parent / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (\d*) ?\| (`.+?) \|", page, re.MULTILINE)
    listed, level = {}, None
    for number, cell in rows:
        level = int(number) if number else level
        listed |= dict.fromkeys(re.findall(r"`(\w+)/?`", cell), level)
    assert listed == LEVELS


def test_decoding_never_imports_models():
    for module, path in MODULES.items():
        if module.startswith("decoding"):
            names = {name.split(".")[0] for name in own_imports(path)}
            assert "models" not in names, module


@pytest.mark.parametrize("module", MODULES)
def test_tensorflow_stays_in_its_places(module):
    names = set(imports(MODULES[module]))
    top = {name.split(".")[0] for name in names}
    if not module.startswith(WITH_TENSORFLOW):
        assert not top.intersection(TENSORFLOW)
        assert f"{PACKAGE}.with_tensorflow" not in names
    if module not in WITH_JAX:
        assert "jax" not in top
        assert not [name for name in names if name.startswith("keras.src")]
    if module not in WITH_TORCH:
        assert "torch" not in top


@pytest.mark.parametrize("module", MODULES)
def test_modules_are_short_and_named_for_what_they_hold(module):
    parts = set(module.split("."))
    assert not parts.intersection({"utils", "helpers", "misc", "common"})
    lines = len(MODULES[module].read_text().splitlines())
    assert lines <= 400, f"{module} has {lines} lines; the aim is 250"


@pytest.mark.skipif(
    importlib.util.find_spec("jax") is None, reason="JAX is not installed"
)
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="the TensorFlow run does it"
)
def test_every_layer_runs_without_tensorflow():
    program = (
        "import sys\n"
        "sys.modules['tensorflow'] = None\n"
        "from tests.layer_checks import run_every_layer\n"
        "run_every_layer()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={
            **os.environ,
            "KERAS_BACKEND": "jax",
            "JAX_DISABLE_MOST_OPTIMIZATIONS": "1",  # as in tests/conftest.py
        },
        cwd=ROOT.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
