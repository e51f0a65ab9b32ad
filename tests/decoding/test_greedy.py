import numpy as np
import pytest

from luong_keras.decoding.beam_search import beam_search, greedy_search
from tests.decoding.test_beam import check_sentence
from tests.decoding.toy_step import ToyStep, translations

MAX_LENGTHS, MIN_LENGTHS = [7, 4, 6, 2, 0, 5], [1, 3, 6, 0, 0, 1]
SENTENCES = [3, 5, 7, 11, 13, 17]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "size, end_logit",
    [
        (8, 1.0),
        pytest.param(8, -30.0, marks=pytest.mark.tensorflow),
        pytest.param(1000, 9.0, marks=pytest.mark.tensorflow),
    ],
)
def test_every_step_takes_the_most_probable_word(size, end_logit):
    step = ToyStep(size, end_logit=end_logit)
    found = translations(
        step, SENTENCES, MAX_LENGTHS, greedy_search, min_lengths=MIN_LENGTHS
    )
    for row, sentence in enumerate(SENTENCES):
        limits = MAX_LENGTHS[row], MIN_LENGTHS[row]
        check_sentence(found[row], step, sentence, *limits, 1, 1, 0.0)


def test_cut_translation_has_no_alignments_after_its_end():
    step = ToyStep(end_logit=-30.0)
    found = greedy_search(
        step, step.states(*SENTENCES), np.array(MAX_LENGTHS), 7
    )
    weights = np.array(found.alignments)[:, 0]
    assert np.array(found.lengths)[:, 0].tolist() == MAX_LENGTHS
    for row, length in zip(weights, MAX_LENGTHS, strict=True):
        assert row[:length].any(-1).all() and not row[length:].any()


@pytest.mark.slow_after_first
@pytest.mark.tensorflow
@pytest.mark.parametrize("min_lengths", [None, MIN_LENGTHS])
@pytest.mark.parametrize(
    "end_logit, penalty", [(2.0, 0.6), (2.0, 0.0), (6.0, 0.0), (-30.0, 0.6)]
)
def test_greedy_search_equals_a_beam_of_one(end_logit, penalty, min_lengths):
    step = ToyStep(end_logit=end_logit, seed=2)
    inputs = (step, SENTENCES, MAX_LENGTHS)
    options = {"min_lengths": min_lengths, "length_penalty": penalty}
    greedy = translations(*inputs, greedy_search, **options)
    beam = translations(*inputs, beam_search, beam_size=1, **options)
    for ours, theirs in zip(greedy, beam, strict=True):
        assert ours[0][1] == theirs[0][1]
        np.testing.assert_allclose(ours[0][0], theirs[0][0], rtol=1e-5)
        np.testing.assert_array_equal(ours[0][2], theirs[0][2])
