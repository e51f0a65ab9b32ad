"""`luong-keras train`: training, scoring and export of a translator."""

import importlib.util
import os
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from tyro.conf import Positional, UseAppendAction, arg
from tyro.extras import literal_type_from_choices

from luong_keras.cli.parsing import (
    Option,
    parse_arguments,
    seconds,
    spread_assignments,
)
from luong_keras.cli.settings_flags import (
    PresetOption,
    split_settings,
    with_sections,
)
from luong_keras.config import RunConfig
from luong_keras.config.checks import check_at_least
from luong_keras.config.effects import check_effects, check_learning_rate
from luong_keras.config.values import (
    LEAVES,
    SHORT_NAMES,
    convert_values,
    parse_assignments,
    read_values,
    with_values,
)
from luong_keras.data.text_files import (
    ONE_OR_TWO,
    is_columns,
    list_sources,
    text_files,
)
from luong_keras.files.path_checks import no_link
from luong_keras.presets import PRESETS
from luong_keras.recipe import devices
from luong_keras.recipe.fine_tuning import VOCABULARY_SIZES
from luong_keras.recipe.initial_settings import (
    initial_settings,
    language_settings,
    settings_beside_text,
)
from luong_keras.recipe.user_text import text_settings
from luong_keras.text.threads import divide_cores
from luong_keras.training.run_folder import RunFolder

PROGRAM = "luong-keras train"
_FILES = arg(metavar="FILE [FILE]", help_behavior_hint="")


@dataclass(frozen=True)
class Train:
    """Train a translator, score it and export it.

    Without arguments: the preset demo on the built-in English-German corpus,
    a few minutes on two cores. With your text: the preset small, or tiny for
    fewer than 10,000 pairs. The same command again continues an interrupted
    run, and with more epochs a finished one; so does --run-dir without text,
    preset or --config.

    Settings come from the preset, --config, --set and flags; later sources
    override earlier ones. --help-all lists a flag for every setting.
    """

    # your text: one or more files of both sides (.tsv, .csv, .jsonl, .tmx), or
    # a source and a target file; plain or compressed (.gz, .xz, .zst, .bz2)
    text: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="[TEXT [TEXT …]]", help_behavior_hint=""),
    ] = ()
    # initial settings; default: for your text tiny or small, by its size; for
    # an existing run its settings; otherwise demo
    preset: Annotated[
        Option[str | None], arg(constructor=literal_type_from_choices(PRESETS))
    ] = None
    # folder of the run; default: runs/PRESET
    run_dir: Option[Path | None] = None
    # pairs that choose the best epoch: one file of both sides, or two files; by
    # default a share of the training pairs is held out
    dev: Annotated[UseAppendAction[tuple[tuple[str, ...], ...]], _FILES] = ()
    # pairs to score at the end, likewise
    test: Annotated[UseAppendAction[tuple[tuple[str, ...], ...]], _FILES] = ()
    # phrasebook (built in), files, wmt14_translate, or another builder of
    # tensorflow_datasets; default: the preset's
    dataset: Option[str | None] = None
    # stop with a snapshot after this time, such as 3h or 90m; the same
    # command continues
    stop_after: Option[str | None] = None
    # backend of training: tensorflow, or jax on all devices that it finds,
    # including those of several processes; after jax, tensorflow scores and
    # exports the model. Default: tensorflow
    backend: Option[Literal["tensorflow", "jax"] | None] = None
    # number of devices of this machine, with --backend jax; default: all GPUs,
    # or the CPU as one device. With tensorflow one device trains
    devices: Option[int | None] = None
    # file of settings in YAML or JSON, such as the config.json of another run
    config: Option[Path | None] = None
    # any settings, such as model.units=512; may be repeated
    settings: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(name="set", metavar="KEY=VALUE …", help_behavior_hint=""),
    ] = ()
    # number of layers of the encoder, and of the decoder
    layers: PresetOption[int | None] = None
    # words or subwords of each language, or of both together
    vocabulary_size: PresetOption[int | None] = None


class Call(NamedTuple):
    """One call of `luong-keras train`.

    Attributes:
        config: Settings of the run.
        folder: Folder of the run.
        stop_after: Seconds after which the call stops; None for the whole run.
        backend: Backend of training, `"tensorflow"` or `"jax"`.
        devices: Number of devices, None for all.
    """

    config: RunConfig
    folder: Path
    stop_after: float | None = None
    backend: str = "tensorflow"
    devices: int | None = None


def parse(argv: Sequence[str]) -> Call:
    """Parse a command line into a training call."""
    argv = spread_assignments(argv)
    if "--help-all" in argv:
        match = re.search(r"--preset[= ](\S+)", " ".join(argv))
        base = PRESETS.get(match[1] if match else "demo", RunConfig())
        parse_arguments(with_sections(Train, base), PROGRAM, ["--help"])
    assignments, remaining = split_settings(argv)
    arguments = parse_arguments(with_sections(Train, None), PROGRAM, remaining)
    # Flags override --set.
    assignments[:0] = arguments.settings
    values = convert_values(parse_assignments(assignments))
    sections = [getattr(arguments, field.name) for field in fields(RunConfig)]
    for flags in (arguments, *sections):
        for short_name, full_names in SHORT_NAMES.items():
            if (value := getattr(flags, short_name, None)) is not None:
                values |= dict.fromkeys(full_names, value)
    text_values = _text_values(arguments)
    # Absent files and languages do not override --set.
    implied = language_settings(None, None).keys()
    values |= {
        name: value
        for name, value in text_values.items()
        if value is not None and name not in implied
    }
    limit = arguments.stop_after
    stop_after = None if limit is None else seconds(limit)
    file_values: dict[str, Any] = {}
    if arguments.config is not None:
        file_values = convert_values(read_values(arguments.config))
    has_text = (
        "data.train" in values or values.get("data.dataset", "files") != "files"
    )
    file_values = settings_beside_text(file_values, text_values, has_text)
    given = file_values | values
    preset = arguments.preset
    # The file replaces all settings of a preset.
    is_whole = file_values.keys() >= LEAVES.keys()
    if preset is None and is_whole:
        preset = "small" if given["data.train"] is not None else "demo"
    run = RunFolder(arguments.run_dir) if arguments.run_dir else None
    name, base = initial_settings(given, run, preset)
    if is_whole and name and given["training.init_from"] is not None:
        # The sizes are those of the parent run, to which new words are added.
        for size in VOCABULARY_SIZES:
            del file_values[f"model.{size}"]
    config = with_values(with_values(base, file_values), values)
    if name is not None:  # The run has not begun.
        if is_whole:
            given, base = values, with_values(base, file_values)
        check_effects(config, given)
        check_learning_rate(config, given, base)
    if name == "demo" and not (preset or arguments.config or arguments.dataset):
        folder = arguments.run_dir
        print(
            f"{'' if folder is None else f'There is no run in {folder}. '}"
            "No --preset: training the demo on the built-in corpus. For "
            "WMT14 English-German as in the paper: --preset paper (downloads "
            "through tensorflow_datasets, needs a GPU). For text of your "
            "own: luong-keras train pairs.tsv"
        )
    return Call(
        config,
        arguments.run_dir or Path("runs", name or "demo"),
        stop_after,
        arguments.backend or os.environ.get("KERAS_BACKEND", "tensorflow"),
        arguments.devices,
    )


def _text_values(arguments: Train) -> dict[str, Any]:
    """Return the settings that name the data."""
    # Without --run-dir, a file config.json of this folder is of no run.
    run = RunFolder(arguments.run_dir or "runs")
    # An existing run keeps its text, so the files may have moved.
    must_exist = arguments.run_dir is None or not run.data.exists()
    text, dev, test = (
        _check_files(name, files, must_exist)
        for name, files in (
            ("text", arguments.text),
            ("dev", sum(arguments.dev, ())),
            ("test", sum(arguments.test, ())),
        )
    )
    values: dict[str, Any] = {}
    if text is not None:
        values |= text_settings(run, text, dev, test)
    elif dev is not None or test is not None:
        raise ValueError(
            "--dev and --test belong to text of your own. Expected: the "
            "training text as well, as in `luong-keras train pairs.tsv`. "
            "Received: none. Beside --set data.train=PREFIX, use "
            "--set data.dev=PREFIX and --set data.test=PREFIX."
        )
    if arguments.dataset is not None:
        short = {"wmt14": "wmt14_translate", "wmt15": "wmt15_translate"}
        values["data.dataset"] = short.get(arguments.dataset, arguments.dataset)
    return values


def _check_files(
    name: str, paths: tuple[str, ...], must_exist: bool
) -> str | tuple[str, ...] | None:
    """Check the files of a part of the text, and return one path or several."""
    if not paths:
        return None
    count = sum(map(is_columns, paths))  # number of files with both sides
    is_list = name == "text" and count == len(paths)
    if not is_list and (len(paths), count) not in ((1, 1), (2, 0)):
        order = f" Give the training text before --{name}."
        raise ValueError(
            f"Expected: as {name} {ONE_OR_TWO}. Received: {' '.join(paths)}."
            f"{order * (name != 'text')}"
        )
    files = paths[0] if len(paths) == 1 else paths
    if must_exist:
        for source in list_sources(files):
            text_files(source, ())
    return files


def run(call: Call) -> int:
    """Train the rest of the run.

    Returns:
        The exit status. After training on JAX, a process on TensorFlow replaces
        this one, and the function does not return.

    Raises:
        ValueError: If the parts of the call contradict each other.
        ImportError: If the backend is not installed.
    """
    if call.backend not in ("tensorflow", "jax"):
        raise ValueError(
            "`luong-keras train` runs on tensorflow or jax. Received: "
            f"{call.backend}. Give --backend, or unset KERAS_BACKEND."
        )
    if call.backend == "jax" and importlib.util.find_spec("jax") is None:
        raise ImportError(
            "--backend jax needs JAX. Install it: pip install jax, for GPUs "
            "'jax[cuda12]'."
        )
    check_at_least(1, **{"--devices": call.devices})
    if call.backend == "jax" and _only_scoring_is_left(call):
        # The other processes may have ended for good. Without `process_id`, a
        # launcher starts all of them again.
        process = (devices.process_arguments() or {}).get("process_id")
        if process == 0:
            call = call._replace(backend="tensorflow", devices=None)
        elif process is not None:
            return 0
    # Keras reads the variable when it is imported, which is now.
    os.environ["KERAS_BACKEND"] = call.backend
    if call.config.training.parallel_microbatches > 1:
        divide_cores(call.config.training.parallel_microbatches)
    import keras

    if keras.backend.backend() != call.backend:
        raise ValueError(
            f"Expected: Keras on {call.backend}. Received: a process where "
            f"Keras already runs on {keras.backend.backend()}. Start the "
            "command in a new process."
        )
    from luong_keras.recipe.stages import run_recipe

    if call.backend == "jax":
        if call.config.model.precision == "float64":
            from luong_keras.ops.backends import enable_float64

            enable_float64()
        run_devices = devices.jax_devices(call.devices)
    else:
        run_devices = devices.tensorflow_devices(call.devices)
    began = time.monotonic()
    trained = run_recipe(call.config, call.folder, call.stop_after, run_devices)
    # By a signal to a process, not at --stop-after. The same command continues.
    is_interrupted = not trained and (
        call.stop_after is None
        or not run_devices.any(time.monotonic() - began >= call.stop_after)
    )
    if run_devices.on_jax:
        devices.leave_processes(run_devices)
        if trained and run_devices.writes:
            _continue_on_tensorflow(call.folder)
    return devices.EXIT_STOPPED if is_interrupted else 0


def _only_scoring_is_left(call: Call) -> bool:
    """Test whether an earlier call trained all epochs of this call.

    A run that `patience` ended before is not recognized.
    """
    run = RunFolder(call.folder)
    try:
        epochs = len(no_link(run.log).read_bytes().splitlines())
        snapshot, last = run.snapshot.stat(), run.last_weights.stat()
    except OSError:  # no such file; the run itself reports other errors
        return False
    # The last weights are written at the end of training.
    is_last = last.st_mtime >= snapshot.st_mtime
    return is_last and epochs >= call.config.training.epochs


def _continue_on_tensorflow(folder: Path) -> None:
    """Replace this process by one on TensorFlow that scores and exports."""
    print("Trained; TensorFlow scores and exports.", flush=True)
    command = [sys.executable, "-m", "luong_keras", "train"]
    # The file has all settings, so it replaces those of the preset.
    command += ["--preset", "demo", "--config", str(RunFolder(folder).config)]
    command += ["--run-dir", str(folder), "--backend", "tensorflow"]
    environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
    # The new process filters TensorFlow's messages itself.
    os.dup2(sys.stderr.fileno(), 2)
    os.execve(sys.executable, command, environment)
