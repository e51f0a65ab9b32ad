"""Addresses, credentials, TLS and proxies; no error reveals a secret."""

import os
import socket
import ssl
import traceback
from contextlib import nullcontext
from urllib.parse import quote

import grpc
import pytest
import trustme

from luong_keras_client import AsyncTranslationClient, TranslationClient
from luong_keras_client.address import read_address
from tests.client.conftest import failure
from tests.client.fake_servers import Refusal, grpc_server, rest_server

TOKEN, PASSWORD, KEY = "tok-3f9a.b_c", "p:w/ 7@x", "key-51c2"
GUESS = "hunter2"
BASIC = "Ym9iOnA6dy8gN0B4"  # "bob:" and the password
WRONG_URLS = [
    "localhost:8501",
    "bob:{}@localhost:8501",
    "http:/bob:{}@localhost:8501",
    "http://bob:{}@localhost:8501/v1/models/m",
    "http://bob:{}@localhost:x",
    "http://bob:{}@",
    "ftp://bob:{}@localhost",
    "grpc://bob:{}@localhost",
    "grpc://bob:{}@localhost:8500/path",
    "http://bob:{}@[::1",
    "http://bob:{}@localhost/?token={}",
]


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch):
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name == "LUONG_KERAS_TOKEN":
            monkeypatch.delenv(name)


def with_user(url):
    return url.replace("://", f"://bob:{quote(PASSWORD, safe='')}@")


def check_answer(url, **settings):
    with TranslationClient(url, **settings) as client:
        assert client.translate(["a"]) == ["A"]


def check_no_secrets(*texts):
    secrets = (TOKEN, PASSWORD, quote(PASSWORD, safe=""), KEY, BASIC, GUESS)
    for text in texts:
        for secret in secrets:
            assert secret not in text


def checked_message(error):
    """Return the message of an error that reveals no secret."""
    shown = "".join(traceback.format_exception(error))
    check_no_secrets(str(error), repr(error), shown, str(vars(error)))
    return str(error)


@pytest.mark.parametrize("url", WRONG_URLS)
def test_wrong_urls_are_refused(url):
    with pytest.raises(ValueError, match="Expected: `url`") as caught:
        TranslationClient(url.replace("{}", GUESS))
    assert "bob" not in checked_message(caught.value)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"version": "stable"}, r"label='stable'"),
        *(({"version": value}, "number") for value in ("7", 1.5, True, -1)),
        ({"label": 7}, "`version`"),
        ({"label": ""}, "`label`"),
        ({"version": 7, "label": "x"}, "both"),
        ({"model": ""}, "`model`"),
        *(({"token": TOKEN + end}, "not shown") for end in "\né"),
        ({"token": TOKEN.encode()}, "str.*not shown"),
        ({"headers": {"A": "b", "a": "c"}}, "once, in any case.*'A', 'a'"),
        ({"headers": [("A", "b"), ("A", "c")]}, "once, in any case.*'A'"),
        ({"headers": {b"X-Key": KEY}}, "names of `headers`.*b'X-Key'"),
        ({"headers": {1: KEY}}, "names of `headers`.*Received: 1"),
        ({"headers": {"X-Key": KEY.encode()}}, "`x-key`, a str.*not shown"),
        ({"headers": {"X-Key": KEY + "\r\nX: y"}}, "`x-key`.*not shown"),
        ({"headers": {"bad name": KEY}}, "bad name"),
        ({"token": TOKEN, "headers": {"Authorization": KEY}}, "one set"),
        ({"token": TOKEN, "url": f"http://bob:{KEY}@host"}, "one set"),
        ({"ca_certificate": "ca.pem"}, "https"),
        ({"url": "https://h", "ca_certificate": "no.pem"}, "No such file"),
        ({"url": "https://h", "ca_certificate": __file__}, "PEM"),
        ({"url": "https://h", "client_certificate": __file__}, "PEM"),
        ({"url": "https://h", "client_key": "key.pem"}, "client_certificate"),
        ({"timeout": 0}, "`timeout`.* Received: 0"),
        ({"timeout": float("inf")}, "`timeout`.* Received: inf"),
        ({"timeout": 1e10}, "`timeout`.* Received: 1"),
        ({"timeout": None}, "`timeout`.* Received: None"),
        ({"timeout": "30"}, "`timeout`.* Received: '30'"),
        ({"request_timeout": -1}, "`request_timeout`.* Received: -1"),
        ({"attempts": 0}, "`attempts`.* Received: 0"),
        ({"batch_size": 0}, "`batch_size`.* Received: 0"),
        ({"concurrency": 0.5}, "`concurrency`, an integer.* Received: 0.5"),
        ({"alignment_step": "writes"}, "`alignment_step`.* 'writes'"),
    ],
)
def test_wrong_settings_are_refused(settings, expected):
    match = f"(?s)Expected: .*{expected}"
    for kind in (TranslationClient, AsyncTranslationClient):
        with pytest.raises(ValueError, match=match) as caught:
            kind(**settings)
        checked_message(caught.value)


def test_repr_shows_the_url_without_the_password():
    url = with_user("https://host:1/a")
    client = TranslationClient(url, "m", headers={"X-Key": KEY})
    assert repr(client) == "TranslationClient('https://host:1/a', 'm')"
    assert (client.url, client.model) == ("https://host:1/a", "m")
    check_no_secrets(repr(vars(client)))


@pytest.mark.parametrize(
    "code",
    [
        *("UNAVAILABLE", "UNAUTHENTICATED", "NOT_FOUND", "INVALID_ARGUMENT"),
        *("FAILED_PRECONDITION", "INTERNAL", "DEADLINE_EXCEEDED"),
    ],
)
def test_errors_of_the_server_hide_credentials(
    served, model, code, caplog, capsys
):
    caplog.set_level("DEBUG")
    # The server repeats what it was sent.
    echo = f"no {PASSWORD}, {quote(PASSWORD, safe='')}, {BASIC}, {KEY}"
    for message, settings in (
        (echo, {"url": with_user(served.url), "headers": {"X-Key": KEY}}),
        (TOKEN, {"token": TOKEN, "headers": {"X-Key": KEY}}),
        (TOKEN, {"headers": {"Authorization": f"Bearer {TOKEN}"}}),
    ):
        model.answer = Refusal(code, message)
        error = failure(**{"url": served.url, "attempts": 1, **settings})
        assert "[hidden]" in checked_message(error)
    printed = capsys.readouterr()
    check_no_secrets(caplog.text, printed.out, printed.err)


def test_malformed_http_answers_hide_credentials(rest, model):
    def echoes(signature, rows):
        def write(handler):
            handler.wfile.write(f"{TOKEN}\r\n\r\n".encode())
            handler.close_connection = True

        return write

    model.answer = echoes
    error = failure(rest.url, "UNAVAILABLE", token=TOKEN, attempts=1)
    assert "[hidden]" in checked_message(error)


@pytest.mark.parametrize("scheme", ["http", "https", "grpc", "grpcs"])
def test_connection_errors_hide_credentials(scheme):
    url = with_user(f"{scheme}://127.0.0.1:1")
    error = failure(url, ask=TranslationClient.status, attempts=2, timeout=20)
    assert f"{scheme}://127.0.0.1:1 " in checked_message(error)


@pytest.mark.parametrize(
    ("settings", "variable", "sent"),
    [
        ({"token": TOKEN}, None, f"Bearer {TOKEN}"),
        ({}, TOKEN, f"Bearer {TOKEN}"),
        ({"token": TOKEN}, "other", f"Bearer {TOKEN}"),
        ({"headers": {"Authorization": "x y"}}, "other", "x y"),
        ({"user": True}, "other", f"Basic {BASIC}"),
        ({}, None, None),
        ({}, "", None),
    ],
)
def test_credentials_are_sent(
    served, model, monkeypatch, settings, variable, sent
):
    if variable is not None:
        monkeypatch.setenv("LUONG_KERAS_TOKEN", variable)
    settings = {"headers": {"X-Tenant": "a"}} | settings
    url = with_user(served.url) if settings.pop("user", 0) else served.url
    check_answer(url, **settings)
    for metadata in model.metadata:
        assert metadata.get("authorization") == sent
        if "Authorization" not in settings["headers"]:
            assert metadata["x-tenant"] == "a"


def test_wrong_tokens_are_not_retried(served, model):
    model.tokens = [f"Bearer {TOKEN}"]
    check_answer(served.url, token=TOKEN)
    model.metadata.clear()
    error = failure(served.url, "LUONG_KERAS_TOKEN", token=GUESS)
    assert error.code == "UNAUTHENTICATED"
    assert "not allowed: Bearer [hidden]" in checked_message(error)
    assert len(model.metadata) == 1


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def files(authority, tmp_path_factory):
    """Write the certificates of the authority and of a client."""
    folder = tmp_path_factory.mktemp("tls")
    client = authority.issue_cert("client@example.org")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    client.private_key_pem.write_to_path(folder / "key.pem")
    client.cert_chain_pems[0].write_to_path(folder / "client.pem")
    return folder


@pytest.fixture(params=["https", "grpcs"])
def encrypted(request, model, authority):
    """Make servers with TLS, which may require client certificates."""

    def make(client_certificates=False):
        certificate = authority.issue_cert("127.0.0.1")
        if request.param == "https":
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            certificate.configure_cert(context)
            if client_certificates:
                context.verify_mode = ssl.CERT_REQUIRED
                authority.configure_trust(context)
            return rest_server(model, context)
        pair = certificate.private_key_pem, certificate.cert_chain_pems[0]
        credentials = grpc.ssl_server_credentials(
            [tuple(part.bytes() for part in pair)],
            authority.cert_pem.bytes() if client_certificates else None,
            client_certificates,
        )
        return grpc_server(model, credentials)

    return make


def test_tls_with_a_user_defined_authority(encrypted, files, model):
    with encrypted() as server:
        check_answer(server.url, ca_certificate=files / "ca.pem", token=TOKEN)
        assert model.metadata[-1]["authorization"] == f"Bearer {TOKEN}"
        model.metadata.clear()
        error = failure(server.url, "ca_certificate", token=TOKEN)
    assert error.code == "UNAUTHENTICATED"
    assert "attempts" not in checked_message(error)
    assert model.metadata == []


@pytest.mark.parametrize(
    "names", [("both.pem", None), ("client.pem", "key.pem")]
)
def test_client_certificates_are_sent(encrypted, files, model, names):
    certificate, key = (name and files / name for name in names)
    settings = {"ca_certificate": files / "ca.pem", "attempts": 2}
    with encrypted(client_certificates=True) as server:
        error = failure(server.url, **settings)
        assert error.code in ("UNAUTHENTICATED", "UNAVAILABLE")
        assert model.metadata == []
        settings |= {"client_certificate": certificate, "client_key": key}
        check_answer(server.url, **settings)


def test_tls_to_a_server_without_it_is_refused(served, model):
    url = served.url.replace("://", "s://")
    error = failure(url, "write http:// or grpc://", TranslationClient.status)
    assert error.code == "UNAUTHENTICATED"
    assert getattr(served, "connections", 1) == 1 and model.requests == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_addresses_bypass_proxies(served, monkeypatch, host):
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    monkeypatch.setenv("NO_PROXY", "")
    check_answer(served.url.replace("127.0.0.1", host), attempts=1)


@pytest.mark.parametrize(
    "expected, host",
    [
        *((True, x) for x in ("127.0.0.1", "localhost", "127.1.2.3", "[::1]")),
        *((False, x) for x in ("example.org", "10.0.0.1", "[2001::1]")),
        (False, "localhost.example.org"),
    ],
)
def test_loopback_addresses_are_known(expected, host):
    assert read_address(f"http://{host}:1").is_loopback == expected


@pytest.mark.parametrize(
    "scheme, variable, used",
    [
        *(("http", name, True) for name in ("HTTP_PROXY", "ALL_PROXY")),
        ("http", "grpc_proxy", False),
        ("grpc", "grpc_proxy", True),
        *(("grpc", name, False) for name in ("HTTP_PROXY", "ALL_PROXY")),
    ],
)
def test_proxies_are_those_of_the_protocol(monkeypatch, scheme, variable, used):
    url = f"{scheme}://translator.invalid:1"
    with socket.create_server(("127.0.0.1", 0)) as server:
        proxy = f"http://127.0.0.1:{server.getsockname()[1]}"
        monkeypatch.setenv(variable, proxy)
        assert read_address(url).proxy == (proxy if used else None)
        failure(url, attempts=1, timeout=1)
        server.settimeout(0.1)
        with nullcontext() if used else pytest.raises(TimeoutError):
            server.accept()[0].close()


@pytest.mark.parametrize("scheme", ["http", "https", "grpc", "grpcs"])
def test_a_proxy_that_refuses_is_named(monkeypatch, scheme):
    with socket.create_server(("127.0.0.1", 0)) as closed:
        proxy = f"127.0.0.1:{closed.getsockname()[1]}"
    for name in ("http_proxy", "https_proxy"):
        monkeypatch.setenv(name, f"http://bob:{GUESS}@{proxy}")
    url = f"{scheme}://translator.example:8501"
    error = failure(url, f"8501 .*names the proxy http://{proxy}", attempts=1)
    assert error.code == "UNAVAILABLE"
    checked_message(error)
    monkeypatch.setenv("no_proxy", ".example")
    assert read_address(url).proxy is None


def test_wrong_proxies_are_refused(monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", f"socks9://bob:{GUESS}@host:1")
    url = "http://translator.invalid:8501"
    checked_message(failure(url, "proxies", kind=ValueError))
