"""Retries, timeouts, partial results and wrong answers of the client."""

import pickle
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf

from luong_keras_client import (
    TextTooLongError,
    TranslationClient,
    TranslationServerError,
    TruncationWarning,
)
from luong_keras_client.rest import seconds_to_wait
from tests.client import fake_servers
from tests.client.conftest import failure, read_stream
from tests.client.fake_servers import (
    LIMITS,
    Refusal,
    grpc_server,
    output_row,
    refuse_longer_than,
    shout,
    shout_together,
    shout_with,
)

TEXTS = ["a", "bb", "ccc", "dddd", "eeeee"]
CAPITALS = [text.upper() for text in TEXTS]
# Errors of a batch that the server joined, and their codes.
OTHER_SHAPES = {
    "Tensors with name 'text:0' from different tasks have different shapes "
    "and padding is turned off. Set pad_variable_length_inputs to true, or "
    "ensure that all tensors with the same name have equal dimensions "
    "starting with the first dim.": "FAILED_PRECONDITION",
    "One or more tasks does not conform to batch signature": "INTERNAL",
    "Tensor concat operation failed: INVALID_ARGUMENT: rank": "INTERNAL",
}


def breaks_off(signature, rows):
    """End the connection before the end of the answer."""

    def write(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"predictions": ')
        handler.close_connection = True

    return write


def hangs_up(signature, rows):
    return lambda handler: setattr(handler, "close_connection", True)


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        ("UNAVAILABLE", "later", "Is the server running"),
        ("RESOURCE_EXHAUSTED", "later", "overloaded"),
        *(
            (code, message, "with one of another shape")
            for message, code in OTHER_SHAPES.items()
        ),
    ],
)
def test_transient_errors_are_retried(
    connect, served, model, code, message, advice
):
    model.steps += [Refusal(code, message)] * 2
    assert connect().translate(TEXTS) == CAPITALS
    assert model.texts == [TEXTS] * 3
    model.steps += [Refusal(code, message)] * 3
    error = failure(served.url, message[:30], attempts=3)
    assert advice in str(error) and "after 3 attempts" in str(error)
    assert len(model.requests) == 6


@pytest.mark.parametrize("step", [Refusal(502, "away"), breaks_off, hangs_up])
def test_transient_errors_of_rest_are_retried(model, rest, step):
    model.steps.append(step)
    with TranslationClient(rest.url) as client:
        assert client.translate(TEXTS) == CAPITALS
    assert model.texts == [TEXTS] * 2


@pytest.mark.parametrize(
    ("code", "message", "advice"),
    [
        ("INVALID_ARGUMENT", "bad shape", "request"),
        ("INVALID_ARGUMENT", "larger than maximum input batch", "batch_size"),
        ("RESOURCE_EXHAUSTED", "message larger than max (5", "batch_size"),
        (
            "RESOURCE_EXHAUSTED",
            "Run() timeout exceeded while waiting in batching queue",
            "retry later",
        ),
        ("NOT_FOUND", "Servable not found", "--model_name"),
        ("DEADLINE_EXCEEDED", "too slow", "request_timeout"),
        ("INTERNAL", "out of memory", "log"),
        ("PERMISSION_DENIED", "not you", "token"),
    ],
)
def test_permanent_errors_are_not_retried(served, model, code, message, advice):
    model.steps.append(Refusal(code, message))
    error = failure(served.url, model="demo")
    assert error.code in (code, "HTTP_500")
    for part in ("Expected: ", "'demo'", message, advice):
        assert part in str(error)
    assert len(model.requests) == 1


@pytest.mark.parametrize(
    ("status", "code", "count"),
    # A slow server gets no second request.
    [(429, "RESOURCE_EXHAUSTED", 2), (504, "DEADLINE_EXCEEDED", 1)],
)
def test_statuses_of_a_proxy_have_their_codes_by_grpc(
    model, status, code, count
):
    message = f"Received http2 header with status: {status}"
    model.steps += [Refusal("UNAVAILABLE", message)] * 9
    with grpc_server(model) as server:
        assert failure(server.url, attempts=2).code == code
    assert len(model.requests) == count


def test_redirections_are_named(model, rest):
    model.steps.append(Refusal(301, "Moved", Location="https://h/v1/models/m"))
    error = failure(rest.url, "https://h/.*`url`")
    assert error.code == "HTTP_301" and len(model.requests) == 1


@pytest.mark.slow_after_first
@pytest.mark.parametrize("name", ["timeout", "request_timeout"])
def test_timeouts_are_not_retried(served, model, name):
    model.steps.append(model.sleep(5))
    assert failure(served.url, name, **{name: 1}).code == "DEADLINE_EXCEEDED"
    assert len(model.requests) == 1


@pytest.mark.slow_after_first
@pytest.mark.parametrize("part", ["headers", "content"])
def test_answers_that_arrive_slowly_time_out(model, rest, part):
    def drips(signature, rows):
        def write(handler):
            handler.send_response(200)
            handler.send_header("Content-Length", "100")
            if part == "content":
                handler.end_headers()
            handler.flush_headers()
            for _ in range(100):
                handler.wfile.write(b" ")
                handler.wfile.flush()
                if model.stopped.wait(0.1):
                    return

        return write

    model.steps.append(drips)
    begin = time.monotonic()
    error = failure(rest.url, "within 2 s", timeout=2)
    # The server takes 10 s.
    assert time.monotonic() - begin < 7
    assert error.code == "DEADLINE_EXCEEDED"
    assert len(model.requests) == 1


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_unreachable_servers_are_unavailable(scheme):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{free.getsockname()[1]}"
    for settings, message in (
        ({"attempts": 2}, "after 2 attempts"),
        ({"attempts": 1000, "timeout": 1}, "within 1 s"),
    ):
        error = failure(url, "refused", **settings)
        assert error.code == "UNAVAILABLE"
        assert message in str(error) and "8501" in str(error)


@pytest.fixture
def waits(monkeypatch):
    """Record the seconds that the client would wait, without waiting."""
    seconds = []
    nap = SimpleNamespace(sleep=seconds.append)
    monkeypatch.setattr("tenacity.nap.time", nap)
    return seconds


def test_waits_follow_the_server(served, connect, model, waits):
    name, unit = "Retry_After", ""
    if served.url.startswith("grpc"):
        name, unit = "grpc-retry-pushback-ms", "000"
    for code, wait in (("UNAVAILABLE", "7"), ("RESOURCE_EXHAUSTED", "5")):
        model.steps.append(Refusal(code, "later", **{name: wait + unit}))
    assert connect().translate(TEXTS) == CAPITALS
    # With jitter, so that clients do not return at the same time.
    assert 7 < waits[0] <= 7.1 and 5 < waits[1] <= 5.2


def test_retry_after_beyond_the_deadline_fails_at_once(model, rest, waits):
    model.steps.append(Refusal("UNAVAILABLE", "later", Retry_After="60"))
    assert failure(rest.url, "after 60 s").retry_after == 60
    assert (len(model.requests), waits) == (1, [])


@pytest.mark.parametrize("value", ["-1", "soon"])
@pytest.mark.parametrize("served", ["grpc"], indirect=True)
def test_a_pushback_forbids_retries(served, model, waits, value):
    pushback = {"grpc-retry-pushback-ms": value}
    model.steps.append(Refusal("UNAVAILABLE", "later", **pushback))
    failure(served.url, r"later \(the server forbids a retry\)")
    assert (len(model.requests), waits) == (1, [])


def test_waits_double(connect, model, waits):
    model.steps += [Refusal("UNAVAILABLE", "later")] * 4
    assert connect().translate(TEXTS) == CAPITALS
    for place, seconds in enumerate(waits):
        assert 0.05 * 2**place <= seconds <= 0.1 * 2**place


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((None, None), ("0", 0), (" 9 ", 9), ("soon", None), ("-3", None)),
        ("Wed, 21 Oct 2030 07:28:00 GMT", None),
        ("9" * 5000, float("inf")),
    ],
)
def test_values_of_retry_after(value, expected):
    assert seconds_to_wait(value) == expected


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_failing_request_keeps_the_results_of_others(
    connect, model, concurrency
):
    def refuses_c(signature, rows):
        if any(row["text"].startswith("c") for row in rows):
            raise Refusal("INVALID_ARGUMENT", "no c")
        return shout(signature, rows)

    model.answer = refuses_c
    client = connect(batch_size=1, concurrency=concurrency)
    with pytest.raises(TranslationServerError, match="no c") as caught:
        client.translate(TEXTS[::-1])
    found = caught.value.results[::-1]
    assert found[:3] == ["A", "BB", None]
    # Each later text was in flight already, or was never sent.
    sent = {text for (text,) in model.texts}
    assert found[3:] == [x.upper() if x in sent else None for x in TEXTS[3:]]
    assert len(sent) <= 2 + concurrency
    assert client.translate(TEXTS[:2]) == ["A", "BB"]


def test_requests_are_sent_concurrently(connect, model):
    model.answer = shout_together(3)
    client = connect(batch_size=1, concurrency=3)
    lines = [*TEXTS, "ffffff"]
    assert client.translate(lines) == [line.upper() for line in lines]


def too_many(signature, rows):
    """Answer that all rows but the first exceed the joined batch."""
    empty = output_row(translation="", score=-1e30, status="TOO_MANY_ROWS")
    return shout(signature, rows)[:1] + [empty] * (len(rows) - 1)


def test_rows_beyond_a_joined_batch_are_sent_again(connect, model):
    model.steps += [too_many, too_many]
    assert connect(concurrency=1).translate(TEXTS) == CAPITALS
    first, second, *rest = model.texts
    assert first == TEXTS and second == TEXTS[1:3]
    assert sorted(sum(rest, [])) == TEXTS[2:]
    assert max(map(len, rest)) <= 2


def too_many_of_all(signature, rows):
    return too_many(signature, [*rows] * 2)[1:]


def test_rows_that_never_fit_are_an_error(connect, model):
    model.answer = too_many
    model.limits["max_rows"] = 1
    connect().translate(TEXTS)  # Each is the first of its request.
    model.answer = too_many_of_all
    with pytest.raises(TranslationServerError, match="max_batch_size") as error:
        connect(attempts=2, concurrency=1).translate(TEXTS)
    assert error.value.code == "RESOURCE_EXHAUSTED"
    model.requests.clear()
    with pytest.raises(TranslationServerError, match="max_batch_size"):
        connect(attempts=3).translate(TEXTS[:1])
    assert model.texts == [TEXTS[:1]] * 3


def test_waits_end_with_the_time_of_the_call(rest, model, waits):
    model.answer = too_many_of_all
    failure(rest.url, "max_batch_size", timeout=3, attempts=20)
    assert len(waits) == 19 and 1 < max(waits) <= 3
    # The time to wait for the contract of another call counts.
    client = TranslationClient(rest.url, timeout=0.1)
    with ThreadPoolExecutor() as pool:
        with client._contract_lock:
            call = pool.submit(client.translate, TEXTS)
            time.sleep(0.3)
        assert call.exception().code == "DEADLINE_EXCEEDED"


def test_texts_that_are_too_long_are_an_error(connect, model):
    model.answer = refuse_longer_than(4)
    model.limits["max_text_bytes"] = 4
    message = "at most 4 bytes.* 6 bytes at place 1.*Split"
    with pytest.raises(TextTooLongError, match=message) as caught:
        connect(batch_size=2).translate(["a", "ääá", "bb", "ccccc"])
    error = caught.value
    assert isinstance(error, ValueError)
    assert isinstance(error, TranslationServerError)
    assert (error.places, error.code) == ([1, 3], "TEXT_TOO_LONG")
    assert error.results == ["A", None, "BB", None]
    for one in (error, TranslationServerError("no", "NOT_FOUND", 3.0)):
        copy = pickle.loads(pickle.dumps(one))
        assert (str(copy), vars(copy)) == (str(one), vars(one))


@pytest.mark.parametrize("place", [0, 1])
def test_error_names_the_longer_text_of_a_pair(connect, model, place):
    row = output_row(log_probability=0.0, tokens=[], lengths=0)
    row |= {"word_log_probabilities": [], "status": "TEXT_TOO_LONG"}
    model.answer, model.limits["max_text_bytes"] = lambda *_: [row], 4
    pair = [["a"], ["a"]]
    pair[place] = ["ccccc"]
    with pytest.raises(TextTooLongError, match="5 bytes at place 0"):
        connect().score(*pair)


def test_truncation_of_each_translation(connect, model):
    row = output_row(translations=["a", "b"], scores=[-1.0, -2.0])
    model.answer = lambda *_: [row | {"truncations": [False, True]}]
    with pytest.warns(TruncationWarning, match="at its maximum length"):
        (found,) = connect().nbest(["a"])
    assert [one.truncated for one in found] == [False, True]


def test_calls_warn_once_of_lines_that_were_cut(connect, model):
    model.answer = shout_with(lambda text: {"truncated": len(text) > 2})
    for method in ("translate", "nbest", "encode"):
        with pytest.warns(TruncationWarning, match="place 1, 3") as caught:
            getattr(connect(batch_size=1), method)(["a", "ccc", "b", "dddd"])
        (warning,) = caught
        assert warning.filename == __file__


@pytest.mark.parametrize("name", list(LIMITS)[1:])
@pytest.mark.parametrize("limit", [0, -1])
def test_limits_below_one_are_refused(served, model, name, limit):
    model.limits = {**LIMITS, name: limit}
    for ask in (
        None,
        lambda client: client.score(["a"], ["b"]),
        lambda client: list(client.translate_lines(["a", "b"])),
    ):
        assert failure(served.url, name, ask).code == "MALFORMED"
    assert model.requests == []


@pytest.mark.parametrize("limits", [None, {"version": 4, "rows": 9}])
def test_other_contracts_are_refused(served, model, limits):
    model.limits = limits
    error = failure(served.url, "contract 3.* Export")
    assert error.code == "CONTRACT"
    assert ("contract 4" if limits else "without one") in str(error)
    assert model.requests == []


@pytest.mark.parametrize(
    "rows",
    [
        "<html>",
        [],
        ["A"],
        [{}],
        [{"translation": "A", "score": 0, "truncated": False}],
        [output_row(translation="A", score=0)] * 2,
        *([output_row(translation=text, score=0)] for text in (1, ["A"])),
        *([output_row(translation="A", score=x)] for x in ("low", 10**400)),
        [output_row(translation="A", score=0, truncated="no")],
        [output_row(translation="A", score=0, status="ODD")],
    ],
)
def test_malformed_rows_are_refused(model, rest, rows):
    model.steps.append(lambda *_: rows)
    assert failure(rest.url, "TensorFlow").code == "MALFORMED"
    assert len(model.requests) == 1


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000])
def test_malformed_json_is_refused(model, rest, status, body):
    model.rows = lambda *_: lambda handler: handler.respond(status, body)
    for ask in (None, TranslationClient.contract):
        error = failure(rest.url, ask=ask)
        assert body[:6].decode() in str(error)
        assert len(str(error)) < 1000


@pytest.mark.parametrize("asynchronous", [False, True])
def test_answers_above_max_bytes_are_refused(
    model, rest, monkeypatch, asynchronous
):
    monkeypatch.setattr("luong_keras_client.rest.MAX_BYTES", 10_000)
    model.answer = lambda *_: [output_row(translation="A" * 20_000, score=0)]
    with pytest.raises(TranslationServerError, match="more than 10000") as x:
        read_stream(rest.url, ["a"], asynchronous, None)
    assert x.value.code == "MALFORMED"
    assert len(model.requests) == 1


def test_malformed_tensors_are_refused(model, monkeypatch):
    proto = tf.make_tensor_proto(1)
    proto.dtype = 21  # A variant, which is no array.
    monkeypatch.setattr(fake_servers, "_tensor", lambda _: proto)
    with grpc_server(model) as server:
        assert failure(server.url, "TensorFlow").code == "MALFORMED"


def test_settings_may_be_numbers_of_numpy(connect):
    client = connect(timeout=np.float32(9), batch_size=np.int64(2))
    assert client.translate(TEXTS) == CAPITALS


@pytest.mark.parametrize(
    ("lines", "options", "kind", "message"),
    [
        ("one sentence", {}, TypeError, "list"),
        (np.array("one sentence"), {}, TypeError, "list"),
        (None, {}, TypeError, "list of sentences. Received: the one NoneType"),
        (["a", None], {}, TypeError, "None at place 1"),
        (["a"], {"beam_size": 2.5}, ValueError, "2.5"),
        (["a"], {"beam_size": [1, 2]}, ValueError, "one for each"),
        (["a"], {"length_penalty": float("inf")}, ValueError, "inf"),
        (["a"], {"beam_size": 2**32 + 3}, ValueError, "int32"),
        (["a"], {"beam_size": [[1], [2, 3]]}, ValueError, "one for each"),
        (["a"], {"prefix": 3}, TypeError, "prefix"),
        (["a"], {"prefix": ["x", "y"]}, ValueError, "of type str"),
        (["a"], {"replace_unknown": 0.5}, ValueError, "int32"),
        (["a"], {"beam": 2}, TypeError, "beam_size"),
    ],
)
def test_wrong_arguments_are_refused(lines, options, kind, message):
    client = TranslationClient(attempts=1)
    for method in (client.translate, client.nbest, client.align):
        with pytest.raises(kind, match=f"Expected: .*{message}"):
            method(lines, **options)


@pytest.mark.parametrize("method", ["score", "align_pairs"])
def test_number_of_targets_must_equal_number_of_sources(method):
    with pytest.raises(ValueError, match="2 and 1"):
        getattr(TranslationClient(), method)(["a"], ["b", "c"])


def test_large_answers_are_accepted(connect, model):
    # By default, gRPC refuses more than 4 MB.
    text = "A" * 5_000_000
    model.answer = lambda *_: [output_row(translation=text, score=0.0)]
    assert connect().translate(["a"]) == [text]
