"""The names of the package, those of version 0.1.0 included."""

import importlib
import inspect
import re
import subprocess
import sys

import keras
import pytest

import luong_keras
from luong_keras import moved

# What version 0.1.0 exported, in full.
VERSION_0_1_0 = [
    "AttentionConfig",
    "BahdanauAttention",
    "BahdanauGRU",
    "BahdanauGRUCell",
    "BahdanauLSTM",
    "BahdanauLSTMCell",
    "BestWeights",
    "Bridge",
    "Corpus",
    "DataConfig",
    "Datasets",
    "DecodingConfig",
    "Encoder",
    "Evaluation",
    "EvaluationBatches",
    "InputFeedingGRU",
    "InputFeedingGRUCell",
    "InputFeedingLSTM",
    "InputFeedingLSTMCell",
    "JsonLinesLog",
    "LearningRateHalving",
    "LocalAttention",
    "LuongAttention",
    "MaskedSparseCategoricalCrossentropy",
    "MemoryRNN",
    "ModelConfig",
    "OutputProjection",
    "PRESETS",
    "ReduceOnPlateau",
    "RunConfig",
    "RunFolder",
    "SavedModelError",
    "SavedModelSession",
    "ScoredTranslation",
    "SearchOptions",
    "SentencePieceTokenizer",
    "StopOnSignal",
    "TrainingBatches",
    "TrainingConfig",
    "Translation",
    "TranslationClient",
    "TranslationLoss",
    "TranslationModel",
    "TranslationServerError",
    "TranslationValidation",
    "Translator",
    "WordAccuracy",
    "WordCount",
    "WordLosses",
    "WordPerplexity",
    "WordTokenizer",
    "WordsPerSecond",
    "aligned_word_pairs",
    "alignment_error_rate",
    "authors_weights",
    "beam_search",
    "best_links",
    "bleu_by_length",
    "check_saved_model",
    "config_from_dict",
    "config_to_dict",
    "corpus_bleu",
    "corpus_key",
    "ensemble_step",
    "export_saved_model",
    "fit",
    "forced_decoding",
    "greedy_search",
    "load_addons_attention",
    "load_addons_wrapper",
    "load_authors_weights",
    "load_datasets",
    "load_tokenizer",
    "make_optimizer",
    "multi_bleu",
    "open_or_write_corpus",
    "override",
    "parse_alignments",
    "phrasebook",
    "plot_alignment",
    "plot_length_analysis",
    "preprocessor",
    "read_dictionary",
    "replace_unknown_words",
    "run_in_server_runtime",
    "translate_word_for_word",
    "word_for_word",
    "write_dictionary",
    "write_results",
]
RENAMED = {
    "WordAccuracy": "TokenAccuracy",
    "WordCount": "TokenCount",
    "WordPerplexity": "TokenPerplexity",
    "WordsPerSecond": "TokensPerSecond",
}
NAMESPACES = [
    *("alignment", "callbacks", "client", "data", "decoding", "evaluation"),
    *("inference", "interop", "layers", "losses", "metrics", "models"),
    *("optimizers", "recipe", "serving", "tokenizers", "training"),
]
TENSORFLOW = {"data", "inference", "recipe", "serving", "tokenizers"}
BLOCKED = """
import sys
for name in {blocked}:
    sys.modules[name] = None
{program}
"""


def run(program, *blocked):
    """Standard output of a process that cannot import what is blocked."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            BLOCKED.format(blocked=blocked, program=program),
        ],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", VERSION_0_1_0)
def test_a_name_of_0_1_0_is_there_or_tells_where(name):
    if name in luong_keras.__all__:
        assert name not in moved.NAMES
        return
    with pytest.raises(ImportError) as caught:
        exec(f"from luong_keras import {name}")
    space, found = re.search(
        r"is now `luong_keras\.(\w+)\.(\w+)`", str(caught.value)
    ).groups()
    assert found == RENAMED.get(name, name) and space in NAMESPACES
    module = importlib.import_module(f"luong_keras.{space}")
    assert found in module.__all__


def test_only_names_of_0_1_0_have_moved():
    assert set(moved.NAMES) <= set(VERSION_0_1_0)


@pytest.mark.parametrize("old", moved.MODULES)
def test_a_module_of_0_1_0_tells_where_it_is(old):
    new = f"luong_keras.{moved.MODULES[old]}"
    with pytest.raises(ModuleNotFoundError, match=rf"`{re.escape(new)}`"):
        importlib.import_module(f"luong_keras.{old}")
    assert importlib.util.find_spec(new)


def test_a_moved_module_as_a_name():
    with pytest.raises(ImportError, match=r"luong_keras\.ops\.masking"):
        exec("from luong_keras import masking")


def test_other_names_fail_as_ever():
    with pytest.raises(ImportError, match="cannot import name 'LocalAtention'"):
        exec("from luong_keras import LocalAtention")
    with pytest.raises(ModuleNotFoundError, match="luong_keras.attention"):
        importlib.import_module("luong_keras.attention")


@pytest.mark.parametrize(
    "space",
    [
        pytest.param(name, marks=pytest.mark.tensorflow)
        if name in TENSORFLOW
        else name
        for name in NAMESPACES
    ],
)
def test_the_names_of_a_namespace_load(space):
    module = getattr(luong_keras, space)
    assert module.__name__ == f"luong_keras.{space}"
    assert module.__doc__ and module.__all__
    for name in module.__all__:
        value = getattr(module, name)
        assert value.__doc__, name
        # A function keeps its name where its module has the same one.
        assert name == "phrasebook" or callable(value), name


def test_the_top_has_the_layers_and_few_names_more():
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
    # One replaces a layer of Keras, one is for training, two are bases.
    assert set(layers.__all__) - at_the_top == {
        *("Embedding", "InputFeedingCell", "RepeatedRows", "Score")
    }
    for name in at_the_top:
        assert getattr(luong_keras, name) is getattr(layers, name)


def test_the_package_and_its_client_import_no_backend():
    program = (
        "import luong_keras, luong_keras.client\n"
        "luong_keras.TranslationClient, luong_keras.client.TranslationClient\n"
        "luong_keras.RunConfig, luong_keras.PRESETS\n"
        "print(*{'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules))"
    )
    assert run(program).split() == []
    assert run(program, "keras", "tensorflow", "jax", "torch")


def test_what_needs_tensorflow_names_the_line_that_installs_it():
    names = (
        *("Translator", "inference.SearchOptions", "data.TrainingBatches"),
        *("recipe.run_recipe", "serving.export_saved_model"),
        *("serving.check_saved_model", "serving.SavedModelError"),
        "tokenizers.WordTokenizer",
    )
    # On JAX, so that it is not Keras that misses it.
    printed = run(
        "import operator, os\n"
        "os.environ['KERAS_BACKEND'] = 'jax'\n"
        "import luong_keras\n"
        f"for name in {names}:\n"
        "    try:\n        operator.attrgetter(name)(luong_keras)\n"
        "    except ImportError as error:\n        print(error)",
        *("tensorflow", "tensorflow_text"),
    ).splitlines()
    assert len(printed) == len(names)
    for line in printed:
        assert line.endswith("`pip install luong-keras[train]`.")
