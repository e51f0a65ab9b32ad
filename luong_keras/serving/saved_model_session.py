"""A loaded SavedModel, in this process or as a program.

    python -m luong_keras.serving.saved_model_session FOLDER < CALLS > ANSWERS

runs `[(inputs, outputs)]`, arguments of `SavedModelSession.run`; both files
are pickled. Like the stock server, the program has only the operations of
TensorFlow and tensorflow-text, without those that the exporting program has
registered. With `--cost`, one core computes and the last call is measured. The
program then writes the answers to the other calls, the bytes of memory before
the last call, and its CPU seconds and peak bytes of memory.
"""

import contextlib
import os
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from luong_keras.missing_package import needs, private_name
from luong_keras.with_tensorflow import tf

with needs("tensorflow"):
    from google.protobuf.message import DecodeError

# Registers the operations of SentencePiece, which exports of words do not need.
with contextlib.suppress(ImportError, tf.errors.NotFoundError):
    import tensorflow_text  # noqa: F401

# The name of a signature, and arrays by the names of its inputs.
Call = tuple[str, Mapping[str, np.ndarray]]
# Arrays by the names of outputs.
Answer = Mapping[str, np.ndarray]


class SavedModelSession:
    """A loaded SavedModel, whose tensors have the names of its graph.

    It is loaded as in a server: only the graph with the tag `serve`, without
    the objects of `tf.saved_model.load`. Several threads may call `run` at
    once.

    Args:
        folder: The SavedModel.
        threads: Number of threads that compute; one per core when None.

    Raises:
        tf.errors.OpError: If the runtime cannot load the SavedModel.
        RuntimeError: If the folder has no graph with the tag.
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        v1 = tf.compat.v1
        config = v1.ConfigProto(
            intra_op_parallelism_threads=threads or 0,
            inter_op_parallelism_threads=threads or 0,
        )
        # The first call of a signature optimises only the nodes that it runs.
        config.graph_options.place_pruned_graph = True
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
        """Feed and fetch tensors.

        Args:
            inputs: Tensor name -> array; strings are object arrays of bytes.
            outputs: Key -> tensor name.
            milliseconds: Timeout, which takes effect when the running
                operation has ended; 0 or less for no timeout.

        Returns:
            key -> array; strings are object arrays of bytes.

        Raises:
            tf.errors.OpError: If the runtime refuses the call.
        """
        options = tf.compat.v1.RunOptions(timeout_in_ms=max(milliseconds, 0))
        return self._session.run(dict(outputs), inputs, options)

    def close(self) -> None:
        """Free the model; no call of `run` may be active or follow."""
        self._session.close()


def process_memory(name: str, process: int | str = "self") -> int:
    """Return a memory value of a process, such as VmHWM, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    match = re.search(rf"{name}:\s+(\d+) kB", status)
    return 1024 * int(match.group(1)) if match else 0


def _processor_seconds(process: int) -> float:
    """Return the seconds that cores have computed for a process so far."""
    # The clock that Linux gives a process, as `clock_getcpuclockid` in C.
    return time.clock_gettime(~process << 3 | 2)


def main() -> None:
    """Run the calls of standard input."""
    threads = 1 if "--cost" in sys.argv else None
    try:
        session = SavedModelSession(sys.argv[1], threads)
        calls = pickle.load(sys.stdin.buffer)
        measured_call = calls.pop() if "--cost" in sys.argv else None
        _write_object([session.run(*call) for call in calls])
        if measured_call is not None:
            _report_cost(session, measured_call)
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        message = getattr(error, "message", str(error))
        raise SystemExit(message.splitlines()[0]) from error


def _report_cost(session, call):
    with contextlib.suppress(OSError):  # Some sandboxes forbid it.
        # Reset the peak memory, which is counted from here.
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    _write_object(process_memory("VmRSS"))
    start = time.process_time()  # other processes do not count
    session.run(*call)
    _write_object((time.process_time() - start, process_memory("VmHWM")))


def _write_object(answer):
    pickle.dump(answer, sys.stdout.buffer)
    sys.stdout.flush()


class SavedModelError(RuntimeError):
    """Error of a SavedModel that a server could not serve."""


class RequestCost(NamedTuple):
    """The cost of a request.

    Attributes:
        megabytes: By how much the request raised the memory of the process.
        seconds: Time on one core, without waiting for it.
        finished: Whether the request finished within its time limit;
            otherwise both numbers are the cost so far.

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
        prefix = "" if self.finished else "more than "
        return (
            f"{prefix}{self.megabytes:,.0f} MB, {prefix}{self.seconds:.1f} s "
            "on one core"
        )


def read_meta_graph(folder: Path):
    """Return the graph that a server loads, a `MetaGraphDef`.

    Raises:
        SavedModelError: If the SavedModel is unreadable or has no such graph.
    """
    path = Path(folder) / "saved_model.pb"
    messages = private_name("tensorflow.core.protobuf.saved_model_pb2")
    saved_model = messages.SavedModel()
    try:
        saved_model.ParseFromString(path.read_bytes())
    except (OSError, DecodeError) as error:
        raise SavedModelError(
            f"Expected: a SavedModel. Received: {path}, which cannot be read "
            f"({error}). Export the model again."
        ) from error
    graphs = [
        g for g in saved_model.meta_graphs if "serve" in g.meta_info_def.tags
    ]
    if len(graphs) != 1:
        raise SavedModelError(
            "Expected: one graph tagged 'serve', which servers load. "
            f"Received: {len(graphs)} in {path}."
        )
    return graphs[0]


def run_in_server_runtime(
    folder: str | Path, calls: Iterable[Call]
) -> list[Answer]:
    """Run calls in a process that only loads TensorFlow and the SavedModel.

    Args:
        folder: The SavedModel.
        calls: The calls, which one process runs one after the other; a
            generator makes them while the process starts.

    Raises:
        SavedModelError: If the runtime cannot load or run the model.
    """
    with session_process(folder, calls) as process:
        return _read_object(process)


def run_and_measure(
    folder: str | Path, calls: Iterable[Call], last: Call, max_seconds: float
) -> tuple[list[Answer], RequestCost]:
    """Return the answers to some calls, and the cost of a last call.

    Args:
        folder: The SavedModel.
        calls: As in `run_in_server_runtime`.
        last: The call that is measured, on Linux.
        max_seconds: Time limit of the last call, with waiting for a core.

    Raises:
        SavedModelError: If the runtime cannot load or run the model.
    """
    with session_process(folder, chain(calls, [last]), "--cost") as process:
        answers, before = _read_object(process), _read_object(process)
        start = _processor_seconds(process.pid)
        try:
            process.wait(max_seconds)
        except subprocess.TimeoutExpired:
            peak = process_memory("VmHWM", process.pid)
            seconds = _processor_seconds(process.pid) - start
            process.kill()
            return answers, RequestCost((peak - before) / 1e6, seconds, False)
        try:
            seconds, peak = _read_object(process)
        except SavedModelError as error:
            raise SavedModelError(
                "Expected: an answer to the largest request that the limits "
                f"allow. Received: {error} Where memory is short, export with "
                "lower limits."
            ) from error
    return answers, RequestCost((peak - before) / 1e6, seconds)


def session_process(
    folder: str | Path, calls: Iterable[Call], *options: str
) -> subprocess.Popen:
    """Start the program `saved_model_session` on the CPU, as the stock server.

    Raises:
        SavedModelError: If the folder has no graph that a server loads.
    """
    signatures = read_meta_graph(Path(folder)).signature_def
    program = "luong_keras.serving.saved_model_session"
    # A file, because a pipe that is not read would block the process.
    errors = tempfile.TemporaryFile()  # noqa: SIM115 -- `process` closes it
    process = subprocess.Popen(
        [sys.executable, "-m", program, str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        # The calling process may hold the GPU.
        env={
            **os.environ,
            "LUONG_KERAS_LAZY": "1",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )
    process.stderr = errors
    assert process.stdin is not None
    try:
        feeds_and_fetches = [
            _feeds_and_fetches(signatures, name, inputs)
            for name, inputs in calls
        ]
        # Closing writes the rest, so it can find the pipe broken too.
        with contextlib.suppress(BrokenPipeError), process.stdin:
            pickle.dump(feeds_and_fetches, process.stdin)
    except BaseException:
        with process:
            process.kill()
        raise
    return process


def _feeds_and_fetches(signatures, name, inputs):
    """Return arrays by tensor names, and the tensor names of the outputs."""
    if name not in signatures:
        raise SavedModelError(
            f"Expected: a call of one of the signatures {sorted(signatures)}. "
            f"Received: {name!r}."
        )
    signature = signatures[name]
    if set(inputs) != set(signature.inputs):
        raise SavedModelError(
            f"Expected: the inputs {sorted(signature.inputs)} of {name!r}. "
            f"Received: {sorted(inputs)}."
        )
    return (
        {signature.inputs[k].name: np.asarray(x) for k, x in inputs.items()},
        {k: info.name for k, info in signature.outputs.items()},
    )


def _read_object(process: subprocess.Popen):
    """Return the next object that a process writes."""
    assert process.stdout is not None and process.stderr is not None
    try:
        return pickle.load(process.stdout)
    except (EOFError, pickle.UnpicklingError) as error:
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
