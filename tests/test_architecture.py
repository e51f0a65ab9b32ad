"""Rules for imports and modules, checked on the syntax trees."""

import ast
import importlib.util
import pathlib
import re

import keras
import pytest

import luong_keras
from tests.programs import run_program

ROOT = pathlib.Path(luong_keras.__file__).parent
PACKAGE = ROOT.name
PAGE = ROOT.parent / "docs" / "architecture.md"


def levels():
    """Return the levels of the page, by the first part of a module's path."""
    rows = re.findall(
        r"^\| (\d*) ?\| (`.+?) \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    found, level = {}, None
    for number, cell in rows:
        level = int(number) if number else level
        found |= dict.fromkeys(re.findall(r"`(\w+)/?`", cell), level)
    return found


# A module imports only from lower levels and from its folder.
LEVELS = levels()
# Modules of `ops` import TensorFlow inside functions, for features that
# `keras.ops` lacks: loops over several sequences, reading some rows of a
# variable, and the replicas of a strategy.
WITH_TENSORFLOW = (
    *("with_tensorflow", "text", "data", "inference", "serving"),
    *("ops.loops", "ops.backends", "ops.devices"),
    *("models.microbatches", "recipe.devices"),
)
# Features that Keras lacks: gradients inside a loop, float64, programs per
# device, the processes of a run, compilation outside `fit`, and the abilities
# of a GPU.
WITH_JAX = (
    *("ops.loops", "ops.backends", "ops.devices"),
    *("models.microbatches", "recipe.devices", "inference.jax_translator"),
)
# Features that Keras lacks on torch: gradients of several results, and the
# abilities of a GPU.
WITH_TORCH = ("ops.loops", "ops.devices")
TENSORFLOW = ("tensorflow", "tensorflow_text", "tensorflow_datasets")
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts): path
    for path in sorted(ROOT.rglob("*.py"))
}


def imports(path):
    """Yield the names of all imported modules, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_imports(path):
    """Yield imports from this package, such as 'layers.attention_rnn'."""
    for name in imports(path):
        first, _, rest = name.partition(".")
        if first == PACKAGE and rest:
            yield rest


@pytest.mark.parametrize("module", MODULES)
def test_modules_import_only_lower_levels(module):
    if module == "__init__":
        # Saved models refer to these; all other names load on first use.
        names = {
            name.split(".")[0] for name in package_imports(MODULES[module])
        }
        assert names == {"layers", "losses", "metrics", "optimizers", "models"}
        return
    folder = module.split(".")[0]
    for name in package_imports(MODULES[module]):
        other = name.split(".")[0]
        # Modules are imported from their own place, not by the public names
        # of `luong_keras`.
        assert other in LEVELS, f"{module} imports {name} of no level"
        same_folder = other == folder or LEVELS[other] == LEVELS[folder] < 2
        assert same_folder or LEVELS[other] < LEVELS[folder], (
            f"{module} (level {LEVELS[folder]}) imports {name} "
            f"(level {LEVELS[other]})"
        )


def test_every_module_has_a_level():
    folders = {module.split(".")[0] for module in MODULES} - {"__init__"}
    assert folders == set(LEVELS)


def test_decoding_never_imports_models():
    for module, path in MODULES.items():
        if module.startswith("decoding"):
            names = {name.split(".")[0] for name in package_imports(path)}
            assert "models" not in names, module


@pytest.mark.parametrize("module", MODULES)
def test_backends_are_imported_only_where_allowed(module):
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
def test_modules_are_short_and_have_specific_names(module):
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
    run_program(
        "from tests.layer_checks import run_every_layer\nrun_every_layer()",
        "tensorflow",
        KERAS_BACKEND="jax",
        JAX_DISABLE_MOST_OPTIMIZATIONS="1",  # as in tests/conftest.py
    )
