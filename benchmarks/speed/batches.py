"""The batches that every program of a run reads from one file."""

import json
import os
import tempfile
from pathlib import Path

import numpy as np

from speed.configurations import CONFIGURATIONS

NAMES = ("source", "target_in", "target_out")
PAD_ID, BOS_ID, EOS_ID = 0, 2, 3  # as in `luong_keras.special_tokens`
SUBWORDS = 8000


def random_words(size, batch_size, length, seed=1):
    """Ids (B, S) of a `Configuration`'s vocabulary, none of them special."""
    generator = np.random.default_rng(seed)
    shape = batch_size, length
    words = generator.integers(EOS_ID + 1, size.vocabulary_size, shape)
    return words.astype("int32")


def static_batches(configuration, count):
    """`count` batches of random words without padding."""
    size = CONFIGURATIONS[configuration]
    lengths = size.source_length, size.target_length, size.target_length
    return [
        {
            name: random_words(size, size.batch_size, length, seed=(i, place))
            for place, (name, length) in enumerate(
                zip(NAMES, lengths, strict=True)
            )
        }
        for i in range(count)
    ]


def multi30k_pairs():
    """Multi30k's training pairs, English to German, as raw text."""
    from luong_keras.data.parallel_text import read_pairs

    folder = Path(os.environ["LUONG_KERAS_DATA"], "multi30k")
    lines = read_pairs(folder / "train.en.gz", folder / "train.de.gz")
    return [(source, target) for _, source, target in lines]


def training_batches(pairs, batch_size, folder):
    """The library's batches of joint subwords, and their tokenizer.

    The vocabulary is trained on the pairs; the corpus is kept in `folder`.
    """
    from luong_keras.data import TrainingBatches
    from luong_keras.data.corpus_writer import write_corpus
    from luong_keras.tokenizers import SentencePieceTokenizer

    tokenizer = SentencePieceTokenizer.train(
        [side for pair in pairs for side in pair], SUBWORDS
    )
    batches = TrainingBatches(
        write_corpus(pairs, folder),
        tokenizer,
        tokenizer,
        batch_size=batch_size,
        seed=1,
        max_length=80,
    )
    return batches, tokenizer


def multi30k_batches(configuration, count):
    """The first `count` batches of an epoch, as training gets them."""
    size = CONFIGURATIONS[configuration].batch_size
    with tempfile.TemporaryDirectory() as folder:
        batches, _ = training_batches(multi30k_pairs(), size, folder)
        return [
            {name: batch[name].numpy() for name in NAMES}
            for batch in batches.dataset(0, count)
        ]


MAKERS = {"static": static_batches, "multi30k": multi30k_batches}


def write_batches(path, batches):
    """Writes batches for `read_batches`."""
    arrays = {
        f"{name}_{number}": batch[name]
        for number, batch in enumerate(batches)
        for name in NAMES
    }
    np.savez(path, **arrays)


def read_batches(path):
    """The batches of a file, dicts of int32 (B, S) or (B, T)."""
    with np.load(path) as arrays:
        count = len(arrays.files) // len(NAMES)
        return [
            {name: arrays[f"{name}_{number}"] for name in NAMES}
            for number in range(count)
        ]


def count_words(batches):
    """Target words, padding not counted."""
    return sum(int((b["target_out"] != PAD_ID).sum()) for b in batches)


def batch_shape(batch):
    """(B, S, T)."""
    return (*batch["source"].shape, batch["target_in"].shape[1])


def equal_length_sentences(count, maximum=40):
    """Test sentences of Multi30k as ids that are as long as their references.

    A search held to the length of such a source is held to the reference's.
    """
    from luong_keras.data.parallel_text import read_pairs

    with tempfile.TemporaryDirectory() as folder:
        _, tokenizer = training_batches(multi30k_pairs(), 1, folder)
    data = Path(os.environ["LUONG_KERAS_DATA"], "multi30k")
    parts = [data / f"test_2016_flickr.{name}.gz" for name in ("en", "de")]
    lines = list(read_pairs(*parts))
    sides = [
        tokenizer.encode([line[side] for line in lines]).to_list()
        for side in (1, 2)
    ]
    found = [
        source
        for source, target in zip(*sides, strict=True)
        if len(source) == len(target) <= maximum
    ]
    return found[:count]


def write_sentences(path, sentences):
    """Writes lists of ids for `read_sentences`."""
    Path(path).write_text(json.dumps(sentences), encoding="utf-8")


def read_sentences(path):
    """The lists of ids of a file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))
