import pytest

from luong_keras.config_values import with_values
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.presets import PRESETS
from luong_keras.recipe.preparation import (
    fit_vocabulary_sizes,
    prepare_tokenizers,
)
from luong_keras.training.run_folder import RunFolder

PAIRS = [("the cat sat", "die Katze sa\u00df"), ("the cat", "die Katze")]


@pytest.mark.parametrize("joint", [True, False])
def test_a_small_text_has_as_many_subwords_as_it_has(tmp_path, joint, capsys):
    corpus = write_corpus(PAIRS, tmp_path / "corpus")
    config = with_values(PRESETS["small"], {"data.joint_vocabulary": joint})
    run = RunFolder(tmp_path / "run")
    source, target = prepare_tokenizers(corpus, config, run)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == (1 if joint else 2)
    assert f"{source.vocabulary_size} subwords instead of 8000" in lines[0]
    assert (source.fingerprint == target.fingerprint) == joint
    model = fit_vocabulary_sizes(config, source, target).model
    assert model.source_vocabulary_size == source.vocabulary_size < 100
    assert model.target_vocabulary_size == target.vocabulary_size
    # Every word of the text is there, and the next call finds the same.
    assert source.decode(source.encode(["the cat sat"])).numpy() == [
        b"the cat sat"
    ]
    again = prepare_tokenizers(corpus, config, run)
    assert [t.fingerprint for t in again] == [
        source.fingerprint,
        target.fingerprint,
    ]
