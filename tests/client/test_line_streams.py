"""Streams of any number of lines, translated in bounded memory."""

import asyncio
import contextlib
import itertools
import threading
import time

import pytest

from luong_keras_client import (
    AsyncTranslationClient,
    Contract,
    TextTooLongError,
    TranslationClient,
    TranslationServerError,
    TruncationWarning,
)
from tests.client.conftest import read_stream
from tests.client.fake_servers import (
    Refusal,
    refuse_longer_than,
    shout,
    shout_with,
)

MILLION = 1_000_000


class Lines:
    """Iterator of numbers as lines, which counts the lines taken."""

    def __init__(self, count):
        self.lines, self.taken = map(str, range(count)), 0

    def __iter__(self):
        return self

    def __next__(self):
        self.taken += 1
        return next(self.lines)


class AsyncLines(Lines):
    __iter__ = None

    def __aiter__(self):
        return self

    async def __anext__(self):
        if self.taken % 100 == 0:
            await asyncio.sleep(0)
        try:
            return next(self)
        except StopIteration:
            raise StopAsyncIteration from None


@pytest.fixture
def without_server(monkeypatch):
    contract = Contract(3, 64, 1000, 50, 10, 3, 10, 3, 0)

    async def run(self, batches):
        await self._mode.sleep(0)
        for places, sent in batches:
            texts = batches.request.columns["text"][places]
            rows = [(b"OK", (text, False)) for text in texts]
            batches.take(places, sent, rows)

    async def agreed(self, deadline=None):
        return contract

    for kind in (TranslationClient, AsyncTranslationClient):
        monkeypatch.setattr(kind, "_send_batches", run)
        monkeypatch.setattr(kind, "_agree_on_contract", agreed)


@pytest.mark.parametrize("kind", ["sync", "async", "async of async"])
@pytest.mark.slow
def test_reading_ahead_is_bounded(without_server, kind):
    # The asynchronous kinds differ only in how they wait.
    count = MILLION if kind == "sync" else MILLION // 20
    lines = (AsyncLines if kind == "async of async" else Lines)(count)
    ahead = []

    def take(text):
        assert text == str(len(ahead))
        ahead.append(lines.taken - len(ahead))

    read_stream("http://localhost:1", lines, kind != "sync", take)
    assert len(ahead) == count
    # 32 lines in each of 4 requests, and as many read ahead.
    assert 128 < max(ahead) <= 2 * 128


def test_streams_continue_between_reads(connect, model):
    lines = [f"{number} line" for number in range(300)]
    client = connect(batch_size=8)
    stream = client.translate_lines(iter(lines), beam_size=2)
    first = list(itertools.islice(stream, 10))
    assert [*first, *stream] == [line.upper() for line in lines]
    rows = [row for _, rows in model.requests for row in rows]
    assert {row["beam_size"] for row in rows} == {2}
    assert sorted(row["text"] for row in rows) == sorted(lines)
    assert {len(rows) for _, rows in model.requests} <= {8, 300 % 8}


def test_lines_may_be_asynchronous(served):
    found = []
    read_stream(served.url, AsyncLines(300), True, found.append, batch_size=8)
    assert found == [str(number) for number in range(300)]


def test_lines_are_read_one_by_one_without_concurrency(rest, model):
    """A program can write a line and then read its translation."""
    lines = Lines(5)
    with TranslationClient(rest.url, batch_size=1, concurrency=1) as client:
        for place, _ in enumerate(client.translate_lines(lines)):
            assert lines.taken == place + 1
            assert len(model.requests) == place + 1


@pytest.mark.parametrize("method", ["translate", "translate_lines"])
def test_concurrency_limits_calls_and_streams(connect, model, method):
    counts = model.count_in_flight(0.01)
    client = connect(batch_size=2, concurrency=3)
    assert len(list(getattr(client, method)(Lines(60)))) == 60
    assert 1 < max(counts) <= 3 and len(counts) == 30


def until_error(client, lines, kind=TranslationServerError):
    """Return the translations before the error, and the error."""
    found = []
    with pytest.raises(kind) as caught:
        for text in client.translate_lines(lines):
            found.append(text)
    return found, caught.value


@pytest.mark.parametrize("asynchronous", [False, True])
def test_errors_are_raised_after_the_lines_before_them(
    rest, model, asynchronous
):
    def refuses_77(signature, rows):
        if any(row["text"] == "077" for row in rows):
            raise Refusal("INVALID_ARGUMENT", "no 77")
        return shout(signature, rows)

    model.answer = refuses_77
    lines = [f"{number:03}" for number in range(1000)]
    settings = {"batch_size": 4, "concurrency": 2}
    found = []
    with pytest.raises(TranslationServerError, match="no 77"):
        read_stream(rest.url, lines, asynchronous, found.append, **settings)
    assert found == lines[:76]  # The rest of its request has no translation.
    assert len(model.requests) <= 76 / 4 + 5


@pytest.mark.parametrize("when", ["while requests wait", "before more lines"])
def test_failed_streams_send_nothing_more(rest, model, when):
    refused = threading.Event()

    def refuse(signature, rows):
        if rows[0]["text"] == "a":
            refused.wait(0.5 if when == "while requests wait" else 0)
            refused.set()
            raise Refusal("INVALID_ARGUMENT", "no a")
        raise Refusal("UNAVAILABLE", retry_after="1")

    def lines():
        yield from "ab"
        while len(model.requests) < 2:
            time.sleep(0.01)
        if when == "before more lines":
            refused.wait(30)
            time.sleep(0.5)  # until the client has read the refusal
        yield from "cdef"

    model.answer = refuse
    with TranslationClient(rest.url, batch_size=1, concurrency=2) as client:
        assert "no a" in str(until_error(client, lines())[1])
        time.sleep(0.2)
        assert sorted(model.texts) == [["a"], ["b"]]


def test_finished_lines_precede_the_error_of_a_lost_server(rest, model):
    def refuse_d(signature, rows):
        if rows[0]["text"] == "d":
            model.limits = None  # The contract cannot be read again.
            raise Refusal("INVALID_ARGUMENT", "gone")
        return shout(signature, rows)

    model.answer = refuse_d

    def lines():
        yield from "abcd"
        while model.limits is not None:
            time.sleep(0.01)
        time.sleep(0.3)  # until the client has read the refusal
        yield from "ef"

    with TranslationClient(rest.url, batch_size=1, concurrency=2) as client:
        found, error = until_error(client, lines())
    assert len(found) in (2, 3) and "gone" in str(error)


def test_places_of_errors_count_the_whole_stream(connect, model):
    model.answer = refuse_longer_than(3)
    lines = [f"{number:03}" for number in range(100)] + ["too long"] + ["x"]
    client = connect(batch_size=4)
    found, error = until_error(client, lines, TextTooLongError)
    assert (found, error.places) == (lines[:100], [100])


def test_streams_warn_once_of_all_lines_that_were_cut(rest, model):
    model.answer = shout_with(lambda text: {"truncated": int(text) >= 80})

    def lines(fails):
        yield from (f"{number:03}" for number in range(100))
        if fails:
            raise OSError("disk")

    message = "20 of .*80, 81.*89, …"
    for fails in (False, True):
        with (
            TranslationClient(rest.url, batch_size=4) as client,
            pytest.warns(TruncationWarning, match=message) as caught,
            pytest.raises(OSError) if fails else contextlib.nullcontext(),
        ):
            list(client.translate_lines(lines(fails)))
        (warning,) = caught
        assert warning.filename == __file__


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.filterwarnings("error")
def test_closing_a_stream_abandons_its_requests(rest, model, asynchronous):
    sent, lines = threading.Event(), Lines(MILLION)

    def late_from_4(signature, rows):
        number = int(rows[0]["text"])
        if number == 0:
            sent.set()
        if number >= 4 and sent.wait(1):
            model.stopped.wait(30)
        return shout(signature, rows)

    async def read(client):
        stream = client.translate_lines(lines)
        assert await anext(stream) == "0"
        # It must not wait for the requests in flight.
        await asyncio.wait_for(stream.aclose(), 10)

    model.answer = late_from_4
    if asynchronous:
        asyncio.run(read(AsyncTranslationClient(rest.url, batch_size=1)))
        return
    with TranslationClient(rest.url, batch_size=1) as client:
        stream = client.translate_lines(lines)
        assert next(stream) == "0"
        start = time.monotonic()
        stream.close()
        assert time.monotonic() - start < 10


def test_wrong_arguments_are_refused():
    for kind in (TranslationClient, AsyncTranslationClient):
        for lines in ("one line", None):
            with pytest.raises(TypeError, match="list of sentences"):
                kind().translate_lines(lines)
        with pytest.raises(ValueError, match="one value of `prefix`"):
            kind().translate_lines([], prefix=["a", "b"])
        with pytest.raises(TypeError, match="Received: n_best"):
            kind().translate_lines([], n_best=2)


@pytest.mark.parametrize("count", [0, 130, 256])
def test_lines_before_an_error_of_the_lines_are_translated(
    without_server, count
):
    def lines(last):
        yield from [*["a"] * count, last]
        raise OSError("disk")

    for last, kind, message in (
        (None, TypeError, f"None at place {count}"),
        ("b", OSError, "disk"),
    ):
        found, error = until_error(TranslationClient(), lines(last), kind)
        assert [text for text in found if text != "b"] == ["a"] * count
        assert message in str(error)
