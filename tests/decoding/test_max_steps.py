"""Translations cut by fewer steps than their maximum lengths."""

import numpy as np
import pytest

from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    Greedy,
    LengthPenalty,
    Sampling,
    search,
)
from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import ToyStep, as_lists, symbol_log_probabilities

pytestmark = pytest.mark.slow_on_jax
SENTENCES, MAX_LENGTHS, MAX_STEPS = [3, 5], [9, 2], 3

every_strategy = pytest.mark.parametrize(
    "strategy",
    [
        Greedy(),
        Beam(2),
        Sampling(3),
        ConstrainedBeam(2, np.zeros((2, 1, 1)), np.zeros((2, 1))),
    ],
    ids=lambda strategy: type(strategy).__name__,
)


@pytest.mark.slow_after_first
@every_strategy
@pytest.mark.parametrize("end_logit", [1.0, -30.0])
def test_translations_are_cut_at_the_last_step(strategy, end_logit):
    step = ToyStep(6, end_logit=end_logit)
    found = search(
        step,
        step.states(*SENTENCES),
        strategy,
        MAX_LENGTHS,
        np.int64(MAX_STEPS),
        scorers=[LengthPenalty(1.0)],
    )
    assert found.ids.shape[-1] == found.alignments.shape[-2] == MAX_STEPS
    for sentence, max_length, ranks in zip(
        SENTENCES, MAX_LENGTHS, as_lists(found), strict=True
    ):
        assert ranks
        max_length = min(max_length, MAX_STEPS)
        for score, words, _ in ranks:
            # Cut translations have no `</s>`, in neither score nor length.
            symbols = (*words, EOS_ID)[:max_length]
            total = sum(symbol_log_probabilities(step, sentence, symbols))
            assert score == pytest.approx(total / len(symbols), rel=1e-5)
            assert end_logit > 0 or len(words) == max_length
