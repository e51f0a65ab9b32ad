"""Batches that every program of a run reads from one file."""

import json
import tempfile
from pathlib import Path

import numpy as np

from speed.command_line import data_folder
from speed.configurations import CONFIGURATIONS

NAMES = ("source", "target_in", "target_out")
PAD_ID, BOS_ID, EOS_ID = 0, 2, 3  # as in `luong_keras.special_tokens`
SUBWORDS = 8000
LANGUAGES = ("en", "de")


def random_words(size, batch_size, length, seed=1):
    """Return ids (B, S) of a `Configuration`'s words, none of them special."""
    generator = np.random.default_rng(seed)
    shape = batch_size, length
    words = generator.integers(EOS_ID + 1, size.vocabulary_size, shape)
    return words.astype("int32")


def static_batches(configuration, count):
    """Return `count` batches of random words without padding."""
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


def multi30k_pairs(part="train"):
    """Return the pairs of a part of Multi30k, English to German, as text."""
    from luong_keras.data.text_files import read_pairs

    folder = data_folder("multi30k")
    lines = read_pairs(folder / f"{part}.en.gz", folder / f"{part}.de.gz")
    return [(source, target) for source, target in lines]


def write_multi30k(folder, part, preparation=lambda language: str):
    """Write a part of Multi30k once, a file per language; return the prefix.

    `preparation` returns the function for the lines of a language.
    """
    from luong_keras.files.text_lines import read_lines

    source = data_folder("multi30k")
    folder.mkdir(parents=True, exist_ok=True)
    for language in LANGUAGES:
        path = folder / f"{part}.{language}"
        if not path.exists():
            lines = read_lines(source / f"{part}.{language}.gz")
            text = "\n".join(map(preparation(language), lines)) + "\n"
            path.write_text(text, encoding="utf-8")
    return folder / part


def training_batches(pairs, batch_size, folder):
    """Return the library's batches of joint subwords, and their tokenizer.

    The vocabulary is trained on the pairs. `folder` keeps the corpus.
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
    """Return the first `count` training batches of an epoch."""
    size = CONFIGURATIONS[configuration].batch_size
    with tempfile.TemporaryDirectory() as folder:
        batches, _ = training_batches(multi30k_pairs(), size, folder)
        return [
            {name: batch[name].numpy() for name in NAMES}
            for batch in batches.dataset(0, count)
        ]


MAKERS = {"static": static_batches, "multi30k": multi30k_batches}


def write_batches(path, batches):
    """Write batches for `read_batches`."""
    arrays = {
        f"{name}_{number}": batch[name]
        for number, batch in enumerate(batches)
        for name in NAMES
    }
    np.savez(path, **arrays)


def read_batches(path):
    """Read the batches of a file, dicts of int32 (B, S) or (B, T)."""
    with np.load(path) as arrays:
        count = len(arrays.files) // len(NAMES)
        return [
            {name: arrays[f"{name}_{number}"] for name in NAMES}
            for number in range(count)
        ]


def count_words(batches):
    """Count the target words, without padding."""
    return sum(int((b["target_out"] != PAD_ID).sum()) for b in batches)


def batch_shape(batch):
    """Return (B, S, T)."""
    return (*batch["source"].shape, batch["target_in"].shape[1])


def equal_length_sentences(count, maximum=40):
    """Return Multi30k's test sentences that are as long as their references.

    The sentences are ids. A search limited to the length of such a source is
    limited to the length of its reference.
    """
    with tempfile.TemporaryDirectory() as folder:
        _, tokenizer = training_batches(multi30k_pairs(), 1, folder)
    pairs = multi30k_pairs("test_2016_flickr")
    sides = [
        tokenizer.encode(list(side)).to_list()
        for side in zip(*pairs, strict=True)
    ]
    found = [
        source
        for source, target in zip(*sides, strict=True)
        if len(source) == len(target) <= maximum
    ]
    return found[:count]


def write_sentences(path, sentences):
    """Write lists of ids for `read_sentences`."""
    Path(path).write_text(json.dumps(sentences), encoding="utf-8")


def read_sentences(path):
    """Read the lists of ids of a file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))
