"""A loaded SavedModel, in this process or as a program.

    python -m luong_keras.serving.saved_model_session FOLDER < CALLS > ANSWERS

runs `[(inputs, outputs)]`, arguments of `SavedModelSession.run`, both files
pickled. It has the operations of TensorFlow and tensorflow-text, as the stock
server, and nothing that the program which wrote the SavedModel has registered.
With `--cost` one core computes, and the last call is measured: after the
answers to the others follow the bytes that the process takes before it, and
the seconds of CPU and the most bytes that it took.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from luong_keras.missing_package import needs, private_name
from luong_keras.with_tensorflow import tf

with needs("tensorflow"):
    from google.protobuf.message import DecodeError

# Registers the operations of SentencePiece; an export of words has none.
with contextlib.suppress(ImportError, tf.errors.NotFoundError):
    import tensorflow_text  # noqa: F401

# A signature, and arrays by the names of its inputs.
Call = tuple[str, Mapping[str, np.ndarray]]
# Arrays by the names of outputs.
Answer = Mapping[str, np.ndarray]


class SavedModelSession:
    """A loaded SavedModel, whose tensors are named as in its graph.

    It is loaded as a server loads it: the graph with the tag `serve`, without
    the objects of `tf.saved_model.load`. Several threads may call `run` at
    once.

    Args:
        folder: the SavedModel.
        threads: how many compute; as many as there are cores when None.

    Raises:
        tf.errors.OpError: where the runtime cannot load it.
        RuntimeError: where the folder has no graph with the tag.
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        v1 = tf.compat.v1
        config = v1.ConfigProto(
            intra_op_parallelism_threads=threads or 0,
            inter_op_parallelism_threads=threads or 0,
        )
        graph = tf.Graph()
        self._session = v1.Session(graph=graph, config=config)
        with graph.as_default():
            v1.saved_model.load(self._session, ["serve"], str(folder))

    def run(
        self,
        inputs: Mapping[str, np.ndarray],
        outputs: Mapping[str, str],
        milliseconds: int = 0,
    ) -> dict[str, np.ndarray]:
        """Feeds and fetches tensors.

        Args:
            inputs: tensor name -> array; strings are objects, of bytes.
            outputs: key -> tensor name.
            milliseconds: after which the call is given up, when the operation
                that is running then has ended; 0 or less: never.

        Returns:
            key -> array, strings as objects, of bytes.

        Raises:
            tf.errors.OpError: where the runtime refuses the call.
        """
        options = tf.compat.v1.RunOptions(timeout_in_ms=max(milliseconds, 0))
        return self._session.run(dict(outputs), inputs, options)

    def close(self) -> None:
        """Frees the model; no call may be running or follow."""
        self._session.close()


def process_memory(name: str, process: int | str = "self") -> int:
    """A line of the kernel's account of a process, such as VmHWM, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    return 1024 * int(found.group(1)) if found else 0


def main() -> None:
    """Runs the calls of standard input."""
    threads = 1 if "--cost" in sys.argv else None
    try:
        session = SavedModelSession(sys.argv[1], threads)
        calls = pickle.load(sys.stdin.buffer)
        measured = calls.pop() if "--cost" in sys.argv else None
        _write([session.run(*call) for call in calls])
        if measured is not None:
            _measure(session, measured)
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        message = getattr(error, "message", str(error))
        raise SystemExit(message.splitlines()[0]) from error


def _measure(session, call):
    with contextlib.suppress(OSError):  # which some sandboxes forbid
        # The largest size is counted from here on.
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    _write(process_memory("VmRSS"))
    began = time.process_time()  # other processes do not count
    session.run(*call)
    _write((time.process_time() - began, process_memory("VmHWM")))


def _write(answer):
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.flush()


class SavedModelError(RuntimeError):
    """A SavedModel that a server could not serve, and why."""


class RequestCost(NamedTuple):
    """The cost of a request.

    Attributes:
        megabytes: by how much the process rose over what the calls before took.
        seconds: on one core.
        finished: whether it came to an end in the time it was given; else
            both are what it had taken until then.

    Example:
        >>> print(RequestCost(412.3, 7.94))
        412 MB, 7.9 s on one core
        >>> print(RequestCost(412.3, 60.0, finished=False))
        more than 412 MB, more than 60.0 s on one core
    """

    megabytes: float
    seconds: float
    finished: bool = True

    def __str__(self) -> str:
        more = "" if self.finished else "more than "
        return (
            f"{more}{self.megabytes:,.0f} MB, {more}{self.seconds:.1f} s on "
            "one core"
        )


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
    """Runs calls in a process that only loads TensorFlow and the SavedModel.

    Args:
        folder: the SavedModel.
        calls: run in one process, one after the other.

    Raises:
        SavedModelError: where the runtime cannot load or run the model.
    """
    with session_process(folder, calls) as process:
        return _read(process)


def run_and_measure(
    folder: str | Path, calls: Sequence[Call], last: Call, max_seconds: float
) -> tuple[list[Answer], RequestCost]:
    """Answers of some calls, and the cost of a last one.

    Args:
        folder: the SavedModel.
        calls: as in `run_in_server_runtime`.
        last: the call that is measured, on Linux.
        max_seconds: what it may take.

    Raises:
        SavedModelError: where the runtime cannot load or run the model.
    """
    with session_process(folder, [*calls, last], "--cost") as process:
        answers, before = _read(process), _read(process)
        try:
            process.wait(max_seconds)
        except subprocess.TimeoutExpired:
            peak = process_memory("VmHWM", process.pid)
            process.kill()
            cost = RequestCost((peak - before) / 1e6, max_seconds, False)
            return answers, cost
        try:
            seconds, peak = _read(process)
        except SavedModelError as error:
            raise SavedModelError(
                "Expected: an answer to the largest request that the limits "
                f"allow. Received: {error} Where memory is short, export with "
                "lower limits."
            ) from error
    return answers, RequestCost((peak - before) / 1e6, seconds)


def session_process(
    folder: str | Path, calls: Sequence[Call], *options: str
) -> subprocess.Popen:
    """The program `saved_model_session`, on the CPU as the stock server.

    Raises:
        SavedModelError: where the folder has no graph that a server loads.
    """
    found = read_meta_graph(Path(folder)).signature_def
    jobs = [
        (
            {
                found[name].inputs[key].name: np.asarray(array)
                for key, array in inputs.items()
            },
            {key: info.name for key, info in found[name].outputs.items()},
        )
        for name, inputs in calls
    ]
    program = "luong_keras.serving.saved_model_session"
    # A pipe that nobody empties would stop the process.
    errors = tempfile.TemporaryFile()  # noqa: SIM115 -- `process` closes it
    process = subprocess.Popen(
        [sys.executable, "-m", program, str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        # This process may hold the GPU.
        env={
            **os.environ,
            "LUONG_KERAS_LAZY": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    process.stderr = errors
    assert process.stdin is not None
    with process.stdin, contextlib.suppress(BrokenPipeError):
        pickle.dump(jobs, process.stdin)
    return process


def _read(process: subprocess.Popen):
    """The next that a process writes."""
    assert process.stdout is not None and process.stderr is not None
    try:
        return pickle.load(process.stdout)
    except EOFError as error:
        code = process.wait()
        process.stderr.seek(0)
        lines = process.stderr.read().decode(errors="replace").splitlines()
        message = lines[-1] if lines else "no message"
        if code < 0:
            message = f"the process ended by signal {-code}"
        raise SavedModelError(
            "TensorFlow's runtime does not run the model in another process: "
            f"{message.rstrip('.')}."
        ) from error


if __name__ == "__main__":
    main()
