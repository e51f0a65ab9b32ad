"""Signatures of the contract, compared with hand-written arrays."""

from math import log

import numpy as np
import pytest
import tensorflow as tf

from luong_keras.inference.search_options import SEARCH_OPTIONS
from luong_keras.serving.limits import ServingLimits
from luong_keras.serving.signatures import INPUTS, probes, signatures, specs
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

UNSET = {name: [option.unset] * 3 for name, option in SEARCH_OPTIONS.items()}
COLUMNS = {
    **UNSET,
    "text": TEXT,
    "beam_size": [2, 1, 2],
    "n_best": [1, 2, 0],
    "rank": [0, 1, 0],
    "length_penalty": [-1.0, 0.0, 0.0],
    "replace_unknown": [0, 0, 0],
    "source": PAIRS[0],
    "target": PAIRS[1],
}
OK_ROWS = {"truncated": [False] * 3, "status": [b"OK"] * 3}
ALIGNMENT_OUTPUTS = ("alignments", "source_tokens", "source_lengths")
# One byte above the limit for eight tokens, but half as many characters.
TOO_LONG = "ä" * (8 * 64 // 2) + "a"
ONE_TOO_LONG = [b"OK", b"TEXT_TOO_LONG", b"OK"]


def run(name, max_rows=32, settings=None, **columns):
    limits = ServingLimits(max_rows)
    functions = signatures(graph(**settings or {}), limits, traced=False)
    columns = {**COLUMNS, **columns}
    rows = len(columns["source" if "source" in INPUTS[name] else "text"])
    inputs = [tf.constant(columns[x.name][:rows], x.dtype) for x in specs(name)]
    return functions[name](*inputs)


def values(found, name):
    return found[name].numpy().tolist()


def test_signature_names_follow_the_contract():
    assert list(signatures(graph(), traced=False)) == list(INPUTS)


def test_serving_default_returns_the_best_translation():
    expected = {
        "translation": [b"x", b"y <unk>", b""],
        "score": [log(0.36), log(0.9 * 0.2 * 0.7), 0],
    }
    check_arrays(run("serving_default"), {**expected, **OK_ROWS})


def test_translate_returns_nbest_lists_without_alignments():
    expected = {key: TRANSLATED[key] for key in ("translations", "scores")}
    expected["truncations"] = [[False] * 2] * 3
    check_arrays(run("translate"), {**expected, **OK_ROWS})


@pytest.mark.slow
def test_unfinished_translations_are_truncated():
    settings = {"beam_size": 1, "max_length_ratio": 1.0}
    columns = {"text": ["c d", "a b", ""], "settings": settings}
    for name in ("serving_default", "translate", "align"):
        found = run(name, rank=[0] * 3, **columns)
        assert values(found, "truncated") == [True, False, False], name
    columns["settings"] = settings | {"max_beam_size": 2}
    missing = run("align", rank=[1, 0, 0], beam_size=[1] * 3, **columns)
    assert values(missing, "truncated") == [False, False, False]
    # Each translation has its own flag.
    found = run("translate", settings={"beam_size": 3, "max_length_ratio": 0.5})
    assert all(ranks(found))
    first = [row[0] for row in values(found, "truncations")]
    assert values(found, "truncated") == first


def test_options_apply_per_sentence():
    found = run(
        "translate_with_options",
        length_penalty=[1.0, 0.0, 0.0],
        prefix=["", "y", ""],
        replace_unknown=[0, 1, 0],
    )
    assert set(found) == {"translations", "scores", "truncations", *OK_ROWS}
    prefixed = [("y Q", log(0.9 * 0.2 * 0.7))]
    assert ranks(found) == [NORMALISED[:1], prefixed, [("", 0)]]


def test_exported_samples_are_drawn_by_every_signature():
    settings = {"search": "sampling", "beam_size": 3, "max_beam_size": 4}
    unset = {
        "beam_size": [0] * 3,
        "n_best": [0] * 3,
        "length_penalty": [-1.0] * 3,
        "replace_unknown": [-1] * 3,
    }
    drawn = run("translate", settings=settings)
    for name in ("translate_with_options", "search"):
        check_arrays(run(name, settings=settings, **unset), drawn)
    for rank in range(3):
        found = run("align", settings=settings, rank=[rank] * 3, **unset)
        expected = [row[rank] for row in values(drawn, "translations")]
        assert values(found, "translation") == expected


@pytest.mark.slow
def test_phrases_and_sampling_apply_per_sentence():
    sampled = {
        "n_best": [0, 2, 0],
        "seed": [0, 3, 0],
        "temperature": [-1.0, 1.0, 0.0],
    }
    found = run(
        "search",
        text=["a b"] * 3,
        required=["y", "", ""],
        forbidden=["", "", "x"],
        **sampled,
    )
    texts = [[text for text, _ in row] for row in ranks(found)]
    assert all("y" in text.split() for text in texts[0]) and texts[0]
    assert len(texts[1]) == 2
    assert all("x" not in text.split() for text in texts[2]) and texts[2]
    # The same sentence and seed in another batch.
    again = run("search", text=["b", "a b", ""], **sampled)
    assert ranks(again)[1] == ranks(found)[1]
    required = run(
        "search",
        text=["a b"] * 3,
        temperature=[0.0, 1.0, 0.0],
        required=["y", "y", "\t" * 8 + "y"],
    )
    assert values(required, "truncated") == [False, True, False]
    for place in (0, 2):
        (best, *_) = ranks(required)[place]
        assert "y" in best[0].split()


@pytest.mark.slow
def test_impossible_phrases_are_ignored_and_reported():
    required = ["nobody", "y", "\t".join("x" * 9)]
    found = run("search", required=required, text=["a b"] * 3)
    assert values(found, "truncated") == [True, False, True]
    texts = [[text for text, _ in row] for row in ranks(found)]
    assert all("y" in text.split() for text in texts[1])
    plain = run("search", text=["a b"] * 3)
    assert ranks(found)[0] == ranks(plain)[0]


def test_forbidden_phrases_have_known_and_unknown_words_up_to_a_limit():
    found = run(
        "search",
        settings={"max_source_length": 20},
        text=["a b"] * 3,
        forbidden=["x " * 16, "x " * 17, "nobody"],
    )
    assert values(found, "truncated") == [False, True, False]
    assert [text for text, _ in ranks(found)[2]] == ["x", "x y"]
    # Together they have nine words; a translation has room for eight.
    found = run("search", forbidden=["x x x x x\tx x x x", "nobody", ""])
    assert values(found, "truncated") == [True, False, False]


@pytest.mark.slow
def test_number_of_translations_is_the_largest_n_best():
    for wanted, maximum in (([1, 1, 1], 1), ([1, 2, 1], 2), ([0, 1, 1], 2)):
        found = run("translate_with_options", n_best=wanted)
        assert found["translations"].shape == (3, maximum)
    alone = run("translate_with_options", n_best=[1], text=["a b"])
    assert ranks(alone) == [BEST[:1]]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    ("changes", "like"),
    [
        ({"beam_size": [99, 99, 99]}, {"beam_size": [3, 3, 3]}),
        ({"beam_size": [-7, -7, -7]}, {"beam_size": [0, 0, 0]}),
        ({"n_best": [99, -9, 3]}, {"n_best": [0, 0, 0]}),
        ({"length_penalty": [50, np.inf, 1e30]}, {"length_penalty": [2.0] * 3}),
        (
            {"length_penalty": [-np.inf, np.nan, -0.5]},
            {"length_penalty": [0.0] * 3},
        ),
    ],
)
def test_options_out_of_range_are_clipped(changes, like):
    name, settings = "translate_with_options", {"max_beam_size": 3}
    columns = {"beam_size": [3] * 3, "n_best": [0] * 3}
    found, expected = (
        run(name, settings=settings, **columns | changed)
        for changed in (changes, like)
    )
    check_arrays(found, {key: values(expected, key) for key in expected})


def test_align_returns_words_and_weights_of_one_rank():
    # T is the length of the longest requested translation plus one.
    found = run("align", beam_size=[2, 2, 2])
    translated = [
        np.array(TRANSLATED["alignments"])[row, rank, :4]
        for row, rank in enumerate(COLUMNS["rank"])
    ]
    expected = {
        "translation": [b"x", b"y <unk> x", b""],
        "score": [log(0.36), log(0.9 * 0.2 * 0.3 * 0.5), 0],
        "tokens": [
            [b"x", b"", b"", b""],
            [b"y", b"<unk>", b"x", b""],
            [b""] * 4,
        ],
        "lengths": [1, 3, 0],
        "alignments": translated,
        "source_tokens": TRANSLATED["source_tokens"],
        "source_lengths": TRANSLATED["source_lengths"],
    }
    check_arrays(found, {**expected, **OK_ROWS})


@pytest.mark.slow
def test_missing_ranks_are_empty():
    found = run("align", rank=[1, -1, 0], beam_size=[1, 1, 1])
    assert values(found, "translation") == [b"", b"y <unk>", b""]
    np.testing.assert_allclose(found["score"][0], ABSENT)
    assert values(found, "lengths") == [0, 2, 0]
    assert values(found, "tokens")[0] == [b""] * 3
    assert not found["alignments"][0].numpy().any()


@pytest.mark.slow
def test_ranks_out_of_range_are_clipped():
    found = run("align", rank=[99, 2**31 - 1, -9], beam_size=[2] * 3)
    expected = run("align", rank=[1, 1, 0], beam_size=[2] * 3)
    check_arrays(found, {key: values(expected, key) for key in expected})


def test_score_and_align_pair_of_given_translations():
    words = {k: v for k, v in SCORED.items() if k not in ALIGNMENT_OUTPUTS}
    check_arrays(run("score"), {**words, **OK_ROWS})
    check_arrays(run("align_pair"), {**SCORED, **OK_ROWS})


def test_encode_returns_the_memory():
    expected = {"memory": MEMORY, "lengths": [2, 3, 0]}
    check_arrays(run("encode"), {**expected, **OK_ROWS})


def test_contract_returns_its_limits():
    settings = {"max_beam_size": 4, "stack_size": 3}
    found = run(
        "contract", max_rows=7, settings=settings, text=["", "not read"]
    )
    expected = {
        "version": 3,
        "max_rows": 7,
        "max_text_bytes": 8 * 64,
        "max_source_tokens": 8,
        "beam_size": 2,
        "samples": 0,
        "max_beam_size": 4,
        "stack_size": 3,
        "n_best": 3,
    }
    check_arrays(found, {key: [value] * 2 for key, value in expected.items()})
    default = run("contract")
    assert values(default, "max_beam_size") == [2] * 3
    assert values(default, "n_best") == [2] * 3
    # By default the size of the largest beam.
    wide = run("contract", settings={"max_beam_size": 4})
    assert values(wide, "n_best") == [4] * 3
    sampling = run("contract", settings={"search": "sampling"})
    assert values(sampling, "samples") == [1] * 3
    assert values(sampling, "stack_size") == [0] * 3


def test_too_long_text_does_not_change_other_rows():
    found = run("serving_default", text=["a b", TOO_LONG, "b c Q"])
    expected = {
        **OK_ROWS,
        "translation": [b"x", b"", b"y <unk>"],
        "score": [log(0.36), ABSENT, log(0.9 * 0.2 * 0.7)],
        "status": ONE_TOO_LONG,
    }
    check_arrays(found, expected)
    longest_allowed = run("serving_default", text=[TOO_LONG[:-1]])
    assert values(longest_allowed, "status") == [b"OK"]


@pytest.mark.slow_after_first
@pytest.mark.parametrize("place", ["text", "prefix"])
def test_every_text_of_a_row_is_limited(place):
    texts = {"text": ["a b"] * 3, "prefix": [""] * 3}
    texts[place][1] = TOO_LONG
    found = run("align", rank=[0] * 3, **texts)
    assert values(found, "status") == ONE_TOO_LONG
    assert values(found, "lengths") == [1, 0, 1]
    assert values(found, "source_lengths") == [2, 0, 2]
    np.testing.assert_allclose(found["score"][1], ABSENT)


@pytest.mark.parametrize("place", ["source", "target"])
def test_pair_with_a_too_long_text_is_skipped(place):
    pairs = {"source": list(PAIRS[0]), "target": list(PAIRS[1])}
    pairs[place][1] = TOO_LONG
    found = run("align_pair", **pairs)
    assert values(found, "status") == ONE_TOO_LONG
    first, _, last = SCORED["log_probability"]
    expected = [first, ABSENT, last]
    np.testing.assert_allclose(found["log_probability"], expected, rtol=1e-5)
    assert values(found, "lengths") == [3, 0, 1]
    assert values(found, "tokens")[1] == [b""] * 3
    assert not found["word_log_probabilities"][1].numpy().any()


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", [x for x in INPUTS if x != "contract"])
def test_rows_beyond_the_limit_are_skipped(name):
    whole, cut = run(name), run(name, max_rows=2)
    assert values(cut, "status") == [b"OK", b"OK", b"TOO_MANY_ROWS"]
    scores = {"score", "scores", "log_probability"}
    for key in set(whole) - {"status"}:
        assert len(cut[key]) == 3
        nothing = 0
        if cut[key].dtype == tf.string:
            nothing = b""
        elif key in scores:
            nothing = float(np.float32(ABSENT))
        assert set(np.ravel(values(cut, key)[2]).tolist()) == {nothing}, key
    for key in scores & set(whole):
        np.testing.assert_allclose(cut[key][:2], whole[key][:2])


@pytest.mark.slow
def test_empty_requests_have_empty_answers():
    for name in INPUTS:
        found = run(name, **dict.fromkeys(COLUMNS, []))
        assert {len(array) for array in found.values()} == {0}, name


@pytest.mark.parametrize(
    "name, changed",
    [
        ("score", {"target": ["x"]}),
        ("align_pair", {"target": ["x"]}),
        ("translate_with_options", {"beam_size": [2, 1]}),
    ],
)
def test_different_numbers_of_inputs_are_refused(name, changed):
    with pytest.raises(tf.errors.InvalidArgumentError, match="every input"):
        run(name, **changed)


@pytest.mark.parametrize("rows", [0, 2.5, None, True])
def test_limits_are_integers_of_at_least_one(rows):
    with pytest.raises(ValueError, match=f"max_rows={rows}"):
        ServingLimits(rows)


def test_probes_fit_every_signature():
    found = probes([b"a", b"b", b"c"])
    for name, inputs in INPUTS.items():
        assert {key: t.dtype for key, t in found[name].items()} == inputs
    assert found["score"]["target"].numpy().tolist() == [b"c", b"b", b"a"]
