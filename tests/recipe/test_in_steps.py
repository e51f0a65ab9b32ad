import numpy as np
import pytest

from luong_keras.recipe.in_steps import in_steps
from tests.serving.tiny_translator import tiny_translator
from tests.terminals import terminal

LINES = ["a b", "a", "", "a b c d", "b", "c a b", "b a"]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(beam_size=2, batch_size=2)


def test_answers_are_those_of_all_lines_at_once(translator):
    """The same batches: not a digit of a score is another one."""
    found = in_steps(translator.nbest, LINES, size=2, what="")
    for one, other in zip(found, translator.nbest(LINES), strict=True):
        assert [(t.text, t.score) for t in one] == [
            (t.text, t.score) for t in other
        ]
    targets = LINES[::-1]
    found = in_steps(translator.score, LINES, targets, size=2, what="")
    other = translator.score(LINES, targets)
    for one, expected in zip(found, other, strict=True):
        np.testing.assert_array_equal(
            one.word_log_probabilities, expected.word_log_probabilities
        )


def test_every_batch_moves_the_bar(monkeypatch):
    sizes = []

    def answer(lines):
        sizes.append(len(lines))
        return [line.upper() for line in lines]

    with terminal(monkeypatch) as seen:
        found = in_steps(answer, LINES, size=3, what="shouting")
    assert found == [line.upper() for line in LINES]
    assert sizes == [3, 3, 1]
    assert "shouting" in seen.text
