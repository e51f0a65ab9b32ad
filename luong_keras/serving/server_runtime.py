"""Calls to a SavedModel in a process that has TensorFlow's C++ alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from luong_keras.missing_package import missing_package, private_name
from luong_keras.serving.saved_model_session import from_json, to_json

try:
    from google.protobuf.message import DecodeError
except ImportError as error:
    raise missing_package("tensorflow", error) from error

# A signature, and arrays by the names of its inputs.
Call = tuple[str, Mapping[str, np.ndarray]]
# Arrays by the names of outputs.
Answer = Mapping[str, np.ndarray]


class SavedModelError(RuntimeError):
    """A SavedModel that a server could not serve, and why."""


def read_meta_graph(folder: Path):
    """The graph that a server loads, a `MetaGraphDef`.

    Raises:
        SavedModelError: where there is none.
    """
    path = Path(folder) / "saved_model.pb"
    messages = private_name("tensorflow.core.protobuf.saved_model_pb2")
    saved = messages.SavedModel()
    try:
        saved.ParseFromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise SavedModelError(
            f"Expected: a SavedModel. Received: {path}, which cannot be read "
            f"({error}). Export the model again."
        ) from error
    found = [g for g in saved.meta_graphs if "serve" in g.meta_info_def.tags]
    if len(found) != 1:
        raise SavedModelError(
            "Expected: one graph tagged 'serve', which servers load. "
            f"Received: {len(found)} in {path}."
        )
    return found[0]


def run_in_server_runtime(
    folder: str | Path, calls: Sequence[Call]
) -> list[Answer]:
    """Runs calls as the stock server would: no Python, no XLA.

    Args:
        folder: the SavedModel.
        calls: what to ask, in one process, one after the other.

    Raises:
        SavedModelError: where the runtime cannot load or run the model.
    """
    process = session_process(folder)
    output, errors = process.communicate(
        json.dumps(session_jobs(folder, calls))
    )
    if process.returncode:
        raise SavedModelError(_why_not(process.returncode, errors))
    return [
        {key: from_json(value) for key, value in answer.items()}
        for answer in json.loads(output)
    ]


def session_jobs(folder: str | Path, calls: Sequence[Call]) -> list[dict]:
    """Calls as the program `saved_model_session` reads them.

    Raises:
        SavedModelError: where the folder has no graph that a server loads.
    """
    found = read_meta_graph(Path(folder)).signature_def
    return [
        {
            "inputs": {
                found[name].inputs[key].name: to_json(np.asarray(array))
                for key, array in inputs.items()
            },
            "outputs": {k: t.name for k, t in found[name].outputs.items()},
        }
        for name, inputs in calls
    ]


def session_process(folder: str | Path, *options: str) -> subprocess.Popen:
    """The program `saved_model_session`, on the CPU as the stock server."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "luong_keras.serving.saved_model_session",
            str(folder),
            *options,
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # This process may hold the GPU.
        env={
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )


def _why_not(code, errors):
    told = errors.strip().splitlines() or ["no message"]
    message = f"TensorFlow's C++ runtime does not run the model: {told[-1]}"
    if code < 0:
        message = f"The C++ runtime ended by signal {-code}."
    if "not registered" in errors:
        message += (
            " An operation is of neither TensorFlow nor tensorflow-text: the "
            "stock server has it not."
        )
    return message
