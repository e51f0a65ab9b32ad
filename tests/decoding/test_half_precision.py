"""Searches over logits and models in half precision."""

import numpy as np
import pytest
from keras import ops

from luong_keras import TranslationModel, beam_search
from luong_keras.config import AttentionConfig
from luong_keras.decoding.beam_search import greedy_search
from luong_keras.decoding.forced import forced_decoding
from luong_keras.special_tokens import EOS_ID
from tests.decoding.toy_step import ConstantStep, ToyStep, as_lists
from tests.layer_checks import (
    ROUNDOFF,
    assert_all_close,
    dtype_of,
    randomize,
    rounded,
    small_config,
    to_numpy,
)

SEARCHES = {
    "greedy": greedy_search,
    "beam": lambda *given, **more: beam_search(
        *given, beam_size=3, length_penalty=1.0, **more
    ),
}


class Half:
    """A step whose logits have half precision."""

    def __init__(self, step, dtype):
        self.step, self.dtype = step, dtype

    def __call__(self, ids, states, position):
        logits, *rest = self.step(ids, states, position)
        return ops.cast(logits, self.dtype), *rest


@pytest.mark.slow
@pytest.mark.parametrize("long", [True, False])
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_scores_accumulate_in_float32(name, dtype, long):
    """Scores equal those of the rounded logits in float32, bit for bit.

    After 60 words of probability 0.1, float16 has steps of 1/8. Words of
    probability 0 have the logit -inf.
    """
    step = ToyStep(end_logit=-1)
    states = step.states(1, 2)
    if long:
        step = ConstantStep([0, 0, 0, 1e-4, *[0.1] * 9, 0.0999])
    step.logits = rounded(step.logits, dtype)
    limits = np.array([60, 40])
    found, expected = (
        SEARCHES[name](each, states, limits, 60)
        for each in (Half(step, dtype), step)
    )
    assert dtype_of(found.scores) == "float32"
    assert_all_close(found, expected, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.parametrize("kind", ["global", "local"])
def test_float16_model_finds_the_translations_of_float32(kind, name):
    """The float32 model finds the same words; an empty source has no NaN.

    Logits are below 8; a logit and the normaliser have one rounding error each.
    """
    source = np.random.default_rng(0).integers(4, 20, (4, 9))
    source[1, 5:], source[2, 1:], source[3] = 0, 0, 0
    limits = np.array([12, 9, 7, 5])
    models = []
    for precision in ("mixed_float16", "float32"):
        config = small_config(
            20,
            target_vocabulary_size=16,
            units=12,
            attention=AttentionConfig(kind=kind, half_width=2),
            precision=precision,
        )
        models.append(TranslationModel(config))
        randomize(models[-1].model)

    def inputs(model):
        memory, mask, states = model.encode(source.astype("int32"))
        return model.decoding_step(memory, mask), states

    half, single = (
        SEARCHES[name](*inputs(model), limits, 12) for model in models
    )
    assert dtype_of(half.scores) == "float32"
    words = [ranks[0][1] for ranks in as_lists(half)]
    assert words == [ranks[0][1] for ranks in as_lists(single)]
    lengths = np.minimum([len(row) + 1 for row in words], limits)
    targets = np.zeros((4, 12), "int32")
    for row, length in enumerate(lengths):
        targets[row, :length] = (*words[row], EOS_ID)[:length]
    forced = forced_decoding(*inputs(models[1]), targets, lengths)
    totals = to_numpy(forced.log_probabilities).sum(axis=1)
    scores = to_numpy(half.scores)[:, 0]
    means = scores if name == "beam" else scores / lengths
    tolerance = 2 * 8 * ROUNDOFF["float16"]
    np.testing.assert_allclose(means, totals / lengths, atol=tolerance)
