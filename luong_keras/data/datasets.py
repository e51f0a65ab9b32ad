"""The training, development and test pairs that a configuration names."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from luong_keras.config import DataConfig
from luong_keras.data import phrasebook

Pairs = list[tuple[str, str]]

_SEED = 1  # the phrasebook is the same for every training seed


@dataclass(frozen=True)
class Datasets:
    """Sentence pairs of one translation task.

    Attributes:
        train: returns the training pairs, anew at every call.
        train_key: what they are made of; another key, other pairs.
        dev: development pairs, to choose a model by.
        test: test pairs, scored once.
        test_links: gold alignments of the test pairs, a line each such as
            `0-0 1p2`, or None.
    """

    train: Callable[[], Iterable[tuple[str, str]]]
    train_key: str
    dev: Pairs
    test: Pairs
    test_links: Sequence[str] | None = None


def load_datasets(config: DataConfig) -> Datasets:
    """Finds the data that `config` names.

    `dataset="phrasebook"` is the built-in English-German corpus; `"files"`
    reads `train`, `dev` and `test` prefixes with the language codes appended
    (`train.en`, `train.de`, also with `.gz`); any other name is a builder of
    tensorflow_datasets, with sacrebleu's test sets.

    Raises:
        ValueError: for settings that do not name a data set.
        FileNotFoundError: for a missing file.
    """
    if config.dataset == "phrasebook":
        return _phrasebook(config)
    if config.dataset == "files":
        return _files(config)
    return _tensorflow_datasets(config)


def _phrasebook(config: DataConfig) -> Datasets:
    languages = (config.source_language, config.target_language)
    if sorted(languages) != ["de", "en"]:
        raise ValueError(
            "The phrasebook is English-German. Expected: source_language and "
            f"target_language 'en' and 'de'. Received: {languages}."
        )

    def split(name: str, size: int) -> list[phrasebook.SentencePair]:
        pairs = phrasebook.split_pairs(name, size, seed=_SEED)
        if languages == ("en", "de"):
            return pairs
        return [phrasebook.turned(pair) for pair in pairs]

    def both(pairs) -> Pairs:
        return [(pair.source, pair.target) for pair in pairs]

    size = config.train_size or 30_000

    @functools.cache
    def train() -> Pairs:
        return both(split("train", size))

    test = split("test", 1000)
    links = [phrasebook.format_links(pair) for pair in test]
    return Datasets(
        train,
        f"phrasebook {size} {languages}",
        both(split("dev", 300)),
        both(test),
        links,
    )


def _files(config: DataConfig) -> Datasets:
    from luong_keras.data.parallel_text import read_pairs

    paths = {}
    for part in ("train", "dev", "test"):
        prefix = getattr(config, part)
        if prefix is None:
            raise ValueError(
                f"dataset='files' needs data.{part}, a path that becomes a "
                "file's name by the language code. Received: None. Add "
                f"`--set data.{part}=path/{part}`, which stands for "
                f"path/{part}.{config.source_language} and "
                f"path/{part}.{config.target_language}."
            )
        paths[part] = [
            _with_language(prefix, language)
            for language in (config.source_language, config.target_language)
        ]

    def pairs(part: str) -> Iterable[tuple[str, str]]:
        # Of the training text bad lines may be skipped, and are counted.
        skip = part == "train" and config.on_bad_line == "skip"
        return ((s, t) for _, s, t in read_pairs(*paths[part], skip))

    stamps = [
        [str(path), path.stat().st_size, path.stat().st_mtime_ns]
        for path in paths["train"]
    ]
    return Datasets(
        lambda: pairs("train"),
        json.dumps(stamps),
        list(pairs("dev")),
        list(pairs("test")),
    )


def _with_language(prefix: str, language: str) -> Path:
    """prefix.language, or prefix.language.gz where only that exists."""
    path = Path(f"{prefix}.{language}")
    packed = Path(f"{path}.gz")
    if not path.exists() and not packed.exists():
        raise FileNotFoundError(
            f"Expected: a text file of one sentence a line, {path} or "
            f"{packed}. Received: neither exists."
        )
    return path if path.exists() else packed


def _tensorflow_datasets(config: DataConfig) -> Datasets:
    from luong_keras.data.test_sets import select_lines, test_set
    from luong_keras.data.tfds_pairs import tfds_pairs

    languages = (config.source_language, config.target_language)
    dev = list(zip(*test_set(config.dev_set, *languages), strict=True))
    test = list(zip(*test_set(config.test_set, *languages), strict=True))
    if config.test_subset is not None:
        test = select_lines(test, config.test_subset)
    return Datasets(
        lambda: tfds_pairs(config.dataset, "train", *languages),
        f"{config.dataset} {languages}",
        dev,
        test,
    )


def corpus_key(datasets: Datasets, config: DataConfig) -> str:
    """Everything that the cached corpus of a run depends on."""
    settings = dataclasses.asdict(config)
    kept = ("lowercase", "normalize_punctuation", "tokenize", "on_bad_line")
    return json.dumps([datasets.train_key, {k: settings[k] for k in kept}])
