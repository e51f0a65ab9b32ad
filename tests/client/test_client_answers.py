"""What the client sends and makes of answers, against JSON by hand."""

import json

import numpy as np
import pytest
import requests
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2

from luong_keras.client.grpc_transport import GrpcTransport
from luong_keras.client.rest_transport import RestTransport
from luong_keras.client.server_error import TranslationServerError
from luong_keras.client.translation_client import TranslationClient
from tests.serving.answered_arrays import (
    ANSWERS,
    MEMORIES,
    SCORED,
    arrays,
    check,
    translations,
)

# In the order of `ANSWERS`; the client sends the shortest first.
LINES = ["door open", "", "ä b c of too many words"]
TARGETS = ["Tür", "", "Ä z"]
OPTIONS = {
    "beam_size": [3, 1, 2],
    "n_best": [2, 0, 1],
    "length_penalty": [0.5, -1, 1.25],
    "prefix": ["Tür", "", "Ä"],
    "replace_unknown": [True, False, True],
}
# What those of a batch are, with their types; of nothing given as exported.
SENT = {
    "beam_size": [1, 3, 2],
    "n_best": [0, 2, 1],
    "length_penalty": [-1.0, 0.5, 1.25],
    "prefix": ["", "Tür", "Ä"],
    "replace_unknown": [0, 1, 1],
}
AS_EXPORTED = {
    "beam_size": [0, 0, 0],
    "n_best": [0, 0, 0],
    "length_penalty": [-1.0, -1.0, -1.0],
    "prefix": ["", "", ""],
    "replace_unknown": [-1, -1, -1],
}
SORTED = {"text": [LINES[1], LINES[0], LINES[2]]}


class RestServer:
    """Answers `ANSWERS` as JSON, for the lines that are asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, method, suffix, timeout, body=None):
        assert (method, suffix) == ("POST", ":predict")
        assert 0 < timeout <= 30
        self.asked.append(json.dumps(body, ensure_ascii=False))
        answers = ANSWERS[signature(body["signature_name"])]
        inputs = body["inputs"]
        places = [LINES.index(t) for t in inputs.get("text", [])] or [
            LINES.index(text) for text in inputs["source"]
        ]
        columns = {
            name: [values[place] for place in places]
            for name, values in answers.items()
        }
        return json.loads(json.dumps({"outputs": columns}))


class GrpcServer:
    """Answers the same arrays, as a stub of the service does."""

    def __init__(self):
        self.asked = []

    def __call__(self, request, timeout):
        assert 0 < timeout <= 30
        inputs = {
            name: tf.make_ndarray(tensor)
            for name, tensor in request.inputs.items()
        }
        name = request.model_spec.signature_name
        texts = [
            text.decode() for text in inputs.get("text", inputs.get("source"))
        ]
        self.asked.append((request.model_spec.name, name, inputs))
        places = [LINES.index(text) for text in texts]
        response = predict_pb2.PredictResponse()
        for key, array in arrays(signature(name)).items():
            tensor = tf.make_tensor_proto(array[places])
            response.outputs[key].CopyFrom(tensor)
        return response


def signature(name):
    return "translate" if name == "translate_with_options" else name


@pytest.fixture(params=["rest", "grpc"])
def ask(request, monkeypatch):
    """A maker of clients, and what the server they ask was asked."""
    rest, grpc = RestServer(), GrpcServer()
    monkeypatch.setattr(
        RestTransport, "_request", lambda self, *parts: rest(*parts)
    )

    def client(**settings):
        url = f"{'http' if request.param == 'rest' else 'grpc'}://localhost:1"
        made = TranslationClient(url, "demo", **settings)
        if request.param == "grpc":
            monkeypatch.setattr(made._transport, "_predict", grpc)
        return made

    client.asked = rest.asked if request.param == "rest" else grpc.asked
    return client


def check_asked(asked, expected):
    """`expected`: the signature and the columns of every request."""
    assert len(asked) == len(expected)
    for request, (name, columns) in zip(asked, expected, strict=True):
        if isinstance(request, str):
            body = {"signature_name": name, "inputs": columns}
            # As text, in which 1, 1.0 and true differ.
            assert request == json.dumps(body, ensure_ascii=False)
            continue
        model, asked_name, arrays = request
        assert (model, asked_name) == ("demo", name)
        assert set(arrays) == set(columns)
        for key, values in columns.items():
            kind = {int: "int32", float: "float32", str: "object"}
            assert arrays[key].dtype == kind[type(values[0])], key
            if isinstance(values[0], str):
                values = [value.encode() for value in values]
            assert arrays[key].tolist() == values, key


def test_lines_are_translated(ask):
    assert ask().translate(LINES) == ["Tür auf", "", "Ä <unk> z ."]
    assert ask().translate(LINES, n_best=None) == ["Tür auf", "", "Ä <unk> z ."]
    check_asked(ask.asked, [("serving_default", SORTED)] * 2)


@pytest.mark.parametrize("step", ["produces", "reads"])
def test_translations_have_every_field(ask, step):
    check(ask(alignment_step=step).nbest(LINES), translations(step))
    check_asked(ask.asked, [("translate", SORTED)])


def test_options_go_with_their_lines(ask):
    check(ask().nbest(LINES, **OPTIONS), translations("produces"))
    check_asked(ask.asked, [("translate_with_options", {**SORTED, **SENT})])


@pytest.mark.parametrize(
    ("name", "value", "sent"),
    [
        ("beam_size", 4, 4),
        ("n_best", 2, 2),
        ("length_penalty", 1, 1.0),
        ("length_penalty", 0.0, 0.0),
        ("prefix", "das", "das"),
        ("replace_unknown", True, 1),
        ("replace_unknown", False, 0),
        ("replace_unknown", -1, -1),
    ],
)
def test_one_value_is_for_all_lines(ask, name, value, sent):
    columns = {**SORTED, **AS_EXPORTED, name: [sent] * 3}
    ask().nbest(LINES, **{name: value})
    check_asked(ask.asked, [("translate_with_options", columns)])


def test_the_best_translations_with_options(ask):
    found = ask().translate(LINES, beam_size=4, prefix=OPTIONS["prefix"])
    assert found == ["Tür auf", "", "Ä <unk> z ."]
    columns = {**SORTED, **AS_EXPORTED, "prefix": SENT["prefix"]}
    columns |= {"beam_size": [4] * 3, "n_best": [1] * 3}
    check_asked(ask.asked, [("translate_with_options", columns)])


@pytest.mark.parametrize(
    ("name", "value"), [("replace_unknown", False), ("length_penalty", 0)]
)
def test_an_option_that_is_nought_is_an_option(ask, name, value):
    ask().translate(LINES, **{name: value})
    columns = {**SORTED, **AS_EXPORTED, "n_best": [1] * 3}
    columns[name] = [float(value) if name == "length_penalty" else 0] * 3
    check_asked(ask.asked, [("translate_with_options", columns)])


def test_given_translations_are_scored(ask):
    check(ask().score(LINES, TARGETS), SCORED)
    columns = {"source": SORTED["text"], "target": ["", "Tür", "Ä z"]}
    check_asked(ask.asked, [("score", columns)])


def test_lines_are_encoded(ask):
    found = ask().encode(LINES)
    for one, other in zip(found, MEMORIES, strict=True):
        assert one.dtype == np.float32 and one.shape == other.shape
        assert one.tolist() == other.tolist()
    check_asked(ask.asked, [("encode", SORTED)])


def test_results_come_back_from_several_batches(ask):
    found = ask(batch_size=2).nbest(LINES, **OPTIONS)
    check(found, translations("produces"))
    parts = [
        {name: values[part] for name, values in {**SORTED, **SENT}.items()}
        for part in (slice(0, 2), slice(2, 3))
    ]
    check_asked(
        ask.asked, [("translate_with_options", columns) for columns in parts]
    )


class Unreachable(RestServer):
    """Notes what `requests` is asked for, and is not there."""

    def __call__(self, session, method, url, **options):
        self.asked.append((method, url, options["json"]))
        assert options["stream"] and not options["allow_redirects"]
        raise requests.ConnectionError("refused")


@pytest.mark.parametrize(
    ("version", "path"),
    [
        (None, "a%20b"),
        (7, "a%20b/versions/7"),
        (0, "a%20b/versions/0"),
        ("stable", "a%20b/labels/stable"),
    ],
)
def test_a_version_is_a_number_or_a_label(monkeypatch, version, path):
    server = Unreachable()
    monkeypatch.setattr(
        requests.Session,
        "request",
        lambda self, *arguments, **options: server(self, *arguments, **options),
    )
    client = TranslationClient("http://host:1/", "a b", version, attempts=1)
    for call in (client.status, lambda: client.translate(["x"])):
        with pytest.raises(TranslationServerError) as caught:
            call()
        assert caught.value.code == "UNAVAILABLE"
    url = f"http://host:1/v1/models/{path}"
    body = {"signature_name": "serving_default", "inputs": {"text": ["x"]}}
    assert server.asked == [
        ("GET", url, None),
        ("POST", f"{url}:predict", body),
    ]
    # Over gRPC the same, in a request's specification.
    asked = []
    transport = GrpcTransport("host:1", "a b", version)
    monkeypatch.setattr(
        transport,
        "_predict",
        lambda request, timeout: (
            asked.append(request.model_spec) or predict_pb2.PredictResponse()
        ),
    )
    assert transport.predict("encode", {}, 1.0) == {}
    (spec,) = asked
    assert (spec.name, spec.signature_name) == ("a b", "encode")
    kind = {int: "version", str: "version_label", type(None): None}
    assert spec.WhichOneof("version_choice") == kind[type(version)]
    assert spec.version.value == (version if type(version) is int else 0)
    assert spec.version_label == (version if type(version) is str else "")


def test_the_states_of_versions(monkeypatch):
    answer = {
        "model_version_status": [
            {"version": "3", "state": "AVAILABLE"},
            {"version": "12", "state": "UNLOADING"},
        ]
    }
    monkeypatch.setattr(RestTransport, "_request", lambda self, *parts: answer)
    assert TranslationClient().status() == {3: "AVAILABLE", 12: "UNLOADING"}
