"""Finished sentences that leave the batch without changing the result."""

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
from tests.layer_checks import assert_all_close, few_at_first

B, V, S = 9, 11, 4
# The rounding of a row depends on the number of rows.
ON_JAX = keras.backend.backend() == "jax"
DTYPE, TOLERANCE = ("float32", 1e-6) if ON_JAX else ("float64", 1e-13)
MAX_LENGTH = np.array([2, 14, 3, 0, 14, 5, 9, 1, 4])

shrinks = pytest.mark.skipif(
    ON_JAX, reason="shapes on JAX cannot depend on values"
)


class Step(PerSentence):
    """A toy step with a memory, which records its numbers of sentences."""

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
    """Return one value per sentence, cycling through `values`."""
    return np.resize(values, B)


PHRASES = np.random.default_rng(1).integers(4, V, (B, 2, 2))
LENGTHS = np.resize([[1, 0], [2, 1], [0, 0]], (B, 2))

STRATEGIES = {
    "greedy": lambda: Greedy(),
    "beam": lambda: Beam(4),
    "sizes per sentence": lambda: Beam(
        4, 3, sizes=each(1, 4, 2), stack_sizes=each(3, 1, 2), max_size=4
    ),
    "return sequences": lambda: Beam(4, num_return_sequences=each(1, 3, 2)),
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
        Prefix(PHRASES[:, 0], np.where(MAX_LENGTH > 3, each(0, 1, 2), 0))
    ],
}


def run_search(
    step, strategy, scorers, longest=MAX_LENGTH, shortest=MAX_LENGTH // 2
):
    return search(
        step,
        ToyStep().states(*range(B)),
        strategy,
        longest,
        min_lengths=shortest,
        scorers=scorers,
    )


@pytest.mark.slow_after_first
@pytest.mark.slow_on_jax
@pytest.mark.parametrize(
    "strategy, scorers",
    [
        *few_at_first(
            [(strategy, "none") for strategy in STRATEGIES],
            [
                (name, "none")
                for name in ("greedy", "sizes per sentence", "return sequences")
            ],
        ),
        *(("beam", scorers) for scorers in list(SCORERS)[1:]),
        ("sampling", "repetition"),
        ("constrained", "length"),
    ],
)
def test_results_equal_those_of_the_whole_batch(strategy, scorers):
    step = Step()
    parts = STRATEGIES[strategy](), SCORERS[scorers]()
    whole = run_search(lambda *arguments: step(*arguments), *parts)
    assert set(step.sentences) == {B}
    step.sentences = []
    compacted = run_search(step, *parts)
    assert_all_close(compacted, whole, rtol=TOLERANCE)
    # The first step reads all sentences; only two have room for 14 words.
    assert step.sentences[0] == B
    assert step.sentences == sorted(step.sentences, reverse=True)
    assert ON_JAX or 1 <= step.sentences[-1] <= 2


@shrinks
def test_batch_shrinks_when_fewer_than_three_quarters_continue():
    step = Step()
    # Minimum and maximum lengths are equal: all sentences reach their limits.
    limits = np.array([3, 4, 5, 6, 7, 8, 9, 10, 11])
    run_search(step, Beam(2), [], limits, limits)
    # Finished sentences leave when fewer than 3/4 continue: with 7 of 9 they
    # stay, with 6 of 9 they leave; 5 of 6 stay, 4 of 6 leave; 3 of 4 stay.
    assert step.sentences == [9] * 5 + [6] * 2 + [4] * 2 + [2, 1]


@pytest.mark.parametrize(
    "name", [name for name in decoding.__all__ if name[0].isupper()]
)
def test_strategies_and_scorers_declare_their_columns(name):
    kind = getattr(decoding, name)
    if not issubclass(kind, DecodingStrategy | Scorer) or kind in (
        DecodingStrategy,
        decoding.IndependentSampler,
        Scorer,
    ):
        pytest.skip("neither a strategy nor a scorer")
    assert isinstance(vars(kind)["per_sentence"], tuple)


class UndeclaredBeam(Beam):
    """A beam that does not declare whether it adds columns."""


class BeamWithColumn(Beam):
    """A beam with an additional column."""

    per_sentence = ("priorities",)

    def __init__(self, priorities, **options):
        super().__init__(**options)
        self.priorities = priorities


def test_subclass_declares_only_the_columns_that_it_adds():
    beams = BeamWithColumn(np.array([7, 8, 9]), size=3, sizes=[1, 2, 3])
    taken = beams.take([0, 2])
    assert ops.convert_to_numpy(taken.priorities).tolist() == [7, 9]
    assert ops.convert_to_numpy(taken.sizes).tolist() == [1, 3]


class UndeclaredScorer(Scorer):
    """A scorer that does not declare whether it has columns."""


class ScorerWithoutColumns(Scorer):
    """A scorer that declares that it has no columns."""

    per_sentence = ()


@pytest.mark.slow_after_first
@shrinks
@pytest.mark.parametrize(
    "strategy, scorers, leave",
    [
        (Beam(2), [], True),
        (UndeclaredBeam(2), [], False),
        (Beam(2), [UndeclaredScorer()], False),
        (Beam(2), [ScorerWithoutColumns()], True),
    ],
)
def test_undeclared_columns_keep_the_whole_batch(strategy, scorers, leave):
    step = Step()
    run_search(step, strategy, scorers)
    assert (len(set(step.sentences)) > 1) == leave


@pytest.mark.slow
@shrinks
def test_models_of_an_ensemble_shrink_together():
    steps = [Step(), Step()]
    ensemble = ensemble_step(steps, [1, 1])
    states = ToyStep().states(*range(B)) * 2
    search(ensemble, states, Beam(2), MAX_LENGTH)
    assert len(set(steps[0].sentences)) > 1
    assert steps[0].sentences == steps[1].sentences
    # A model that declares no columns keeps the whole batch.
    steps = [Step(), lambda *arguments: steps[0](*arguments)]
    search(ensemble_step(steps, [1, 1]), states, Beam(2), MAX_LENGTH)
    assert set(steps[0].sentences) == {B}
