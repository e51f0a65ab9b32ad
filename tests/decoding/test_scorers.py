import itertools
import math
from functools import partial

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding.beam import Beam
from luong_keras.decoding.beam_search import beam_search, greedy_search
from luong_keras.decoding.sampling import Sampling
from luong_keras.decoding.scorers import (
    CoveragePenalty,
    LengthPenalty,
    NoRepeatedNgrams,
    Scorer,
)
from luong_keras.decoding.strategy import Greedy
from luong_keras.special_tokens import EOS_ID
from tests.decoding.every_translation import (
    ENOUGH,
    MAX_LENGTH,
    SIZE,
    WORDS,
    every_translation,
)
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    check_ranks,
    symbol_log_probabilities,
    translations,
)

tensorflow = pytest.mark.tensorflow
pytestmark = pytest.mark.slow_on_jax
SENTENCES = [3, 5, 7]


def check_all(step, *scorers, expected, sentences=SENTENCES):
    """Check the scores of all translations, found by an exhaustive beam.

    `expected(row, words, score)` maps the log-probability of a translation to
    the score, which is None if the scorers forbid it.
    """
    found = translations(
        step,
        sentences,
        MAX_LENGTH,
        strategy=Beam(ENOUGH, 2 * ENOUGH),
        scorers=scorers,
    )
    for row, sentence in enumerate(sentences):
        every = every_translation(step, sentence).items()
        scores = {words: expected(row, words, score) for words, score in every}
        allowed = {w: score for w, score in scores.items() if score is not None}
        assert allowed
        check_ranks(found[row], allowed)


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "form, divisor",
    [
        ("power", lambda length, x: length**x),
        ("google", lambda length, x: ((5 + length) / 6) ** x),
    ],
)
def test_length_penalties_divide_the_score(form, divisor):
    exponents = [0.0, 0.6, 1.3]
    penalty = LengthPenalty(np.array(exponents, "float32"), form)

    def expected(row, words, score):
        return score / divisor(len(words) + 1, exponents[row])

    check_all(ToyStep(SIZE, end_logit=1.0), penalty, expected=expected)


def test_unknown_form_is_refused():
    with pytest.raises(ValueError, match="form='wu'"):
        LengthPenalty(1.0, "wu")


def coverage_penalty(step, sentence, symbols, positions=slice(None)):
    """Return the sum of log min(attention, 1), in NumPy."""
    attention = step.alignment_rows(sentence, symbols).sum(axis=0)
    return np.log(np.minimum(attention, 1.0))[positions].sum()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("masked", [False, True])
def test_coverage_penalty_is_added_to_the_score(masked):
    step = ToyStep(SIZE, end_logit=1.0)
    strengths = [0.0, 0.7, 3.0]
    mask = np.array([[True] * 4, [True, True, True, False], [True] * 4])
    penalty = CoveragePenalty(
        np.array(strengths, "float32"), mask if masked else None
    )

    def expected(row, words, score):
        positions = mask[row] if masked else slice(None)
        coverage = coverage_penalty(
            step, SENTENCES[row], (*words, EOS_ID), positions
        )
        return score / (len(words) + 1) ** 0.5 + strengths[row] * coverage

    check_all(step, LengthPenalty(0.5), penalty, expected=expected)


@pytest.mark.parametrize("stack_size", [40, 3, None])
def test_cut_translations_are_ranked_with_their_coverage(stack_size):
    step, limit = ToyStep(SIZE, end_logit=-20.0), 2
    strategy, scorers = Beam(25, stack_size), [CoveragePenalty(3.0)]
    found = translations(
        step, SENTENCES, limit, strategy=strategy, scorers=scorers
    )
    for sentence, ranks in zip(SENTENCES, found, strict=True):
        scores = {}
        for words in itertools.product(WORDS, repeat=limit):
            total = sum(symbol_log_probabilities(step, sentence, words))
            coverage = coverage_penalty(step, sentence, words)
            scores[words] = total + 3.0 * coverage
        best = sorted(scores, key=scores.get, reverse=True)[:stack_size]
        check_ranks(ranks, {words: scores[words] for words in best})


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "strategy", [Sampling(4, seeds=[1, 2, 3]), Beam(4), Greedy()]
)
def test_attention_after_the_end_is_not_counted(strategy):
    # The limits cut the first sentence; some of its samples end before.
    step = ToyStep(SIZE, end_logit=1.0)
    limits, scorers = np.array([2, 9, 4]), [CoveragePenalty(0.7)]
    found = translations(
        step, SENTENCES, limits, strategy=strategy, scorers=scorers
    )
    for sentence, limit, ranks in zip(SENTENCES, limits, found, strict=True):
        for score, words, _ in ranks:
            symbols = (*words, EOS_ID)[:limit]
            expected = sum(symbol_log_probabilities(step, sentence, symbols))
            expected += 0.7 * coverage_penalty(step, sentence, symbols)
            assert score == pytest.approx(expected, rel=1e-5)


@tensorflow
def test_full_stack_waits_for_better_coverage():
    # A later translation with better coverage wins, although the stack was
    # full before.
    step = ToyStep(SIZE, end_logit=1.0, seed=8)
    for strength in (0.5, 2.0):
        (found,) = translations(
            step,
            [3],
            MAX_LENGTH,
            strategy=Beam(ENOUGH, 1),
            scorers=[CoveragePenalty(strength)],
        )
        scores = every_translation(step, 3)
        for words in scores:
            coverage = coverage_penalty(step, 3, (*words, EOS_ID))
            scores[words] += strength * coverage
        assert found[0][1] == max(scores, key=scores.get)


def repeats(words, size):
    grams = [words[i : i + size] for i in range(len(words) - size + 1)]
    return len(set(grams)) < len(grams)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("size", [1, 2])
def test_no_ngram_is_repeated(size):
    def expected(row, words, score):
        return None if repeats(words, size) else score

    step = ToyStep(SIZE, end_logit=-1.0, seed=1)
    check_all(step, NoRepeatedNgrams(size), expected=expected)


@pytest.mark.slow
@tensorflow
def test_repetitive_model_repeats_no_ngram():
    # Words 4 and 5 repeat for ever, as after training on too little text.
    step = ConstantStep([1e-9, 1e-9, 1e-9, 1e-3, 0.6, 0.3, 0.1])
    sizes = np.array([0, 1, 2, 3], "int32")
    for strategy in (Greedy(), Beam(3), Sampling(2, 0.1)):
        found = translations(
            step,
            range(4),
            12,
            strategy=strategy,
            min_lengths=5,
            scorers=[NoRepeatedNgrams(sizes)],
        )
        assert repeats(found[0][0][1], 3)
        for size in (1, 2, 3):
            assert all(not repeats(words, size) for _, words, _ in found[size])
            # Shorter n-grams may be repeated.
            assert size == 1 or any(
                repeats(words, size - 1) for _, words, _ in found[size]
            )


@pytest.mark.parametrize("number", [int, np.int64])
def test_ngram_size_must_be_positive(number):
    with pytest.raises(ValueError, match="size=0"):
        NoRepeatedNgrams(number(0))
    assert NoRepeatedNgrams(number(9)).size == 9


@pytest.mark.slow
def test_scorers_may_be_an_iterator():
    step = ToyStep(SIZE, end_logit=-1.0, seed=1)
    given = step.states(*SENTENCES), [5] * len(SENTENCES), 5
    scorers = [NoRepeatedNgrams(1)]
    for search_of in (greedy_search, partial(beam_search, beam_size=2)):
        from_iterator = search_of(step, *given, scorers=iter(scorers))
        from_list = search_of(step, *given, scorers=scorers)
        without = search_of(step, *given)
        np.testing.assert_array_equal(from_iterator.ids, from_list.ids)
        assert not np.array_equal(from_iterator.ids, without.ids)


class Bigrams(Scorer):
    """A user-defined scorer: a bonus for word pairs and even lengths.

    Its state is the last word of each hypothesis.
    """

    reranks = True

    def __init__(self, table):
        self.table = ops.convert_to_tensor(table)

    def start(self, batch, source_length, max_steps):
        return [ops.zeros((batch, 1), dtype="int32")]

    def add(self, states, words, position):
        return [words]

    def bonus(self, states, position, vocabulary_size):
        return ops.take(self.table, states[0], axis=0)

    def final(self, scores, lengths, states):
        last = ops.cast(states[0], scores.dtype)
        return scores + ops.cast(lengths % 2 == 0, scores.dtype) + 0.01 * last


def test_user_defined_scorer():
    table = np.random.default_rng(0).normal(size=(SIZE, SIZE))

    def expected(row, words, score):
        pairs = zip((0, *words), (*words, EOS_ID), strict=True)
        score += sum(table[pair] for pair in pairs)
        return score + 0.01 * words[-1] + ((len(words) + 1) % 2 == 0)

    scorer = Bigrams(table.astype("float32"))
    check_all(ToyStep(SIZE, end_logit=1.0), scorer, expected=expected)


@tensorflow
def test_bonus_counts_in_every_search():
    table = np.zeros((SIZE, SIZE), "float32")
    table[:, 4] = math.log(1000)
    step = ToyStep(SIZE, seed=3)
    for strategy in (Greedy(), Beam(1)):
        ((best, *_),) = translations(
            step,
            [3],
            3,
            strategy=strategy,
            scorers=[Bigrams(0 * table), Bigrams(table)],
            min_lengths=2,
        )
        assert best[1][:2] == (4, 4)


def test_search_waits_for_user_defined_scores():
    class Longest(Scorer):
        reranks = True

        def final(self, scores, lengths, states):
            return scores + 100.0 * ops.cast(lengths, scores.dtype)

    step = ConstantStep([0, 0, 0, 0.5, 0.3, 0.2])
    ((best,),) = translations(
        step, [1], 6, strategy=Beam(3, 1), scorers=[Longest()]
    )
    assert len(best[1]) == 5
