"""What a row keeps of its translations."""

from types import SimpleNamespace

import numpy as np
import pytest

from luong_keras.config import RunConfig
from luong_keras.inference.translation import ScoredTranslation, Translation
from reproduction.measures import bleu_counts, scores_of
from reproduction.scoring import _forced, _made, _without_unk
from luong_keras.training.run_folder import RunFolder


def test_a_perplexity_is_of_the_tokens_of_the_references():
    scored = [
        ScoredTranslation(-6.0, ["a", "b", "</s>"], None, [], None),
        ScoredTranslation(-1.0, ["</s>"], None, [], None),
    ]
    evaluation = SimpleNamespace(
        forced=lambda pairs: scored,
        translator=SimpleNamespace(
            translation_model=SimpleNamespace(has_attention=False)
        ),
    )
    datasets = SimpleNamespace(test=[("x", "y")] * 2, test_links=None)
    columns = _forced(evaluation, RunConfig(), datasets)
    (perplexity,) = scores_of("perplexity", columns, np.ones((1, 2)))
    # Of four tokens, whatever sentences they are in.
    assert perplexity == pytest.approx(np.exp(7 / 4))


def test_an_unknown_word_is_one_word():
    found = Translation(
        *("<unk> singt.", -1.0, ["<unk>", "singt", "."], ["Vezu", "sings"]),
        *(np.zeros((3, 2)), []),
    )
    scored = _without_unk(found)
    assert scored.text == "unk singt."
    assert scored.tokens == ["unk", "singt", "."]
    counts = bleu_counts([" ".join(scored.tokens)], ["Vezu singt ."])
    assert counts["length"] == [3] and counts["matches_1"] == [2]


def test_a_line_that_was_cut_is_no_time(tmp_path):
    run = RunFolder(tmp_path)
    assert _made([run])["training_seconds"] == 0
    run.sessions.write_text('{"seconds": 70}\n{"sec{"seconds": 5}\n')
    assert _made([run, run])["training_seconds"] == 140
