"""Text that a user gives: files, or pairs that are written into the run."""

import dataclasses
import filecmp
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from luong_keras.config import DataConfig
from luong_keras.data.sources.columns import Columns, RequestedColumns
from luong_keras.data.sources.registry import FILE_NAMES, object_reader
from luong_keras.data.sources.source_kinds import TextSource, text_or_none
from luong_keras.data.text_files import (
    check_columns_exist,
    is_columns,
    list_sources,
    requested_columns,
    suffix_languages,
    text_sources,
)
from luong_keras.files.atomic_file import atomic_path
from luong_keras.recipe.fine_tuning import inherited_settings
from luong_keras.recipe.initial_settings import (
    has_language_rules,
    language_settings,
)
from luong_keras.recipe.stored_settings import run_config
from luong_keras.training.run_folder import OTHER_TEXT, RunFolder

# Missing values of Python, NumPy and pandas, as text.
_MISSING = ("None", "nan", "NaN", "<NA>", "NaT")
# Includes `pandas.DataFrame`, `datasets.Dataset` and `tf.data.Dataset`, which
# are only iterables here, and lists of several sources.
Text = str | Path | Sequence[Any] | Iterable[Any]


def text_settings(
    run: RunFolder,
    train: Text,
    dev: Text | None = None,
    test: Text | None = None,
    given: Mapping[str, Any] | None = None,
    before_writing: Callable[[], Any] = lambda: None,
) -> dict[str, Any]:
    """Return the settings that name the pairs of a run.

    Args:
        run: The run folder, into which pairs from memory are written.
        train: The training pairs: the path of a file of both sides (`.tsv`,
            `.csv`, `.jsonl`, `.tmx`, plain or compressed), or the paths of a
            source and a target file, or the prefix of two files; or
            (source, target) strings, records with named fields, a
            `pandas.DataFrame`, a `datasets.Dataset`, a `tf.data.Dataset`; or
            a list of several of these.
        dev: The pairs that choose the best epoch, as one source in one of
            these forms; held out of the training pairs when None.
        test: The pairs to score, likewise.
        given: The user's other settings by their full names. Those of the
            languages, the columns, the weights and the parent run matter.
            Pairs in memory are read in the direction of given languages, of a
            run that has begun, of the parent run, or of the training files.
        before_writing: Called before pairs from memory are written, once for
            each text.

    Returns:
        Settings by their full names.

    Raises:
        ValueError: If an entry is not a pair of sentences, if files have
            opposite directions, or if no text has the given columns.
    """
    given = given or {}
    parts = _split_sources(train, given.get("data.weights") is not None)
    texts: dict[str, Text | None]
    texts = {f"train.{i}": part for i, part in enumerate(parts, start=1)}
    if len(parts) == 1:
        texts = {"train": parts[0]}
    paths: dict[str, Any] = {name: _file_names(texts[name]) for name in texts}
    has_begun = run.config.exists()  # It keeps its languages.
    languages = None if has_begun else suffix_languages(paths.values())
    for name, other in {"dev": dev, "test": test}.items():
        texts[name], paths[name] = other, _file_names(other)
    if any(paths[name] is None is not texts[name] for name in texts):
        languages = _write_texts(
            texts, paths, run, given, languages, before_writing
        )
    *train_paths, dev_paths, test_paths = paths.values()
    settings: dict[str, Any] = {
        "data.dataset": "files",
        "data.train": train_paths[0] if len(parts) == 1 else tuple(train_paths),
        "data.dev": dev_paths,
        "data.test": test_paths,
    }
    if languages and not has_begun:
        settings |= language_settings(*languages)
    return settings


def _write_texts(
    texts: Mapping[str, Text | None],
    paths: dict[str, Any],
    run: RunFolder,
    given: Mapping[str, Any],
    languages: tuple[str, str] | None,
    before_writing: Callable[[], Any],
) -> tuple[str, str] | None:
    """Write the texts in memory into the run, and add their paths to `paths`.

    All are read in one direction: the first that names its languages decides,
    unless `languages`, the settings or an earlier run do.

    Returns:
        The languages of the texts, or None.
    """
    data, may_decide = DataConfig("files"), True
    has_begun = run.config.exists()
    if has_begun:
        data = run_config(run.path, resolve_paths=False).data
    elif (parent := given.get("training.init_from")) is not None:
        data = inherited_settings(parent).data
        may_decide = not has_language_rules(data)
    values = {
        name: given[f"data.{name}"]
        for name in ("source_language", "target_language", "columns")
        if given.get(f"data.{name}") is not None
    }
    data = dataclasses.replace(data, **values)
    requested = requested_columns(data)
    if languages and not (data.source_language or data.target_language):
        requested = dataclasses.replace(requested, languages=languages)
    notes = []
    for name, text in texts.items():
        found: Columns | TextSource
        if text is None or (has_begun and paths[name] is not None):
            continue
        if paths[name] is None:
            path = run.pairs / f"{name}.jsonl"
            before_writing()
            found = _write_pairs(text, path, requested, run)
            paths[name] = str(path)
        else:
            (found,) = text_sources(paths[name], requested)
        notes.append(found.note)
        if found.languages and not languages:
            requested = dataclasses.replace(
                requested, languages=found.languages
            )
            languages = found.languages if may_decide else None
    if not has_begun:
        check_columns_exist(data, notes)
    return languages


def _split_sources(text: Text, weighted: bool) -> list[Text]:
    """Return the sources of a training text; usually it is one."""
    if not isinstance(text, list | tuple) or not text:
        return [text]
    # A pair of strings is a pair of files if another entry is a source, or if
    # the files exist.
    has_files = weighted or any(
        is_columns(item)
        if isinstance(item, str | Path)
        else _is_source(item, False)
        for item in text
    )
    match text[0]:
        case [str() as source, str() as target]:
            has_files |= os.path.isfile(source) and os.path.isfile(target)
    if not all(_is_source(item, has_files) for item in text):
        return [text]
    names = [str(item) if isinstance(item, Path) else item for item in text]
    sources = list_sources(names, weighted)
    return [text] if sources[0] is names else list(sources)


def _is_source(item: Any, has_files: bool) -> bool:
    """Test whether an object is a source, not a pair or a record."""
    if isinstance(item, str | Path):
        return True
    if isinstance(item, list | tuple):
        return bool(item) and (has_files or not isinstance(item[0], str))
    is_row = isinstance(item, Mapping) or getattr(item, "ndim", None) == 1
    return not is_row and object_reader(item) is not None


def _file_names(text: Text | None) -> str | tuple[str, str] | None:
    """Return the file or the two files that a text names, or None."""
    if isinstance(text, str | Path):
        return str(text)
    match text:
        case [str() | Path() as source, str() | Path() as target]:
            if is_columns(source) or is_columns(target):
                raise ValueError(
                    f"Expected: one file of both sides ({FILE_NAMES}), or a "
                    f"source and a target file. Received: {source} and "
                    f"{target}."
                )
            return str(source), str(target)
    return None


def _write_pairs(
    text: Text, path: Path, requested: RequestedColumns, run: RunFolder
) -> Columns:
    """Write pairs in memory into a file of the run."""
    read = object_reader(text)
    if read is None:
        raise ValueError(
            "Expected: sentence pairs, as a list or an iterator, a "
            "pandas.DataFrame, a datasets.Dataset, a tf.data.Dataset, or "
            f"files. Received: {type(text).__name__}."
        )
    pairs, fields = read(text, requested)
    if fields.note is not None:
        print(fields.note)
    with atomic_path(path) as temporary:
        with open(temporary, "wb") as file:
            file.writelines(_encode_pairs(pairs))
        if path.exists():
            if filecmp.cmp(path, temporary, shallow=False):
                # Another modification time would look like another text.
                shutil.copystat(path, temporary)
            elif run.data.exists():
                raise ValueError(OTHER_TEXT.format(run.path))
    return fields


def _to_sentence(value: Any, number: int) -> str:
    """Convert a value to a sentence; a missing value is empty."""
    text = text_or_none(value)
    if text is None and str(value) not in _MISSING:
        raise ValueError(
            f"Expected: sentences, as text. Received: {value!r:.200}, of type "
            f"{type(value).__name__}, in pair {number}. Convert it to str "
            "first."
        )
    return text or ""


def _encode_pairs(pairs: Iterable[tuple[Any, Any]]) -> Iterator[bytes]:
    """Yield lines of JSON, each a list of source and target."""
    number = 0
    for number, pair in enumerate(pairs, start=1):
        cells = [_to_sentence(text, number) for text in pair]
        try:
            yield json.dumps(cells, ensure_ascii=False).encode() + b"\n"
        except UnicodeEncodeError as error:
            raise ValueError(
                f"Pair {number} cannot be written as UTF-8 ({error.reason}). "
                f"Received: {pair!r:.200}."
            ) from error
    if not number:
        raise ValueError("Expected: sentence pairs. Received: none.")
