"""Searches over user-defined decoders, compared with brute force."""

from functools import partial

import keras
import numpy as np
import pytest
from keras import ops

from luong_keras.decoding import (
    Beam,
    Greedy,
    LengthPenalty,
    ModelStep,
    Sampling,
    ensemble_step,
    search,
)
from luong_keras.special_tokens import BOS_ID
from tests.decoding.every_translation import (
    ENOUGH,
    MAX_LENGTH,
    every_translation,
)
from tests.decoding.small_decoders import DECODERS, SOURCES
from tests.decoding.test_beam import reference_search
from tests.decoding.toy_step import as_lists, check_ranks
from tests.layer_checks import assert_all_close, few_on_jax

B = len(SOURCES)
# Beam and stack sizes with room for all hypotheses.
EXHAUSTIVE = ENOUGH + 1, 2 * ENOUGH

every_decoder = pytest.mark.parametrize("name", DECODERS)


@pytest.fixture(scope="module")
def decoders():
    """Build one decoder of each kind; no test changes their weights."""
    keras.utils.set_random_seed(3)
    return {name: kind() for name, kind in DECODERS.items()}


def run_search(decoder, strategy, sources=SOURCES, **options):
    step, states = decoder.prepare(sources)
    return search(step, states, strategy, MAX_LENGTH, **options)


def check_all(hypotheses, expected):
    """Check that hypotheses are `expected`, {words: score}, best first."""
    found = [score for score, _, _ in hypotheses]
    best = sorted(expected.values(), reverse=True)
    np.testing.assert_allclose(found, best, rtol=1e-4)
    scores = [expected[words] for _, words, _ in hypotheses]
    np.testing.assert_allclose(found, scores, rtol=1e-4)


@pytest.mark.slow_on_jax
@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", few_on_jax(DECODERS, ["functional"]))
def test_greedy_search_takes_the_best_word_of_each_step(decoders, name):
    decoder = decoders[name]
    for sentence, row in enumerate(as_lists(run_search(decoder, Greedy()))):
        log_probabilities = partial(decoder.log_probabilities, sentence)
        check_ranks(
            row, reference_search(log_probabilities, MAX_LENGTH, 1, 1, 1, 0.0)
        )


@pytest.mark.slow_after_first
@every_decoder
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_exhaustive_beam_finds_all_translations(decoders, name, penalty):
    decoder = decoders[name]
    results = run_search(
        decoder, Beam(*EXHAUSTIVE), scorers=[LengthPenalty(penalty)]
    )
    for sentence, row in enumerate(as_lists(results)):
        every = {
            words: score / (len(words) + 1) ** penalty
            for words, score in every_translation(decoder, sentence).items()
        }
        check_all(row, every)


@pytest.mark.slow
def test_alignments_are_the_attention_weights(decoders):
    decoder = decoders["subclassed"]
    for sentence, row in enumerate(as_lists(run_search(decoder, Beam(3)))):
        for _, words, alignments in row:
            ids = np.array([(BOS_ID, *words[:-1])])
            _, expected = decoder.outputs(SOURCES[sentence], ids)
            np.testing.assert_allclose(alignments, expected[0], atol=1e-5)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", ["functional", "prefix"])
def test_without_attention_weights_alignments_are_empty(decoders, name):
    hypotheses = run_search(decoders[name], Beam(3))
    assert tuple(hypotheses.alignments.shape) == (B, 3, MAX_LENGTH, 0)


def test_alignments_of_a_decoder_that_reads_the_prefix():
    outputs = np.tile(np.arange(6, dtype="float32"), (1, 4, 1)), np.eye(4)[None]
    step = ModelStep(
        lambda ids: outputs, reads_prefix=True, return_attention_scores=True
    )
    found = search(step, [], Greedy(), [4], 4)
    np.testing.assert_array_equal(found.alignments[0, 0], np.eye(4))


class WholeBatch(ModelStep):
    """A step that declares no columns, so finished sentences stay."""


@pytest.mark.slow
@every_decoder
@pytest.mark.skipif(
    keras.backend.backend() == "jax", reason="finished sentences stay on JAX"
)
def test_finished_sentences_leave_the_batch(decoders, name):
    limits, results, rows = np.array([9, 2, 3, 2, 2]), [], []

    def counting(kind):
        def prepared(decoder, *arguments, **options):
            def counted(*inputs):
                rows[-1].append(int(ops.shape(inputs[0])[0]))
                if name == "functional":
                    return decoder(list(inputs))
                return decoder(*inputs)

            return kind(counted, *arguments, **options)

        return prepared

    for kind in (ModelStep, WholeBatch):
        rows.append([])
        step, states = decoders[name].prepare(SOURCES, counting(kind))
        options = {"min_lengths": limits - 1}
        results.append(search(step, states, Beam(3), limits, 9, **options))
    assert_all_close(*results, atol=1e-5)
    whole = rows[1][-1]
    assert set(rows[1]) == {B, whole}
    assert rows[0][-1] == whole // B


@pytest.mark.tensorflow
@pytest.mark.slow
@every_decoder
def test_exported_search_gives_the_same_results(decoders, name, tmp_path):
    import tensorflow as tf

    decoder = decoders[name]

    def beam(sources):
        step, states = decoder.prepare(sources)
        return search(step, states, Beam(3), MAX_LENGTH)._asdict()

    expected = run_search(decoder, Beam(3))  # Builds its layers, too.
    archive = keras.export.ExportArchive()
    for part in vars(decoder).values():
        archive.track(part)
    archive.add_endpoint(
        "beam", beam, [tf.TensorSpec((None, None), "int32", "sources")]
    )
    archive.write_out(str(tmp_path), verbose=False)
    loaded = tf.saved_model.load(str(tmp_path))
    for rows in (slice(0, B), slice(1, 2)):
        served = loaded.beam(SOURCES[rows])
        for name, whole in expected._asdict().items():
            np.testing.assert_allclose(served[name], whole[rows], atol=1e-5)


@pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="only JAX traces by jit"
)
@every_decoder
def test_search_compiled_by_jit(decoders, name):
    import jax

    # The first call makes the variables, which `jit` must not trace.
    expected = run_search(decoders[name], Beam(3))
    compiled = jax.jit(
        lambda sources: run_search(decoders[name], Beam(3), sources=sources)
    )
    assert_all_close(compiled(SOURCES), expected, atol=1e-5)


def test_states_may_be_nested(decoders):
    pair = decoders["functional"]

    def decoder(ids, states):
        probabilities, h, c = pair.decoder([ids, states["h"], states["c"]])
        return probabilities, {"h": h, "c": c}

    h, c = pair.encoder(SOURCES)
    step = ModelStep(decoder, from_logits=False)
    nested = search(step, [{"h": h, "c": c}], Beam(3), MAX_LENGTH)
    assert_all_close(nested, run_search(pair, Beam(3)), atol=1e-5)


@pytest.mark.parametrize("functional", [True, False])
def test_constants_keep_their_keras_mask(functional):
    keras.utils.set_random_seed(4)
    source = keras.Input((None,))
    memory = keras.layers.Embedding(9, 4, mask_zero=True)(source)
    encoder = keras.Model(source, memory)
    ids, h = keras.Input((1,), dtype="int32"), keras.Input((4,))
    inner = keras.Input((None, 4))
    word, new_h = keras.layers.GRU(4, return_state=True)(
        keras.layers.Embedding(6, 4)(ids), initial_state=h
    )
    context = keras.layers.Attention()([word[:, None], inner])
    logits = keras.layers.Dense(6)(context)
    decoder = keras.Model([ids, h, inner], [logits, new_h])
    called = decoder if functional else lambda *args: decoder([*args])
    rows = [[1, 2, 3, 4, 5], [7, 8, 0, 0, 0], [6, 0, 0, 0, 0]]
    states = np.zeros((3, 4), "float32")
    step = ModelStep(called, encoder(np.array(rows, "float32")))
    # The first sentence leaves the batch before the others.
    lengths = np.array([1, 5, 5])
    found = search(step, [states], Beam(3), lengths)
    for i, row in enumerate(rows):
        alone = encoder(np.array([[x for x in row if x]], "float32"))
        hypotheses = search(
            ModelStep(called, alone), [states[:1]], Beam(3), lengths[i : i + 1]
        )
        assert_all_close(found.scores[i], hypotheses.scores[0], atol=1e-5)


@pytest.mark.slow_on_jax
def test_impossible_words_are_never_found():
    def decoder(ids):
        row = np.array([0.0, 0.0, 0.0, 0.5, 0.5, 0.0], "float32")
        return ops.zeros_like(ops.cast(ids, "float32")) + row

    step = ModelStep(decoder, from_logits=False)
    for strategy in (Beam(4), Sampling(4)):
        (rows,) = as_lists(search(step, [], strategy, [3], 3))
        assert {words for _, words, _ in rows} <= {(4,), (4, 4), (4, 4, 4)}
        for score, words, _ in rows:
            symbols = min(len(words) + 1, 3)
            np.testing.assert_allclose(score, symbols * np.log(0.5), rtol=1e-5)


def test_ensemble_of_user_defined_decoders(decoders):
    pair = decoders["functional"]
    step, states = pair.prepare(SOURCES)
    other, more = decoders["subclassed"].prepare(SOURCES)
    both = ensemble_step([step, other, other], [2, 1, 1], "logits")
    results = search(both, [*states, more, more], Beam(*EXHAUSTIVE), MAX_LENGTH)

    class Mean:
        def log_probabilities(self, sentence, words):
            one, two = (
                decoders[name].log_probabilities(sentence, words)
                for name in ("functional", "subclassed")
            )
            mean = (one + 2 * two) / 3
            return mean - np.log(np.exp(mean).sum())

    for sentence, row in enumerate(as_lists(results)):
        check_all(row, every_translation(Mean(), sentence))
        # Alignments are the mean over the models with attention.
        assert all(
            np.allclose(alignments.sum(-1), 1) for _, _, alignments in row
        )
