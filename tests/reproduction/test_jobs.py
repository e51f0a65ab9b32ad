from types import SimpleNamespace

import numpy as np
import pytest

from luong_keras import RunConfig
from luong_keras.inference.translation import ScoredTranslation, Translation
from luong_keras.recipe import Evaluation
from reproduction.jobs import (
    _reference_statistics,
    _replace_unk,
    _translate_samples,
)
from reproduction.scores import bleu_counts, scores_of
from tests.serving.tiny_translator import tiny_translator


def test_perplexity_is_averaged_over_reference_tokens():
    scored = [
        ScoredTranslation(-6.0, ["a", "b", "</s>"], None, [], None),
        ScoredTranslation(-1.0, ["</s>"], None, [], None),
    ]
    data = RunConfig().data
    evaluation = SimpleNamespace(forced=lambda pairs: scored, data=data)
    datasets = SimpleNamespace(test=[("x", "y")] * 2, test_links=None)
    columns = _reference_statistics(evaluation, datasets)
    (perplexity,) = scores_of("perplexity", columns, np.ones((1, 2)))
    # Averaged over the four tokens, not over sentences.
    assert perplexity == pytest.approx(np.exp(7 / 4))


def test_unk_is_scored_as_one_word():
    found = Translation(
        *("<unk> singt.", -1.0, ["<unk>", "singt", "."], ["Vezu", "sings"]),
        *(np.zeros((3, 2)), []),
    )
    scored = _replace_unk(found)
    assert scored.text == "unk singt."
    assert scored.tokens == ["unk", "singt", "."]
    counts = bleu_counts([" ".join(scored.tokens)], ["Vezu singt ."])
    assert counts["length"] == [3] and counts["matches_1"] == [2]


def test_samples_have_attention_weights():
    data = RunConfig().data
    evaluation = Evaluation(tiny_translator(), data)
    (sample,) = _translate_samples(evaluation, [{"source": "a b a"}])
    assert sample["source_tokens"] == ["a", "b", "a"]
    assert len(sample["percent"]) == len(sample["tokens"]) > 0
    assert all(95 <= sum(row) <= 105 for row in sample["percent"])
