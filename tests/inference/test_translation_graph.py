"""Answers of the translation graph, against arrays written by hand."""

from math import log

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.decoding.ensemble import ModelEnsemble
from luong_keras.special_tokens import EOS
from luong_keras.translator import Translator
from tests.inference.option_tensors import option_tensors
from tests.inference.scripted_answers import (
    ABSENT,
    BEST,
    MEMORY,
    NORMALISED,
    PAIRS,
    SCORED,
    TEXT,
    TRANSLATED,
    check_arrays,
    graph,
    ranks,
)
from tests.serving.scripted_model import (
    SOURCE_PAD_ID,
    ScriptedModel,
    tokenizers,
)


@pytest.mark.slow_after_first
@pytest.mark.parametrize("has_options", [False, True])
def test_every_output_of_a_batch(has_options):
    model = ScriptedModel()
    options = (option_tensors(3),) if has_options else ()
    found = graph(model).translate_batch(tf.constant(TEXT), *options)
    check_arrays(found, TRANSLATED)
    # Padded with the source's id; `Q` is unknown.
    padding = SOURCE_PAD_ID
    assert model.encoded == [[[4, 5, padding], [5, 6, 1], [padding] * 3]]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("decoding", "expected"),
    [
        ({"beam_size": 1}, BEST[:1]),
        ({"beam_size": 1, "length_penalty": 1.0}, [("x", log(0.36) / 2)]),
        ({"beam_size": 2}, BEST),
        ({"beam_size": 2, "stack_size": 1}, BEST[:1]),
        ({"beam_size": 2, "length_penalty": 1.0}, NORMALISED),
        ({"beam_size": 3}, [*BEST, ("x y", log(0.24 * 0.97))]),
        ({"replace_unknown": True}, [BEST[0], ("a", log(0.27))]),
        (
            {"replace_unknown": True, "alignment_step": "reads"},
            [BEST[0], ("b", log(0.27))],
        ),
    ],
)
def test_settings_of_the_search(decoding, expected):
    found = graph(**decoding).translate_batch(tf.constant(["a b"]))
    assert ranks(found) == [expected]


@pytest.mark.slow
def test_every_option_applies_to_its_sentence():
    three = [*BEST, ("x y", log(0.24 * 0.97))]
    replaced = [BEST[0], ("a", log(0.27))]
    unknown = [("Q", log(0.27))]
    points = [(".", log(0.02 * 0.75)), (". y", log(0.02 * 0.25 * 0.97))]
    cases = [
        ({"beam_size": 1}, BEST[:1]),
        ({"beam_size": 2}, BEST),
        ({"beam_size": 9}, three),  # capped at 3, the maximum
        ({"beam_size": 3, "n_best": 2}, three[:2]),
        ({"n_best": 1}, BEST[:1]),
        ({"n_best": 7}, BEST),
        ({"length_penalty": 1.0}, NORMALISED),
        ({"length_penalty": 0.0}, BEST),
        ({"replace_unknown": 1}, replaced),
        ({"replace_unknown": 0}, BEST),
        ({"prefix": "."}, points),
        ({"prefix": "x"}, [BEST[0], three[2]]),
        ({"prefix": "Q", "replace_unknown": 1, "n_best": 1}, unknown),
        ({"prefix": "Q", "replace_unknown": 0, "n_best": 1}, unknown),
    ]
    changes, expected = zip(*cases, strict=True)
    columns = {
        name: [change.get(name) for change in changes]
        for name in {name for change in changes for name in change}
    }
    count = len(cases)
    exported = graph(max_beam_size=3)
    text = tf.constant(["a b"] * count)
    found = exported.translate_batch(text, option_tensors(count, **columns))
    assert ranks(found) == list(expected)
    # With other settings for the options that are unset.
    exported = graph(replace_unknown=True, length_penalty=1.0)
    options = option_tensors(
        4, length_penalty=[-1.0, 0.0, 0.0, 0.0], replace_unknown=[0, -1, 1, 0]
    )
    found = exported.translate_batch(tf.constant(["a b"] * 4), options)
    assert ranks(found) == [NORMALISED, replaced, replaced, BEST]


def test_ranks_beyond_n_best_are_empty():
    found = graph().translate_batch(
        tf.constant(["a b", "a b"]), option_tensors(2, n_best=[1, 2])
    )
    assert found["lengths"].numpy().tolist() == [[1, 0], [1, 1]]
    texts = found["translations"].numpy().tolist()
    assert texts == [[b"x", b""], [b"x", b"<unk>"]]
    tokens = found["tokens"].numpy()
    assert not b"".join(tokens[0, 1]) and tokens[1, 1, 0] == b"<unk>"
    np.testing.assert_allclose(found["scores"][0, 1], ABSENT)
    sums = found["alignments"].numpy().sum((2, 3))
    np.testing.assert_allclose(sums, [[2, 0], [2, 2]], rtol=1e-6)


X = 0.8
ENDLESS = ({"x": X, "y": 1 - X}, [10])
HASTY = ({EOS: X, "x": 1 - X}, [10])


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("beam_size", "script", "ratios", "lengths"),
    # For sentences of 0, 1, 2, 3 and 5 words; ratios are of the length + 1.
    [
        (1, HASTY, (0.5, 1.5), [0, 1, 1, 2, 3]),
        (1, ENDLESS, (0.5, 1.5), [0, 3, 4, 6, 9]),
        (2, ENDLESS, (0.0, 1.0), [0, 2, 3, 4, 6]),
        (2, ENDLESS, (0.0, 0.5), [0, 2, 2, 2, 3]),
        (2, HASTY, (0.0, 1.5), [0, 1, 1, 1, 1]),
        # One position is left for `</s>`.
        (2, HASTY, (1.0, 1.0), [0, 1, 2, 3, 5]),
    ],
)
def test_length_ratios_bound_translations(beam_size, script, ratios, lengths):
    least, maximum = ratios
    found = graph(
        ScriptedModel({}, script),
        beam_size=beam_size,
        stack_size=1,
        min_length_ratio=least,
        max_length_ratio=maximum,
    ).translate_batch(tf.constant(["", "a", "a b", "a b c", "a b c d a"]))
    assert found["lengths"][:, 0].numpy().tolist() == lengths
    # Only the scores of `HASTY` include the probability of `</s>`.
    last = X if script is HASTY else 1.0
    expected = [
        0 if n == 0 else log((0.2 if script is HASTY else X) ** n * last)
        for n in lengths
    ]
    np.testing.assert_allclose(found["scores"][:, 0], expected, rtol=1e-5)


@pytest.mark.slow
def test_prefixes_may_be_the_whole_translation():
    # Two words have at most four symbols, unless the prefix is longer.
    prefix = ["x y x", "x y x x", "x y x x Q", "x y x x x Q", "", "x"]
    found = graph().translate_batch(
        tf.constant(["a b"] * 5 + [""]),
        option_tensors(6, prefix=prefix, n_best=1),
    )
    three = 0.6 * 0.4 * 0.03
    # `Q` is improbable, and the score includes `</s>`.
    unknown = log(three * 0.5 * 1e-9 * 0.5)
    assert ranks(found) == [
        [("x y x", log(three * 0.5))],
        [("x y x x", log(three * 0.5**2))],
        [("x y x x Q", pytest.approx(unknown, rel=1e-4))],
        [("x y x x x Q", pytest.approx(unknown + log(0.5), rel=1e-4))],
        [("x", log(0.36))],
        [("", 0)],
    ]
    assert found["lengths"][:, 0].numpy().tolist() == [3, 4, 5, 6, 1, 0]


LONG = "x" * (64 * 4 + 1)  # more bytes than four tokens may have


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("source", "prefix", "truncated", "length"),
    [
        ("a b c d", "", False, 4),
        ("a b c d a", "", True, 4),
        ("a b", "x y x x", False, 2),
        ("a b", "x y x x x", True, 2),
        (LONG[1:], "", False, 1),
        (LONG, "", True, 1),
        ("a", LONG, True, 1),
    ],
)
def test_truncated_sources_and_prefixes_are_reported(
    source, prefix, truncated, length
):
    # In a batch with a sentence that is not cut.
    found = graph(max_source_length=4).translate_batch(
        tf.constant(["a", source]), option_tensors(2, prefix=["", prefix])
    )
    assert found["truncated"].numpy().tolist() == [False, truncated]
    assert found["source_lengths"].numpy().tolist() == [1, length]
    words = [word[:256].encode() for word in prefix.split()[:4]]
    assert found["tokens"][1, 0, : len(words)].numpy().tolist() == words


def test_every_output_of_given_translations():
    model = ScriptedModel()
    found = graph(model).score_batch(*map(tf.constant, PAIRS))
    check_arrays(found, SCORED)
    padding = SOURCE_PAD_ID
    assert model.encoded == [[[4, 5, padding], [5, 6, 1], [4, 7, padding]]]


def test_both_sides_of_a_pair_may_be_cut():
    found = graph(max_source_length=2).score_batch(
        tf.constant(["a b", "a b c", "a b", "a b c"]),
        tf.constant(["x y", "x y", "x y x", "x y x"]),
    )
    assert found["truncated"].numpy().tolist() == [False, True, True, True]
    assert found["source_lengths"].numpy().tolist() == [2] * 4
    assert found["lengths"].numpy().tolist() == [3] * 4
    assert found["tokens"].numpy().tolist() == [[b"x", b"y", b"</s>"]] * 4
    np.testing.assert_allclose(
        found["log_probability"], [log(0.6 * 0.4 * 0.97)] * 4, rtol=1e-5
    )


def test_memory_of_the_encoder():
    text = tf.constant(TEXT)
    expected = {"lengths": [2, 3, 0], "truncated": [False] * 3}
    check_arrays(graph().encode_batch(text), {"memory": MEMORY, **expected})
    # An ensemble concatenates the memories of its models.
    other = ScriptedModel()
    encode = other.encode
    other.encode = lambda ids: (encode(ids)[0] * 10, *encode(ids)[1:])
    both = graph(ModelEnsemble([ScriptedModel(), other])).encode_batch(text)
    memory = np.concatenate([MEMORY, np.array(MEMORY) * 10], -1)
    check_arrays(both, {"memory": memory, **expected})
    cut = graph(max_source_length=2).encode_batch(text)
    assert cut["truncated"].numpy().tolist() == [False, True, False]
    assert cut["lengths"].numpy().tolist() == [2, 2, 0]
    nothing = graph().encode_batch(tf.constant([], tf.string))
    assert nothing["memory"].shape[0] == 0


def translator(**decoding):
    settings = {"beam_size": 1, "max_source_length": 3, "batch_size": 8}
    parts = graph(**settings, **decoding)
    return Translator(ScriptedModel(), *tokenizers(), parts.decoding)


@pytest.mark.parametrize(
    ("step", "links"),
    [
        # c d -> x x x <unk>, cut, in a batch with a longer limit.
        ("produces", [[(0, 0), (0, 1), (0, 2), (1, 3)], [(0, 0)]]),
        ("reads", [[(0, 0), (0, 1), (1, 2), (1, 3)], [(1, 0)]]),
    ],
)
def test_translations_are_in_the_order_of_the_lines(eager, step, links):
    lines = ["b c Q", "c d", "a b c d", "", "a b"]
    found = translator(alignment_step=step).nbest(lines)
    assert [nbest[0].text for nbest in found] == [
        "y <unk>", "x x x <unk>", "x y", "", "x"
    ]  # fmt: skip
    assert [nbest[0].source_tokens for nbest in found] == [
        ["b", "c", "Q"], ["c", "d"], ["a", "b", "c"], [], ["a", "b"]
    ]  # fmt: skip
    # The second translation is cut, and the source of the third.
    assert [nbest[0].truncated for nbest in found] == (
        [False, True, True, False, False]
    )
    np.testing.assert_allclose(found[1][0].score, log(0.8**3 * 0.9), rtol=1e-5)
    np.testing.assert_allclose(
        found[1][0].alignments,
        [[0.7, 0.3], [0.6, 0.4], [0.9, 0.1], [0.2, 0.8]],
        rtol=1e-5,
    )
    assert [found[i][0].links for i in (1, 4)] == links


def test_scores_are_in_the_order_of_the_pairs(eager):
    sources = ["b c Q", "a b", "a b"]
    targets = ["Q", "x y x y", "x"]
    found = translator().score(sources, targets)
    assert [scored.tokens for scored in found] == [
        ["Q", "</s>"], ["x", "y", "x", "</s>"], ["x", "</s>"]
    ]  # fmt: skip
    assert [scored.truncated for scored in found] == [False, True, False]
    np.testing.assert_allclose(
        [scored.log_probability for scored in found],
        [log(0.05), log(0.6 * 0.4 * 0.03 * 0.5), log(0.36)],
        rtol=1e-5,
    )
    assert found[0].source_tokens == sources[0].split()
    weights = [scored.alignments for scored in found]
    np.testing.assert_allclose(weights[2], [[0.8, 0.2], [0.3, 0.7]], rtol=1e-5)
    assert [len(w) for w in weights] == [2, 4, 2]
