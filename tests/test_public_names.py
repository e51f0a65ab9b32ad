"""Public names of the package, and the requirements of its import."""

import importlib
import inspect
import pathlib
import re

import keras
import pytest

import luong_keras
from tests.programs import run_program

NAMESPACES = [
    *("alignment", "callbacks", "data", "decoding", "evaluation"),
    *("inference", "interop", "layers", "losses", "metrics", "models"),
    *("optimizers", "recipe", "report", "serving", "tokenizers", "training"),
]
TENSORFLOW = {"data", "inference", "recipe", "serving", "tokenizers"}


def test_unknown_names_and_modules_fail():
    with pytest.raises(ImportError, match="cannot import name 'LocalAtention'"):
        exec("from luong_keras import LocalAtention")
    with pytest.raises(ModuleNotFoundError, match="luong_keras.attention"):
        importlib.import_module("luong_keras.attention")


@pytest.mark.parametrize(
    "namespace",
    [
        pytest.param(name, marks=pytest.mark.tensorflow)
        if name in TENSORFLOW
        else name
        for name in NAMESPACES
    ],
)
def test_names_of_a_namespace_load(namespace):
    module = getattr(luong_keras, namespace)
    assert module.__name__ == f"luong_keras.{namespace}"
    assert module.__doc__ and module.__all__
    for name in module.__all__:
        value = getattr(module, name)
        assert value.__doc__, name
        # Functions are not hidden by modules of the same name.
        assert name == "phrasebook" or callable(value), name


def test_top_level_has_the_layers_and_few_other_names():
    assert set(NAMESPACES) | {"config", "presets"} <= set(luong_keras.__all__)
    names = set(luong_keras.__all__).difference(NAMESPACES)
    assert len(names) < 40
    layers = luong_keras.layers
    at_the_top = {
        name
        for name in names - {"Translator"}  # which loads TensorFlow
        if inspect.isclass(getattr(luong_keras, name))
        and issubclass(getattr(luong_keras, name), keras.layers.Layer)
    }
    # One replaces a layer of Keras; the other two are base classes.
    assert set(layers.__all__) - at_the_top == {
        *("Embedding", "AttentionCell", "Score")
    }
    for name in at_the_top:
        assert getattr(luong_keras, name) is getattr(layers, name)


@pytest.mark.parametrize("blocked", ["keras", "tensorflow"])
def test_settings_work_without_keras_or_its_backend(blocked):
    program = (
        "import luong_keras\n"
        "luong_keras.RunConfig, luong_keras.PRESETS\n"
        "try:\n    luong_keras.LocalAttention\n"
        "except ImportError as error:\n    print(error)"
    )
    assert blocked in run_program(program, blocked)


def test_lazy_variable_delays_the_import_of_keras():
    assert run_program(
        "import luong_keras\n"
        "luong_keras.RunConfig\n"
        "print({'keras', 'tensorflow'} & set(sys.modules))\n"
        "luong_keras.LocalAttention\n"
        "print('keras' in sys.modules)",
        LUONG_KERAS_LAZY="1",
    ).split() == ["set()", "True"]


def test_names_that_need_tensorflow_tell_how_to_install_it():
    names = (
        *("Translator", "inference.TextTranslator", "data.TrainingBatches"),
        *("recipe.run_recipe", "serving.export_saved_model"),
        *("serving.check_saved_model", "tokenizers.WordTokenizer"),
    )
    # On JAX, because Keras itself needs TensorFlow on that backend.
    printed = run_program(
        "import operator\n"
        "import luong_keras\n"
        f"for name in {names}:\n"
        "    try:\n        operator.attrgetter(name)(luong_keras)\n"
        "    except ImportError as error:\n        print(error)",
        *("tensorflow", "tensorflow_text"),
        KERAS_BACKEND="jax",
    ).splitlines()
    assert len(printed) == len(names)
    for line in printed:
        assert line.endswith("`pip install 'luong-keras[train]'`.")


def names_like_modules():
    """Yield (folder, name) of public objects named like their modules."""
    root = pathlib.Path(luong_keras.__file__).parent
    for stub in sorted(root.glob("*/__init__.pyi")):
        text = stub.read_text(encoding="utf-8")
        for name in re.findall(r"^from \.(\w+) import \1\b", text, re.M):
            yield stub.parent.name, name


@pytest.mark.parametrize("folder, name", names_like_modules())
def test_modules_do_not_hide_objects_of_the_same_name(folder, name):
    package = importlib.import_module(f"luong_keras.{folder}")
    module = importlib.import_module(f"luong_keras.{folder}.{name}")
    vars(package).pop(name, None)
    setattr(package, name, module)  # As importing the module does.
    assert getattr(package, name) is getattr(module, name)
