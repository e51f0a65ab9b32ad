"""Preparation of the checked text of a run."""

import dataclasses
import functools
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from luong_keras.config import DataConfig, RunConfig
from luong_keras.data.corpus import Corpus
from luong_keras.data.corpus_writer import open_or_write_corpus
from luong_keras.data.datasets import (
    Datasets,
    changed_settings,
    corpus_key,
    load_datasets,
)
from luong_keras.data.pair_checks import FILTERED, REASONS, check_pair
from luong_keras.files.atomic_file import (
    json_lines,
    read_json_lines,
    write_text,
)
from luong_keras.progress import progress_bar, with_bar
from luong_keras.recipe.stored_settings import with_kept_pairs
from luong_keras.tables import pluralize
from luong_keras.text.preprocessing import preprocessors
from luong_keras.training.run_folder import RunFolder


def prepare_text(config: RunConfig, run: RunFolder) -> tuple[Datasets, Corpus]:
    """Return the pairs of a run and its checked training text.

    A run that has begun continues with the text in its folder, even if the
    original files have changed or moved.

    Raises:
        ValueError: If the files change while they are read, or a lost copy
            cannot be made again because they hold another text.
    """
    has_begun = run.data.exists()
    data = _with_present_paths(config.data, run)
    corpus = _open_kept_corpus(run) if has_begun else None
    if corpus is not None and run.dev.exists() and run.test.exists():
        key, _ = json.loads(corpus.description["key"])
        if changed := changed_settings(key, data, kept=run.pairs):
            print(
                f"{changed}: the size, time or place differs since the run "
                "began; the run keeps the text that it began with. For another "
                "text, begin a new run (another --run-dir)."
            )
        datasets = _read_datasets(corpus, run)
    else:
        datasets = load_datasets(
            data,
            functools.partial(with_bar, what="looking through the pairs"),
        )
        if corpus is None:
            corpus = prepare_corpus(datasets, config, run.corpus)
            try:
                run.check_corpus(corpus.fingerprint)
            except ValueError:  # The next call must not take it.
                shutil.rmtree(run.corpus)
                raise
        if changed := changed_settings(datasets.train_key, data):
            raise ValueError(
                "Expected: text that no other process writes. Received: "
                f"{changed}, which changed while it was read. Start the same "
                "call again when it is complete."
            )
        for path, text in _pair_lines(datasets, run).items():
            if not (has_begun and path.exists()):
                run.check_rebuilt(path, text)
                write_text(path, text)
        note = datasets.note
        datasets = _read_datasets(corpus, run)
        _print_repeated(datasets, corpus, config.data)
        if note is not None:
            print(note)
    print(pluralize(len(corpus), "training pair"))
    for line in left_out_report(corpus):
        print(line)
    return datasets, corpus


def _print_repeated(
    datasets: Datasets, corpus: Corpus, config: DataConfig
) -> None:
    """Print how many validation and test pairs the training text has."""
    preprocess = preprocessors(config)
    prepared = {
        part: {
            tuple(line.decode() for line in checked[:2])
            for source, target in pairs
            if not isinstance(
                checked := check_pair(source, target, None, preprocess), str
            )
        }
        for part, pairs in (("dev", datasets.dev), ("test", datasets.test))
    }
    common = set().union(*prepared.values()).intersection(corpus.all_pairs())
    for part, pairs in prepared.items():
        if count := len(pairs & common):
            print(
                "also in the training text: "
                f"{pluralize(count, 'pair')} of data.{part}, whose scores say "
                "little of new text"
            )


def left_out_report(corpus: Corpus) -> Iterator[str]:
    """Yield lines about bad pairs, and pairs that filters left out."""
    for reason, entry in corpus.skipped.items():
        places = ", ".join(map(str, entry["first_lines"]))
        pairs = pluralize(entry["count"], "pair")
        yield f"skipped, {REASONS[reason]}: {pairs}, first {places}"
    for reason, entry in corpus.filtered.items():
        pairs = pluralize(entry["count"], "pair")
        yield f"left out, {FILTERED[reason]}: {pairs}, such as"
        for place, pair in zip(
            entry["first_lines"], entry["examples"], strict=True
        ):
            yield f"  {place}: {pair}"


def read_prepared_text(run: RunFolder) -> tuple[Datasets, Corpus]:
    """Read the text that `prepare_text` wrote.

    Raises:
        FileNotFoundError: If the folder holds no such text.
    """
    corpus = Corpus.open(run.corpus)
    return _read_datasets(corpus, run), corpus


def prepare_corpus(
    datasets: Datasets, config: RunConfig, folder: Path
) -> Corpus:
    """Open the checked training text of a folder, or write it."""
    preprocess_source, preprocess_target = preprocessors(config.data)
    with progress_bar("checking pairs") as progress:
        return open_or_write_corpus(
            datasets.train,
            folder,
            corpus_key(datasets, config.data),
            preprocess_source=preprocess_source,
            preprocess_target=preprocess_target,
            max_skipped=config.data.max_skipped,
            filters=config.data.filters,
            processes=config.data.processes,
            progress=progress,
        )


def _pair_lines(datasets: Datasets, run: RunFolder) -> dict[Path, str]:
    """Return the contents of the files `dev` and `test` of a run."""
    links: Sequence[Any] = datasets.test_links or [None] * len(datasets.test)
    test = [
        (*pair, link) for pair, link in zip(datasets.test, links, strict=True)
    ]
    return {run.dev: json_lines(datasets.dev), run.test: json_lines(test)}


def evaluation_pairs(
    config: DataConfig, run: RunFolder, part: str = "test"
) -> Datasets:
    """Return the pairs `part`, `"dev"` or `"test"`, from the run if kept.

    Raises:
        ValueError: If the run began with other pairs.
    """
    path = getattr(run, part)
    if run.data.exists() and path.exists():
        run.check_pairs()
        return Datasets(list, "", **_read_pairs(run, only_existing=True))
    datasets = load_datasets(_with_present_paths(config, run))
    run.check_rebuilt(path, _pair_lines(datasets, run)[path])
    return datasets


def _with_present_paths(data: DataConfig, run: RunFolder) -> DataConfig:
    paths = {
        part: with_kept_pairs(getattr(data, part), run)
        for part in ("train", "dev", "test")
    }
    return dataclasses.replace(data, **paths)


def _read_datasets(corpus: Corpus, run: RunFolder) -> Datasets:
    return Datasets(
        corpus.all_pairs, corpus.description["key"], **_read_pairs(run)
    )


def _read_pairs(run: RunFolder, only_existing: bool = False) -> dict[str, Any]:
    """Read the validation and test pairs of a run folder."""
    dev, test = (
        [] if only_existing and not path.exists() else _read_rows(path, columns)
        for path, columns in ((run.dev, 2), (run.test, 3))
    )
    links = [link for *_, link in test if link is not None]
    return {
        "dev": [(source, target) for source, target in dev],
        "test": [(source, target) for source, target, _ in test],
        "test_links": links or None,
    }


def _open_kept_corpus(run: RunFolder) -> Corpus | None:
    """Open the training text of a run; None if it is not as it was."""
    run.hashes()  # An error of this file is not one of the text.
    try:
        corpus = Corpus.open(run.corpus)
        run.check_corpus(corpus.fingerprint)
    except (FileNotFoundError, ValueError) as error:
        print(f"{error} The training text is read again.")
        return None
    return corpus


def _read_rows(path: Path, columns: int) -> list[list[str]]:
    return read_json_lines(
        path,
        f"{columns} texts",
        lambda row: isinstance(row, list) and len(row) == columns,
        "Remove the file: it is made again from the text that the run began "
        "with.",
    )
