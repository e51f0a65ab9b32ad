"""Search options of each sentence, in a translator."""

import itertools

import numpy as np
import pytest
from keras import ops

from luong_keras.config import DecodingConfig
from luong_keras.data.sources.source_kinds import one_line
from luong_keras.decoding import DecodingStrategy, Sampling, Scorer
from luong_keras.decoding.strategy import Greedy
from luong_keras.inference import text_translator
from luong_keras.inference.search_options import SEARCH_OPTIONS
from luong_keras.truncation import TruncationWarning
from tests.inference.variants import (
    all_tokens,
    check_same,
    tokens_of,
    variant_of,
)
from tests.serving.tiny_translator import tiny_translator

pytestmark = pytest.mark.usefixtures("eager")
SENTENCES = ["the cat sees a dog .", "a house .", "the dog sees the cat", ""]


@pytest.fixture(scope="module")
def translator():
    return tiny_translator(max_beam_size=6)


def test_search_options_are_complete():
    no_settings = {"n_best", "prefix", "required", "forbidden"}
    assert {*SEARCH_OPTIONS} - no_settings <= {*vars(DecodingConfig())}


def test_samples_do_not_depend_on_the_end_of_the_line(translator):
    options = {"temperature": 1.5, "seed": 7, "n_best": 3}
    drawn = tokens_of(translator.nbest(SENTENCES, **options))
    for end in ("\n", "\r\n"):
        lines = [line + end for line in SENTENCES]
        assert tokens_of(translator.nbest(lines, **options)) == drawn


@pytest.mark.slow
def test_samples_do_not_depend_on_the_batch(translator):
    options = {"temperature": 1.5, "seed": 7, "n_best": 3}
    found = translator.nbest(SENTENCES, **options)
    assert [len(row) for row in found] == [3, 3, 3, 1]
    drawn = tokens_of(found)
    for sentence, row in zip(SENTENCES, drawn, strict=True):
        assert tokens_of(translator.nbest([sentence], **options)) == [row]
    others = translator.nbest(SENTENCES, **options | {"seed": 8})
    assert tokens_of(others) != drawn
    # As settings of the translator, and with an option for each sentence.
    settings = {"temperature": 1.5, "seed": 7, "beam_size": 3}
    sampling = variant_of(translator, search="sampling", **settings)
    assert tokens_of(sampling.nbest(SENTENCES)) == drawn
    best = [row[0].text for row in found]
    assert sampling.translate(SENTENCES) == best
    assert sampling.translate(SENTENCES, seed=7) == best
    mixed = translator.nbest(
        SENTENCES, temperature=[0.0, 1.5, 0.0, 0.0], seed=7, n_best=3
    )
    beams = tokens_of(translator.nbest(SENTENCES, n_best=3))
    assert tokens_of(mixed)[:3] == [beams[0], drawn[1], beams[2]]


def test_beams_beside_more_samples_have_no_empty_translations(translator):
    options = {"temperature": [0.0, 1.5], "beam_size": [1, 2]}
    found = translator.nbest(SENTENCES[:2], **options)
    assert [len(row) for row in found] == [1, 2]


@pytest.mark.slow
def test_beam_options_are_the_same_in_every_search(translator):
    options = {
        "beam_size": [5, 1, 2, 5],
        "n_best": [2, 1, 1, 2],
        "length_penalty": [0.0, 1.0, 0.5, 1.0],
        "prefix": ["das", "", "ein", ""],
        "replace_unknown": [1, 0, 1, 0],
    }
    found = translator.nbest(SENTENCES, **options)
    # None leaves the setting of a line.
    options["prefix"] = ["das", None, "ein", None]
    same = translator.nbest(SENTENCES, **options, temperature=[0.0, None] * 2)
    check_same(found, same, rtol=1e-5)


@pytest.mark.slow
def test_required_and_forbidden_phrases(translator):
    found = translator.nbest(
        SENTENCES,
        required=["Haus\tdie Katze", "", "einen Hund", "Haus"],
        forbidden=["", "Haus\t.", "sieht", ""],
        beam_size=4,
    )
    for t in found[0]:
        assert "Haus" in t.tokens and "die Katze" in " ".join(t.tokens)
    assert not {"Haus", "."} & all_tokens(found[1:2])
    for t in found[2]:
        assert "einen Hund" in t.text and "sieht" not in t.tokens
    # An empty sentence has an empty translation.
    assert found[3][0].text == ""


@pytest.mark.parametrize(
    "options, error, message",
    [
        ({"beam": 3}, TypeError, "Received: beam"),
        ({"beam_size": 7}, ValueError, "at most 6"),
        ({"top_k": [1, 2]}, ValueError, "one value or 4"),
        ({"temperature": "hot"}, ValueError, "float32"),
        ({"temperature": float("nan")}, ValueError, "float32"),
        ({"beam_size": 2.5}, ValueError, "int32"),
        ({"required": ["a", "b"]}, ValueError, "of type str"),
        (
            {"forbidden": "\t".join("abcdefghi")},
            ValueError,
            r"at most 8 phrases in `forbidden`.*Received: 9, 'a\\tb",
        ),
        ({"required": ["", "a\t" * 9, "", ""]}, ValueError, "Received: 9"),
        ({"length_penalty": 3.0}, ValueError, "from 0 to 2.0.*Received: 3.0"),
        # The numbers that leave an option of an export unset.
        ({"length_penalty": -1}, ValueError, "from 0 to 2.0.*Received: -1"),
        ({"no_repeat_ngram": -1}, ValueError, "from 0 to 8.*Received: -1"),
        ({"seed": [None, -1, 0, 1]}, ValueError, "or None.*Received: -1"),
        ({"no_repeat_ngram": 20}, ValueError, "from 0 to 8.*Received: 20"),
        ({"top_p": [0.9, 90, 1, 1]}, ValueError, "to 1.0.*Received: 90.0"),
        ({"top_p": 0.0}, ValueError, "`top_p` from 1e-06"),
        ({"beam_size": -5}, ValueError, "`beam_size` from 0"),
        (
            {"seed": 3, "top_p": 0.9, "temperature": 0.0},
            ValueError,
            "a temperature with options of samples.*seed, top_p without",
        ),
        (
            {"required": ["", "Haus", "", ""], "temperature": 0.5},
            ValueError,
            "required phrases in a beam search.*'Haus' with .* of 0.5",
        ),
        (
            {"beam_size": 4, "temperature": 0.5},
            ValueError,
            "beam_size in a beam search.*beam_size=4 in a search that",
        ),
    ],
)
def test_wrong_options_are_refused(translator, options, error, message):
    with pytest.raises(error, match=message):
        translator.translate(SENTENCES, **options)


@pytest.mark.parametrize("lines", ["the cat", np.array("the cat"), None])
def test_single_objects_are_refused(translator, lines):
    for method in (translator.translate, translator.translate_lines):
        with pytest.raises(TypeError, match="(cat|None).*Put it into"):
            method(lines)


@pytest.mark.parametrize(
    "wrong, error, message",
    [
        (None, TypeError, "str or bytes. Received: None"),
        (3, TypeError, "str or bytes. Received: 3"),
        (float("nan"), TypeError, "str or bytes. Received: nan"),
        ("a\ud800", ValueError, r"without lone surrogates.*'a\\ud800'"),
    ],
)
def test_wrong_lines_are_named_by_their_place(
    translator, monkeypatch, wrong, error, message
):
    lines = ["a cat", "", wrong]
    for answer in (
        translator.translate,
        translator.nbest,
        lambda lines: translator.score(lines, ["x"] * 3),
        lambda lines: translator.score(["x"] * 3, lines),
        lambda lines: translator.links(["x"] * 3, lines),
    ):
        with pytest.raises(error, match=f"{message} at place 2"):
            answer(lines)
    # In a stream, the place counts all lines.
    monkeypatch.setattr(text_translator, "_BATCHES_AHEAD", 2)
    size = 2 * translator.decoding.batch_size
    with pytest.raises(error, match=f"{message} at place {size + 1}"):
        [*translator.translate_lines([*[""] * (size + 1), wrong])]
    assert len(translator.translate(iter(["a cat", ""]))) == 2


@pytest.mark.slow
def test_control_characters_are_spaces_as_in_training_text(translator):
    text = "the\x00cat\x07 \x7fsees\x85a\u2028dog"
    (found,) = translator.nbest([text])
    assert found[0].source_tokens == one_line(text).split()


@pytest.mark.parametrize("text", ["\ufeffthe cat", "the \ufeffcat\ufeff"])
def test_byte_order_marks_are_removed_as_from_files(translator, text):
    (scored, expected) = translator.score([text, "the cat"], ["a", "a"])
    assert scored.source_tokens == expected.source_tokens == ["the", "cat"]


@pytest.mark.slow
def test_coverage_and_repetition_may_be_settings_or_options(translator):
    plain = translator.nbest(SENTENCES[:3])
    limits = {"beam_size": 6, "no_repeat_ngram": 1, "coverage_penalty": 2.0}
    found = variant_of(translator, **limits).nbest(SENTENCES[:3])
    assert any(len(set(t.tokens)) < len(t.tokens) for row in plain for t in row)
    for tokens in itertools.chain(*tokens_of(found)):
        known = [token for token in tokens if token != "<unk>"]
        assert len({*known}) == len(known)
    check_same(translator.nbest(SENTENCES[:3], **limits), found)


class NoDog(Scorer):
    """User-defined scorer that forbids the fourth word from the end."""

    def suppressed(self, states, position, vocabulary_size):
        return ops.arange(vocabulary_size) == vocabulary_size - 4


class SecondBest(Greedy):
    """User-defined strategy: the second best word, or `</s>` if it is best."""

    def pick(self, turn, barred):
        logits, size = turn.logits, turn.logits.shape[-1]
        best = ops.cast(ops.argmax(logits, axis=-1), "int32")
        first = ops.arange(size) == best[..., None]
        others = ops.where(first, -1e30, logits)
        second = ops.cast(ops.argmax(others, axis=-1), "int32")
        words = ops.where(best == turn.eos_id, best, second)
        gains = ops.log_softmax(logits, axis=-1)
        taken = ops.take_along_axis(gains, words[..., None], axis=-1)
        return taken[..., 0], words


@pytest.mark.slow
def test_user_defined_scorers_and_strategies(translator):
    assert isinstance(SecondBest(), DecodingStrategy)
    dogless = variant_of(translator, parts={"scorers": [NoDog()]})
    words = set()
    for options in ({}, {"temperature": 2.0, "n_best": 3}, {"beam_size": 2}):
        words |= all_tokens(translator.nbest(SENTENCES, **options))
        assert "Hund" not in all_tokens(dogless.nbest(SENTENCES, **options))
    assert "Hund" in words
    for parts in ({"strategy": "beam"}, {"scorers": SecondBest()}):
        with pytest.raises(ValueError, match="of luong_keras.decoding, as in"):
            variant_of(translator, parts=parts)
    second = variant_of(translator, parts={"strategy": SecondBest()})
    found = second.translate(SENTENCES)
    for other in (translator, variant_of(translator, beam_size=1)):
        assert found != other.translate(SENTENCES)
    # None is no option.
    assert second.translate(SENTENCES, prefix=None, n_best=None) == found


@pytest.mark.parametrize(
    "options, most",
    [
        ({"n_best": 4}, 3),
        ({"n_best": [1, 5, 2, 4], "beam_size": [0, 5, 2, 3]}, 3),
        ({"n_best": 7, "beam_size": 6}, 6),
        ({"n_best": 7, "temperature": 1.0}, 6),
    ],
)
def test_n_best_above_the_limit_is_refused(translator, options, most):
    with pytest.raises(ValueError, match=f"n_best of at most {most}, .*with_"):
        translator.nbest(SENTENCES, **options)


def test_one_translation_has_no_n_best(translator):
    sampling = variant_of(translator, search="sampling")
    with pytest.raises(TypeError, match="Received: n_best=2. Use `nbest`"):
        translator.translate(SENTENCES, n_best=2)
    with pytest.raises(TypeError, match="Received: n_best=2. Use `nbest`"):
        next(translator.translate_lines(SENTENCES, n_best=2))
    with pytest.raises(TypeError, match="Received: n_best=2. Use `nbest`"):
        sampling.translate(SENTENCES, n_best=2)


@pytest.mark.slow
def test_configured_n_best_raises_the_limit(translator):
    wide = variant_of(translator, n_best=7, max_beam_size=7)
    assert len(wide.nbest(SENTENCES, n_best=7)[0]) == 7


@pytest.fixture
def sampling(translator):
    """Make a translator that draws 8 samples, and no more than 9."""
    settings = {"search": "sampling", "beam_size": 8, "max_beam_size": 9}
    return variant_of(translator, **settings)


@pytest.mark.slow
def test_configured_samples_may_exceed_the_beam(sampling):
    found = sampling.nbest(SENTENCES[:1], n_best=9)
    assert [len(row) for row in found] == [9]
    with pytest.raises(ValueError, match="n_best of at most 9"):
        sampling.nbest(SENTENCES, n_best=10)
    with pytest.raises(ValueError, match="n_best of at most 8"):
        sampling.nbest(SENTENCES, n_best=9, temperature=0.0)


def test_the_stack_limits_configured_samples_as_well(sampling):
    few = variant_of(sampling, stack_size=3)
    for options in ({}, {"temperature": 1.0}):
        assert [len(row) for row in few.nbest(SENTENCES[:1], **options)] == [3]
    with pytest.raises(ValueError, match="n_best of at most 3"):
        few.nbest(SENTENCES, n_best=4)


@pytest.mark.parametrize(
    "options",
    [
        {"prefix": "das Haus das Haus", "no_repeat_ngram": 1},
        {"prefix": "das Haus", "forbidden": "Haus"},
    ],
)
def test_lines_without_a_translation_are_reported(translator, options):
    with pytest.warns(TruncationWarning, match="Without a tr.*: 3 lines") as w:
        found = translator.nbest(SENTENCES, **options)
    assert [len(row) for row in found] == [0, 0, 0, 1]
    (warning,) = w
    assert warning.message.places.absent == 3


def test_a_long_text_ends_with_a_whole_character():
    translator = tiny_translator(unknown_logit=50.0)
    # 64 bytes a token: the cut is inside of an é.
    text = "x" + "é" * 600
    with pytest.warns(TruncationWarning):
        (found,) = translator.nbest([text])[0][:1]
    assert found.source_tokens == ["x" + "é" * 287]
    assert "\ufffd" not in found.text and found.text
    # Invalid bytes of other texts keep their sign.
    (found,) = translator.nbest([b"caf\xe9"])[0][:1]
    assert found.source_tokens == ["caf\ufffd"]


def test_probabilities_that_are_not_finite_are_reported():
    translator = tiny_translator()
    bias = translator.translation_model.projection.bias
    bias.assign(np.full(bias.shape, np.nan))
    for options in ({}, {"beam_size": 1}, {"temperature": 1.0}):
        with pytest.warns(TruncationWarning, match="Without.*: 3 lines.*finit"):
            assert translator.translate(SENTENCES, **options) == [""] * 4


def test_samples_have_no_padding_and_no_beginning(translator, sampling):
    options = {"temperature": 10.0, "seed": 3, "n_best": 6}
    for found in (
        translator.nbest(SENTENCES, **options),
        sampling.nbest(SENTENCES, temperature=10.0),
        variant_of(sampling, temperature=10.0).nbest(SENTENCES),
        variant_of(
            sampling, parts={"strategy": Sampling(6, temperature=10.0)}
        ).nbest(SENTENCES),
    ):
        tokens = all_tokens(found)
        assert len(tokens) > 5
        assert not tokens & {"<pad>", "<s>"}
