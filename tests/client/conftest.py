"""Fixtures of the client's tests: a fake model and its servers."""

import pytest

from tests.client.fake_servers import FakeModel, grpc_server, rest_server


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
