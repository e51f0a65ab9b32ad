"""Every part of what is hashed, keyed or checked changes it."""

import dataclasses
import inspect
import itertools

import pytest

from luong_keras.config import (
    DataConfig,
    FilterConfig,
    SentencePieceConfig,
)
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


def named(constructor):
    """The names of all arguments."""
    parameters = inspect.signature(constructor).parameters.values()
    return {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}


def all_different(fingerprints):
    """Of a dict, with what its values are the fingerprints of."""
    for one, other in itertools.combinations(fingerprints, 2):
        assert fingerprints[one] != fingerprints[other], (one, other)


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpora")
    return {
        "corpus": write_corpus(PAIRS, folder / "one"),
        "source_tokenizer": WordTokenizer.from_words(WORDS),
        "target_tokenizer": WordTokenizer.from_words([*WORDS, "u"]),
        "batch_size": 4,
        "seed": 1,
        "max_length": 3,
        "over_long": "truncate",
        "batching": "sorted_pools",
        "pool_batches": 3,
        "weights": None,
    }


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """For each argument another value."""
    folder = tmp_path_factory.mktemp("corpora")
    return {
        "corpus": write_corpus([*PAIRS[:-1], ("s", "t t")], folder / "two"),
        "source_tokenizer": WordTokenizer.from_words([*WORDS, "v"]),
        "target_tokenizer": WordTokenizer.from_words([*WORDS, "w"]),
        "batch_size": 5,
        "seed": 2,
        "max_length": 4,
        "over_long": "truncate_source_left",
        "batching": "authors",
        "pool_batches": 4,
        "weights": (1,),
    }


def test_the_batches(arguments, others):
    assert set(arguments) == set(others) == named(TrainingBatches)
    same = TrainingBatches(**arguments).fingerprint
    assert TrainingBatches(**arguments).fingerprint == same
    all_different(
        {
            "nothing": same,
            **{
                name: TrainingBatches(**{**arguments, name: other}).fingerprint
                for name, other in others.items()
            },
        }
    )


def test_which_side_a_tokenizer_is_of_matters(arguments):
    source, target = (
        arguments["source_tokenizer"],
        arguments["target_tokenizer"],
    )
    turned = {"source_tokenizer": target, "target_tokenizer": source}
    assert (
        TrainingBatches(**{**arguments, **turned}).fingerprint
        != TrainingBatches(**arguments).fingerprint
    )


def test_the_corpus(tmp_path):
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
    all_different(found)
    again = write_corpus(kinds["one"], tmp_path / "again").fingerprint
    assert again == found["one"]


def test_a_tokenizer_of_words(tmp_path):
    paths = {}
    for name, words in (("one", "ab"), ("turned", "ba"), ("more", "abc")):
        paths[name] = tmp_path / name
        tokens = ["<pad>", "<unk>", "<s>", "</s>", *words]
        paths[name].write_text("".join(token + "\n" for token in tokens))
    others = {
        "vocabulary_file": paths["turned"],
        "pretokenized": True,
        "lowercase": True,
    }
    assert set(others) == named(WordTokenizer)
    first = {"vocabulary_file": paths["one"]}
    found = {
        name: WordTokenizer(**{**first, name: other}).fingerprint
        for name, other in others.items()
    }
    found["none"] = WordTokenizer(**first).fingerprint
    found["more words"] = WordTokenizer(paths["more"]).fingerprint
    all_different(found)
    for name, other in (("pretokenized", True), ("lowercase", True)):
        assert WordTokenizer(**first, **{name: other}).options[name] is other


def test_a_tokenizer_of_subwords(tmp_path):
    lines = ["the cat sat", "the cat sat on the mat", "The Cat"]
    first = SentencePieceTokenizer.train(lines, 24)
    first.save(tmp_path, "one")
    path = tmp_path / "one.model"
    assert named(SentencePieceTokenizer) == {"model_file", "lowercase"}
    found = {
        "lowercase": SentencePieceTokenizer(path, True).fingerprint,
        "model_file": SentencePieceTokenizer.train(lines, 25).fingerprint,
        "none": first.fingerprint,
    }
    all_different(found)
    assert SentencePieceTokenizer(path).fingerprint == found["none"]
    assert SentencePieceTokenizer(path, True).options == {"lowercase": True}


# The corpus that a run keeps: which settings make another one of it.

DATA = DataConfig(dataset="phrasebook", train_size=20)
MAKES_ANOTHER_CORPUS = {
    "lowercase": True,
    "normalize_punctuation": True,
    "tokenize": True,
    "filters": FilterConfig(identical=True),
}
# In the key of the data set, or not of the training text at all.
OF_THE_DATA_SET = {
    "dataset",
    "source_language",
    "target_language",
    "train",
    "columns",
    "train_size",
}
LATER = {
    "dev": "x",
    "test": "x",
    "weights": (1.0,),
    "tokenizer": "sentencepiece",
    "sentencepiece": SentencePieceConfig("char"),
    "pretokenized": True,
    "joint_vocabulary": True,
    "new_words": 0,  # of words; the text is the same
    "max_length": 7,
    "over_long": "truncate",
    "batching": "authors",
    "processes": 2,
    # Which pairs are left out is the same.
    "max_skipped": 0.5,
}


def test_the_key_of_a_corpus():
    fields = {field.name for field in dataclasses.fields(DataConfig)}
    sorted_out = {*MAKES_ANOTHER_CORPUS, *OF_THE_DATA_SET, *LATER}
    assert sorted_out == fields

    def key(**changes):
        config = dataclasses.replace(DATA, **changes)
        return corpus_key(Datasets(list, "some text", [], []), config)

    subwords = {"tokenizer": "sentencepiece"}

    all_different(
        {
            "nothing": key(),
            **{
                name: key(**{name: value})
                for name, value in MAKES_ANOTHER_CORPUS.items()
            },
        }
    )
    for name, value in LATER.items():
        kind = {} if name == "pretokenized" else subwords
        assert key(**{**kind, name: value}) == key(), name
    other = corpus_key(Datasets(list, "other text", [], []), DATA)
    assert other != key()


def test_the_key_of_a_data_set(tmp_path):
    for name in ("one", "two"):
        for language in ("en", "de", "fr"):
            (tmp_path / f"{name}.{language}").write_text("a line\n")
    one, two = str(tmp_path / "one"), str(tmp_path / "two")
    files = DataConfig(dataset="files", train=one, dev=one, test=one)
    kinds = {
        "phrasebook": DATA,
        "more": dataclasses.replace(DATA, train_size=21),
        "turned": dataclasses.replace(
            DATA, source_language="de", target_language="en"
        ),
        "files": files,
        "other files": dataclasses.replace(files, train=two),
        "source": dataclasses.replace(files, source_language="fr"),
        "target": dataclasses.replace(files, target_language="fr"),
        "columns": dataclasses.replace(files, columns=("a", "b")),
        "both": dataclasses.replace(files, train=(one, two), weights=(1, 1)),
    }
    keys = {name: load_datasets(kind).train_key for name, kind in kinds.items()}
    all_different(keys)


# The order of the batches, over whole epochs in one pool and in several.


def first_words(batches, epoch):
    """The numbers of the pairs of an epoch, batch by batch."""
    return [
        [int(number) for number in lines]
        for pool in range(batches.pools_per_epoch)
        for lines in batches.pool_lines(epoch, pool)
    ]


@pytest.mark.parametrize("pool_batches", [2, 100])
def test_the_order_is_another_in_every_epoch_and_for_every_seed(
    arguments, pool_batches
):
    def orders(seed):
        changed = {"seed": seed, "pool_batches": pool_batches}
        batches = TrainingBatches(**{**arguments, **changed})
        return [first_words(batches, epoch) for epoch in range(4)]

    all_different(dict(enumerate([*orders(1), *orders(2)])))


def test_the_places_of_the_batches_are_drawn_anew(tmp_path):
    """Where every batch holds one length, its length tells its place.

    So it is not the shuffle of the pairs that is seen.
    """
    pairs = [("s", " ".join(["t"] * (1 + i % 8))) for i in range(32)]
    corpus = write_corpus(pairs, tmp_path)
    tokenizer = WordTokenizer.from_words(["s", "t"])

    def places(seed, pool_batches=100):
        batches = TrainingBatches(
            corpus, tokenizer, tokenizer, 4, seed, 50, pool_batches=pool_batches
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
    all_different(dict(enumerate(found)))


def test_pools_of_one_epoch_have_orders_of_their_own(tmp_path):
    # One pair a batch, and no two of one length.
    pairs = [("s", " ".join(["t"] * (1 + i))) for i in range(36)]
    corpus = write_corpus(pairs, tmp_path)
    tokenizer = WordTokenizer.from_words(["s", "t"])
    batches = TrainingBatches(
        corpus, tokenizer, tokenizer, 1, 3, 50, pool_batches=12
    )
    orders = {}
    for epoch, pool in itertools.product(range(2), range(3)):
        lines = [int(line[0]) for line in batches.pool_lines(epoch, pool)]
        # Where the pool's shortest stands, its second, and so on.
        orders[epoch, pool] = sorted(range(12), key=lines.__getitem__)
    all_different(orders)
