"""Decoding settings reach the search.

The search records its arguments; the graph around it runs eagerly.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import luong_keras.inference.search_runner as search_runner
import luong_keras.inference.translation_graph as translation_graph
from luong_keras.config import AttentionConfig, DecodingConfig
from luong_keras.decoding.constrained_beam import PhraseProgress
from luong_keras.inference.search_options import BEAM_OPTIONS
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator
from tests.inference.option_tensors import option_tensors
from tests.layer_checks import small_config

pytestmark = pytest.mark.tensorflow

LINES = ["a b a b", "b", "", "a b"]  # of 4, 1, 0 and 2 words


@pytest.fixture(scope="module")
def translators():
    """Return a function that makes translators, with one model per ids."""
    source = WordTokenizer.from_words(["a", "b", "c", "d"])
    target = WordTokenizer.from_words(["v", "w", "x", "y", "z"])
    models = {}

    def make(decoding, **ids):
        key = tuple(ids.items())
        if key not in models:
            config = small_config(
                source_vocabulary_size=8,
                attention=AttentionConfig(kind="global"),
                **ids,
            )
            models[key] = TranslationModel(config)
        return Translator(models[key], source, target, decoding)

    return make


@pytest.fixture
def searches(monkeypatch):
    """Record the arguments of searches, which still run."""
    recorded = []
    search = search_runner.search

    def recording(step, states, strategy, **options):
        recorded.append(
            {name: plain(value) for name, value in options.items()}
            | {
                "strategy": name_and_attributes(strategy),
                "scorers": [
                    name_and_attributes(each) for each in options["scorers"]
                ],
            }
        )
        return search(step, states, strategy, **options)

    monkeypatch.setattr(search_runner, "search", recording)
    return recorded


@pytest.fixture
def search(translators, searches):
    """Return a function that returns the searches of a translation."""

    def run(settings, options=None, lines=LINES, **ids):
        translator = translators(DecodingConfig(**settings), **ids)
        translator.translate_batch(tf.constant(lines), options)
        return searches

    return run


def plain(value):
    if isinstance(value, PhraseProgress):
        value = value.words
    return value.numpy().tolist() if tf.is_tensor(value) else value


def name_and_attributes(thing):
    """Return the class name and the attributes of an object."""
    return type(thing).__name__, {k: plain(v) for k, v in vars(thing).items()}


NORMALISED = ("LengthPenalty", {"exponent": 0.0, "form": "power"})
SIZES = ("num_hypotheses", "stack_size", "sizes", "stack_sizes", "max_size")
BEAM = {"stack_keeps": "best", "num_return_sequences": None}
BEAM |= dict.fromkeys(SIZES, 10)
LENGTHS = {"min_length_ratio": 0.5, "max_length_ratio": 1.5}
# Half of S + 1, and one and a half times; an empty sentence ends at once.
EXPECTED = {
    "strategy": ("Beam", BEAM),
    "scorers": [NORMALISED],
    "max_lengths": [7, 3, 0, 4],
    "max_steps": 7,
    "min_lengths": [2, 1, -1, 1],
    "bos_id": 2,
    "eos_id": 3,
    "pad_id": 0,
}
WORDS = [
    [True] * 4,
    [True, False, False, False],
    [False] * 4,
    [True, True, False, False],
]
# Seeds of the lines: hashes of their texts, shifted by the seed.
HASHES = tf.strings.to_hash_bucket_fast(LINES, 2**31 - 1).numpy().tolist()
SEEDS = {
    seed: [(n + 1_000_003 * seed + 2**31) % 2**32 - 2**31 for n in HASHES]
    for seed in (0, 3000)
}
DRAWN = {
    "num_hypotheses": 10,
    "counts": 10,
    "seeds": SEEDS[0],
    "temperature": 1.0,
    "top_k": None,
    "top_p": 1.0,
}
SAMPLES = {"search": "sampling"}
# Other ids than the usual ones.
IDS = {"source_pad_id": 7, "target_pad_id": 6, "bos_id": 5, "eos_id": 4}


def beam(**changes):
    return {"strategy": ("Beam", BEAM | changes)}


def drawn(**changes):
    # No sample contains `<pad>` or `<s>`, whose ids these are.
    excluded = ("_NoSpecialTokens", {"ids": (0, 2)})
    return {
        "strategy": ("Sampling", DRAWN | changes),
        "scorers": [NORMALISED, excluded],
    }


def penalty(**changes):
    return {"scorers": [("LengthPenalty", NORMALISED[1] | changes)]}


def row(field, value, **changes):
    return {field: ({field: value}, changes)}


# Field: its settings, and the arguments that they change.
ROWS = {
    **row("beam_size", 4, **beam(**dict.fromkeys(SIZES, 4))),
    **row("stack_size", 6, **beam(stack_size=6, stack_sizes=6)),
    **row("stack_keeps", "first", **beam(stack_keeps="first")),
    "search": (SAMPLES, drawn()),
    "temperature": ({**SAMPLES, "temperature": 0.5}, drawn(temperature=0.5)),
    "top_k": ({**SAMPLES, "top_k": 3}, drawn(top_k=3)),
    "top_p": ({**SAMPLES, "top_p": 0.9}, drawn(top_p=0.9)),
    "seed": ({**SAMPLES, "seed": 3000}, drawn(seeds=SEEDS[3000])),
    **row("length_penalty", 0.75, **penalty(exponent=0.75)),
    **row("length_penalty_form", "google", **penalty(form="google")),
    **row(
        *("coverage_penalty", 0.2),
        scorers=[
            NORMALISED,
            ("CoveragePenalty", {"strength": 0.2, "source_mask": WORDS}),
        ],
    ),
    **row(
        *("no_repeat_ngram", 3),
        scorers=[NORMALISED, ("NoRepeatedNgrams", {"size": 3})],
    ),
    **row("min_length_ratio", 0.25, min_lengths=[1, 0, -1, 0]),
    **row("max_length_ratio", 2.0, max_lengths=[10, 4, 0, 6], max_steps=10),
    **row("max_length_offset", 3.5, max_lengths=[9, 5, 0, 6], max_steps=9),
    "no length": (
        {"min_length_ratio": 0.0, "max_length_ratio": None},
        {"max_lengths": [28, 22, 0, 24], "max_steps": 28}
        | {"min_lengths": [0, 0, -1, 0]},
    ),
    "max_source_length": (
        {"max_source_length": 2},
        {"max_lengths": [4, 3, 0, 4], "max_steps": 4}
        | {"min_lengths": [1, 1, -1, 1]},
    ),
}
# Fields with their own tests.
TESTED_ELSEWHERE = {
    "max_beam_size",
    "replace_unknown",
    "alignment_step",
    "batch_size",
    "dictionary",
    "shortlist",
}


def test_all_fields_are_tested():
    fields = {field.name for field in dataclasses.fields(DecodingConfig)}
    assert {*ROWS, *TESTED_ELSEWHERE} - {"no length"} == fields


@pytest.mark.slow_after_first
@pytest.mark.parametrize("row", ["defaults", *ROWS])
def test_settings_change_only_these_arguments(search, row):
    settings, differences = ROWS.get(row, ({}, {}))
    assert search(LENGTHS | settings) == [EXPECTED | differences]


@pytest.mark.slow_after_first
@pytest.mark.parametrize(
    "settings, name",
    [
        ({"beam_size": 1}, "Greedy"),
        ({"beam_size": 1, "stack_size": 1}, "Greedy"),
        ({"beam_size": 1, "stack_size": 2}, "Beam"),
        ({"beam_size": 2, "stack_size": 1}, "Beam"),
    ],
)
def test_beams_of_one_hypothesis_are_greedy(search, settings, name):
    (arguments,) = search(settings, lines=["a"])
    found, settled = arguments["strategy"]
    assert found == name
    if name == "Beam":
        assert settled["num_hypotheses"] == settings["beam_size"]
        assert settled["stack_size"] == settings["stack_size"]


def test_search_uses_the_ids_of_the_model(search):
    (arguments,) = search({"beam_size": 2}, **IDS)
    found = {k: arguments[k] for k in ("bos_id", "eos_id", "pad_id")}
    assert found == {"bos_id": 5, "eos_id": 4, "pad_id": 6}


def test_forced_decoding_uses_the_ids_of_the_model(translators, monkeypatch):
    recorded = []
    forced = translation_graph.forced_decoding

    def recording(step, states, ids, lengths, bos_id):
        recorded.append((plain(ids), plain(lengths), bos_id))
        return forced(step, states, ids, lengths, bos_id)

    monkeypatch.setattr(translation_graph, "forced_decoding", recording)
    translator = translators(DecodingConfig(), **IDS)
    translator.score_batch(tf.constant(["a b", "a"]), tf.constant(["z z", ""]))
    assert recorded == [([[8, 8, 4], [4, 6, 6]], [3, 1], 5)]


def test_source_is_padded_with_the_source_pad_id(translators, monkeypatch):
    translator = translators(DecodingConfig(), **IDS)
    recorded = []
    encode = translator.translation_model.encode

    def recording(source):
        recorded.append(plain(source))
        return encode(source)

    monkeypatch.setattr(translator.translation_model, "encode", recording)
    found = translator.encode_batch(tf.constant(["a b", "b"]))
    assert recorded == [[[4, 5], [5, 7]]]
    assert plain(found["lengths"]) == [2, 1]


def test_options_per_sentence_reach_the_beam(search):
    settings = {
        **LENGTHS,
        "beam_size": 2,
        "length_penalty": 0.75,
        "max_beam_size": 5,
        "stack_keeps": "first",
    }
    options = option_tensors(
        4,
        beam_size=tf.constant([0, 1, 4, 9]),
        length_penalty=tf.constant([-1.0, 0.0, 0.5, 1.0]),
        prefix=tf.constant(["", "x x x x", "", "z"]),
        n_best=tf.constant([0, 1, 3, 9]),
    )
    # Like a signature with only these options.
    options = {name: options[name] for name in BEAM_OPTIONS}
    (arguments,) = search(settings, options)
    chosen_beam = {
        "num_hypotheses": 5,
        "stack_size": 5,
        "stack_keeps": "first",
        # The third sentence has room for no word, so its beam has size 1.
        "sizes": [2, 1, 1, 5],
        "stack_sizes": [2, 1, 1, 5],
        "max_size": 5,
        "num_return_sequences": [search_runner.ALL, 1, 3, 9],
    }
    words = [[0] * 4, [6] * 4, [0] * 4, [8, 0, 0, 0]]
    exponents = {"exponent": [0.75, 0.0, 0.5, 1.0], "form": "power"}
    assert arguments == EXPECTED | {
        "max_lengths": [7, 5, 0, 4],
        "strategy": ("Beam", chosen_beam),
        "scorers": [
            ("Prefix", {"words": words, "lengths": [0, 4, 0, 1]}),
            ("LengthPenalty", exponents),
        ],
    }
    fixed = settings | {"max_beam_size": None, "stack_size": 3}
    _, found = search(fixed, options)[1]["strategy"]
    assert (found["num_hypotheses"], found["stack_size"]) == (2, 3)
    assert found["sizes"] == [2, 1, 1, 2]
    assert found["stack_sizes"] == 3


# Further options per sentence, which need a constrained beam.
CONSTRAINED_OPTIONS = {
    "coverage_penalty": [-1.0, 0.5, 99.0, 0.0],
    "no_repeat_ngram": [-1, 0, 2, 99],
    "required": ["", "x y\tz", "", ""],
    "forbidden": ["v", "", "", "x\ty y"],
}


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", CONSTRAINED_OPTIONS)
def test_options_per_sentence_reach_the_constrained_beam(search, name):
    (arguments,) = search(
        {**LENGTHS, "beam_size": 3}
        | {"coverage_penalty": 0.25, "no_repeat_ngram": 4},
        option_tensors(4, **{name: CONSTRAINED_OPTIONS[name]}),
    )
    kind, choice = arguments["strategy"]
    assert kind == "ConstrainedBeam"
    # Ids of `v w x y z` begin at 4; -1 pads phrases.
    none = [[-1, -1], [-1, -1]]
    required = forbidden = [[[-1]]] * 4
    if name == "required":
        required = [none, [[6, 7], [8, -1]], none, none]
    if name == "forbidden":
        forbidden = [[[4, -1], [-1, -1]], none, none, [[6, -1], [7, 7]]]
    assert choice["phrases"] == required
    scorers = dict(arguments["scorers"])
    assert scorers["ForbiddenPhrases"]["phrases"] == forbidden
    ngrams = [4, 0, 2, 8] if name == "no_repeat_ngram" else [4] * 4
    assert scorers["NoRepeatedNgrams"]["size"] == ngrams
    coverage = [0.25] * 4
    if name == "coverage_penalty":
        coverage = [0.25, 0.5, 10.0, 0.0]
    assert scorers["CoveragePenalty"]["strength"] == coverage
    assert scorers["CoveragePenalty"]["source_mask"] == WORDS
    # Room for the phrases, and for `</s>`.
    longest = [7, 4, 0, 4] if name == "required" else [7, 3, 0, 4]
    assert arguments["max_lengths"] == longest


def test_options_per_sentence_reach_sampling(search):
    beams, samples = search(
        {**LENGTHS, "beam_size": 3, "top_k": 7, "top_p": 0.75, "seed": 3000},
        option_tensors(
            4,
            temperature=[0.0, 0.001, 99.0, -1.0],
            n_best=[0, 2, 0, 0],
            beam_size=[0, 1, 2, 0],
            top_k=[-1, 0, 5, -1],
            top_p=[-1.0, 0.5, 2.0, -1.0],
            seed=[-1, 0, 1, -1],
        ),
    )
    assert beams["strategy"][0] == "ConstrainedBeam"
    assert beams["max_lengths"] == [7, 0, 0, 4]
    # The third sentence is empty, so nothing is drawn.
    assert samples["max_lengths"] == [0, 3, 0, 0]
    kind, choice = samples["strategy"]
    assert kind == "Sampling"
    assert choice["num_hypotheses"] == 2
    assert choice["counts"] == [1, 2, 1, 1]
    np.testing.assert_allclose(choice["temperature"], [1.0, 0.001, 1.0, 1.0])
    assert choice["top_k"] == [7, 0, 5, 7]
    np.testing.assert_allclose(choice["top_p"], [0.75, 0.5, 1.0, 0.75])
    mixed = [SEEDS[3000][0], SEEDS[0][1], SEEDS[0][2], SEEDS[3000][3]]
    mixed[2] = (mixed[2] + 1_000_003 + 2**31) % 2**32 - 2**31
    assert choice["seeds"] == mixed


@pytest.mark.slow
def test_lines_are_translated_in_batches_of_batch_size(
    translators, monkeypatch
):
    translator = translators(DecodingConfig(batch_size=3, beam_size=1))
    sizes = []

    def recording(lines, count):
        sizes.append(len(lines))
        return translator.translate_batch(lines, num_return_sequences=count)

    search = translator._line_search
    monkeypatch.setattr(search, "_configured_search", recording)
    assert len(translator.translate(["a"] * 7)) == 7
    # Threads translate the batches after the first.
    assert sorted(sizes) == [1, 3, 3]


@pytest.mark.slow
def test_number_of_translations_equals_beam_outputs(
    eager, translators, searches
):
    translator = translators(DecodingConfig(beam_size=3))
    translator.translate(LINES)
    found = translator.nbest(LINES)
    two_best = translator.nbest(LINES, n_best=2)
    strategies = [search["strategy"][1] for search in searches]
    counts = [each["num_return_sequences"] for each in strategies]
    assert counts == [1, search_runner.ALL, [2] * 4]
    assert [len(each) for each in found] == [3, 3, 1, 3]
    assert [len(each) for each in two_best] == [2, 2, 1, 2]
