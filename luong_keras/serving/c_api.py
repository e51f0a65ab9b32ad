"""TensorFlow's C API from the libraries of its package, by ctypes."""

import ctypes
import functools
import importlib.util
from ctypes import POINTER, c_char_p, c_int, c_int64, c_size_t, c_void_p
from pathlib import Path

import numpy as np

from luong_keras.missing_package import missing_private_name, private_name

STRING = 7
STRING_BYTES = 24  # of a TF_TString
# TensorFlow's number of a type -> NumPy's type.
DTYPES = {
    1: np.dtype("float32"),
    2: np.dtype("float64"),
    3: np.dtype("int32"),
    9: np.dtype("int64"),
    10: np.dtype("bool"),
}
NUMBERS = {dtype: number for number, dtype in DTYPES.items()}


class Output(ctypes.Structure):
    """A TF_Output: one result of an operation."""

    _fields_ = [("operation", c_void_p), ("index", c_int)]


# Of tensorflow, and of tensorflow_text.
LIBRARIES = ("libtensorflow_framework.so.2", "libtensorflow_cc.so.2")
TEXT_LIBRARIES = "**/ops/*.so"
# Name -> (result, arguments) of the functions that are called.
FUNCTIONS = {
    "TF_NewStatus": (c_void_p, []),
    "TF_DeleteStatus": (None, [c_void_p]),
    "TF_GetCode": (c_int, [c_void_p]),
    "TF_Message": (c_char_p, [c_void_p]),
    "TF_LoadLibrary": (c_void_p, [c_char_p, c_void_p]),
    "TF_NewGraph": (c_void_p, []),
    "TF_NewSessionOptions": (c_void_p, []),
    "TF_DeleteSessionOptions": (None, [c_void_p]),
    "TF_SetConfig": (None, [c_void_p, c_char_p, c_size_t, c_void_p]),
    "TF_LoadSessionFromSavedModel": (
        c_void_p,
        [c_void_p, c_void_p, c_char_p, POINTER(c_char_p), c_int]
        + [c_void_p, c_void_p, c_void_p],
    ),
    "TF_DeleteSession": (None, [c_void_p, c_void_p]),
    "TF_DeleteGraph": (None, [c_void_p]),
    "TF_GraphOperationByName": (c_void_p, [c_void_p, c_char_p]),
    "TF_SessionRun": (
        None,
        [c_void_p, c_void_p]
        + [POINTER(Output), POINTER(c_void_p), c_int] * 2
        + [c_void_p, c_int, c_void_p, c_void_p],
    ),
    "TF_NewBufferFromString": (c_void_p, [c_char_p, c_size_t]),
    "TF_DeleteBuffer": (None, [c_void_p]),
    "TF_AllocateTensor": (
        c_void_p,
        [c_int, POINTER(c_int64), c_int, c_size_t],
    ),
    "TF_DeleteTensor": (None, [c_void_p]),
    "TF_TensorType": (c_int, [c_void_p]),
    "TF_TensorData": (c_void_p, [c_void_p]),
    "TF_NumDims": (c_int, [c_void_p]),
    "TF_Dim": (c_int64, [c_void_p, c_int]),
    "TF_StringInit": (None, [c_void_p]),
    "TF_StringCopy": (None, [c_void_p, c_char_p, c_size_t]),
    "TF_StringGetDataPointer": (c_void_p, [c_void_p]),
    "TF_StringGetSize": (c_size_t, [c_void_p]),
}


class TensorFlowError(RuntimeError):
    """What the runtime refused.

    Attributes:
        code: TensorFlow's status code: 3 for an invalid argument, 5 for
            something not found.
        message: what the runtime says.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} (code {code})")
        self.code, self.message = code, message


class Status:
    """A status for one call; an error where it is not OK."""

    def __init__(self, api):
        self.api = api

    def __enter__(self):
        self.status = self.api.NewStatus()
        return self.status

    def __exit__(self, *_):
        code = self.api.GetCode(self.status)
        message = (self.api.Message(self.status) or b"").decode()
        self.api.DeleteStatus(self.status)
        if code:
            raise TensorFlowError(code, message)


class CApi:
    """The functions of the C API, their names without `TF_`."""

    def __init__(self):
        folder = _package_folder("tensorflow")
        text_folder = _package_folder("tensorflow_text", optional=True)
        framework, core = (
            ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
            for name in LIBRARIES
            for path in _files(folder, name)
        )
        for name, (result, arguments) in FUNCTIONS.items():
            library = framework if hasattr(framework, name) else core
            function = private_name(f"tensorflow.{name}", library)
            function.restype, function.argtypes = result, arguments
            setattr(self, name.removeprefix("TF_"), function)
        # tensorflow::DisableXlaCompilation(), which the server calls.
        private_name(
            "tensorflow._ZN10tensorflow21DisableXlaCompilationEv", core
        )()
        for path in _files(text_folder, TEXT_LIBRARIES) if text_folder else ():
            with Status(self) as status:
                self.LoadLibrary(str(path).encode(), status)

    def tensor(self, array):
        """A tensor of an array; strings are bytes, or text as UTF-8."""
        if array.dtype.kind in "SU":
            array = array.astype(object)
        shape = (c_int64 * array.ndim)(*array.shape)
        is_string = array.dtype == object
        number = STRING if is_string else NUMBERS[array.dtype]
        size = STRING_BYTES * array.size if is_string else array.nbytes
        tensor = self.AllocateTensor(number, shape, array.ndim, size)
        start = self.TensorData(tensor)
        if is_string:
            for place, value in zip(
                _places(start, array.size), array.flat, strict=True
            ):
                value = value.encode() if isinstance(value, str) else value
                self.StringInit(place)
                self.StringCopy(place, value, len(value))
        elif size:
            ctypes.memmove(start, np.ascontiguousarray(array).ctypes.data, size)
        return tensor

    def array(self, tensor):
        """A copy of a tensor."""
        shape, size = self._shape(tensor), self._size(tensor)
        start, number = self.TensorData(tensor), self.TensorType(tensor)
        if number == STRING:
            array = np.empty(size, object)
            for i, place in enumerate(_places(start, size)):
                array[i] = ctypes.string_at(
                    self.StringGetDataPointer(place),
                    self.StringGetSize(place),
                )
        else:
            array = np.empty(size, DTYPES[number])
            if size:
                ctypes.memmove(array.ctypes.data, start, array.nbytes)
        return array.reshape(shape)

    def _shape(self, tensor):
        return [self.Dim(tensor, i) for i in range(self.NumDims(tensor))]

    def _size(self, tensor):
        return int(np.prod(self._shape(tensor), dtype=np.int64))


def _package_folder(name, optional=False):
    """Where a package is installed; it is not imported."""
    package = importlib.util.find_spec(name)
    if package is None and optional:
        return None
    if package is None:
        raise OSError(
            f"Expected: the package {name}, whose libraries run a SavedModel. "
            "Received: none. Install it with `pip install luong-keras[train]`."
        )
    return Path(package.submodule_search_locations[0])


def _files(folder, pattern):
    """Those of a package, in order."""
    found = sorted(folder.glob(pattern))
    if not found:
        raise missing_private_name(f"{folder.name}/{pattern}")
    return found


def _places(start, count):
    """Addresses of the strings of a tensor."""
    return (start + STRING_BYTES * i for i in range(count))


@functools.cache
def load_c_api():
    """The API, loaded once, as the stock server runs it."""
    return CApi()
