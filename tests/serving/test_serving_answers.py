"""Responses of `conftest.server`, the double or a real server."""

import base64

import numpy as np
import pytest
from google.protobuf import json_format
from tensorflow_serving.apis import (
    get_model_metadata_pb2,
    get_model_status_pb2,
)

from tests.serving.server_calls import Grpc, get, post

BEST = {"translation", "score", "truncated", "status"}
TEXTS = ["the cat sees a dog .", "", "Straße", "a house"]


@pytest.fixture(scope="module")
def calls(server):
    with Grpc(server) as found:
        yield found


def predict(server, **body):
    code, answer = post(f"{server.rest_url}:predict", body)
    assert code == 200, answer
    ((kind, values),) = answer.items()
    assert kind == ("predictions" if "instances" in body else "outputs")
    return values


def test_rows_and_columns_give_the_same_answers(server):
    rows = predict(server, instances=TEXTS)
    assert [set(row) for row in rows] == [BEST] * 4
    encoded = [
        {"b64": base64.b64encode(text.encode()).decode()} for text in TEXTS
    ]
    for instances in (encoded, [{"text": text} for text in TEXTS]):
        assert predict(server, instances=instances) == rows
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    for inputs in (TEXTS, {"text": TEXTS}, {"text": encoded}):
        assert predict(server, inputs=inputs) == columns


def test_empty_text_has_an_empty_translation(server):
    (row,) = predict(server, instances=[""])
    answer = {"translation": "", "score": 0.0}
    assert row == {**answer, "truncated": False, "status": "OK"}


def test_rest_and_grpc_give_the_same_answers(server, calls):
    columns = predict(server, signature_name="translate", inputs=TEXTS)
    answer, arrays = calls.predict(calls.request("translate", text=TEXTS))
    assert set(columns) == set(arrays)
    for name, array in arrays.items():
        if array.dtype == object:
            array = np.char.decode(array.astype(bytes), "utf-8")
            assert columns[name] == array.tolist(), name
        else:
            np.testing.assert_allclose(columns[name], array, rtol=1e-5)
    assert answer.model_spec.name == calls.name
    assert answer.model_spec.signature_name == "translate"
    assert answer.model_spec.version.value > 0


def test_two_inputs_work_in_rows_and_columns(server):
    named = {"source": TEXTS, "target": ["", "Katze", "die Katze", "a"]}
    pairs = zip(*named.values(), strict=True)
    rows = [dict(zip(named, pair, strict=True)) for pair in pairs]
    found = predict(server, signature_name="score", instances=rows)
    columns = predict(server, signature_name="score", inputs=named)
    assert set(columns) > {"log_probability", "lengths"}
    for name, column in columns.items():
        assert [row[name] for row in found] == column, name


@pytest.mark.slow
def test_output_filter_selects_outputs(calls):
    request = calls.request(text=TEXTS)
    assert set(calls.predict(request)[1]) == BEST
    request.output_filter.append("score")
    assert set(calls.predict(request)[1]) == {"score"}


def test_status_lists_the_version_that_answers(server, calls):
    version = calls.predict(calls.request(text=TEXTS))[0].model_spec.version
    code, found = get(server.rest_url)
    assert code == 200
    assert {
        "version": str(version.value),
        "state": "AVAILABLE",
        "status": {"error_code": "OK", "error_message": ""},
    } in found["model_version_status"]
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = calls.name
    answer = calls.models.GetModelStatus(request)
    assert found == json_format.MessageToDict(
        answer,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
    one = get(f"{server.rest_url}/versions/{version.value}")[1]
    assert len(one["model_version_status"]) == 1


def test_metadata_list_inputs_and_outputs(server, calls):
    code, found = get(f"{server.rest_url}/metadata")
    assert code == 200
    assert found["model_spec"]["name"] == calls.name
    signatures = found["metadata"]["signature_def"]["signature_def"]
    default = signatures["serving_default"]
    assert default["inputs"]["text"]["dtype"] == "DT_STRING"
    assert default["method_name"] == "tensorflow/serving/predict"
    request = get_model_metadata_pb2.GetModelMetadataRequest()
    request.model_spec.name = calls.name
    request.metadata_field.append("signature_def")
    answer = calls.predictions.GetModelMetadata(request)
    packed = get_model_metadata_pb2.SignatureDefMap()
    assert answer.metadata["signature_def"].Unpack(packed)
    assert set(packed.signature_def) == set(signatures)
    outputs = packed.signature_def["translate"].outputs
    assert set(outputs) == set(signatures["translate"]["outputs"])
