"""Runs a SavedModel through TensorFlow's C API, without TensorFlow's Python.

What a server does: the kernels of tensorflow-text are loaded as libraries,
XLA is switched off, the graph is loaded with the tag `serve`. The job comes
as JSON on standard input, with base64 where there are strings:

    {"site": "folder of the packages", "folder": "SavedModel",
     "inputs": {"tensor:0": ["…"]}, "outputs": {"name": "tensor:0"}}

and the answer goes to standard output as {"name": {"shape": […],
"values": […]}}.
"""

import base64
import ctypes
import json
import sys
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

STRING = 7
NUMBERS = {1: ctypes.c_float, 3: ctypes.c_int32, 9: ctypes.c_int64}
STRING_BYTES = 24  # of a TF_TString


class Output(ctypes.Structure):
    _fields_ = [("operation", c_void_p), ("index", c_int)]


# Name -> (result, arguments) of the functions that are called.
FUNCTIONS = {
    "TF_NewStatus": (c_void_p, []),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_NewGraph": (c_void_p, []),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int]
        + [c_void_p, c_void_p, c_void_p],
    ),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_SessionRun": (
        None,
        [c_void_p, c_void_p]
        + [POINTER(Output), POINTER(c_void_p), c_int] * 2
        + [c_void_p, c_int, c_void_p, c_void_p],
    ),
    "TF_AllocateTensor": (
        c_void_p,
        [c_int, POINTER(c_int64), c_int, c_size_t],
    ),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_StringInit": (None, [c_void_p]),
    "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
    "TF_StringGetDataPointer": (c_void_p, [c_void_p]),
    "TF_StringGetSize": (c_size_t, [c_void_p]),
}


class Api:
    """The C API, with an exception where a status is not OK."""

    def __init__(self, site):
        folder = Path(site) / "tensorflow"
        libraries = [
            ctypes.CDLL(str(folder / name), mode=ctypes.RTLD_GLOBAL)
            for name in (
                "libtensorflow_framework.so.2",
                "libtensorflow_cc.so.2",
            )
        ]
        for name, (result, arguments) in FUNCTIONS.items():
            library = next(lib for lib in libraries if hasattr(lib, name))
            function = getattr(library, name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("TF_"), function)
        # tensorflow::DisableXlaCompilation(), which the server calls.
        libraries[1]._ZN10tensorflow21DisableXlaCompilationEv()
        self.status = self.NewStatus()
        for path in sorted(Path(site).glob("tensorflow_text/**/ops/*.so")):
            self.LoadLibrary(str(path).encode(), self.status)
            self.check(path)

    def check(self, what):
        if self.GetCode(self.status):
            message = self.Message(self.status).decode()
            raise SystemExit(f"{what}: {message}")

    def strings(self, values):
        """A tensor (n,) of byte strings."""
        shape = (c_int64 * 1)(len(values))
        size = STRING_BYTES * len(values)
        tensor = self.AllocateTensor(STRING, shape, 1, size)
        start = self.TensorData(tensor)
        for i, value in enumerate(values):
            self.StringInit(start + STRING_BYTES * i)
            self.StringCopy(start + STRING_BYTES * i, value, len(value))
        return tensor

    def read(self, tensor):
        """Shape and flat values of a tensor, strings as base64."""
        shape = [self.Dim(tensor, i) for i in range(self.NumDims(tensor))]
        count = 1
        for size in shape:
            count *= size
        start, kind = self.TensorData(tensor), self.TensorType(tensor)
        if kind != STRING:
            values = (NUMBERS[kind] * count).from_address(start)[:]
        else:
            places = [start + STRING_BYTES * i for i in range(count)]
            values = [
                base64.b64encode(
                    ctypes.string_at(
                        self.StringGetDataPointer(place),
                        self.StringGetSize(place),
                    )
                ).decode()
                for place in places
            ]
        return {"shape": shape, "values": values}


class SavedModel:
    """A loaded SavedModel; tensors are named as in its graph."""

    def __init__(self, api, folder):
        self.api, self.graph = api, api.NewGraph()
        tags = (c_char_p * 1)(b"serve")
        self.session = api.LoadSessionFromSavedModel(
            api.NewSessionOptions(),
            None,
            str(folder).encode(),
            tags,
            1,
            self.graph,
            None,
            api.status,
        )
        api.check("loading")

    def output(self, name):
        operation, _, index = name.partition(":")
        found = self.api.GraphOperationByName(self.graph, operation.encode())
        if not found:
            raise SystemExit(f"The graph has no operation {operation!r}.")
        return Output(found, int(index or 0))

    def run(self, inputs, outputs):
        names = list(outputs)
        feeds = (Output * len(inputs))(*map(self.output, inputs))
        fed = (c_void_p * len(inputs))(
            *(self.api.strings(values) for values in inputs.values())
        )
        fetches = (Output * len(names))(
            *(self.output(outputs[name]) for name in names)
        )
        fetched = (c_void_p * len(names))()
        self.api.SessionRun(
            self.session,
            None,
            *(feeds, fed, len(inputs)),
            *(fetches, fetched, len(names)),
            *(None, 0, None),
            self.api.status,
        )
        self.api.check("running")
        return {
            name: self.api.read(tensor)
            for name, tensor in zip(names, fetched, strict=True)
        }


def main():
    job = json.load(sys.stdin)
    model = SavedModel(Api(job["site"]), job["folder"])
    inputs = {
        name: [base64.b64decode(value) for value in values]
        for name, values in job["inputs"].items()
    }
    answer = model.run(inputs, job["outputs"])
    assert "tensorflow" not in sys.modules
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
