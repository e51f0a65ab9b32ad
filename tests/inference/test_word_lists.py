"""Replacement of unknown words, and searches limited to a shortlist."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from luong_keras.config import DecodingConfig, ModelConfig
from luong_keras.decoding import Beam, ConstrainedBeam, LengthPenalty
from luong_keras.inference import word_lists
from luong_keras.inference.word_lists import Shortlist, UnknownWords
from luong_keras.layers.embedding import Embedding
from luong_keras.layers.output_projection import OutputProjection
from luong_keras.models.translation_model import DecodingStep
from luong_keras.special_tokens import UNK_ID
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.word_tokenizer import WordTokenizer
from tests.inference.variants import all_tokens, check_same, variant_of
from tests.serving.tiny_translator import (
    SOURCE_WORDS,
    TARGET_WORDS,
    tiny_translator,
)

SENTENCES = ["the cat sees a dog .", "a house", "the dog", "", "cat ?"]
LEXICON = """the die 0.6
the das 0.4
cat Katze 0.9
cat sieht 0.05
dog Hund 1
. . 1
<unk> Haus 0.5
the Haus 0.1
nobody einen 1
cat Kater 0.9
"""
# The only frequent tokens by default: `make` sets four.
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>"]
NAMES = [*SPECIAL, *TARGET_WORDS]
# The two best translations of each word of the sentences, in the lexicon.
ALLOWED = [*SPECIAL, "die", "das", "Katze", "sieht", "Hund", ".", "Haus"]


@pytest.fixture
def lexicon(tmp_path):
    path = tmp_path / "lexicon"
    path.write_text(LEXICON)
    return str(path)


@pytest.fixture
def make(lexicon, monkeypatch):
    def make(frequent=4, translations=2, **settings):
        monkeypatch.setattr(word_lists, "MIN_FREQUENT_WORDS", frequent)
        monkeypatch.setattr(word_lists, "MAX_TRANSLATIONS", translations)
        defaults = {
            "beam_size": 2,
            "replace_unknown": False,
            "shortlist": lexicon,
        }
        return tiny_translator(**(defaults | settings))

    return make


@pytest.fixture
def others_impossible(monkeypatch):
    """Make words that are not allowed impossible in full searches."""
    before = DecodingStep.__call__

    def call(self, ids, states, position):
        logits, *rest = before(self, ids, states, position)
        assert self.words is None
        allowed = np.isin(NAMES, ALLOWED)
        return ops.where(allowed, logits, -1e9), *rest

    monkeypatch.setattr(DecodingStep, "__call__", call)


def test_bytes_are_not_the_frequent_words_of_a_shortlist(lexicon):
    source = WordTokenizer.from_words(SOURCE_WORDS)
    target = SentencePieceTokenizer.train(
        ["einen Hund sieht die Katze"] * 9, 280, byte_fallback=True
    )
    Path(lexicon).write_text("the \u2581 0.5\n", "utf-8")
    shortlist = Shortlist(
        DecodingConfig(shortlist=lexicon), ModelConfig(9, 900), source, target
    )
    assert shortlist.num_frequent == 4 + 256 + 256


@pytest.mark.slow
def test_shortlist_has_translations_and_frequent_words(make):
    translator = make()

    def words(line, *extra, translator=translator):
        ids = translator.source_tokenizer.encode([line]).flat_values
        found = translator.shortlist.words(ids, *extra).numpy().tolist()
        assert found == sorted(found)
        return {NAMES[i] for i in found[4:]}

    assert words("the cat") == {"die", "das", "Katze", "sieht"}
    # `a` and `sees` have no translation in the lexicon; `<unk>` has one.
    assert words("a sees . ?") == {".", "Haus"}
    assert words("") == set()
    assert words("", tf.constant([[11, 0], [5, 5]])) == {"das", "Katze"}
    # The first words of the vocabulary are in every shortlist.
    more = make(frequent=6, translations=1)
    found = words("the cat dog", translator=more)
    assert found == {"die", "Katze", "Hund"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [
        {"beam_size": 2, "length_penalty": 1.0},
        {"beam_size": 1},
        {"search": "sampling", "temperature": 0.7, "top_p": 0.9},
        {"no_repeat_ngram": 1},
    ],
)
def test_shortlist_search_equals_full_search_without_other_words(
    make, settings, request
):
    # In a graph, in which the number of words is unknown.
    settings = settings | {"batch_size": 8}
    found = make(**settings).nbest(SENTENCES)
    request.getfixturevalue("others_impossible")
    expected = make(**settings, shortlist=None).nbest(SENTENCES)
    assert all_tokens(expected) <= {*ALLOWED}
    assert len(all_tokens(expected)) > 3
    check_same(found, expected)


@pytest.mark.slow
def test_shortlist_of_all_words_changes_nothing(eager, make):
    every = make(frequent=99).nbest(SENTENCES)
    check_same(every, make(shortlist=None).nbest(SENTENCES))


def test_required_words_and_prefixes_extend_the_shortlist(eager, make):
    translator = make()
    assert "einen" not in ALLOWED
    options = {"required": ["", "einen", "", "", ""]}
    assert "einen" in translator.translate(SENTENCES, **options)[1]
    begun = translator.translate(SENTENCES, prefix=["einen"] * 5)
    assert [text.split()[0] for text in begun if text] == ["einen"] * 4
    first, second, *_ = translator.translate(SENTENCES[:1])[0].split()
    (without,) = translator.translate(
        SENTENCES[:1], forbidden=[f"{first}\t{second}\teinen"]
    )
    assert not {first, second} & {*without.split()}


def test_ensembles_may_have_a_shortlist(eager, make):
    one = make()
    ensemble = variant_of(one, [one.translation_model] * 2)
    check_same(ensemble.nbest(SENTENCES), one.nbest(SENTENCES))


@pytest.mark.parametrize("width", [6, 8])
@pytest.mark.parametrize("tied", [True, False])
def test_logits_of_some_words_equal_those_of_all_words(tied, width):
    embedding = Embedding(20, width) if tied else None
    layer = OutputProjection(20, embedding=embedding, use_bias=True)
    vectors = np.random.default_rng(0).normal(size=(2, 1, 6)).astype("float32")
    every = layer(vectors).numpy()
    layer.bias.assign(np.arange(20))
    every = every + np.arange(20)
    words = np.array([0, 3, 17])
    few = layer.logits(vectors, layer.loop_weights(words))
    np.testing.assert_allclose(few, every[..., words], rtol=1e-5)


@pytest.mark.parametrize(
    "text, settings, message",
    [
        (LEXICON, {"beam_size": 30}, "of at least 32 tokens"),
        ("tür door 1\n", {}, "has no token of these vocabularies"),
        (
            "the die 1\nthe die\n",
            {},
            "Line 2 of the dictionary .* three fields",
        ),
        ("the die p\n", {}, "Line 1 of .*Received: 'the die p'"),
    ],
)
def test_wrong_shortlists_are_refused(make, tmp_path, text, settings, message):
    path = tmp_path / "wrong"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        make(shortlist=str(path), **settings)


def test_missing_files_are_named(make):
    with pytest.raises(FileNotFoundError, match="nowhere., which does"):
        make(shortlist="nowhere")


@pytest.mark.parametrize(
    "parts, received",
    [
        ({"scorers": [LengthPenalty(1.0)]}, "1 scorer"),
        ({"strategy": ConstrainedBeam(2, [[[9]]], [[1]])}, "strategy=Constr"),
    ],
)
def test_ids_of_the_vocabulary_exclude_shortlists(make, parts, received):
    one = make()
    with pytest.raises(ValueError, match=f"Received: {received}.* shortlist="):
        variant_of(one, parts=parts)


@pytest.mark.slow
def test_a_strategy_without_ids_may_have_a_shortlist(make):
    one = make()
    other = variant_of(one, parts={"strategy": Beam(one.decoding.beam_size)})
    assert other.translate(SENTENCES) == one.translate(SENTENCES)


def test_a_strategy_and_a_shortlist_need_enough_words(make):
    one = make()
    with pytest.raises(ValueError, match="vocabulary of at least 402 tokens"):
        variant_of(one, parts={"strategy": Beam(400)})


def test_special_ids_of_the_model_keep_their_positions(make):
    one = make()
    config = one.translation_model.config
    other = Shortlist(
        one.decoding,
        type(config)(**{**vars(config), "eos_id": 9, "bos_id": 6}),
        one.source_tokenizer,
        one.target_tokenizer,
    )
    assert other.words(tf.constant([4])).numpy().tolist()[:10] == [*range(10)]


SOURCES = [["Ada", "saw", "Oslo"], ["zebra", "Kai", ""]]
IDS = [[[UNK_ID, 7, UNK_ID], [8, UNK_ID, 0]], [[UNK_ID, 0, 0], [UNK_ID] * 3]]
TOKENS = [
    [["<unk>", "sah", "<unk>"], ["x", "<unk>", ""]],
    [["<unk>", "", ""], ["<unk>"] * 3],
]
WEIGHTS = [
    [
        [[0.4, 0.2, 0.4], [0.1, 0.1, 0.8], [0.4, 0.6, 0.0]],  # cut
        [[0.0, 0.0, 1.0], [0.7, 0.3, 0.0], [0.1, 0.2, 0.7]],
    ],
    [
        [[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 0.0]],
        [[0.0, 0.0, 0.0]] * 3,
    ],
]
COPIED = {
    "produces": [
        [["Ada", "sah", "saw"], ["x", "Ada", ""]],
        [["zebra", "", ""], ["<unk>"] * 3],
    ],
    "reads": [
        [["Oslo", "sah", "saw"], ["x", "Oslo", ""]],
        [["Kai", "", ""], ["<unk>"] * 3],
    ],
}
WORDS = {"Oslo": "Oslō", "zebra": "Zebra", "saw": "sah"}


def replaced(unknown_words):
    found = unknown_words.replace(
        tf.constant(IDS),
        tf.constant(np.array(WEIGHTS, "float32")),
        tf.constant(TOKENS),
        tf.constant(SOURCES),
    )
    return [[[w.decode() for w in r] for r in n] for n in found.numpy()]


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_unknown_words_are_copied_or_translated(step, tmp_path):
    assert replaced(UnknownWords(None, step)) == COPIED[step]
    path = tmp_path / "dictionary"
    lines = [f"{word} {translation} 0.5" for word, translation in WORDS.items()]
    # The likelier of two translations is taken; known words remain.
    lines = ["zebra Gnu 0.25", "x y 1", "sah z 1", *lines]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    expected = [
        [
            [
                WORDS.get(word, word) if number == UNK_ID else word
                for word, number in zip(*pair, strict=True)
            ]
            for pair in zip(*rows, strict=True)
        ]
        for rows in zip(COPIED[step], IDS, strict=True)
    ]
    assert replaced(UnknownWords(str(path), step)) == expected
    assert "Oslō" in str(expected) or step == "produces"


def test_a_dictionary_of_no_token_is_reported(tmp_path):
    path = tmp_path / "dictionary"
    path.write_text("Zebra Gnu 0.25\n", "utf-8")
    tokenizer = WordTokenizer.from_words(["a"], lowercase=True)
    with pytest.warns(UserWarning, match=r"\['zebra'\]. Received: 'Zebra'"):
        UnknownWords(str(path), source_tokenizer=tokenizer)
    path.write_text("Zebra Gnu 0.25\nzebra Gnu 0.25\n", "utf-8")
    UnknownWords(str(path), source_tokenizer=tokenizer)


@pytest.mark.parametrize("model_type", ["bpe", "char"])
def test_a_dictionary_may_have_pieces_of_words(tmp_path, model_type):
    tokenizer = SentencePieceTokenizer.train(
        ["the cat sees"] * 9, 16, model_type=model_type
    )
    path = tmp_path / "dictionary"
    for piece in ("t", "z"):  # z is unknown
        path.write_text(f"{piece} x 0.25\n", "utf-8")
        UnknownWords(str(path), source_tokenizer=tokenizer)


def test_alignment_step_is_produces_by_default():
    assert replaced(UnknownWords(None)) == COPIED["produces"]
