"""Finished sentences leave the batch, and nobody notices in the result."""

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras import decoding
from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    CoveragePenalty,
    DecodingStrategy,
    ForbiddenPhrases,
    Greedy,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Sampling,
    Scorer,
    ensemble_step,
)
from luong_keras.decoding.search import search
from luong_keras.ops.batch_compaction import PerSentence
from tests.decoding.toy_step import ToyStep
from tests.layer_checks import few_at_first

B, V, S = 9, 11, 4
# The rounding of a row depends on how many there are.
ON_JAX = keras.backend.backend() == "jax"
DTYPE, TOLERANCE = ("float32", 1e-6) if ON_JAX else ("float64", 1e-13)
MAX_LENGTH = np.array([2, 14, 3, 0, 14, 5, 9, 1, 4])

shrinks = pytest.mark.skipif(
    ON_JAX,
    reason="shapes on JAX cannot depend on values",
)


class Step(PerSentence):
    """A toy step with a memory, which notes how many sentences it gets."""

    per_sentence = ("memory",)

    def __init__(self):
        self.toy = ToyStep(V, S, end_logit=1.5, seed=3)
        memory = np.random.default_rng(0).normal(size=(B, 1, V))
        self.memory = ops.convert_to_tensor(memory, DTYPE)
        self.sentences = []

    def __call__(self, ids, states, position):
        self.sentences.append(int(ops.shape(ids)[0]))
        logits, states, weights = self.toy(ids, states, position)
        return ops.cast(logits, DTYPE) + self.memory, states, weights


def each(*values):
    """One value for each sentence, these in turn."""
    return np.resize(values, B)


PHRASES = np.random.default_rng(1).integers(4, V, (B, 2, 2))
LENGTHS = np.resize([[1, 0], [2, 1], [0, 0]], (B, 2))

STRATEGIES = {
    "greedy": lambda: Greedy(),
    "beam": lambda: Beam(4),
    "beams": lambda: Beam(
        4, 3, sizes=each(1, 4, 2), stack_sizes=each(3, 1, 2), max_size=4
    ),
    "some of each": lambda: Beam(4, num_return_sequences=each(1, 3, 2)),
    "constrained": lambda: ConstrainedBeam(
        4, PHRASES, np.where(MAX_LENGTH[:, None] > 4, LENGTHS, 0)
    ),
    "sampling": lambda: Sampling(
        3,
        temperature=each(1.0, 0.5),
        top_k=each(0, 5),
        top_p=each(1.0, 0.8, 0.9),
        seeds=np.arange(B),
        counts=each(3, 1, 2),
    ),
}

SCORERS = {
    "none": list,
    "length": lambda: [LengthPenalty(each(0.0, 1.0, 0.6))],
    "coverage": lambda: [
        CoveragePenalty(each(0.2, 0.0), np.arange(S) < each(4, 3, 2)[:, None])
    ],
    "repetition": lambda: [NoRepeatedNgrams(each(0, 1, 2))],
    "phrases": lambda: [ForbiddenPhrases(PHRASES[::-1], LENGTHS)],
    "phrases for all": lambda: [ForbiddenPhrases(PHRASES[:1], LENGTHS[1:2])],
    "prefix": lambda: [
        Prefix(
            PHRASES[:, 0],
            np.where(MAX_LENGTH > 3, each(0, 1, 2), 0),
        )
    ],
}


def found(step, strategy, scorers, **limits):
    limits = {
        "max_lengths": MAX_LENGTH,
        "max_steps": int(MAX_LENGTH.max()),
        "min_lengths": MAX_LENGTH // 2,
    } | limits
    states = ToyStep().states(*range(B))
    hypotheses = search(step, states, strategy, scorers=scorers, **limits)
    return [ops.convert_to_numpy(part) for part in hypotheses]


@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "strategy, scorers",
    [
        *few_at_first(
            [(strategy, "none") for strategy in STRATEGIES],
            [(name, "none") for name in ("greedy", "beams", "some of each")],
        ),
        *(("beam", scorers) for scorers in list(SCORERS)[1:]),
        ("sampling", "repetition"),
        ("constrained", "length"),
    ],
)
def test_the_result_is_that_of_the_whole_batch(strategy, scorers):
    step = Step()
    together = found(
        lambda *arguments: step(*arguments),
        STRATEGIES[strategy](),
        SCORERS[scorers](),
    )
    assert set(step.sentences) == {B}
    step.sentences = []
    apart = found(step, STRATEGIES[strategy](), SCORERS[scorers]())
    for one, other in zip(apart, together, strict=True):
        np.testing.assert_allclose(one, other, rtol=TOLERANCE)


@shrinks
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_step_gets_the_sentences_that_go_on(strategy):
    step = Step()
    found(step, STRATEGIES[strategy](), [])
    # All begin; without room for a word sentence 3 is never one of them, and
    # two have room for 14.
    assert step.sentences[0] == B
    assert step.sentences == sorted(step.sentences, reverse=True)
    assert 1 <= step.sentences[-1] <= 2


@shrinks
def test_few_that_have_finished_stay_until_more_have():
    step = Step()
    # The memory sets nothing: all run to their limits.
    limits = np.array([3, 4, 5, 6, 7, 8, 9, 10, 11])
    found(
        step,
        Beam(2),
        [],
        max_lengths=limits,
        max_steps=11,
        min_lengths=limits,
    )
    # Those that have finished leave when less than three of four continue: 7 of
    # 9 are enough, 6 of 9 are not; 5 of 6 are, 4 of 6 are not; 3 of 4 are.
    assert step.sentences == [9] * 5 + [6] * 2 + [4] * 2 + [2, 1]


@pytest.mark.parametrize(
    "name", [name for name in decoding.__all__ if name[0].isupper()]
)
def test_every_choice_and_scorer_says_what_belongs_to_a_sentence(name):
    kind = getattr(decoding, name)
    if not issubclass(kind, DecodingStrategy | Scorer) or kind in (
        DecodingStrategy,
        Scorer,
    ):
        pytest.skip("neither a strategy nor a scorer")
    assert isinstance(vars(kind)["per_sentence"], tuple)


class Mine(Beam):
    """Has columns of its own, maybe, and does not say so."""


class Sized(Beam):
    """Has a column beside those of a beam."""

    per_sentence = ("wanted",)

    def __init__(self, wanted, **options):
        super().__init__(**options)
        self.wanted = wanted


def test_a_subclass_names_only_the_columns_that_it_adds():
    beams = Sized(np.array([7, 8, 9]), size=3, sizes=np.array([1, 2, 3]))
    taken = beams.take([0, 2])
    assert ops.convert_to_numpy(taken.wanted).tolist() == [7, 9]
    assert ops.convert_to_numpy(taken.sizes).tolist() == [1, 3]


class MyScorer(Scorer):
    """The same."""


class MySilentScorer(Scorer):
    """Has no columns, and says so."""

    per_sentence = ()


@shrinks
@pytest.mark.parametrize(
    "strategy, scorers, leave",
    [
        (Beam(2), [], True),
        (Mine(2), [], False),
        (Beam(2), [MyScorer()], False),
        (Beam(2), [MySilentScorer()], True),
    ],
)
def test_what_says_nothing_keeps_the_batch(strategy, scorers, leave):
    step = Step()
    found(step, strategy, scorers)
    assert (len(set(step.sentences)) > 1) == leave


@shrinks
def test_the_models_of_an_ensemble_shrink_together():
    steps = [Step(), Step()]
    ensemble = ensemble_step(steps, [1, 1])
    states = ToyStep().states(*range(B)) * 2
    search(ensemble, states, Beam(2), MAX_LENGTH, int(MAX_LENGTH.max()))
    assert len(set(steps[0].sentences)) > 1
    assert steps[0].sentences == steps[1].sentences
    # One of them that does not know its rows keeps them all.
    steps = [Step(), lambda *arguments: steps[0](*arguments)]
    search(ensemble_step(steps, [1, 1]), states, Beam(2), MAX_LENGTH, 14)
    assert set(steps[0].sentences) == {B}
