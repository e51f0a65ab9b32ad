"""Sizes, lengths and columns that a search refuses or accepts."""

import warnings

import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import (
    Beam,
    ConstrainedBeam,
    CoveragePenalty,
    ForbiddenPhrases,
    Greedy,
    LengthPenalty,
    NoRepeatedNgrams,
    Prefix,
    Sampling,
    beam_search,
    forced_decoding,
    search,
)
from tests.decoding.toy_step import ToyStep, refused
from tests.layer_checks import assert_all_close

STEP = ToyStep()
STATES = STEP.states(1, 2)


def beam(**options):
    return beam_search(STEP, STATES, [5, 5], 5, **options)


def found(strategy, *scorers):
    return search(STEP, STATES, strategy, [5, 5], 5, scorers=scorers)


def refused_word(word):
    return refused(
        "`words` in the vocabulary of the logits, 0 to 7. "
        f"Received: words={word}."
    )


@pytest.mark.parametrize(
    "value", [0, -1, 2.0, np.float32(2), "2", True, [2], np.array([2])]
)
def test_sizes_must_be_positive_integers(value):
    def refused_size(name, minimum=1):
        return refused(
            f"`{name}` must be an integer and at least {minimum}. "
            f"Received: {name}="
        )

    with refused_size("beam_size"):
        beam(beam_size=value)
    with refused_size("size"):
        Beam(value)
    with refused_size("stack_size"):
        beam(stack_size=value)
    if np.ndim(value) == 0:
        with refused_size("num_return_sequences"):
            Beam(2, num_return_sequences=value)
    with refused_size("count"):
        Sampling(value)
    with refused_size("max_steps", 0):
        beam_search(STEP, STATES, [5, 5], -1 if value == 0 else value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.int64, np.int32, ops.convert_to_tensor])
def test_sizes_may_be_numpy_numbers_or_tensors(kind):
    two, five = kind(2), kind(5)
    for strategy in (Beam, Sampling):
        expected = found(strategy(2))
        result = search(STEP, STATES, strategy(two), [5, 5], five)
        np.testing.assert_array_equal(result.ids, expected.ids)
    result = beam(beam_size=two, stack_size=five)
    expected = beam(beam_size=2, stack_size=5)
    np.testing.assert_array_equal(result.ids, expected.ids)


def test_sizes_per_sentence_are_bounded():
    with refused("`stack_sizes`", "1 to 2, `stack_size`. Received:", "[5, 1]"):
        beam(beam_size=2, stack_sizes=[5, 1])
    with refused("`stack_sizes`", "1 to 4", "[2, 0]"):
        beam(beam_size=2, stack_size=4, stack_sizes=[2, 0])
    with refused("`sizes`", "1 to 2, the beam's size", "[1 3]"):
        beam(beam_size=2, beam_sizes=np.array([1, 3]))
    with refused("`sizes`", "integers", "[1.5, 2.0]"):
        beam(beam_size=2, beam_sizes=[1.5, 2.0])
    with refused("`size`", "0 to 8, or one int for all", "[9 1]"):
        NoRepeatedNgrams(np.array([9, 1]))
    with refused("`sizes`, an array of integers", "sizes=2"):
        Beam(2, sizes=2)


@pytest.mark.slow
def test_settings_of_samples_are_bounded():
    with refused("`counts`", "integers from 1 to 2, `count`", "[1, 3]"):
        Sampling(2, counts=[1, 3])
    with refused("`counts`, an array of integers", "counts=2"):
        Sampling(2, counts=2)
    for top_k in (-1, 2.5, "2", True):
        with refused("`top_k` must be an integer and at least 0", "top_k="):
            Sampling(2, top_k=top_k)
    with refused("`top_k`, an array of integers from 0", "[2, -1]"):
        Sampling(2, top_k=[2, -1])
    for top_k in (None, 0, 3, np.int64(3), [0, 3]):
        assert np.array(found(Sampling(2, top_k=top_k)).ids).shape[:2] == (2, 2)


def test_empty_batch_is_refused():
    no_lengths = np.zeros(0, "int32")
    with refused("at least one sentence", "`max_lengths` of shape (0,)"):
        beam_search(STEP, [np.zeros((0, 1), "float32")], no_lengths, 5)


def test_invalid_lengths_are_refused():
    with refused("`size` must be an integer", "size=None"):
        found(Beam(None))
    # A maximum length below 1 gives an empty translation.
    for strategy in (Beam(2), Greedy()):
        lengths = search(STEP, STATES, strategy, [-1, 5], 5).lengths
        assert np.array(lengths)[0, 0] == 0
    targets = [[4, 5, 3], [6, 3, 0]]
    with refused("`lengths` must have one number per sentence", "shape (1,)"):
        forced_decoding(STEP, STATES, targets, [3])
    with refused("`lengths` must have one number per sentence", "shape ()"):
        forced_decoding(STEP, STATES, targets, 3)


@pytest.mark.parametrize(
    "value", [-1.0, -1, [0.5, -1.0], "google", None, np.nan]
)
def test_invalid_penalties_are_refused(value):
    with refused("`exponent` must be 0 or more", f"exponent={value!r}"):
        LengthPenalty(value)
    with refused("`strength` must be 0 or more", f"strength={value!r}"):
        CoveragePenalty(value)


def test_prefix_arguments_are_checked():
    with refused("`prefix_lengths` needs a `prefix`"):
        beam(prefix_lengths=[1, 1])
    with refused("a prefix for each sentence, (B, P)", "shape (2,)"):
        beam(prefix=[4, 5])
    with refused("`lengths`", "0 to 1, the width of the prefix", "[3, 1]"):
        beam(prefix=[[4], [5]], prefix_lengths=[3, 1])
    ids = beam(prefix=[[4, 5], [5, 1]], prefix_lengths=[2, 1]).ids
    assert np.array(ids)[0, 0, :2].tolist() == [4, 5]
    assert np.array(ids)[1, 0, 0] == 5


@pytest.mark.parametrize("word", [99, -1])
def test_prefixes_must_be_in_the_vocabulary(word):
    for prefix in ([[word], [4]], [[4, 5], [4, word]]):
        with refused_word(word):
            beam(prefix=prefix)
    prefix = Prefix([[4, word]], [1, 1])  # The word does not count.
    assert np.array(found(Beam(2), prefix).ids)[:, 0, 0].tolist() == [4, 4]


@pytest.mark.slow
@pytest.mark.tensorflow
def test_unknown_values_in_a_graph_are_clipped():
    import tensorflow as tf

    def run(sizes, stack_sizes, lengths, temperatures):
        prefix = [[4, 5], [5, 1]]
        beams = beam(
            beam_size=2,
            beam_sizes=sizes,
            stack_sizes=stack_sizes,
            prefix=prefix,
            prefix_lengths=lengths,
        )
        return beams.ids, beams.scores, found(Sampling(2, temperatures)).ids

    temperatures = np.array([0.5, 2.0], "float32")
    expected = run([1, 2], [2, 1], [2, 1], temperatures)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clipped = tf.function(run)(
            *map(tf.constant, ([1, 9], [5, 1], [7, 1], temperatures))
        )
    assert_all_close(clipped, expected, rtol=1e-5)


ROWS = np.ones(3, "int32")


@pytest.mark.parametrize(
    "name, strategy, scorers",
    [
        ("`temperature` of Sampling", lambda: Sampling(1, ROWS), ()),
        ("`seeds` of Sampling", lambda: Sampling(1, seeds=[1, 2, 3]), ()),
        ("`top_p` of Sampling", lambda: Sampling(1, top_p=ROWS), ()),
        ("`counts` of Sampling", lambda: Sampling(2, counts=ROWS), ()),
        ("`sizes` of Beam", lambda: Beam(2, sizes=ROWS), ()),
        ("`stack_sizes` of Beam", lambda: Beam(2, stack_sizes=ROWS), ()),
        (
            "`words` of PhraseProgress",
            lambda: ConstrainedBeam(2, np.ones((3, 1, 1)), np.ones((3, 1))),
            (),
        ),
        ("`exponent` of LengthPenalty", Greedy, [LengthPenalty(ROWS)]),
        ("`strength` of CoveragePenalty", Greedy, [CoveragePenalty(ROWS)]),
        ("`words` of Prefix", Greedy, [Prefix(ROWS[:, None])]),
        ("`lengths` of Prefix", Greedy, [Prefix([[4], [4]], ROWS)]),
        ("`size` of NoRepeatedNgrams", Greedy, [NoRepeatedNgrams(ROWS)]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_columns_must_match_the_batch(name, strategy, scorers):
    with refused(name, "each of 2 sentences", "Received: shape (3,"):
        found(strategy(), *scorers)


@pytest.mark.slow
def test_one_row_serves_all_sentences():
    one = np.ones(1, "int32")
    phrase = np.full((1, 1, 1), 4), one[:, None]
    for strategy in (
        Sampling(2, one, one, one, one, one),
        Beam(2, sizes=one, stack_sizes=one, num_return_sequences=one),
        ConstrainedBeam(2, *phrase),
    ):
        found(strategy, LengthPenalty(one), CoveragePenalty(one), Prefix([[4]]))


@pytest.mark.slow_on_jax
@pytest.mark.parametrize("shape", [(2, 0, 0), (2, 0, 2), (2, 2, 0)])
def test_empty_phrases_and_prefixes_change_nothing(shape):
    phrases = np.zeros(shape, "int32"), np.zeros(shape[:2], "int32")
    expected = found(Beam(2)).ids
    for result in (
        found(ConstrainedBeam(2, *phrases)),
        found(Beam(2), ForbiddenPhrases(*phrases)),
        found(Beam(2), Prefix(np.zeros((2, 0), "int32"))),
    ):
        np.testing.assert_array_equal(result.ids, expected)


@pytest.mark.parametrize("counts", [[0, 2], [2, -1], [1.5, 1.0]])
def test_counts_of_results_must_be_positive_integers(counts):
    with refused(
        "`num_return_sequences`, an array of integers from 1",
        "Received: num_return_sequences=",
    ):
        Beam(2, num_return_sequences=counts)


@pytest.mark.tensorflow
def test_tensor_as_size_needs_a_maximum():
    import tensorflow as tf

    @tf.function
    def run(size):
        return found(Beam(size, max_size=3)).ids

    expected = found(Beam(2)).ids
    np.testing.assert_array_equal(run(tf.constant(2)), expected)
    with refused("`max_size` must be given", "where `size` is a tensor"):
        tf.function(lambda size: found(Beam(size)).ids)(tf.constant(2))


@pytest.mark.slow_after_first
@pytest.mark.parametrize("word", [8, 100, -1, -5])
def test_phrases_outside_the_vocabulary_are_refused(word):
    phrases = np.full((2, 1, 1), word), np.ones((2, 1), "int32")
    with refused_word(word):
        found(ConstrainedBeam(2, *phrases))
    # Otherwise a word of the next hypothesis would be forbidden.
    with refused_word(word):
        found(Beam(2), ForbiddenPhrases(*phrases))
    # Padding after the length of a phrase may be any id.
    found(ConstrainedBeam(2, phrases[0], np.zeros((2, 1), "int32")))


def test_phrase_lengths_are_bounded_by_the_width():
    for kind in (lambda *given: ConstrainedBeam(2, *given), ForbiddenPhrases):
        with refused("`lengths`", "0 to 1, those of `words`", "[[2], [1]]"):
            kind(np.full((2, 1, 1), 4), [[2], [1]])
