"""Refusals of `conftest.server`, the double or a real server."""

import grpc
import numpy as np
import pytest

from tests.serving.server_calls import Grpc, get, post


@pytest.mark.parametrize(
    "path, body, code, words",
    [
        (":predict", b"", 400, "JSON Parse error: The document is empty"),
        (":predict", b"text", 400, "JSON Parse error: Invalid value."),
        (":predict", b'{"instances": ["a"]', 400, "JSON Parse error: Missing"),
        (":predict", ["a"], 400, "Is not object"),
        (":predict", {}, 400, "Missing 'inputs' or 'instances' key"),
        (":predict", {"instances": []}, 400, "No values in 'instances'"),
        (":predict", {"instances": "a"}, 400, "to be an list/array"),
        (":predict", {"instances": [1]}, 400, "is not of expected type"),
        (":predict", {"inputs": [True]}, 400, "Type: True is not of expected"),
        (":predict", {"inputs": {"words": ["a"]}}, 400, "Missing named input"),
        (
            ":predict",
            {"instances": ["a"], "inputs": ["a"]},
            400,
            "expecting only one of 'inputs' or 'instances'",
        ),
        (
            ":predict",
            {"instances": [["a", "b"], ["c"]]},
            400,
            "Expecting tensor size: 2 but got: 1",
        ),
        (
            ":predict",
            {"inputs": [["a", "b"], ["c"]]},
            400,
            "Encountered list at unexpected size: 1 at level: 1",
        ),
        # The operation that refuses a rank depends on the model.
        (":predict", {"inputs": [["a", "b"]]}, 400, ""),
        (":predict", {"inputs": "a"}, 400, ""),
        (":predict", {"instances": [{"b64": "?"}]}, 400, "base64 decode"),
        (
            ":predict",
            {"signature_name": "score", "instances": [{"source": "a"}]},
            400,
            "keys must be equal to: source,target",
        ),
        (
            ":predict",
            {"signature_name": "sing", "instances": ["a"]},
            400,
            'Serving signature name: "sing" not found in signature def',
        ),
        (":predict", {"signature_name": 1}, 400, "must be a string value"),
        (
            "/versions/999999:predict",
            {"instances": ["a"]},
            404,
            "Servable not found for request: Specific(",
        ),
        (
            "/labels/nobody:predict",
            {"instances": ["a"]},
            400,
            "Unrecognized servable version label: nobody",
        ),
        (
            "-of-nobody:predict",
            {"instances": ["a"]},
            404,
            "-of-nobody)",
        ),
        (":sing", {"instances": ["a"]}, 400, "Malformed request: POST /v1/"),
    ],
)
def test_rest_refusals_have_codes_and_messages(server, path, body, code, words):
    found, answer = post(server.rest_url + path, body)
    assert set(answer) == {"error"}
    assert (found, words in answer["error"]) == (code, True), answer


@pytest.mark.parametrize(
    "path, code, words",
    [
        ("-of-nobody", 404, "Could not find any versions of model"),
        ("/versions/999999", 404, "Could not find version 999999 of model"),
        ("-of-nobody/metadata", 404, "Servable not found for request"),
        ("/nothing", 400, "Malformed request: GET /v1/models/"),
    ],
)
def test_wrong_addresses_are_refused(server, path, code, words):
    found, answer = get(server.rest_url + path)
    assert (found, words in answer["error"]) == (code, True), answer


def test_grpc_refusals_have_codes_and_messages(server):
    codes, calls = grpc.StatusCode, Grpc(server)
    filtered = calls.request(text=["a"])
    filtered.output_filter.append("melody")
    for request, code, words in (
        (calls.request(name="nobody", text=["a"]), codes.NOT_FOUND, "nobody"),
        (calls.request(name=""), codes.INVALID_ARGUMENT, "no name"),
        (calls.request(), codes.INVALID_ARGUMENT, "required: {text}"),
        (
            calls.request(text=["a"], more=["b"]),
            codes.INVALID_ARGUMENT,
            "Sent extra: {more}",
        ),
        (calls.request(words=["a"]), codes.INVALID_ARGUMENT, "not found in"),
        (
            calls.request(text=np.ones(2, "float32")),
            codes.INVALID_ARGUMENT,
            "float",
        ),
        (filtered, codes.INVALID_ARGUMENT, "melody"),
        (
            calls.request("sing", text=["a"]),
            codes.FAILED_PRECONDITION,
            'Serving signature key "sing" not found.',
        ),
    ):
        with pytest.raises(grpc.RpcError) as error:
            calls.predict(request)
        assert error.value.code() == code
        assert words in error.value.details()
    calls.channel.close()
