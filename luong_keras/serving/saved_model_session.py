"""A loaded SavedModel, in this process or as a program.

    python -m luong_keras.serving.saved_model_session FOLDER < CALLS > ANSWERS

runs `[(inputs, outputs)]`, arguments of `SavedModelSession.run`; both files
are pickled. Like the stock server, the program has only the operations of
TensorFlow and tensorflow-text, without those that the exporting program has
registered.
"""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

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


def main() -> None:
    """Run the calls of standard input."""
    try:
        session = SavedModelSession(sys.argv[1])
        calls = pickle.load(sys.stdin.buffer)
        answers = [session.run(*call) for call in calls]
        pickle.dump(answers, sys.stdout.buffer)
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        message = getattr(error, "message", str(error))
        lines = message.removeprefix("Graph execution error:").split("\n")
        raise SystemExit(next(filter(None, lines))) from error


class SavedModelError(RuntimeError):
    """Error of a SavedModel that a server could not serve."""


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
        SavedModelError: If the folder has no graph that a server loads, or the
            runtime cannot load or run it.
    """
    signatures = read_meta_graph(Path(folder)).signature_def
    program = "luong_keras.serving.saved_model_session"
    # A file, because a pipe that is not read would block the process.
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [sys.executable, "-m", program, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            # The calling process may hold the GPU.
            env={
                **os.environ,
                # Packages that only this process's `sys.path` has.
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
                "LUONG_KERAS_LAZY": "1",
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "CUDA_VISIBLE_DEVICES": "",
            },
        ) as process,
    ):
        assert process.stdin is not None and process.stdout is not None
        try:
            feeds_and_fetches = [
                _feeds_and_fetches(signatures, name, inputs)
                for name, inputs in calls
            ]
            # Closing writes the rest, so it can find the pipe broken too.
            with contextlib.suppress(BrokenPipeError), process.stdin:
                pickle.dump(feeds_and_fetches, process.stdin)
        except BaseException:
            process.kill()
            raise
        try:
            return pickle.load(process.stdout)
        except (EOFError, pickle.UnpicklingError) as error:
            code = process.wait()
            errors.seek(0)
            lines = errors.read().decode(errors="replace").splitlines()
            message = lines[-1] if lines else "no message"
            if code < 0:
                message = f"the process ended by signal {-code}"
            raise SavedModelError(
                "TensorFlow's runtime does not run the model in another "
                f"process: {message.rstrip('.')}. If the folder is damaged "
                "or incomplete, write it again with `export_saved_model`."
            ) from error


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


if __name__ == "__main__":
    main()
