import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.decoding.forced import forced_decoding
from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import ToyStep, symbol_log_probabilities

SENTENCES = [3, 5, 7]
TARGETS = [[6, 0, 6, EOS_ID], [EOS_ID, 0, 0, 0], [5, EOS_ID, 0, 0]]
LENGTHS = [4, 1, 2]


def test_probabilities_and_alignments_match_each_step():
    step = ToyStep()
    found = forced_decoding(
        step, step.states(*SENTENCES), np.array(TARGETS), np.array(LENGTHS)
    )
    gains, alignments = map(ops.convert_to_numpy, found)
    assert gains.shape == (3, 4) and alignments.shape == (3, 4, 4)
    for row, sentence in enumerate(SENTENCES):
        length = LENGTHS[row]
        words = TARGETS[row][:length]
        expected = symbol_log_probabilities(step, sentence, words)
        np.testing.assert_allclose(gains[row, :length], expected, rtol=1e-5)
        rows = step.alignment_rows(sentence, words)
        np.testing.assert_allclose(alignments[row, :length], rows, atol=1e-6)
        assert not gains[row, length:].any()
        assert not alignments[row, length:].any()


@pytest.mark.parametrize(
    "targets, lengths, message",
    [
        ([[3, 99]], [2], "`targets` in the vocabulary.*Received: targets=99"),
        ([[3, -1]], [2], "`targets` in the vocabulary.*Received: targets=-1"),
        ([[3, 4]], [3], "`lengths`, an array of integers from 0 to 2"),
        ([3, 4], [2], r"`targets` \(B, T\).*shape \(2,\)"),
    ],
)
def test_wrong_targets_are_refused(targets, lengths, message):
    step = ToyStep()
    with pytest.raises(ValueError, match=message):
        forced_decoding(step, step.states(1), targets, lengths)


def test_keras_model_as_step_is_refused():
    with pytest.raises(ValueError, match="wrapped by `ModelStep"):
        forced_decoding(keras.layers.Dense(8), [], [[3]], [1])
