"""Every setting of the search arrives where text is translated.

The search itself notes its arguments; the graph around it runs eagerly.
"""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

import luong_keras.inference.translation_graph as translation_graph
from luong_keras.config import AttentionConfig, DecodingConfig, ModelConfig
from luong_keras.inference.translation_graph import SearchOptions
from luong_keras.models.translation_model import TranslationModel
from luong_keras.text.word_tokenizer import WordTokenizer
from luong_keras.translator import Translator

pytestmark = pytest.mark.tensorflow

LINES = ["a b a b", "b", "", "a b"]  # of 4, 1, 0 and 2 words
MODEL = {
    "source_vocabulary_size": 8,
    "target_vocabulary_size": 9,
    "embedding_size": 3,
    "units": 4,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "attention": AttentionConfig(kind="global"),
}


@pytest.fixture(scope="module")
def translators():
    """A function of decoding settings and ids: one model for each ids."""
    source = WordTokenizer.from_words(["a", "b", "c", "d"])
    target = WordTokenizer.from_words(["v", "w", "x", "y", "z"])
    models = {}

    def make(decoding, **ids):
        key = tuple(ids.items())
        if key not in models:
            config = ModelConfig(**MODEL, **ids)
            models[key] = TranslationModel(config)
        return Translator(models[key], source, target, decoding)

    return make


@pytest.fixture
def searches(monkeypatch):
    """Notes the arguments of searches, which still run."""
    noted = []

    def spy(name):
        search = getattr(translation_graph, name)

        def noting(step, states, **options):
            noted.append((name, {k: plain(v) for k, v in options.items()}))
            return search(step, states, **options)

        monkeypatch.setattr(translation_graph, name, noting)

    spy("beam_search")
    spy("greedy_search")
    return noted


def plain(value):
    return value.numpy().tolist() if tf.is_tensor(value) else value


def options_for(count, **changes):
    """What nobody chooses, but for the changes."""
    values = {
        "beam_size": tf.zeros([count], tf.int32),
        "n_best": tf.zeros([count], tf.int32),
        "length_penalty": -tf.ones([count]),
        "prefix": tf.fill([count], ""),
        "replace_unknown": -tf.ones([count], tf.int32),
    }
    return SearchOptions(**{**values, **changes})


# (S + 1) by half and by one and a half; an empty sentence ends at once.
EXPECTED = {
    "max_lengths": [7, 3, 0, 4],
    "max_steps": 7,
    "min_lengths": [2, 1, -1, 1],
    "length_penalty": 0.0,
    "bos_id": 2,
    "eos_id": 3,
    "pad_id": 0,
    "beam_size": 10,
    "stack_size": None,
    "stack_keeps": "best",
}
# For every field its values, and what they change.
ROWS = {
    "beam_size": ({"beam_size": 4}, {"beam_size": 4}),
    "stack_size": ({"stack_size": 6}, {"stack_size": 6}),
    "stack_keeps": ({"stack_keeps": "first"}, {"stack_keeps": "first"}),
    "length_penalty": ({"length_penalty": 0.75}, {"length_penalty": 0.75}),
    "min_length_ratio": (
        {"min_length_ratio": 0.25},
        {"min_lengths": [1, 0, -1, 0]},
    ),
    "max_length_ratio": (
        {"max_length_ratio": 2.0},
        {"max_lengths": [10, 4, 0, 6], "max_steps": 10},
    ),
    "max_source_length": (
        {"max_source_length": 2},
        {
            "max_lengths": [4, 3, 0, 4],
            "max_steps": 4,
            "min_lengths": [1, 1, -1, 1],
        },
    ),
}
# These have tests of their own.
BEYOND = {
    "max_beam_size",
    "replace_unknown",
    "alignment_step",
    "batch_size",
    "dictionary",
}


def test_no_field_is_left_out():
    fields = {field.name for field in dataclasses.fields(DecodingConfig)}
    assert {*ROWS, *BEYOND} == fields


@pytest.mark.parametrize("row", ["nothing", *ROWS])
def test_a_setting_changes_these_arguments_alone(translators, searches, row):
    settings, differences = ROWS.get(row, ({}, {}))
    translator = translators(DecodingConfig(**settings))
    translator.translate_batch(tf.constant(LINES))
    assert searches == [("beam_search", EXPECTED | differences)]


@pytest.mark.parametrize(
    "settings, name",
    [
        ({"beam_size": 1}, "greedy_search"),
        ({"beam_size": 1, "stack_size": 1}, "greedy_search"),
        ({"beam_size": 1, "stack_size": 2}, "beam_search"),
        ({"beam_size": 2, "stack_size": 1}, "beam_search"),
    ],
)
def test_one_hypothesis_is_searched_greedily(
    translators, searches, settings, name
):
    translators(DecodingConfig(**settings)).translate_batch(tf.constant(["a"]))
    ((found, arguments),) = searches
    assert found == name
    if name == "beam_search":
        sizes = {key: arguments[key] for key in ("beam_size", "stack_size")}
        assert sizes == settings


def test_the_ids_of_the_model_are_those_of_the_search(translators, searches):
    ids = {"source_pad_id": 7, "target_pad_id": 6, "bos_id": 5, "eos_id": 4}
    translator = translators(DecodingConfig(beam_size=2), **ids)
    translator.translate_batch(tf.constant(LINES))
    ((_, arguments),) = searches
    found = {k: arguments[k] for k in ("bos_id", "eos_id", "pad_id")}
    assert found == {"bos_id": 5, "eos_id": 4, "pad_id": 6}


def test_the_ids_of_the_model_are_those_of_a_given_text(
    translators, monkeypatch
):
    noted = []
    forced = translation_graph.forced_decoding

    def noting(step, states, ids, lengths, bos_id):
        noted.append((plain(ids), plain(lengths), bos_id))
        return forced(step, states, ids, lengths, bos_id)

    monkeypatch.setattr(translation_graph, "forced_decoding", noting)
    ids = {"source_pad_id": 7, "target_pad_id": 6, "bos_id": 5, "eos_id": 4}
    translator = translators(DecodingConfig(), **ids)
    translator.score_batch(tf.constant(["a b", "a"]), tf.constant(["z z", ""]))
    assert noted == [([[8, 8, 4], [4, 6, 6]], [3, 1], 5)]


def test_the_source_is_padded_with_its_own_id(translators, monkeypatch):
    ids = {"source_pad_id": 7, "target_pad_id": 6, "bos_id": 5, "eos_id": 4}
    translator = translators(DecodingConfig(), **ids)
    noted = []
    encode = translator.translation_model.encode

    def noting(source):
        noted.append(plain(source))
        return encode(source)

    monkeypatch.setattr(translator.translation_model, "encode", noting)
    found = translator.encode_batch(tf.constant(["a b", "b"]))
    assert noted == [[[4, 5], [5, 7]]]
    assert plain(found["lengths"]) == [2, 1]


def test_what_a_request_chooses(translators, searches):
    settings = DecodingConfig(
        beam_size=2, max_beam_size=5, length_penalty=0.75, stack_keeps="first"
    )
    chosen = options_for(
        4,
        beam_size=tf.constant([0, 1, 4, 9]),
        length_penalty=tf.constant([-1.0, 0.0, 0.5, 1.0]),
        prefix=tf.constant(["", "x x x x", "", "z"]),
    )
    translators(settings).translate_batch(tf.constant(LINES), chosen)
    ((name, arguments),) = searches
    assert name == "beam_search"
    assert arguments == {
        "max_lengths": [7, 5, 0, 4],
        "max_steps": 7,
        "min_lengths": [2, 1, -1, 1],
        "length_penalty": [0.75, 0.0, 0.5, 1.0],
        "bos_id": 2,
        "eos_id": 3,
        "pad_id": 0,
        "beam_size": 5,
        "stack_size": None,
        "stack_keeps": "first",
        "beam_sizes": [2, 1, 4, 5],
        "stack_sizes": [2, 1, 4, 5],
        "prefix": [[0] * 4, [6] * 4, [0] * 4, [8, 0, 0, 0]],
        "prefix_lengths": [0, 4, 0, 1],
    }
    fixed = dataclasses.replace(settings, max_beam_size=None, stack_size=3)
    translators(fixed).translate_batch(tf.constant(LINES), chosen)
    _, arguments = searches[1]
    assert (arguments["beam_size"], arguments["stack_size"]) == (2, 3)
    assert arguments["beam_sizes"] == [2, 1, 2, 2]
    assert arguments["stack_sizes"] is None


def test_so_many_lines_are_translated_at_once(translators, monkeypatch):
    translator = translators(DecodingConfig(batch_size=3, beam_size=1))
    sizes = []

    def noting(lines):
        sizes.append(len(lines))
        return translator.translate_batch(lines)

    monkeypatch.setattr(translator, "_translate", noting)
    assert len(translator.translate(["a"] * 7)) == 7
    assert sizes == [3, 3, 1]


# Unknown words. The model writes what its weights say: here only `<unk>`s,
# each aligned with the word that stands where it does.


def words_of(translator, line):
    ids = tf.constant([[[1, 1, 4]]])
    alignments = np.zeros((1, 1, 3, 2), "float32")
    alignments[0, 0, 0, 0] = alignments[0, 0, 1, 1] = 1.0
    alignments[0, 0, 2, 0] = 1.0
    found = translator._tokens(
        Found(ids, tf.constant(alignments)), tf.constant([line]), None, None
    )
    return [token.decode() for token in found.numpy()[0, 0]]


@dataclasses.dataclass
class Found:
    ids: tf.Tensor
    alignments: tf.Tensor


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, ["p", "q", "v"]),
        ({"replace_unknown": False}, ["<unk>", "<unk>", "v"]),
        # The step after the word has read it.
        ({"alignment_step": "reads"}, ["q", "p", "v"]),
        ({"dictionary": True}, ["P", "q", "v"]),
    ],
)
def test_unknown_words(translators, tmp_path, settings, expected):
    if settings.get("dictionary"):
        path = tmp_path / "dictionary"
        path.write_text("p P 0.5\n")
        settings = {"dictionary": str(path)}
    translator = translators(DecodingConfig(**settings))
    assert words_of(translator, ["p", "q"]) == expected


def test_links_are_of_the_step_that_aligns(translators, monkeypatch):
    for step in ("produces", "reads"):
        translator = translators(DecodingConfig(alignment_step=step))
        alignments = np.zeros((1, 1, 3, 2), "float32")
        alignments[0, 0, [0, 1, 2], [0, 1, 1]] = 1.0
        answer = {
            "translations": tf.constant([["v w"]]),
            "scores": tf.constant([[-1.0]]),
            "tokens": tf.constant([[["v", "w", ""]]]),
            "lengths": tf.constant([[2]]),
            "alignments": tf.constant(alignments),
            "source_tokens": tf.constant([["a", "b"]]),
            "source_lengths": tf.constant([2]),
            "truncated": tf.constant([False]),
        }
        monkeypatch.setattr(translator, "_translate", lambda _, a=answer: a)
        ((translation,),) = translator.nbest(["a b"])
        links = [tuple(link) for link in translation.links]
        expected = {"produces": [(0, 0), (1, 1)], "reads": [(1, 0), (1, 1)]}
        assert links == expected[step]
