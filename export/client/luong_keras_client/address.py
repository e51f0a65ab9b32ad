"""Which model is asked, where, and what a client shows to be let in."""

from __future__ import annotations

import base64
import ipaddress
import operator
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from luong_keras_client.errors import wrong

File = str | PathLike[str]
_NAME = re.compile(r"(?!grpc-)[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True)
class Address:
    """One model of one server; `model_path` is that of REST."""

    scheme: str
    netloc: str
    path: str
    model: str
    version: int | None
    label: str | None
    headers: Mapping[str, str] = field(repr=False)
    secrets: list[str] = field(repr=False)

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


def read_address(
    url: str,
    model: str = "translator",
    version: int | None = None,
    label: str | None = None,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
) -> Address:
    """Reads what a client was given; its errors have no secrets."""
    try:
        parts = urlsplit(url)
        of_grpc = parts.scheme in ("grpc", "grpcs")
        refused = (
            parts.scheme not in ("http", "https", "grpc", "grpcs")
            or not parts.hostname
            or "/v1/models" in parts.path
            or parts.query + parts.fragment
            or (parts.port is None and of_grpc)
            or (parts.path.strip("/") and of_grpc)
        )
    except (ValueError, AttributeError, TypeError):
        refused = True
    if refused:
        raise wrong(
            "`url` as http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT or "
            "grpcs://HOST:PORT, without a path to a model",
            # Without what may be behind it, such as a token.
            repr(without_user(url).partition("?")[0]),
        )
    _check_model(model, version, label)
    sent = {name.lower(): value for name, value in (headers or {}).items()}
    secrets = [
        part
        for value in map(str, sent.values())
        # With and without "Bearer"; shorter ones are words such as "on".
        for part in (value, value.rpartition(" ")[2])
        if len(part) >= 4
    ]
    ways = {}
    if parts.username is not None:
        user, password = map(unquote, (parts.username, parts.password or ""))
        pair = base64.b64encode(f"{user}:{password}".encode()).decode()
        secrets += [password, parts.password or "", pair]
        ways["the user in `url`"] = f"Basic {pair}"
    if token is None and not ways and "authorization" not in sent:
        token = os.environ.get("LUONG_KERAS_TOKEN") or None
    if token is not None:
        secrets.append(token)
        ways["`token`"] = f"Bearer {token}"
    for way, value in ways.items():
        if "authorization" in sent:
            raise wrong(
                "one way to be let in, `token`, a user in `url`, or the header "
                "Authorization",
                f"{way}, beside another one",
            )
        sent["authorization"] = value
    for name, value in sent.items():
        if not _NAME.fullmatch(name):
            raise wrong("names of `headers` such as X-Tenant", repr(name))
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            what = "token" if name == "authorization" else name
            raise wrong(
                f"`{what}` of printable ASCII, without spaces or line ends "
                "around it",
                "a value that is not shown",
            )
    return Address(
        scheme=parts.scheme,
        netloc=parts.netloc.rpartition("@")[2],
        path=parts.path.rstrip("/"),
        model=model,
        version=None if version is None else operator.index(version),
        label=label,
        headers=sent,
        # What contains another one goes first.
        secrets=sorted({x for x in secrets if x}, key=len, reverse=True),
    )


def without_user(text: object) -> str:
    """A text whose addresses have no user and no password."""
    return re.sub(r"(?<!\S)((?:\W*\w+:/+)?)\S*@", r"\1", str(text))


def _check_model(model: Any, version: Any, label: Any) -> None:
    if not isinstance(model, str) or not model:
        raise wrong("`model`, the name of a model", repr(model))
    if version is not None and (
        isinstance(version, bool)
        or not hasattr(version, "__index__")
        or not 0 <= operator.index(version) < 2**63
    ):
        raise wrong(
            "`version`, a number of 0 or more",
            f"{version!r}. Pass `label={version!r}` for the version of a label",
        )
    if label is not None and (not isinstance(label, str) or not label):
        raise wrong(
            "`label`, a text such as 'stable'; a number is a `version`",
            repr(label),
        )
    if version is not None and label is not None:
        raise wrong("`version` or `label`", f"both, {version} and {label!r}")


@dataclass(frozen=True)
class TlsFiles:
    """Certificates in PEM: of authorities, of the client, and its key."""

    ca_certificate: File | None = None
    client_certificate: File | None = None
    client_key: File | None = None

    def check(self, encrypted: bool) -> None:
        """Refuses at once what cannot be."""
        given = [file for file in vars(self).values() if file is not None]
        if given and not encrypted:
            raise wrong(
                "certificates with https:// or grpcs://",
                f"{given[0]} with an address that is not encrypted",
            )
        if self.client_key is not None and self.client_certificate is None:
            raise wrong(
                "`client_certificate` beside `client_key`", "the key alone"
            )
        if given:
            self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Adds what was given to a context."""
        name, file = "ca_certificate", self.ca_certificate
        try:
            if file is not None:
                context.load_verify_locations(file)
            name, file = "client_certificate", self.client_certificate
            if file is not None:
                # Without a password it would ask at the terminal.
                context.load_cert_chain(file, self.client_key, password="")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise wrong(
                f"`{name}`, a file of certificates in PEM, with a key that "
                "needs no password",
                f"{file} ({reason})",
            ) from error

    def contents(self) -> list[bytes | None]:
        """The authorities, the key and the certificate, for gRPC."""
        key = self.client_key or self.client_certificate
        files = self.ca_certificate, key, self.client_certificate
        return [file and Path(file).read_bytes() for file in files]
