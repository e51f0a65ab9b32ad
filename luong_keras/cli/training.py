"""Runs training on the requested backend and devices."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import NamedTuple

from luong_keras.config import RunConfig
from luong_keras.text.threads import divide_cores
from luong_keras.training.run_folder import RunFolder


class Call(NamedTuple):
    """One call of `luong-keras train`.

    Attributes:
        config: the settings of the run.
        folder: where it is.
        stop_after: the seconds until it stops, None for its end.
        backend: what trains, `"tensorflow"` or `"jax"`.
        strategy: that of TensorFlow for several devices, `"mirrored"`.
        devices: how many to use, None for all.
    """

    config: RunConfig
    folder: Path
    stop_after: float | None = None
    backend: str = "tensorflow"
    strategy: str | None = None
    devices: int | None = None


def run(call: Call) -> int:
    """Trains as far as the run has not come yet.

    Returns:
        The exit status. After training on JAX the process becomes another,
        of TensorFlow, and does not return.

    Raises:
        ValueError: where the parts of the call do not fit.
        ImportError: where the backend is not installed.
    """
    _check(call)
    # Keras reads it when it is imported, which is now.
    os.environ["KERAS_BACKEND"] = call.backend
    if call.config.training.parallel_microbatches > 1:
        divide_cores(call.config.training.parallel_microbatches)
    import keras

    if keras.backend.backend() != call.backend:
        raise ValueError(
            f"Expected: Keras on {call.backend}. Received: a process that has "
            f"it on {keras.backend.backend()} already. Start the command in a "
            "process of its own."
        )
    from luong_keras.recipe import devices
    from luong_keras.recipe.run import run_recipe

    if call.backend == "jax":
        if call.config.model.precision == "float64":
            from luong_keras.ops.backends import enable_float64

            enable_float64()
        given = devices.jax_devices(call.devices)
    else:
        given = devices.tensorflow_devices(call.strategy, call.devices)
    # Stopped before its end, it has said so, and continues another time.
    trained = run_recipe(call.config, call.folder, call.stop_after, given)
    if given.on_jax:
        devices.leave_processes(given)
        if trained and given.writes:
            _go_on_with_tensorflow(call.folder)
    return 0


def _check(call: Call) -> None:
    if call.backend not in ("tensorflow", "jax"):
        raise ValueError(
            "`luong-keras train` runs on tensorflow or jax. Received: "
            f"{call.backend}. Give --backend, or unset KERAS_BACKEND."
        )
    if call.backend == "jax" and importlib.util.find_spec("jax") is None:
        raise ImportError(
            "--backend jax needs JAX. Install it: pip install "
            "'luong-keras[jax]', for cards also 'jax[cuda12]'."
        )
    if call.backend == "jax" and call.strategy is not None:
        raise ValueError(
            f"--strategy {call.strategy} is TensorFlow's. On JAX --devices is "
            "enough: leave it out."
        )
    if call.devices is not None and call.devices < 1:
        raise ValueError(
            "--devices is the number of devices to train on. Expected: at "
            f"least 1. Received: {call.devices}."
        )


def _go_on_with_tensorflow(folder: Path) -> None:
    """Becomes the process that scores and exports what JAX has trained."""
    print("Trained; TensorFlow scores and exports.", flush=True)
    config = RunFolder(folder).config
    command = [sys.executable, "-m", "luong_keras", "train"]
    # The file has every setting, so of the preset nothing is left.
    command += ["--preset", "demo", "--config", str(config)]
    command += ["--run-dir", str(folder), "--backend", "tensorflow"]
    environment = os.environ | {"KERAS_BACKEND": "tensorflow"}
    # It keeps off the terminal itself what TensorFlow says.
    os.dup2(sys.stderr.fileno(), 2)
    os.execve(sys.executable, command, environment)
