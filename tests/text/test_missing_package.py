import importlib.metadata
import sys

import pytest

from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from tests.programs import run_program

TENSORFLOW = importlib.metadata.version("tensorflow").rpartition(".")[0]
PROGRAM = """
try:
    import luong_keras.{}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize("module", ["text.word_tokenizer", "data.batching"])
def test_error_names_the_install_command(module):
    error = run_program(PROGRAM.format(module), "tensorflow")
    assert "pip install 'luong-keras[train]'" in error
    assert "tensorflow" in error


def test_files_and_corpora_do_not_need_tensorflow():
    modules = "text_files, corpus, corpus_writer, public_sets"
    run_program(f"from luong_keras.data import {modules}", "tensorflow")


@pytest.mark.slow
def test_word_tokenizers_do_not_need_tensorflow_text():
    program = (
        "import tempfile\n"
        "from luong_keras import Translator\n"
        "from luong_keras.tokenizers import WordTokenizer, load_tokenizer\n"
        "folder = tempfile.mkdtemp()\n"
        "WordTokenizer.from_words(['a', 'b']).save(folder, 'source')\n"
        "print(load_tokenizer(folder, 'source').encode(['b a']).to_list())\n"
        "from luong_keras.tokenizers import SentencePieceTokenizer\n"
        "try:\n"
        "    SentencePieceTokenizer.train(['ab abc'] * 9, 12)\n"
        "except ImportError as error:\n"
        "    print(error)"
    )
    ids, error = run_program(program, "tensorflow_text").splitlines()
    assert ids == "[[5, 4]]"
    assert f"pip install 'tensorflow-text=={TENSORFLOW}.*'" in error


def test_incompatible_tensorflow_text_is_explained(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "tensorflow_text", raising=False)
    error = "tf.errors.NotFoundError(None, None, 'undefined symbol: x')"
    content = f"import tensorflow as tf\nraise {error}\n"
    (tmp_path / "tensorflow_text.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ImportError, match=r"undefined symbol: x.*\.\*'") as e:
        SentencePieceTokenizer.train(["ab abc"] * 9, 12)
    assert e.value.name == "tensorflow-text"
