"""How requests become one batch of the loopback server, and its outputs theirs.

What is joined, filled up and split, and every refusal, is as in TensorFlow
Serving (`MergeInputTensors` and `SplitOutputTensors` of batching_session.cc,
batching_util.cc, 2.20.0).
"""

import os
import sys

import numpy as np

from tests.serving.loopback_error import TensorFlowError

INVALID_ARGUMENT, FAILED_PRECONDITION, INTERNAL = 3, 9, 13
# NumPy's type -> TensorFlow's name of it, in a refusal.
TYPE_NAMES = {"object": "string", "float32": "float", "float64": "double"}


class Form:
    """How tasks become one batch, and its outputs theirs.

    Args:
        allowed: row counts of batches, ascending; empty: any.
        pads: whether inputs of different shapes are filled up.
        metrics: `Metrics`.
    """

    def __init__(self, allowed, pads, metrics):
        self._allowed, self._pads, self.metrics = allowed, pads, metrics

    def _size(self, size):
        """Rows of a batch of that many rows."""
        larger = (number for number in self._allowed if number >= size)
        return next(larger, size)

    def merge(self, tasks):
        """Tensor name -> rows of all tasks, and as many as are to be added."""
        size = sum(task.size for task in tasks)
        rounded = self._size(size)
        self.metrics.padding_size.add(rounded - size, rounded)
        self.metrics.processed_batch_size.add(rounded)
        return {
            name: self._merged(name, tasks, rounded - size)
            for name in tasks[0].inputs
        }

    def _merged(self, name, tasks, missing):
        arrays = [task.inputs[name] for task in tasks]
        if self._pads:
            arrays = padded(arrays)
        elif len({array.shape[1:] for array in arrays}) > 1:
            raise TensorFlowError(
                FAILED_PRECONDITION,
                f"Tensors with name '{name}' from different tasks have "
                "different shapes and padding is turned off. Set "
                "pad_variable_length_inputs to true, or ensure that all "
                "tensors with the same name have equal dimensions starting "
                "with the first dim.",
            )
        if missing:
            # The first row of the last task.
            if not len(arrays[-1]):
                crash("limit <= dim0_size (1 vs. 0)")
            arrays += [arrays[-1][:1]] * missing
        check_types(arrays)
        return np.concatenate(arrays) if len(arrays) > 1 else arrays[0]

    def split(self, found, tasks):
        """Each task's rows of the outputs."""
        sizes = [task.size for task in tasks]
        ends = np.cumsum(sizes).tolist()
        for array in found.values():
            if not array.ndim:
                raise TensorFlowError(
                    FAILED_PRECONDITION,
                    "Batched output tensor has 0 dimensions",
                )
            if len(array) != self._size(ends[-1]):
                raise TensorFlowError(
                    FAILED_PRECONDITION,
                    "Batched output tensor's 0th dimension does not equal the "
                    "sum of the 0th dimension sizes of the input tensors",
                )
        return [
            {name: array[end - size : end] for name, array in found.items()}
            for size, end in zip(sizes, ends, strict=True)
        ]


def padded(arrays):
    """Arrays with the largest sizes of all, behind the first dimension.

    What is added is the first element of each array.
    """
    if len({array.ndim for array in arrays}) > 1:
        # There it writes past the end of its list of sizes.
        crash("tensors of a batch have one rank")
    largest = np.max([array.shape for array in arrays], axis=0).tolist()
    return [pad(array, largest[1:]) for array in arrays]


def pad(array, sizes):
    """An array of these sizes behind the first dimension."""
    if not 1 <= array.ndim <= 6:
        wrong = "Only tensors with rank from 1 to 6 can be padded."
    elif list(array.shape[1:]) == sizes:
        return array
    elif not array.size:
        wrong = "Got empty tensor in batch of non-empty tensors."
    else:
        whole = np.full([len(array), *sizes], array.flat[0], array.dtype)
        whole[tuple(map(slice, array.shape))] = array
        return whole
    raise TensorFlowError(INVALID_ARGUMENT, wrong)


def check_types(arrays):
    """Refuses to join arrays of different types (`tensor_util.cc`)."""
    first = arrays[0].dtype.name
    for array in arrays:
        if array.dtype.name != first:
            one, other = (
                TYPE_NAMES.get(name, name) for name in (first, array.dtype.name)
            )
            raise TensorFlowError(
                INTERNAL,
                "Tensor concat operation failed: INVALID_ARGUMENT: Cannot "
                "concatenate tensors that have different data types. Got "
                f"{one} and {other}.",
            )


def joined(arrays):
    """The elements of arrays one after the other, in the first one's shape.

    As the server does it (`tensor_util.cc`): where a later array has another
    shape, its elements are in wrong places, or there are too many of them.
    """
    rows = sum(map(len, arrays))
    whole = np.zeros((rows, *arrays[0].shape[1:]), arrays[0].dtype)
    if whole.dtype == object:
        whole[:] = b""
    elements = np.concatenate([array.ravel() for array in arrays])
    if elements.size > whole.size:
        crash("offset + from_data.size() <= to_data.size()")
    whole.ravel()[: elements.size] = elements
    return whole


def crash(check):
    """Ends the process where the real server's would end."""
    print(f"Check failed: {check}", file=sys.stderr, flush=True)
    os._exit(134)
