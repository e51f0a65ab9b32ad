"""The maximum lengths of translations, and the steps of a search."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    Greedy,
    LengthPenalty,
    ModelStep,
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


@every_strategy
def test_one_maximum_length_is_that_of_all_sentences(strategy):
    step = ToyStep(6)
    states = step.states(*SENTENCES)

    def translations(*lengths, **options):
        found = search(step, states, strategy, *lengths, **options)
        return np.array(found.ids).tolist(), np.array(found.scores).tolist()

    expected = translations([4, 4], 4, min_lengths=[2, 2])
    for max_lengths in (4, np.int32(4), ops.convert_to_tensor(4)):
        assert translations(max_lengths, min_lengths=2) == expected
    assert translations([2, 5], min_lengths=0) == translations([2, 5], 5)


def test_one_maximum_length_without_states_is_that_of_all_constants():
    memory = np.ones((3, 2), "float32")
    step = ModelStep(
        lambda ids, memory: 9 * ops.one_hot(ids + 2, 9) * memory[:, :1, None],
        memory,
        reads_prefix=True,
    )
    found = search(step, [], Greedy(), 3)
    assert np.array(found.ids).tolist() == [[[4, 6, 8]]] * 3


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="shapes depend on values elsewhere"
)
def test_maximum_lengths_in_a_compiled_function_need_max_steps():
    import jax

    step = ToyStep(6)
    states = step.states(*SENTENCES)

    def lengths(max_lengths, **options):
        return search(step, states, Greedy(), max_lengths, **options).lengths

    with pytest.raises(ValueError, match="`max_steps` must be given .*=None"):
        jax.jit(lengths)(np.array(MAX_LENGTHS))
    found = jax.jit(lambda x: lengths(x, max_steps=9))(np.array(MAX_LENGTHS))
    assert np.array(found).tolist() == np.array(lengths(MAX_LENGTHS)).tolist()
