"""A loaded SavedModel, in this process or as a program.

    python -m luong_keras.serving.saved_model_session FOLDER < CALLS > ANSWERS

runs `[(inputs, outputs)]`, arguments of `SavedModelSession.run`, both files
pickled. It has the operations of TensorFlow and tensorflow-text, as the stock
server, and nothing that the program which wrote the SavedModel has registered.
With `--cost` one core computes, and the last call is measured: behind the
answers to the others follow the bytes that the process takes before it, and
the seconds of CPU and the most bytes that it took.
"""

from __future__ import annotations

import contextlib
import pickle
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from luong_keras.missing_package import missing_package

try:
    import tensorflow as tf
except ImportError as error:
    raise missing_package("tensorflow", error) from error

# Registers the kernels of SentencePiece; an export of words needs none.
with contextlib.suppress(ImportError, tf.errors.NotFoundError):
    import tensorflow_text  # noqa: F401


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


if __name__ == "__main__":
    main()
