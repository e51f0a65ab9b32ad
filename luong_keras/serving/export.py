"""Export of a translator as a SavedModel for TensorFlow Serving."""

import contextlib
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from luong_keras.files.atomic_file import explain_disk_errors, sync, sync_tree
from luong_keras.files.folder_lock import FolderInUseError, lock_folder
from luong_keras.files.path_checks import local_path, no_pattern
from luong_keras.inference.text_translator import TextTranslator
from luong_keras.inference.translation import in_order, sentences_by_place
from luong_keras.serving.limits import TEXT_TOO_LONG, ServingLimits
from luong_keras.serving.saved_model_checks import check_saved_model
from luong_keras.serving.signatures import probes, signatures, specs
from luong_keras.serving.warmup import write_warmup
from luong_keras.special_tokens import SPECIAL_TOKENS
from luong_keras.with_tensorflow import tf

WARMUP_SENTENCES = 4
# Each export is checked with these texts and with words of its vocabulary.
STRANGE_TEXTS = [b"", b" \t", b"caf\xe9 \xff\xfe", "\u00df \U0001f600".encode()]


def export_saved_model(
    translator: TextTranslator,
    folder: str | Path,
    say: Callable[[str], None] | None = None,
    limits: ServingLimits | None = None,
    extra_files: Mapping[str, bytes] | None = None,
) -> Path:
    """Write the graph, weights and vocabularies of a translator.

    The signatures, with the batch first everywhere, are `serving_default`,
    `translate`, `translate_with_options`, `search`, `align`, `score`,
    `align_pair`, `encode` and `contract`. `docs/serving_contract.md` has their
    inputs and outputs.

    The folder appears complete and checked, or not at all: it is written under
    a temporary name beside `folder`, checked by `check_saved_model`, synced to
    disk and renamed. A server that watches the parent folder never sees an
    incomplete model, not even after a power cut.

    Args:
        translator: The translator to export.
        folder: The folder to write, which must not exist. TensorFlow Serving
            expects a number as its name, the version.
        say: Function, such as `print`, called with one line per check.
        limits: The limits of one batch of the server; the default limits
            when None.
        extra_files: Name -> content of additional files in `assets.extra/`,
            which servers do not read.

    Returns:
        The folder.

    Raises:
        FileExistsError: If the folder exists: an exported version never
            changes while a server uses it.
        ValueError: For a folder on another machine, such as `gs://bucket/1`;
            and for `*`, `?` or brackets in its path, which TensorFlow takes for
            a pattern.
        SavedModelError: If a check fails; no files are left then.
    """
    folder, limits = no_pattern(local_path(folder)), limits or ServingLimits()
    _check_is_new(folder)
    with explain_disk_errors(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(folder)
    with (
        explain_disk_errors(folder),
        tempfile.TemporaryDirectory(
            prefix=f".{folder.name}-",
            dir=folder.parent,
            ignore_cleanup_errors=True,
        ) as temporary,
        lock_folder(temporary),
    ):
        model = Path(temporary, "model")
        functions = _write_saved_model(translator, model, limits)
        for name, content in (extra_files or {}).items():
            path = model / "assets.extra" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        sentences = probe_sentences(translator)
        write_warmup(model, probes(sentences[:WARMUP_SENTENCES]))
        check_saved_model(
            model,
            _expected_answers(functions, probes(sentences)),
            say or (lambda line: None),
        )
        sync_tree(model)
        _check_is_new(folder)  # Another process may have written it meanwhile.
        os.replace(model, folder)
        sync(folder.parent)
    return folder


def _check_is_new(folder: Path) -> None:
    if folder.exists():
        raise FileExistsError(
            f"Expected: a new folder for the SavedModel. Received: {folder}, "
            "which exists. Choose another version number, or remove it."
        )


def _remove_unfinished(folder: Path) -> None:
    """Remove the exports of killed processes, of this name or a version."""
    parent, name = folder.parent, glob.escape(folder.name)
    locks = (
        *parent.glob(".[0-9]*-*/.lock"),
        *parent.glob(f".{name}-{8 * '?'}/.lock"),
    )
    for lock in locks:
        with contextlib.suppress(FolderInUseError), lock_folder(lock.parent):
            shutil.rmtree(lock.parent, ignore_errors=True)


def probe_sentences(translator: TextTranslator) -> list[bytes]:
    """Return sentences of the source vocabulary and unusual texts."""
    tokenizer = translator.source_tokenizer
    generator = np.random.default_rng(0)
    ids = [
        generator.integers(
            len(SPECIAL_TOKENS), tokenizer.vocabulary_size, length
        )
        for length in range(1, 7)
    ]
    words = tokenizer.lookup(tf.ragged.constant(ids))
    return [*tokenizer.join(words).numpy(), *STRANGE_TEXTS]


def _write_saved_model(translator, folder, limits):
    """Write the SavedModel; return the functions of its signatures."""
    # Traced here: saving traces a `tf.function` once more, and
    # `keras.export.ExportArchive` takes nothing else.
    functions = {
        name: tf.function(
            function, input_signature=specs(name), autograph=False
        ).get_concrete_function()
        for name, function in signatures(translator, limits).items()
    }
    saved = tf.Module()
    saved.tables = [
        translator.source_tokenizer,
        translator.target_tokenizer,
        translator.unknown_words,
    ]
    # A model that is tracked would write each variable twice.
    saved.weights = list(
        {id(v): v for f in functions.values() for v in f.variables}.values()
    )
    logger, level = tf.get_logger(), tf.get_logger().level
    logger.setLevel("WARNING")  # INFO would report the temporary folder.
    try:
        tf.saved_model.save(saved, str(folder), signatures=functions)
    finally:
        logger.setLevel(level)
    return signatures(translator, limits, traced=False)


def _expected_answers(functions, inputs):
    """Yield calls, and the results that the functions compute for them."""
    for name, tensors in inputs.items():
        with tf.device("CPU:0"):  # The checks compare it with a server on CPU.
            outputs = functions[name](*tensors.values())
        call = name, {key: tensor.numpy() for key, tensor in tensors.items()}
        yield call, {key: tensor.numpy() for key, tensor in outputs.items()}


def next_version(folder: str | Path) -> int:
    """Return the time in seconds, a version that a server takes for the newest.

    If this is not above the newest version, return the next number instead.
    """
    version = int(time.time())
    with contextlib.suppress(FileNotFoundError):
        version = max(version, int(newest_version(folder).name) + 1)
    return version


def newest_version(folder: str | Path) -> Path:
    """Return the version with the largest number in a folder of exports.

    Raises:
        FileNotFoundError: If the folder has no version.
    """
    folder = Path(folder)
    versions = [path for path in folder.glob("*") if path.name.isdecimal()]
    if not versions:
        raise FileNotFoundError(
            f"Expected: a SavedModel below {folder}, its name a number. "
            "Received: none. Has the run come to its end?"
        )
    return max(versions, key=lambda path: int(path.name))


def exported_translations(
    folder: str | Path, sources: Sequence[str], batch_size: int = 32
) -> list[str | None]:
    """Return the best translations of an export, as a server would.

    The batches are those of a translator, because a shortlist depends on them.

    Returns:
        The translations; None for a text that is too long for the export.
    """
    served = tf.saved_model.load(str(folder)).signatures
    contract = served["contract"](text=tf.constant([""]))
    size = min(batch_size, int(contract["max_rows"][0]))

    def run(places):
        text = tf.constant([sources[i] for i in places], tf.string)
        return served["serving_default"](text=text)

    return in_order(
        (
            place,
            None
            if sentence["status"].decode() == TEXT_TOO_LONG
            else sentence["translation"].decode(),
        )
        for place, sentence in sentences_by_place(run, sources, size)
    )


def exported_weights(folder: str | Path) -> dict[str, np.ndarray]:
    """Return the weights of an export in float32, by their paths."""
    loaded = tf.saved_model.load(str(folder))  # This keeps the variables alive.
    variables = loaded.signatures["serving_default"].variables
    return {
        variable.name.removesuffix(":0"): tf.cast(variable, "float32").numpy()
        for variable in variables
    }
