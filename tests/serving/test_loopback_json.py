"""JSON requests of the double."""

import json

import numpy as np
import pytest
from tensorflow.core.framework import types_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from tests.serving import loopback_json
from tests.serving.loopback_error import TensorFlowError

INPUTS = {
    name: meta_graph_pb2.TensorInfo(dtype=dtype)
    for name, dtype in (
        ("text", types_pb2.DT_STRING),
        ("weights", types_pb2.DT_FLOAT),
        ("count", types_pb2.DT_INT32),
    )
}


def read_request(request):
    """Return the arrays of a request, and whether it is in row format."""
    parsed = loopback_json.parse(json.dumps(request).encode())
    return loopback_json.read(parsed, INPUTS)


def row(**changes):
    return {
        "text": "a",
        "weights": [1, 2.5],
        "count": 1,
        **changes,
    }


def test_rows_and_columns_become_the_same_arrays():
    rows = [
        row(text="\u20ac \U0001f600"),
        row(text={"b64": "gP8="}, weights=[0.1, -3e38], count=-7),
    ]
    expected = {
        "text": np.array(["\u20ac \U0001f600".encode(), b"\x80\xff"], object),
        "weights": np.array([[1, 2.5], [0.1, -3e38]], "float32"),
        "count": np.array([1, -7], "int32"),
    }
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for request, rowwise in (
        ({"instances": rows}, True),
        ({"inputs": {**columns, "unknown": "left out"}}, False),
    ):
        arrays, in_rows = read_request(request)
        assert in_rows == rowwise and set(arrays) == set(expected)
        for name, array in expected.items():
            assert arrays[name].dtype == array.dtype, name
            np.testing.assert_array_equal(arrays[name], array)
    empty = {"text": [], "weights": [[], []], "count": []}
    shapes = {
        name: x.shape for name, x in read_request({"inputs": empty})[0].items()
    }
    assert shapes == {
        "text": (0,),
        "weights": (2, 0),
        "count": (0,),
    }


@pytest.mark.parametrize(
    "instances, words",
    [
        (["a"], "instances is a plain list, but expecting list of objects"),
        ([row(), "a"], "Expecting object but got list at item 1 of input list"),
        (
            [{"text": "a"}],
            "Failed to process element: 0 of 'instances' list. JSON object: "
            '{"text": "a"} keys must be equal to: count,text,weights',
        ),
        (
            [row(more=1)],
            "Failed to process element: 0 key: more of 'instances' list. "
            "Error: INVALID_ARGUMENT: JSON object: does not have named input: "
            "more",
        ),
        (
            [row(), row(weights=[[1, 2]])],
            "Expecting shape [2] but got: [1,2]",
        ),
        ([row(weights=[1, [2]])], "Encountered list at unexpected level: 1"),
        (
            [row(weights=[[1], 2])],
            "JSON Value: 2 found at incorrect level: 2 in the JSON DOM. "
            "Expected at level: 2",
        ),
        ([row(count=1.0)], "1.0 Type: Number is not of expected type: int32"),
        ([row(count=2**31)], "is not of expected type: int32"),
        ([row(weights=[None, 1])], "null Type: Null is not of expected type"),
        ([row(text={"b64": 1})], "not formatted correctly for base64 data"),
    ],
)
def test_refusal_names_the_wrong_field(instances, words):
    with pytest.raises(TensorFlowError) as error:
        read_request({"instances": instances})
    assert error.value.code == 3
    assert words in error.value.message
