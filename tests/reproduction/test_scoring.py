"""What a row keeps of its translations."""

import numpy as np

from luong_keras.inference.translation import Translation
from luong_keras.reproduction.measures import bleu_counts
from luong_keras.reproduction.scoring import _made, _without_unk
from luong_keras.training.run_folder import RunFolder


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
