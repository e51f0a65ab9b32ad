"""Which model a client asks, where, and what it shows to be let in."""

from __future__ import annotations

import base64
import ipaddress
import operator
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, unquote, urlsplit

TOKEN_VARIABLE = "LUONG_KERAS_TOKEN"
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
# A value of a header is hidden from this length on; shorter ones are words
# such as "on", which are in many a message.
_HIDDEN_LENGTH = 4


@dataclass(frozen=True)
class ServerAddress:
    """One model of one server.

    Attributes:
        scheme: `http`, `https`, `grpc` or `grpcs`.
        netloc: `HOST:PORT`.
        path: what stands before `/v1/models`.
        model: the name of the model.
        version: its number, or None.
        label: its label, or None; the newest version with neither.
        headers: what goes with every request, by names in lower case.
        secrets: texts that no message may have.
    """

    scheme: str
    netloc: str
    path: str
    model: str
    version: int | None
    label: str | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    @property
    def url(self) -> str:
        """The address without a user and a password."""
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def model_url(self) -> str:
        """The address of the model by REST."""
        url = f"{self.url}/v1/models/{quote(self.model, safe='')}"
        if self.version is not None:
            return f"{url}/versions/{self.version}"
        if self.label is not None:
            return f"{url}/labels/{quote(self.label, safe='')}"
        return url

    @property
    def encrypted(self) -> bool:
        """Whether TLS is spoken."""
        return self.scheme in ("https", "grpcs")

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, where no proxy leads."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    def hide(self, text: str) -> str:
        """The text without what only the server may read."""
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        return text


def server_address(
    url: str,
    model: str = "translator",
    version: int | None = None,
    label: str | None = None,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
) -> ServerAddress:
    """Reads what a client was given.

    Raises:
        ValueError: where something cannot be; without the secrets.

    Example:
        >>> address = server_address("https://bob:pw@host/a/", "demo", 7)
        >>> address.url, address.model_url
        ('https://host/a', 'https://host/a/v1/models/demo/versions/7')
        >>> address.headers, address.hide("no entry for pw")
        ({'authorization': 'Basic Ym9iOnB3'}, 'no entry for [hidden]')
        >>> server_address("ftp://bob:pw@host")
        Traceback (most recent call last):
        ValueError: Expected: `url` as http://HOST:PORT, https://HOST:PORT,
        grpc://HOST:PORT or grpcs://HOST:PORT, without a path to a model.
        Received: 'ftp://host'.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except (ValueError, AttributeError):
        raise _wrong_url(url) from None
    of_grpc = parts.scheme in ("grpc", "grpcs")
    if (
        parts.scheme not in ("http", "https", "grpc", "grpcs")
        or not parts.hostname
        or "/v1/models" in parts.path
        or parts.query
        or parts.fragment
        or (of_grpc and (port is None or parts.path.strip("/")))
    ):
        raise _wrong_url(url)
    _check_model(model, version, label)
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    secrets = [
        part
        for value in map(str, sent.values())
        # With and without "Bearer".
        for part in (value, value.rpartition(" ")[2])
        if len(part) >= _HIDDEN_LENGTH
    ]
    if parts.username is not None:
        user, password = map(unquote, (parts.username, parts.password or ""))
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        secrets += [password, parts.password or "", pair]
        _authorize(sent, f"Basic {pair}", "the user in `url`")
    if token is None and "authorization" not in sent:
        token = os.environ.get(TOKEN_VARIABLE) or None
    if token is not None:
        secrets.append(token)
        _authorize(sent, f"Bearer {token}", "`token`")
    _check_headers(sent)
    longest_first = sorted({x for x in secrets if x}, key=len, reverse=True)
    return ServerAddress(
        scheme=parts.scheme,
        netloc=parts.netloc.rpartition("@")[2],
        path=parts.path.rstrip("/"),
        model=model,
        version=None if version is None else operator.index(version),
        label=label,
        headers=sent,
        secrets=tuple(longest_first),
    )


def without_user(text: str) -> str:
    """A text whose addresses have no user and no password.

    Example:
        >>> without_user("--url http://bob:p/w@host:1 x")
        '--url http://host:1 x'
    """
    return re.sub(r"(?<!\S)((?:\W*\w+:/+)?)\S*@", r"\1", str(text))


def _wrong_url(url: Any) -> ValueError:
    # Without what may be behind it, such as a token.
    shown = without_user(url).partition("?")[0]
    return ValueError(
        "Expected: `url` as http://HOST:PORT, https://HOST:PORT, "
        "grpc://HOST:PORT or grpcs://HOST:PORT, without a path to a model. "
        f"Received: {shown!r}."
    )


def _check_model(model: Any, version: Any, label: Any) -> None:
    if not isinstance(model, str) or not model:
        raise ValueError(
            f"Expected: `model`, the name of a model. Received: {model!r}."
        )
    if isinstance(version, str):
        raise ValueError(
            "Expected: `version`, the number of a version. Received: "
            f"{version!r}. Pass `label={version!r}` for the version of that "
            "label."
        )
    if version is not None and (
        isinstance(version, bool)
        or not hasattr(version, "__index__")
        or not 0 <= operator.index(version) < 2**63
    ):
        raise ValueError(
            f"Expected: `version`, a number of 0 or more. Received: "
            f"{version!r}."
        )
    if label is not None and (not isinstance(label, str) or not label):
        raise ValueError(
            f"Expected: `label`, a text such as 'stable'. Received: {label!r}. "
            "Pass a number as `version`."
        )
    if version is not None and label is not None:
        raise ValueError(
            "Expected: `version` or `label`. Received: both, "
            f"{version} and {label!r}."
        )


def _authorize(headers: dict[str, str], value: str, source: str) -> None:
    if "authorization" in headers:
        raise ValueError(
            f"Expected: one way to be let in. Received: {source}, beside "
            "another one. Pass `token`, a user in `url`, or the header "
            "Authorization."
        )
    headers["authorization"] = value


def _check_headers(headers: Mapping[str, Any]) -> None:
    """A value that cannot be sent is not shown: it may be a secret."""
    for name, value in headers.items():
        if not _NAME.fullmatch(name) or name.startswith("grpc-"):
            raise ValueError(
                f"Expected: names of `headers` such as X-Tenant. Received: "
                f"{name!r}."
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            what = "`token`" if name == "authorization" else f"`{name}`"
            raise ValueError(
                f"Expected: {what} of printable ASCII, without spaces or line "
                "ends around it. Received: a value that is not shown."
            )
