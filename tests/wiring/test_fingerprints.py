"""Fingerprints and keys depend on each of their parts."""

import dataclasses
import functools
import inspect
import itertools

import pytest

from luong_keras.config import DataConfig, FilterConfig, SentencePieceConfig
from luong_keras.data.batching import TrainingBatches
from luong_keras.data.corpus_writer import write_corpus
from luong_keras.data.datasets import Datasets, corpus_key, load_datasets
from luong_keras.text.sentencepiece_tokenizer import SentencePieceTokenizer
from luong_keras.text.word_tokenizer import WordTokenizer

pytestmark = pytest.mark.tensorflow

COUNT = 48
PAIRS = [
    (" ".join([f"n{i}"] + ["s"] * (i % 5)), " ".join(["t"] * (1 + i % 3)))
    for i in range(COUNT)
]
WORDS = ["s", "t", *(f"n{i}" for i in range(COUNT))]


def argument_names(constructor):
    """Return the names of all arguments of a constructor."""
    parameters = inspect.signature(constructor).parameters.values()
    return {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}


def assert_all_different(fingerprints):
    """Check that the values of a dict of named fingerprints differ."""
    for one, other in itertools.combinations(fingerprints, 2):
        assert fingerprints[one] != fingerprints[other], (one, other)


def test_batch_fingerprint_depends_on_all_arguments(tmp_path):
    source = WordTokenizer.from_words(WORDS)
    target = WordTokenizer.from_words([*WORDS, "u"])
    other_source = WordTokenizer.from_words([*WORDS, "v"])
    other_target = WordTokenizer.from_words([*WORDS, "w"])
    # Two values of each argument.
    values = {
        "corpus": (
            write_corpus(PAIRS, tmp_path / "one"),
            write_corpus([*PAIRS[:-1], ("s", "t t")], tmp_path / "two"),
        ),
        "source_tokenizer": (source, other_source),
        "target_tokenizer": (target, other_target),
        "batch_size": (4, 5),
        "seed": (1, 2),
        "max_length": (3, 4),
        "over_long": ("truncate", "truncate_source_left"),
        "batching": ("sorted_pools", "authors"),
        "pool_batches": (3, 4),
        "weights": (None, (1,)),
    }
    assert set(values) == argument_names(TrainingBatches)
    arguments = {name: one for name, (one, _) in values.items()}
    exchanged = {"source_tokenizer": target, "target_tokenizer": source}
    changes = {name: {name: other} for name, (_, other) in values.items()}
    changes |= {
        "nothing": {},
        "exchanged tokenizers": exchanged,
        "dropped pairs": {"over_long": "drop"},
    }
    fingerprints = {
        name: TrainingBatches(**{**arguments, **changed}).fingerprint
        for name, changed in changes.items()
    }
    assert_all_different(fingerprints)
    same = TrainingBatches(**arguments).fingerprint
    assert same == fingerprints["nothing"]


def test_corpus_fingerprint_depends_on_sides_and_order(tmp_path):
    kinds = {
        "one": [("a b", "x"), ("c", "y")],
        "another source": [("a b", "x"), ("d", "y")],
        "another target": [("a b", "x"), ("c", "z")],
        "turned": [("x", "a b"), ("y", "c")],
        "another order": [("c", "y"), ("a b", "x")],
    }
    found = {
        name: write_corpus(pairs, tmp_path / name).fingerprint
        for name, pairs in kinds.items()
    }
    assert_all_different(found)
    again = write_corpus(kinds["one"], tmp_path / "again").fingerprint
    assert again == found["one"]


def test_word_tokenizer_fingerprint_depends_on_all_arguments(tmp_path):
    paths = {}
    for name, words in (("one", "ab"), ("turned", "ba"), ("more", "abc")):
        paths[name] = tmp_path / name
        tokens = ["<pad>", "<unk>", "<s>", "</s>", *words]
        paths[name].write_text("".join(token + "\n" for token in tokens))
    other_arguments = {
        "vocabulary_file": paths["turned"],
        "pretokenized": True,
        "lowercase": True,
    }
    assert set(other_arguments) == argument_names(WordTokenizer)
    first = {"vocabulary_file": paths["one"]}
    found = {
        name: WordTokenizer(**{**first, name: other}).fingerprint
        for name, other in other_arguments.items()
    }
    found["none"] = WordTokenizer(**first).fingerprint
    found["more words"] = WordTokenizer(paths["more"]).fingerprint
    assert_all_different(found)
    for name, other in (("pretokenized", True), ("lowercase", True)):
        assert WordTokenizer(**first, **{name: other}).options[name] is other


def test_subword_tokenizer_fingerprint_depends_on_all_arguments(tmp_path):
    lines = ["the cat sat", "the cat sat on the mat", "The Cat"]
    first = SentencePieceTokenizer.train(lines, 24)
    first.save(tmp_path, "one")
    path = tmp_path / "one.model"
    assert argument_names(SentencePieceTokenizer) == {"model_file", "lowercase"}
    found = {
        "lowercase": SentencePieceTokenizer(path, True).fingerprint,
        "model_file": SentencePieceTokenizer.train(lines, 25).fingerprint,
        "none": first.fingerprint,
    }
    assert_all_different(found)
    assert SentencePieceTokenizer(path).fingerprint == found["none"]
    assert SentencePieceTokenizer(path, True).options == {"lowercase": True}


# Settings that change the key of a run's corpus, and settings that do not.

CHANGES_THE_CORPUS = {
    "lowercase": True,
    "normalize_punctuation": True,
    "tokenize": True,
    "filters": FilterConfig(identical=True),
}
# Part of the key of the data set, or unrelated to the training text.
IN_DATA_SET_KEY = {
    "dataset",
    "source_language",
    "target_language",
    "train",
    "columns",
    "train_size",
}
DOES_NOT_CHANGE_THE_CORPUS = {
    "dev": "x",
    "test": "x",
    "weights": (1.0,),
    "tokenizer": "sentencepiece",
    "pretokenized": True,
    "sentencepiece": SentencePieceConfig("char"),
    "joint_vocabulary": True,
    "new_words": 0,  # changes the vocabulary, not the text
    "max_length": 7,
    "over_long": "truncate",
    "batching": "authors",
    "processes": 2,
    # The same pairs are left out.
    "max_skipped": 0.5,
}


def test_corpus_key_depends_on_preprocessing_and_filters():
    fields = {field.name for field in dataclasses.fields(DataConfig)}
    unchanged = IN_DATA_SET_KEY.union(DOES_NOT_CHANGE_THE_CORPUS)
    assert unchanged.union(CHANGES_THE_CORPUS) == fields

    def key(text="some text", **changes):
        config = DataConfig(**{"dataset": "files", **changes})
        return corpus_key(Datasets(list, text, [], []), config)

    found = {n: key(**{n: value}) for n, value in CHANGES_THE_CORPUS.items()}
    assert_all_different(found | {"nothing": key(), "text": key("other text")})
    subwords = {"tokenizer": "sentencepiece"}
    for name, value in DOES_NOT_CHANGE_THE_CORPUS.items():
        kind = {} if name in ("pretokenized", "new_words") else subwords
        assert key(**{**kind, name: value}) == key(), name
    # The rules of a language; an unknown one has the rules of English.
    for change in ({"tokenize": True}, {"normalize_punctuation": True}):
        unknown = key(target_language=None, **change)
        assert unknown != key(target_language="de", **change)
    assert key(target_language=None) == key(target_language="de")


def test_data_set_key_depends_on_its_source(tmp_path):
    for name in ("one", "two"):
        for language in ("en", "de", "fr"):
            (tmp_path / f"{name}.{language}").write_text("a line\n")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    table = tmp_path / "table.csv"
    table.write_text("a,b,c\nx,y,z\n")
    files = functools.partial(DataConfig, "files", dev=one, test=one)
    kinds = {
        "phrasebook": DataConfig("phrasebook", train_size=20),
        "more": DataConfig("phrasebook", train_size=21),
        "turned": DataConfig("phrasebook", "de", "en", train_size=20),
        "files": files(train=one),
        "other files": files(train=two),
        "source": files(train=one, source_language="fr"),
        "target": files(train=one, target_language="fr"),
        "columns": files(train=str(table), columns=("a", "b")),
        "other columns": files(train=str(table), columns=("a", "c")),
        "both": files(train=(one, two), weights=(1, 1)),
    }
    keys = {name: load_datasets(kind).train_key for name, kind in kinds.items()}
    assert_all_different(keys)


# Orders of batches in epochs and pools.


def test_batches_are_shuffled_anew_in_each_epoch(tmp_path):
    """Check the order of batches that each hold pairs of one length.

    Their lengths show the order of the batches, not that of the pairs.
    """
    pairs = [("s", " ".join(["t"] * (1 + i % 8))) for i in range(32)]
    corpus = write_corpus(pairs, tmp_path)
    tokenizer = WordTokenizer.from_words(["s", "t"])

    def places(seed):
        batches = TrainingBatches(
            corpus, tokenizer, tokenizer, 4, seed, 50, pool_batches=100
        )
        return [
            [
                len(pairs[lines[0]][1].split())
                for lines in batches.pool_lines(epoch, 0)
            ]
            for epoch in range(4)
        ]

    found = [*places(1), *places(2)]
    assert all(sorted(epoch) == [1, 2, 3, 4, 5, 6, 7, 8] for epoch in found)
    assert_all_different(dict(enumerate(found)))


def test_pools_of_an_epoch_have_different_orders(tmp_path):
    # One pair per batch, all of different lengths.
    pairs = [("s", " ".join(["t"] * (1 + i))) for i in range(36)]
    corpus = write_corpus(pairs, tmp_path)
    tokenizer = WordTokenizer.from_words(["s", "t"])
    batches = TrainingBatches(
        corpus, tokenizer, tokenizer, 1, 3, 50, pool_batches=12
    )
    orders = {}
    for epoch, pool in itertools.product(range(2), range(3)):
        lines = [int(line[0]) for line in batches.pool_lines(epoch, pool)]
        # The places of the pool's pairs, from shortest to longest.
        orders[epoch, pool] = sorted(range(12), key=lines.__getitem__)
    assert_all_different(orders)
