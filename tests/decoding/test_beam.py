import math
from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.config import AttentionConfig
from luong_keras.decoding.beam_search import beam_search
from luong_keras.decoding.forced import forced_decoding
from luong_keras.models.translation_model import TranslationModel
from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import (
    ConstantStep,
    ToyStep,
    as_lists,
    log_softmax,
    symbol_log_probabilities,
    translations,
)
from tests.layer_checks import small_config

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
    """Search one sentence in plain Python: (score, words), best first."""
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
    if finished:
        return finished
    return [(score / max_length**penalty, words) for words, score in live][
        :stack_size
    ]


def check(found, expected, alignment_rows):
    assert [words for _, words, _ in found] == [w for _, w in expected]
    np.testing.assert_allclose(
        [score for score, _, _ in found],
        [score for score, _ in expected],
        rtol=1e-5,
    )
    for _, words, alignments in found:
        np.testing.assert_allclose(alignments, alignment_rows(words), atol=1e-6)


def check_sentence(found, step, sentence, *settings):
    """Compare one sentence with the reference, which is returned."""
    expected = reference_search(
        partial(step.log_probabilities, sentence), *settings
    )
    check(found, expected, partial(step.alignment_rows, sentence))
    return expected


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "beam_size, stack_size, penalty, end_logit",
    [
        (3, None, 0.0, 1.0),
        pytest.param(1, None, 0.0, 1.0, marks=tensorflow),
        pytest.param(1, 3, 0.0, 2.0, marks=tensorflow),
        pytest.param(2, 5, 0.0, 1.0, marks=tensorflow),
        pytest.param(5, 2, 0.0, 0.0, marks=tensorflow),
        pytest.param(4, 4, 1.0, 1.0, marks=tensorflow),
        pytest.param(4, 4, 1.0, -3.0, marks=tensorflow),
        pytest.param(3, 6, 0.6, 1.0, marks=tensorflow),
        pytest.param(12, 3, 1.0, -1.0, marks=tensorflow),  # K > V
        pytest.param(2, 4, 0.0, -30.0, marks=tensorflow),  # nothing ends
        pytest.param(4, 2, 0.7, -30.0, marks=tensorflow),
    ],
)
def test_beam_search_matches_the_reference(
    beam_size, stack_size, penalty, end_logit
):
    step = ToyStep(end_logit=end_logit, seed=beam_size)
    sentences = [3, 5, 7, 11, 13]
    max_lengths = [7, 4, 6, 1, 3]
    min_lengths = [1, 3, 6, 1, 0]
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
        check_sentence(
            found[row],
            step,
            sentence,
            max_lengths[row],
            min_lengths[row],
            beam_size,
            stack_size or beam_size,
            penalty,
        )
        for _, words, _ in found[row]:
            assert 1 <= len(words) <= max_lengths[row]
            assert EOS_ID not in words


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
        assert [words for _, words, _ in found] == list(expected)
        np.testing.assert_allclose(
            [score for score, _, _ in found],
            np.log(list(expected.values())),
            rtol=1e-5,
        )


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


@tensorflow
def test_search_of_a_large_vocabulary_matches_the_reference():
    step = ToyStep(vocabulary_size=1500, end_logit=9.0)
    found = translations(step, [3, 5], [4, 5], beam_search, beam_size=4)
    for row, (sentence, max_length) in enumerate([(3, 4), (5, 5)]):
        check_sentence(found[row], step, sentence, max_length, 1, 4, 4, 0.0)


@tensorflow
def test_maximum_length_zero_gives_an_empty_translation():
    step = ToyStep(end_logit=9)
    found = translations(
        step,
        [1, 2],
        [0, 3],
        beam_search,
        min_lengths=[0, 1],
        beam_size=2,
        length_penalty=1.0,
    )
    assert [(score, words) for score, words, _ in found[0]] == [(0.0, ())]
    assert len(found[1]) == 2


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
    lengths = np.array([3, 1])
    found = translations(
        step,
        [5, 9],
        [7, 6],
        beam_search,
        beam_size=3,
        prefix=prefix,
        prefix_lengths=lengths,
    )
    for row, sentence in enumerate((5, 9)):
        prefix_words = tuple(prefix[row, : lengths[row]])

        def log_probabilities(
            words, sentence=sentence, prefix_words=prefix_words
        ):
            gains = step.log_probabilities(sentence, words).copy()
            if len(words) < len(prefix_words):
                others = np.arange(len(gains)) != prefix_words[len(words)]
                gains[others] = -math.inf
            return gains

        expected = reference_search(
            log_probabilities, [7, 6][row], 1, 3, 3, 0.0
        )
        check(found[row], expected, partial(step.alignment_rows, sentence))


@tensorflow
def test_prefix_with_end_symbol_forces_the_translation():
    step = ToyStep(seed=4)
    words = (6, 4, 4, 1)
    prefix = [[*words, EOS_ID]]
    (found,) = translations(
        step, [5], 5, beam_search, beam_size=1, prefix=prefix
    )
    score = sum(symbol_log_probabilities(step, 5, (*words, EOS_ID)))
    check(found, [(score, words)], partial(step.alignment_rows, 5))
    for contradiction in (
        {"prefix": prefix, "min_lengths": 5},
        {"prefix": prefix, "max_lengths": 4},
        {"prefix": [[EOS_ID]]},
    ):
        with pytest.raises(ValueError, match="prefixes of at most `max_leng"):
            beam_search(
                step, step.states(5), **{"max_lengths": 9} | contradiction
            )


SOURCE = np.array([[4, 5, 6, 7, 8], [5, 8, 4, 0, 0]])


@tensorflow
def test_search_of_a_model_matches_its_training_form():
    keras.utils.set_random_seed(3)
    model = TranslationModel(
        small_config(
            layers=2,
            attention=AttentionConfig(half_width=2),
            dropout=0.0,
            initial_range=1.5,
        )
    )

    def encoded(source):
        memory, mask, states = model.encode(source)
        return model.decoding_step(memory, mask), states

    limits = [4, 3]
    found = as_lists(
        beam_search(*encoded(SOURCE), limits, 4, beam_size=3, stack_size=4)
    )
    for row, max_length in enumerate(limits):
        source = SOURCE[row : row + 1]

        def forced(words, source=source):
            # One shape for all prefixes: the padding changes nothing.
            target_in = np.zeros((1, 5), "int32")
            target_in[0, : len(words) + 1] = [2, *words]
            return log_softmax(model.model([source, target_in])[0, len(words)])

        def alignment_rows(words, source=source):
            found = forced_decoding(*encoded(source), [words], [len(words)])
            return found.alignments[0]

        expected = reference_search(forced, max_length, 1, 3, 4, 0.0)
        assert [words for _, words, _ in found[row]] == [
            words for _, words in expected
        ]
        check(found[row][:1], expected[:1], alignment_rows)
