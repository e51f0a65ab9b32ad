"""Fixtures of the client's tests: a fake model and its servers."""

import asyncio
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from luong_keras_client import (
    AsyncTranslationClient,
    TranslationClient,
    TranslationServerError,
)
from tests.client.fake_servers import FakeModel, grpc_server, rest_server

ROOT = Path(__file__).parents[2]
# With the sources, in case the client is not installed.
PATH = os.pathsep.join(
    [str(ROOT), str(ROOT / "export" / "client"), *sys.path[1:]]
)


def failure(url, match=None, ask=None, kind=TranslationServerError, **settings):
    """Return the error of a new client that translates, or of `ask(client)`."""
    with (
        TranslationClient(url, **settings) as client,
        pytest.raises(kind, match=match) as caught,
    ):
        ask(client) if ask else client.translate(["a"])
    return caught.value


def python(program, *arguments, blocked=()):
    """Run a program in a new process, without the setting of a backend.

    `sys` is imported before; packages that are `blocked` cannot be imported.
    """
    block = f"import sys\nsys.modules.update(dict.fromkeys({blocked}))\n"
    environment = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    return subprocess.run(
        [sys.executable, "-c", block + program, *arguments],
        env={**environment, "PYTHONPATH": PATH},
        capture_output=True,
        encoding="utf-8",
        timeout=120,
    )


def read_stream(url, lines, asynchronous, take, **settings):
    """Give each translation of a stream of either client to `take`."""

    async def read():
        async with AsyncTranslationClient(url, **settings) as client:
            async for text in client.translate_lines(lines):
                take(text)

    if asynchronous:
        asyncio.run(read())
        return
    with TranslationClient(url, **settings) as client:
        for text in client.translate_lines(lines):
            take(text)


@pytest.fixture
def model():
    return FakeModel()


@pytest.fixture
def rest(model):
    with rest_server(model) as server:
        yield server


@pytest.fixture(params=["rest", "grpc"])
def served(request, model):
    """Serve the model by each protocol."""
    start = rest_server if request.param == "rest" else grpc_server
    with start(model) as server:
        yield server


@pytest.fixture
def connect(served):
    """Make clients of the server, which are closed after the test."""
    with ExitStack() as clients:
        yield lambda **settings: clients.enter_context(
            TranslationClient(served.url, "demo", **settings)
        )
