"""Runs a SavedModel in TensorFlow's C++ runtime, without its Python.

What a server does: the kernels of tensorflow-text are loaded as libraries,
XLA is switched off, the graph is loaded with the tag `serve`. As a program,

    python -m luong_keras.serving.saved_model_session FOLDER < CALLS > ANSWERS

it runs calls `[{"inputs": {"tensor:0": [[...], dtype]}, "outputs": {"name":
"tensor:0"}}]` and gives `[{"name": [[...], dtype]}]`, both JSON, in a process
without TensorFlow's Python; strings are base64 there. With `--cost` it runs on
one core, and measures the last call: it prints the bytes that the process
takes before, and in another line the seconds of CPU and the most bytes.
"""

import base64
import contextlib
import json
import re
import sys
import time
from ctypes import c_char_p, c_void_p
from pathlib import Path

import numpy as np

from luong_keras.serving.c_api import (
    Output,
    Status,
    TensorFlowError,
    load_c_api,
)


class SavedModelSession:
    """A loaded SavedModel, whose tensors are named as in its graph.

    Several threads may call `run` at once.

    Args:
        folder: the SavedModel.
        threads: how many compute, at most 127; as many as there are cores when
            None.

    Raises:
        TensorFlowError: where the runtime cannot load it.
        OSError: where TensorFlow is not installed.
        ImportError: where it has not the Linux libraries that are known.
    """

    def __init__(self, folder, threads=None):
        self._api = load_c_api()
        self._graph = self._api.NewGraph()
        options = self._api.NewSessionOptions()
        if threads is not None:
            # ConfigProto: 2 = intra-op, 5 = inter-op threads, as varints.
            config = bytes([2 << 3, threads, 5 << 3, threads])
            with Status(self._api) as status:
                self._api.SetConfig(options, config, len(config), status)
        tags = (c_char_p * 1)(b"serve")
        path = str(folder).encode()
        try:
            with Status(self._api) as status:
                self._session = self._api.LoadSessionFromSavedModel(
                    options, None, path, tags, 1, self._graph, None, status
                )
        except TensorFlowError:
            self._api.DeleteGraph(self._graph)
            raise
        finally:
            self._api.DeleteSessionOptions(options)

    def run(self, inputs, outputs, milliseconds=0):
        """Feeds and fetches tensors.

        Args:
            inputs: tensor name -> array; strings are objects, of bytes.
            outputs: key -> tensor name.
            milliseconds: after which the call is given up, when the operation
                that is running then has ended; 0 or less: never.

        Returns:
            key -> array, strings as objects, of bytes.

        Raises:
            TensorFlowError: where the runtime refuses the call.
        """
        api, keys = self._api, list(outputs)
        feeds = (Output * len(inputs))(*map(self._output, inputs))
        fetches = (Output * len(keys))(
            *(self._output(outputs[key]) for key in keys)
        )
        fetched = (c_void_p * len(keys))()
        fed = (c_void_p * len(inputs))()
        # RunOptions: 2 = the timeout, as a varint.
        options = b"\x10" + varint(max(milliseconds, 0))
        options = api.NewBufferFromString(options, len(options))
        try:
            for place, array in enumerate(inputs.values()):
                fed[place] = api.tensor(np.asarray(array))
            with Status(api) as status:
                api.SessionRun(
                    *(self._session, options),
                    *(feeds, fed, len(inputs)),
                    *(fetches, fetched, len(keys)),
                    *(None, 0, None),
                    status,
                )
            return {k: api.array(t) for k, t in zip(keys, fetched, strict=True)}
        finally:
            api.DeleteBuffer(options)
            for tensor in filter(None, (*fed, *fetched)):
                api.DeleteTensor(tensor)

    def close(self):
        """Frees the model; no call may be running or follow."""
        with Status(self._api) as status:
            self._api.DeleteSession(self._session, status)
        self._api.DeleteGraph(self._graph)

    def _output(self, name):
        operation, _, index = name.partition(":")
        found = self._api.GraphOperationByName(self._graph, operation.encode())
        if not found:
            raise TensorFlowError(5, f"The graph has no tensor {name!r}.")
        return Output(found, int(index or 0))


def varint(number):
    """A number that is not negative as a protocol buffer has it."""
    groups = [number & 127]
    while number := number >> 7:
        groups[-1] |= 128
        groups.append(number & 127)
    return bytes(groups)


def to_json(array):
    """[nested lists, type], strings as base64."""
    if array.dtype.kind not in "OS":
        return [array.tolist(), str(array.dtype)]
    encode = np.vectorize(lambda s: base64.b64encode(s).decode(), otypes="O")
    return [encode(array).tolist() if array.size else [], "string"]


def from_json(value):
    """The array of `to_json`; one without elements has the shape (0,)."""
    nested, dtype = value
    if dtype != "string":
        return np.asarray(nested, dtype)
    texts = np.asarray(nested, object)
    decode = np.vectorize(base64.b64decode, otypes="O")
    return decode(texts) if texts.size else texts


def process_memory(name, process="self"):
    """A line of the kernel's account of a process, such as VmHWM, in bytes."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    return 1024 * int(found.group(1)) if found else 0


def main():
    """Runs the calls of standard input."""
    measured = "--cost" in sys.argv
    try:
        session = SavedModelSession(sys.argv[1], 1 if measured else None)
        calls = [
            (
                {name: from_json(x) for name, x in call["inputs"].items()},
                call["outputs"],
            )
            for call in json.load(sys.stdin)
        ]
        if measured:
            _measure(session, calls)
        else:
            _answer(session, calls)
    except TensorFlowError as error:
        raise SystemExit(error.message.splitlines()[0]) from error
    except ImportError as error:
        raise SystemExit(str(error)) from error
    if "tensorflow" in sys.modules:
        raise SystemExit("TensorFlow's Python was loaded.")


def _answer(session, calls):
    answers = [session.run(*call) for call in calls]
    json.dump(
        [
            {key: to_json(array) for key, array in answer.items()}
            for answer in answers
        ],
        sys.stdout,
    )


def _measure(session, calls):
    *others, last = calls
    for call in others:
        session.run(*call)
    with contextlib.suppress(OSError):  # which some sandboxes forbid
        # The largest size is counted from here on.
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    print(json.dumps(process_memory("VmRSS")), flush=True)
    began = time.process_time()  # other processes do not count
    session.run(*last)
    print(json.dumps([time.process_time() - began, process_memory("VmHWM")]))


if __name__ == "__main__":
    main()
