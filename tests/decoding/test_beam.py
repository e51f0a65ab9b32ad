import math
from functools import partial

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding.beam_search import beam_search
from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    check_ranks,
    symbol_log_probabilities,
    translations,
)

tensorflow = pytest.mark.tensorflow


def reference_search(
    log_probabilities,
    max_length,
    min_length,
    beam_size,
    stack_size,
    penalty,
    keeps="best",
):
    """Search one sentence in plain Python; return {words: score}."""
    capacity = stack_size if keeps == "first" else math.inf
    live, finished = [((), 0.0)], []
    for t in range(max_length):
        candidates = []
        for words, score in live:
            gains = log_probabilities(words).copy()
            if t == 0:
                gains[EOS_ID] = -math.inf
            best = np.argsort(-gains)[: max(beam_size, 2)]
            candidates += [
                (score + gains[word], (*words, int(word)))
                for word in best
                if gains[word] > -math.inf
            ]
        candidates.sort(key=lambda candidate: -candidate[0])
        grown = []
        for score, words in candidates:
            if len(grown) == beam_size:
                break
            if words[-1] != EOS_ID:
                grown.append((words, score))
            elif t >= min_length and len(finished) < capacity:
                finished.append((score / (t + 1) ** penalty, words[:-1]))
        finished = sorted(finished, key=lambda f: -f[0])[:stack_size]
        live = grown
        bound = live[0][1] / max_length**penalty
        full = len(finished) == stack_size
        if full and (keeps == "first" or finished[-1][0] >= bound):
            break
    if not finished:
        length = max(max_length, 1)
        finished = [(score / length**penalty, words) for words, score in live]
    return {words: score for score, words in finished[:stack_size]}


def check_sentence(found, step, sentence, *settings, prefix=()):
    """Compare one sentence with the reference, which is returned."""

    def log_probabilities(words):
        gains = step.log_probabilities(sentence, words)
        if len(words) < len(prefix):
            gains[np.arange(len(gains)) != prefix[len(words)]] = -math.inf
        return gains

    expected = reference_search(log_probabilities, *settings)
    check_ranks(found, expected, rtol=1e-5)
    for _, words, alignments in found:
        rows = step.alignment_rows(sentence, words)
        np.testing.assert_allclose(alignments, rows, atol=1e-6)
    return expected


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "size, beam_size, stack_size, penalty, end_logit",
    [
        (8, 3, None, 0.0, 1.0),
        pytest.param(8, 1, None, 0.0, 1.0, marks=tensorflow),
        pytest.param(8, 1, 3, 0.0, 2.0, marks=tensorflow),
        pytest.param(8, 2, 5, 0.0, 1.0, marks=tensorflow),
        pytest.param(8, 5, 2, 0.0, 0.0, marks=tensorflow),
        pytest.param(8, 4, 4, 1.0, 1.0, marks=tensorflow),
        pytest.param(8, 4, 4, 1.0, -3.0, marks=tensorflow),
        pytest.param(8, 3, 6, 0.6, 1.0, marks=tensorflow),
        pytest.param(8, 12, 3, 1.0, -1.0, marks=tensorflow),  # K > V
        pytest.param(8, 2, 4, 0.0, -30.0, marks=tensorflow),  # nothing ends
        pytest.param(8, 4, 2, 0.7, -30.0, marks=tensorflow),
        pytest.param(1500, 4, None, 0.0, 9.0, marks=tensorflow),
    ],
)
def test_beam_search_matches_the_reference(
    size, beam_size, stack_size, penalty, end_logit
):
    step = ToyStep(size, end_logit=end_logit, seed=beam_size)
    sentences = [3, 5, 7, 11, 13, 17]
    max_lengths = [7, 4, 6, 1, 3, 0]
    min_lengths = [1, 3, 6, 1, 0, 0]
    found = translations(
        step,
        sentences,
        np.array(max_lengths),
        beam_search,
        min_lengths=np.array(min_lengths),
        beam_size=beam_size,
        stack_size=stack_size,
        length_penalty=penalty,
    )
    for row, sentence in enumerate(sentences):
        limits = max_lengths[row], min_lengths[row]
        settings = beam_size, stack_size or beam_size, penalty
        check_sentence(found[row], step, sentence, *limits, *settings)


@tensorflow
def test_search_of_a_large_vocabulary_and_of_no_words():
    step = ToyStep(1500, end_logit=9.0)
    found = translations(
        step,
        [3, 5],
        [4, 0],
        beam_search,
        min_lengths=[1, 0],
        beam_size=4,
        length_penalty=1.0,
    )
    check_sentence(found[0], step, 3, 4, 1, 4, 4, 1.0)
    check_sentence(found[1], step, 5, 0, 0, 4, 4, 1.0)


class PairStep(ConstantStep):
    """Probabilities of a word given its position and the word before it."""

    calls = 0  # TensorFlow runs a loop outside a graph step by step

    def __call__(self, ids, states, position):
        self.calls += 1
        table = ops.take(ops.convert_to_tensor(self.logits), position, axis=0)
        zeros = ops.zeros_like(ops.cast(ids, "float32"))[..., None]
        return ops.take(table, ids, axis=0), states, zeros


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize(
    "stack_size, penalty, best, first, best_steps, first_steps",
    [
        # One hypothesis finishes in step 2 and two better ones in step 3,
        # of which the stack has room for one.
        (2, 0, {(4, 4): 0.27, (5, 4): 0.162}, {(4, 4): 0.27, (6,): 0.1}, 3, 3),
        # A stack with room for all three: the two rules agree, but 444 (0.135)
        # could still replace the worst.
        (3, 0, *[{(4, 4): 0.27, (5, 4): 0.162, (6,): 0.1}] * 2, 4, 3),
        # The full stack ends the search, though a better one follows.
        (1, 1, {(4, 4): 0.27 ** (1 / 3)}, {(6,): 0.1**0.5}, 3, 2),
        (1, 0, {(4, 4): 0.27}, {(6,): 0.1}, 3, 2),
    ],
)
def test_stack_keeps_the_best_or_the_first(
    stack_size, penalty, best, first, best_steps, first_steps
):
    # Words: 3 is `</s>`, then 4, 5, 6. Live after two words: 44 (0.45),
    # 54 (0.27), 64 (0.06); 6 </s> (0.1) ranks above the third. After three:
    # 444 (0.135), 544 (0.081), 445 (0.045); above them 44 </s>, 54 </s>.
    size = 7
    table = np.zeros((4, size, size))
    table[0, :, 4:] = [0.5, 0.3, 0.2]
    table[1, :6, 4:] = [0.9, 0.05, 0.05]
    table[1, 6, 3:6] = [0.5, 0.3, 0.2]
    table[2:, :, 3:6] = [0.6, 0.3, 0.1]
    for keeps, expected, steps in (
        ("best", best, best_steps),
        ("first", first, first_steps),
    ):
        step = PairStep(table)
        (found,) = translations(
            step,
            [1],
            4,
            beam_search,
            beam_size=3,
            stack_size=stack_size,
            length_penalty=penalty,
            stack_keeps=keeps,
        )
        assert step.calls == steps
        scores = {words: math.log(p) for words, p in expected.items()}
        check_ranks(found, scores, rtol=1e-5)


@pytest.mark.slow_after_first
@tensorflow
@pytest.mark.parametrize(
    "beam_size, stack_size, penalty, given_sizes",
    [
        (8, 3, 0.0, None),
        (4, 5, 1.0, None),
        (6, 3, 0.6, None),
        (6, 5, 0.6, [3, 2, 4]),  # one per sentence
    ],
)
def test_first_finished_hypotheses_are_kept(
    beam_size, stack_size, penalty, given_sizes
):
    step = ToyStep(end_logit=1.0, seed=beam_size)
    sentences = range(1, 31)
    sizes = np.resize(given_sizes or stack_size, 30)
    found = translations(
        step,
        sentences,
        7,
        beam_search,
        beam_size=beam_size,
        stack_size=stack_size,
        length_penalty=penalty,
        stack_sizes=sizes if given_sizes else None,
        stack_keeps="first",
    )
    num_different = 0
    for row, sentence in enumerate(sentences):
        settings = (7, 1, beam_size, sizes[row], penalty)
        first = check_sentence(found[row], step, sentence, *settings, "first")
        num_different += first != reference_search(
            partial(step.log_probabilities, sentence), *settings
        )
    assert num_different >= 3


def test_unknown_stack_rule_is_refused():
    step = ConstantStep([0, 0, 0, 0.2, 0.8])
    with pytest.raises(ValueError, match="Received: stack_keeps='last'"):
        beam_search(step, [], [3], 3, stack_keeps="last")


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "end_logit, keeps", [(1.0, "best"), (-30.0, "best"), (1.0, "first")]
)
def test_search_settings_per_sentence(end_logit, keeps):
    step = ToyStep(end_logit=end_logit, seed=5)
    sentences = [3, 5, 7, 11, 13, 3]
    max_lengths = [7, 4, 6, 1, 5, 7]
    beams, stacks = [1, 2, 4, 3, 3, 4], [1, 4, 2, 3, 3, 4]
    penalties = [0.0, 1.0, 0.5, 0.0, 1.0, 0.0]
    found = translations(
        step,
        sentences,
        max_lengths,
        beam_search,
        beam_size=4,
        length_penalty=np.array(penalties, "float32"),
        beam_sizes=np.array(beams),
        stack_sizes=np.array(stacks),
        stack_keeps=keeps,
    )
    for row, sentence in enumerate(sentences):
        check_sentence(
            found[row],
            step,
            sentence,
            max_lengths[row],
            1,
            beams[row],
            stacks[row],
            penalties[row],
            keeps,
        )


@pytest.mark.slow_on_jax
def test_prefix_is_forced_and_scored():
    step = ToyStep(end_logit=-1.0, seed=4)
    prefix = np.array([[6, 4, 1], [7, 0, 0]])
    max_lengths, lengths = [7, 6], np.array([3, 1])
    found = translations(
        step,
        [5, 9],
        max_lengths,
        beam_search,
        beam_size=3,
        prefix=prefix,
        prefix_lengths=lengths,
    )
    for row, sentence in enumerate((5, 9)):
        settings = (max_lengths[row], 1, 3, 3, 0.0)
        words = prefix[row, : lengths[row]]
        check_sentence(found[row], step, sentence, *settings, prefix=words)


@tensorflow
def test_prefix_with_end_symbol_forces_the_translation():
    step = ToyStep(seed=4)
    words = (6, 4, 4, 1)
    prefix = [[*words, EOS_ID]]
    (found,) = translations(
        step, [5], 5, beam_search, beam_size=1, prefix=prefix
    )
    score = sum(symbol_log_probabilities(step, 5, prefix[0]))
    check_ranks(found, {words: score}, rtol=1e-5)
    alignments = found[0][2]
    np.testing.assert_allclose(
        alignments, step.alignment_rows(5, words), atol=1e-6
    )
    for contradiction in (
        {"prefix": prefix, "min_lengths": 5},
        {"prefix": prefix, "max_lengths": 4},
        {"prefix": [[EOS_ID]]},
    ):
        options = {"max_lengths": 9} | contradiction
        with pytest.raises(ValueError, match="prefixes of at most `max_leng"):
            beam_search(step, step.states(5), **options)
