"""The vocabularies of a run whose text fits no size that was asked for."""

import pytest

from luong_keras.config import DataConfig, ModelConfig, RunConfig
from luong_keras.recipe.preparation import prepare_text
from luong_keras.recipe.vocabularies import prepare_tokenizers
from luong_keras.training.run_folder import RunFolder

pytestmark = pytest.mark.tensorflow
# The special tokens, and the mark in front of a word.
MORE = 5


@pytest.fixture
def tokenizers(tmp_path):
    def made(lines, size):
        text = "".join(f"{line}\t{line}\n" for line in lines)
        path = tmp_path / "text.tsv"
        path.write_text(text, encoding="utf-8")
        parts = dict.fromkeys(("train", "dev", "test"), str(path))
        config = RunConfig(
            ModelConfig(size, size),
            DataConfig("files", tokenizer="sentencepiece", **parts),
        )
        run = RunFolder(tmp_path / "run")
        _, corpus = prepare_text(config, run)
        return prepare_tokenizers(corpus, config, run)

    return made


def test_more_characters_than_subwords(tokenizers, capsys):
    han = [chr(0x4E00 + n) for n in range(300)]
    lines = ["".join(han[n : n + 10]) for n in range(0, 300, 10)]
    for tokenizer in tokenizers(lines, 100):
        assert tokenizer.vocabulary_size == 300 + MORE
        # All of its characters are known.
        decoded = tokenizer.decode(tokenizer.encode(lines)).numpy()
        assert [line.decode() for line in decoded] == lines
    printed = capsys.readouterr().out
    assert "the source text has many characters: 305 subwords" in printed


def test_fewer_characters_and_words_than_subwords(tokenizers, capsys):
    for tokenizer in tokenizers(["ab", "ba", "aab"] * 3, 100):
        assert 2 + MORE <= tokenizer.vocabulary_size < 20
    assert "the source text is small: " in capsys.readouterr().out
