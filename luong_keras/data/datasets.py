"""The training, validation and test pairs that a configuration names."""

import dataclasses
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from luong_keras.config import DataConfig, FilterConfig
from luong_keras.data import phrasebook
from luong_keras.data.corpus_writer import checked_chunks
from luong_keras.data.pair_checks import (
    FILTERED,
    REASONS,
    Preprocess,
    check_pair,
    check_scripts,
    format_pair,
    pair_hash,
)
from luong_keras.data.sources.source_kinds import PlacedPair, TextSource
from luong_keras.data.text_files import (
    check_columns_exist,
    list_sources,
    read_text,
    requested_columns,
    text_files,
    text_sources,
)
from luong_keras.text.preprocessing import preprocessors

Pairs = list[tuple[str, str]]

_PARTS = ("train", "dev", "test")


@dataclass(frozen=True)
class Datasets:
    """Sentence pairs of one translation task.

    Attributes:
        train: A function that returns an iterable over the training pairs.
        train_key: A fingerprint of the training pairs.
        dev: The validation pairs, which choose the best epoch.
        test: The test pairs, scored once.
        test_links: The gold alignments of the test pairs, one line per pair
            such as `0-0 1p2`, or None.
        note: A message about the pairs for the log of the run, or None.
    """

    train: Callable[[], Iterable[tuple[str, str]]]
    train_key: str
    dev: Pairs
    test: Pairs
    test_links: Sequence[str] | None = None
    note: str | None = None


def load_datasets(
    config: DataConfig, progress: Callable[[Iterable], Iterable] = iter
) -> Datasets:
    """Find the data that `config` names.

    `dataset="phrasebook"` is the built-in English-German corpus. `"files"`
    reads the files that `train`, `dev` and `test` name: a file of both sides
    (`.tsv`, `.csv`, `.jsonl`, `.tmx`), a source and a target file, or a prefix
    to which the language codes are appended (`train.en`, `train.de`), each
    plain or compressed. `train` may also name several of these. If dev or test
    is not given, training pairs are held out for it by a hash of each pair:
    2 %, but at least 100 (or 10 % if fewer) and at most 1,000. Any other name
    is a builder of tensorflow_datasets, with sacreBLEU's test sets.

    Args:
        config: The settings.
        progress: A wrapper around the training pairs that counts them for a
            progress bar while pairs are held out.

    Raises:
        ValueError: If the settings do not name a data set.
        FileNotFoundError: If a file is missing.
    """
    if config.dataset == "phrasebook":
        return _load_phrasebook(config)
    if config.dataset == "files":
        return _load_files(config, progress)
    return _load_tensorflow_dataset(config)


def _load_phrasebook(config: DataConfig) -> Datasets:
    languages = config.languages
    if sorted(languages) != ["de", "en"]:
        raise ValueError(
            "The phrasebook is English-German. Expected: source_language and "
            f"target_language 'en' and 'de'. Received: {languages}."
        )
    train = phrasebook.split_pairs("train", config.train_size, languages)
    dev = phrasebook.split_pairs("dev", None, languages)
    test = phrasebook.split_pairs("test", None, languages)
    return Datasets(
        lambda: [pair[:2] for pair in train],
        pairs_key(config),
        [pair[:2] for pair in dev],
        [pair[:2] for pair in test],
        [pair.links for pair in test if pair.links is not None],
    )


def _load_files(
    config: DataConfig, progress: Callable[[Iterable], Iterable]
) -> Datasets:
    if config.train is None:
        raise ValueError(
            "dataset='files' needs data.train. Expected: a file of both sides "
            "(such as `.tsv`), a source and a target file, or a prefix such "
            "as path/train, which stands for "
            f"path/train.{config.languages[0]} and "
            f"path/train.{config.languages[1]}. Received: None. Add "
            "`--set data.train=path/train`."
        )
    sources = {
        part: text_sources(
            setting,
            requested_columns(config),
            weighted=part == "train" and config.weights is not None,
        )
        for part in _PARTS
        if (setting := getattr(config, part)) is not None
    }
    notes = [s.note for group in sources.values() for s in group]
    check_columns_exist(config, notes)
    evaluation_pairs: dict[str, Any] = {
        part: read_evaluation_pairs(sources.get(part, []), part)
        for part in _PARTS[1:]
    }
    datasets = Datasets(
        # Only the training text may have bad lines, which are counted.
        lambda: read_text(sources["train"], config.max_skipped > 0),
        pairs_key(config),
        **evaluation_pairs,
        note="\n".join(filter(None, notes)) or None,
    )
    missing_parts = [part for part in _PARTS[1:] if part not in sources]
    if not missing_parts:
        return datasets
    return _hold_out(datasets, missing_parts, config, progress)


def read_evaluation_pairs(sources: Sequence[TextSource], part: str) -> Pairs:
    """Read the pairs of the validation or test set, `"dev"` or `"test"`.

    Raises:
        ValueError: If a pair cannot be used.
    """
    pairs = read_text(sources, False)
    return [check_evaluation_pair(pair, f" of data.{part}") for pair in pairs]


def check_evaluation_pair(pair: PlacedPair, of: str = "") -> tuple[str, str]:
    """Check a validation or test pair, and return its sentences."""
    result = check_pair(*pair)
    if isinstance(result, str):
        raise ValueError(
            f"Pair {pair.place}{of} cannot be used: "
            f"{REASONS[result]}. Received: {format_pair(pair)}. Correct it, or "
            "remove it."
        )
    return pair[0], pair[1]


def _hold_out(
    datasets: Datasets,
    missing_parts: list[str],
    config: DataConfig,
    progress: Callable[[Iterable], Iterable],
) -> Datasets:
    """Hold out training pairs for the parts that are absent."""
    sets = held_out_pairs(
        progress(datasets.train()),
        len(missing_parts),
        config.filters,
        preprocessors(config),
        config.processes,
    )
    held_out = frozenset().union(*sets)

    def train() -> Iterator[tuple[str, str]]:
        return (
            pair
            for pair in datasets.train()
            # Lines without a second column are counted later.
            if None in pair or pair_hash(*pair) not in held_out
        )

    parts: dict[str, Any] = {
        part: list(dict.fromkeys(pairs.values()))
        for part, pairs in zip(missing_parts, sets, strict=True)
    }
    counts = " and ".join(
        f"{len(pairs)} as data.{part}" for part, pairs in parts.items()
    )
    note = f"held out of the training pairs, by a hash of each: {counts}"
    return dataclasses.replace(
        datasets,
        train=train,
        **parts,
        note="\n".join(filter(None, (datasets.note, note))),
    )


def _load_tensorflow_dataset(config: DataConfig) -> Datasets:
    from luong_keras.data.public_sets import test_set, tfds_pairs

    languages = config.languages
    names = str(config.dev or "wmt13"), str(config.test or "wmt14/full")
    dev, test = (
        list(zip(*test_set(name, *languages), strict=True)) for name in names
    )
    return Datasets(
        lambda: tfds_pairs(config.dataset, "train", *languages),
        pairs_key(config),
        dev,
        test,
    )


def pairs_key(config: DataConfig) -> str:
    """Return a key of the training pairs and all files, without reading them.

    Raises:
        FileNotFoundError: If a file is missing.
    """
    languages = config.languages
    if config.dataset == "phrasebook":
        size = config.train_size or phrasebook.TRAIN_SIZE
        return f"phrasebook {size} {languages}"
    if config.dataset != "files" or config.train is None:
        return f"{config.dataset} {languages}"
    stamps = {
        part: [
            [_stamp(path) for path in text_files(files, languages)]
            for files in list_sources(
                names, part == "train" and config.weights is not None
            )
        ]
        for part in _PARTS
        if (names := getattr(config, part)) is not None
    }
    return json.dumps([stamps, languages, config.columns])


def _stamp(path: Path) -> list[str | int]:
    """Return the name, size and time of a file; the name if it is missing."""
    try:
        stat = path.stat()
    except OSError:
        return [str(path)]
    return [str(path), stat.st_size, stat.st_mtime_ns]


def changed_settings(
    key: str, config: DataConfig, kept: Path | None = None
) -> str:
    """Return the settings whose files differ from those of a `pairs_key`.

    A file that is missing differs, too. Files that are in the folder `kept`
    now do not differ, wherever it was before.
    """
    if not key.startswith("["):
        return ""  # not of files
    stamps, *_ = json.loads(key)
    if isinstance(stamps, list):
        stamps = {"train": stamps}  # of version 0.3.0
    return ", ".join(
        f"data.{part}={getattr(config, part)}"
        for part, sources in stamps.items()
        if any(_differs(stamp, kept) for files in sources for stamp in files)
    )


def _differs(stamp: list[str | int], kept: Path | None) -> bool:
    path = Path(str(stamp[0]))
    if kept and path.parent.name == kept.name and (kept / path.name).exists():
        return False
    return stamp != _stamp(path)


def corpus_key(datasets: Datasets, config: DataConfig) -> str:
    """Return a key of the corpus of a run: its pairs and their preparation."""
    settings = dataclasses.asdict(config)
    names = ["lowercase", "normalize_punctuation", "tokenize", "filters"]
    if config.normalize_punctuation or config.tokenize:
        # Not `languages`: an unknown language has the rules of English.
        names += ["source_language", "target_language"]
    return json.dumps(
        [datasets.train_key, {name: settings[name] for name in names}]
    )


SHARE = 0.02
MAX_PAIRS = 1000  # pairs per part
# Scores of a dozen pairs are noise: a small text gives 10 % to a part, up to
# 100 pairs.
FEW = 100


def held_out_pairs(
    pairs: Iterable[tuple[str, str]],
    parts: int,
    filters: FilterConfig | None = None,
    preprocess: tuple[Preprocess | None, Preprocess | None] = (None, None),
    processes: int | None = 1,
) -> list[dict[int, tuple[str, str]]]:
    """Choose the pairs to hold out by their hashes, in one pass.

    The pairs with the smallest hashes of their prepared text are chosen. The
    choice does not depend on the order of the text, and pairs whose prepared
    text is equal are held out together.

    Args:
        pairs: The training pairs; bad pairs are not chosen.
        parts: The number of parts to make.
        filters: The filters of the training text; pairs that they leave out
            are not chosen.
        preprocess: The preparation of the sentences of each side, or None.
        processes: The number of processes, one per core when None.

    Returns:
        Per part, its pairs in the order of the text: 2 % of the different
        pairs, but at least 100 (or 10 % if fewer) and at most 1,000. The keys
        are the hashes of all pairs of the text, before the preparation, to
        which a pair is equal after it.

    Raises:
        ValueError: If the text has too few pairs.

    Example:
        >>> pairs = [(str(i), str(i)) for i in range(200)]
        >>> dev, test = held_out_pairs(pairs, 2)
        >>> len(dev), len(test), len(dev.keys() & test.keys())
        (20, 20, 0)
    """
    filters = filters or FilterConfig()
    check_scripts(filters)
    left_out: dict[str, list[Any]] = {}
    maximum = parts * MAX_PAIRS
    # More different pairs than this do not make the parts larger.
    max_hashes = MAX_PAIRS / SHARE
    hashes: set[int] = set()
    # Pairs that may have the smallest hashes, with their first indices and the
    # hashes of their text before the preparation.
    candidates: dict[int, tuple[int, tuple[str, str], set[int]]] = {}
    limit = 1 << 64
    chunks = checked_chunks(pairs, preprocess, filters, processes)
    for index, (pair, result) in enumerate(
        itertools.chain.from_iterable(chunks)
    ):
        if isinstance(result, str):
            first = getattr(pair, "place", index + 1), format_pair(pair)
            left_out.setdefault(result, [0, *first])[0] += 1
            continue
        digest = result[2]
        if len(hashes) < max_hashes:
            hashes.add(digest)
        if digest >= limit:
            continue
        if digest not in candidates:
            candidates[digest] = index, (pair[0], pair[1]), set()
        candidates[digest][2].add(pair_hash(*pair))
        if len(candidates) > 2 * maximum:
            candidates = dict(sorted(candidates.items())[:maximum])
            limit = max(candidates) + 1
    count = len(hashes)
    if count <= parts:
        raise ValueError(
            f"Expected: at least {parts + 1} different sentence pairs, to "
            f"hold out {parts} of them. Received: {count}"
            f"{_format_reasons(left_out)}. "
            "Give more pairs, or set data.dev and data.test."
        )
    small_size = min(count // 10, FEW)
    size = min(max(round(SHARE * count), small_size, 1), MAX_PAIRS)
    smallest = sorted(candidates)
    sets = []
    for part in range(parts):
        digests = smallest[part * size : (part + 1) * size]
        chosen = sorted(candidates[digest] for digest in digests)
        sets.append({key: pair for _, pair, keys in chosen for key in keys})
    return sets


def _format_reasons(left_out: dict[str, list[Any]]) -> str:
    """Describe the pairs that cannot be used, with counts by reason."""
    return "".join(
        f", and {count:,} that cannot be used, since "
        f"{(REASONS | FILTERED)[reason]}, such as {place}: {example}"
        for reason, (count, place, example) in left_out.items()
    )
