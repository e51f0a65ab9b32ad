"""Every signature of the contract, against arrays written by hand."""

from math import log

import numpy as np
import pytest
import tensorflow as tf

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

COLUMNS = {
    "text": TEXT,
    "beam_size": [2, 1, 2],
    "n_best": [1, 2, 0],
    "rank": [0, 1, 0],
    "length_penalty": [-1.0, 0.0, 0.0],
    "prefix": ["", "", ""],
    "replace_unknown": [0, 0, 0],
    "coverage_penalty": [-1.0] * 3,
    "no_repeat_ngram": [-1] * 3,
    "temperature": [-1.0] * 3,
    "top_k": [-1] * 3,
    "top_p": [-1.0] * 3,
    "seed": [-1] * 3,
    "required": [""] * 3,
    "forbidden": [""] * 3,
    "source": PAIRS[0],
    "target": PAIRS[1],
}
FINE = {"truncated": [False] * 3, "status": [b"OK"] * 3}
WORDS_OF_PAIRS = ("alignments", "source_tokens", "source_lengths")
# More bytes than the eight tokens that are read may have.
TOO_LONG = "a" * (8 * 64 + 1)


def ask(name, max_rows=32, settings=None, **columns):
    functions = signatures(
        graph(**settings or {}), ServingLimits(max_rows), traced=False
    )
    columns = {**COLUMNS, **columns}
    rows = len(columns["source" if "source" in INPUTS[name] else "text"])
    return functions[name](
        *(
            tf.constant(columns[spec.name][:rows], spec.dtype)
            for spec in specs(name)
        )
    )


def told(found, name):
    return found[name].numpy().tolist()


def test_the_names_are_those_of_the_contract():
    assert list(signatures(graph(), traced=False)) == list(INPUTS)


def test_the_best_translation():
    expected = {
        "translation": [b"x", b"y <unk>", b""],
        "score": [log(0.36), log(0.9 * 0.2 * 0.7), 0],
    }
    check_arrays(ask("serving_default"), {**expected, **FINE})


def test_the_best_translations_have_no_alignments():
    expected = {key: TRANSLATED[key] for key in ("translations", "scores")}
    expected["truncations"] = [[False] * 2] * 3
    check_arrays(ask("translate"), {**expected, **FINE})


def test_a_translation_without_an_end_is_truncated():
    settings = {"beam_size": 1, "max_length_ratio": 1.0}
    columns = {"text": ["c d", "a b", ""], "settings": settings}
    for name in ("serving_default", "translate", "align"):
        found = ask(name, rank=[0] * 3, **columns)
        assert told(found, "truncated") == [True, False, False], name
    # Each of several by itself: "x" ends, and "x y" would have.
    found = ask("translate", settings={"beam_size": 3, "max_length_ratio": 0.5})
    ended = [
        [cut for cut, score in zip(*row, strict=True) if score > ABSENT / 2]
        for row in zip(
            told(found, "truncations"), told(found, "scores"), strict=True
        )
    ]
    assert told(found, "truncated") == [row[0] for row in ended]


def test_options_are_each_sentences_own():
    found = ask(
        "translate_with_options",
        length_penalty=[1.0, 0.0, 0.0],
        prefix=["", "y", ""],
        replace_unknown=[0, 1, 0],
    )
    assert set(found) == {
        "translations",
        "scores",
        "truncations",
        *FINE,
    }
    assert ranks(found) == [
        NORMALISED[:1],
        [("y Q", log(0.9 * 0.2 * 0.7))],
        [("", 0)],
    ]


def test_a_search_without_options_is_that_of_a_beam():
    changes = {"length_penalty": [1.0, 0.0, -1.0], "beam_size": [1, 2, 0]}
    found, expected = (
        ask(name, **changes) for name in ("search", "translate_with_options")
    )
    check_arrays(found, {key: told(expected, key) for key in expected})


def test_phrases_and_samples_of_one_batch():
    found = ask(
        "search",
        n_best=[0, 2, 0],
        text=["a b", "a b", "a b"],
        beam_size=[2, 1, 2],
        required=["y", "", ""],
        forbidden=["", "", "x"],
        temperature=[-1.0, 1.0, 0.0],
        seed=[0, 3, 0],
    )
    texts = [[text for text, _ in row] for row in ranks(found)]
    assert all("y" in text.split() for text in texts[0]) and texts[0]
    assert len(texts[1]) == 2
    assert all("x" not in text.split() for text in texts[2]) and texts[2]
    again = ask(
        "search",
        text=["b", "a b", ""],
        beam_size=[2, 1, 2],
        n_best=[0, 2, 0],
        temperature=[-1.0, 1.0, 0.0],
        seed=[0, 3, 0],
    )
    # The same sentence with the same seed, in other company.
    assert ranks(again)[1] == ranks(found)[1]


def test_a_phrase_that_cannot_be_had_is_left_out():
    found = ask(
        "search",
        required=["nobody", "y", "\t".join("x" * 9)],
        text=["a b", "a b", "a b"],
    )
    assert told(found, "truncated") == [True, False, True]
    texts = [[text for text, _ in row] for row in ranks(found)]
    assert all("y" in text.split() for text in texts[1])
    plain = ask("search", text=["a b"] * 3)
    assert ranks(found)[0] == ranks(plain)[0]


def test_as_many_translations_come_as_most_want():
    for wanted, maximum in (([1, 1, 1], 1), ([1, 2, 1], 2), ([0, 1, 1], 2)):
        found = ask("translate_with_options", n_best=wanted)
        assert found["translations"].shape == (3, maximum)
    alone = ask("translate_with_options", n_best=[1], text=["a b"])
    assert ranks(alone) == [BEST[:1]]


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
def test_what_is_out_of_range_is_moved_into_it(changes, like):
    found, expected = (
        ask(
            "translate_with_options",
            settings={"max_beam_size": 3},
            **{"beam_size": [3] * 3, "n_best": [0] * 3, **columns},
        )
        for columns in (changes, like)
    )
    check_arrays(found, {key: told(expected, key) for key in expected})


def test_the_penalty_has_an_effect_up_to_its_end():
    scores = [
        told(ask("translate_with_options", length_penalty=[p] * 3), "scores")
        for p in (1.9, 2.0, 2.1)
    ]
    assert scores[0] != scores[1] == scores[2]


def test_one_rank_with_its_words_and_weights():
    # T is the longest of those that were asked for and one more.
    found = ask("align", beam_size=[2, 2, 2])
    translated = [
        np.array(TRANSLATED["alignments"])[row, rank, :3]
        for row, rank in enumerate(COLUMNS["rank"])
    ]
    expected = {
        "translation": [b"x", b"<unk> x", b""],
        "score": [log(0.36), log(0.1 * 0.5 * 0.5), 0],
        "tokens": [[b"x", b"", b""], [b"<unk>", b"x", b""], [b""] * 3],
        "lengths": [1, 2, 0],
        "alignments": translated,
        "source_tokens": TRANSLATED["source_tokens"],
        "source_lengths": TRANSLATED["source_lengths"],
    }
    check_arrays(found, {**expected, **FINE})


def test_a_rank_that_was_not_found_is_empty():
    found = ask("align", rank=[1, -1, 0], beam_size=[1, 1, 1])
    assert told(found, "translation") == [b"", b"y <unk>", b""]
    np.testing.assert_allclose(found["score"][0], ABSENT)
    assert told(found, "lengths") == [0, 2, 0]
    assert told(found, "tokens")[0] == [b""] * 3
    assert not found["alignments"][0].numpy().any()


def test_a_rank_out_of_range_is_moved_into_it():
    found = ask("align", rank=[99, 2**31 - 1, -9], beam_size=[2] * 3)
    expected = ask("align", rank=[1, 1, 0], beam_size=[2] * 3)
    check_arrays(found, {key: told(expected, key) for key in expected})


def test_given_translations_with_and_without_alignments():
    words = {k: v for k, v in SCORED.items() if k not in WORDS_OF_PAIRS}
    check_arrays(ask("score"), {**words, **FINE})
    check_arrays(ask("align_pair"), {**SCORED, **FINE})


def test_the_vectors_of_the_encoder():
    expected = {"memory": MEMORY, "lengths": [2, 3, 0]}
    check_arrays(ask("encode"), {**expected, **FINE})


def test_the_contract_tells_its_limits():
    found = ask(
        "contract",
        max_rows=7,
        settings={"max_beam_size": 4, "stack_size": 3},
        text=["", "not read"],
    )
    expected = {
        "version": 3,
        "max_rows": 7,
        "max_text_bytes": 8 * 64,
        "max_source_tokens": 8,
        "max_beam_size": 4,
        "n_best": 3,
    }
    check_arrays(found, {key: [value] * 2 for key, value in expected.items()})
    assert told(ask("contract"), "max_beam_size") == [2] * 3
    assert told(ask("contract"), "n_best") == [2] * 3
    # As many as the largest beam, where nothing else was set.
    wide = ask("contract", settings={"max_beam_size": 4})
    assert told(wide, "n_best") == [4] * 3


def test_a_text_beyond_the_limit_leaves_the_others_as_they_are():
    found = ask("serving_default", text=["a b", TOO_LONG, "b c Q"])
    expected = {
        "translation": [b"x", b"", b"y <unk>"],
        "score": [log(0.36), ABSENT, log(0.9 * 0.2 * 0.7)],
        "truncated": [False] * 3,
        "status": [b"OK", b"TEXT_TOO_LONG", b"OK"],
    }
    check_arrays(found, expected)
    just = ask("serving_default", text=[TOO_LONG[1:]])
    assert told(just, "status") == [b"OK"]


def test_the_limit_counts_bytes_and_not_characters():
    bytes_of = 8 * 64
    maximum, more = "ä" * (bytes_of // 2), "ä" * (bytes_of // 2) + "a"
    found = ask("serving_default", text=["a b", maximum, more])
    assert told(found, "status") == [b"OK", b"OK", b"TEXT_TOO_LONG"]


@pytest.mark.parametrize("place", ["text", "prefix"])
def test_any_text_of_a_row_may_be_too_long(place):
    texts = {"text": ["a b"] * 3, "prefix": [""] * 3}
    texts[place] = [*texts[place][:1], TOO_LONG, *texts[place][:1]]
    found = ask("align", rank=[0] * 3, **texts)
    assert told(found, "status") == [b"OK", b"TEXT_TOO_LONG", b"OK"]
    assert told(found, "lengths") == [1, 0, 1]
    assert told(found, "source_lengths") == [2, 0, 2]
    np.testing.assert_allclose(found["score"][1], ABSENT)


@pytest.mark.parametrize("place", ["source", "target"])
def test_a_pair_is_looked_at_whole_or_not_at_all(place):
    pairs = {"source": list(PAIRS[0]), "target": list(PAIRS[1])}
    pairs[place][1] = TOO_LONG
    found = ask("align_pair", **pairs)
    assert told(found, "status") == [b"OK", b"TEXT_TOO_LONG", b"OK"]
    np.testing.assert_allclose(
        found["log_probability"],
        [SCORED["log_probability"][0], ABSENT, SCORED["log_probability"][2]],
        rtol=1e-5,
    )
    assert told(found, "lengths") == [3, 0, 1]
    assert told(found, "tokens")[1] == [b""] * 3
    assert not found["word_log_probabilities"][1].numpy().any()


@pytest.mark.parametrize(
    "name", [name for name in INPUTS if name != "contract"]
)
def test_rows_behind_the_last_that_is_looked_at(name):
    whole, cut = ask(name), ask(name, max_rows=2)
    assert told(cut, "status") == [b"OK", b"OK", b"TOO_MANY_ROWS"]
    scores = {"score", "scores", "log_probability"}
    for key in set(whole) - {"status"}:
        assert len(cut[key]) == 3
        nothing = 0
        if cut[key].dtype == tf.string:
            nothing = b""
        elif key in scores:
            nothing = float(np.float32(ABSENT))
        assert set(np.ravel(told(cut, key)[2]).tolist()) == {nothing}, key
    for key in scores & set(whole):
        np.testing.assert_allclose(cut[key][:2], whole[key][:2])


def test_nothing_asked_is_nothing_answered():
    for name in INPUTS:
        empty = {column: [] for column in COLUMNS}
        found = ask(name, **empty)
        assert {len(array) for array in found.values()} == {0}, name


@pytest.mark.parametrize("name", ["score", "align_pair"])
def test_one_source_and_two_targets_are_refused(name):
    function = signatures(graph(), traced=False)[name]
    with pytest.raises(tf.errors.InvalidArgumentError, match="every input"):
        function(tf.constant(["a"]), tf.constant(["x", "y"]))


def test_an_option_that_is_missing_for_a_row_is_refused():
    function = signatures(graph(), traced=False)["translate_with_options"]
    columns = [
        tf.constant(COLUMNS[spec.name], spec.dtype)
        for spec in specs("translate_with_options")
    ]
    columns[1] = columns[1][:2]
    with pytest.raises(tf.errors.InvalidArgumentError, match="every input"):
        function(*columns)


def test_limits_are_at_least_one():
    with pytest.raises(ValueError, match="max_rows=0"):
        ServingLimits(0)


def test_the_probes_are_inputs_of_every_signature():
    found = probes([b"a", b"b", b"c"])
    for name, inputs in INPUTS.items():
        assert {key: t.dtype for key, t in found[name].items()} == inputs
    assert found["score"]["target"].numpy().tolist() == [b"c", b"b", b"a"]
