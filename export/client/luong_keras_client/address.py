"""Address of a model, and the credentials of a client."""

from __future__ import annotations

import base64
import ipaddress
import os
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from os import PathLike
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from luong_keras_client.errors import argument_error

File = str | PathLike[str]
_NAME = re.compile(r"(?!grpc-)[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")


@dataclass(frozen=True)
class Address:
    """One model on one server; messages must not show the `secrets`."""

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
        return f"{self.scheme}://{self.netloc}{self.path}"

    @property
    def model_url(self) -> str:
        url = f"{self.url}/v1/models/{quote(self.model, safe='')}"
        if self.version is not None:
            url += f"/versions/{self.version}"
        if self.label is not None:
            url += f"/labels/{quote(self.label, safe='')}"
        return url

    @property
    def is_encrypted(self) -> bool:
        return self.scheme in ("https", "grpcs")

    @property
    def is_loopback(self) -> bool:
        """True if the server is on this machine, which needs no proxy."""
        host = urlsplit(self.url).hostname or ""
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost" or host.endswith(".localhost")

    @property
    def proxy(self) -> str | None:
        """The proxy that the environment names for the server, or None."""
        from urllib.request import getproxies, proxy_bypass  # Slow to import.

        if self.is_loopback or proxy_bypass(self.netloc):
            return None
        if self.scheme in ("grpc", "grpcs"):
            names = ("grpc_proxy", "https_proxy", "http_proxy")  # as gRPC does
            found = map(os.environ.get, names)
        else:
            scheme = "https" if self.is_encrypted else "http"
            found = map(getproxies().get, (scheme, "all"))
        proxy = next(filter(None, found), None)
        return proxy and without_user(proxy)

    def hide(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[hidden]")
        return text


def read_address(
    url: str,
    model: Any = "translator",
    version: Any = None,
    label: Any = None,
    headers: Mapping[str, str] | None = None,
    token: str | None = None,
) -> Address:
    """Read an address and its credentials; errors show no secrets."""
    try:
        parts = urlsplit(url)
        is_wrong = not parts.hostname or "/v1/models" in parts.path
        is_wrong |= bool(parts.query + parts.fragment)
        if parts.scheme in ("grpc", "grpcs"):
            is_wrong |= parts.port is None or bool(parts.path.strip("/"))
        # Reading the port raises a ValueError if it is not a number.
        elif parts.scheme not in ("http", "https") or parts.port == -1:
            is_wrong = True
    except (ValueError, AttributeError, TypeError):
        is_wrong = True
    if is_wrong:
        raise argument_error(
            "`url` as http://HOST:PORT, https://HOST:PORT, grpc://HOST:PORT or "
            "grpcs://HOST:PORT, without a path to a model",
            # Without the query, which may contain a token.
            repr(without_user(url).partition("?")[0]),
        )
    _check_model(model, version, label)
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    given = list(pairs or ())
    fields = {
        name.lower() if isinstance(name, str) else name: value
        for name, value in given
    }
    if len(fields) < len(given):
        names = ", ".join(repr(name) for name, _ in given)
        raise argument_error("each name of `headers` once, in any case", names)
    # With and without "Bearer"; values of fewer than 4 characters, such as
    # "on", are no secrets.
    values = [(str(x), str(x).rpartition(" ")[2]) for x in fields.values()]
    secrets = [x for pair in values for x in pair if len(x) >= 4]
    credentials = {}
    if parts.username is not None:
        user, password = map(unquote, (parts.username, parts.password or ""))
        basic = base64.b64encode(f"{user}:{password}".encode()).decode()
        secrets += [password, parts.password or "", basic]
        credentials["the user in `url`"] = f"Basic {basic}"
    if token is None and not credentials and "authorization" not in fields:
        token = os.environ.get("LUONG_KERAS_TOKEN") or None
    if token is not None:
        secrets.append(token)
        is_text = isinstance(token, str)
        credentials["`token`"] = f"Bearer {token}" if is_text else token
    if len(credentials) + ("authorization" in fields) > 1:
        raise argument_error(
            "one set of credentials: `token`, a user in `url`, or the header "
            "Authorization",
            " and ".join([*credentials, "the header"][:2]),
        )
    fields.update(("authorization", value) for value in credentials.values())
    for name, value in fields.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise argument_error(
                "names of `headers` such as X-Tenant", repr(name)
            )
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            what = "token" if name == "authorization" else name
            expected = (
                f"`{what}`, a str of printable ASCII without outer spaces"
            )
            raise argument_error(expected, "a value that is not shown")
    return Address(
        scheme=parts.scheme,
        netloc=parts.netloc.rpartition("@")[2],
        path=parts.path.rstrip("/"),
        model=model,
        version=None if version is None else int(version),
        label=label,
        headers=fields,
        # Longest first, because a secret may contain another secret.
        secrets=sorted({x for x in secrets if x}, key=len, reverse=True),
    )


def without_user(text: object) -> str:
    """Remove the user and the password from addresses in a text."""
    return re.sub(r"(?<!\S)((?:\W*\w+:/+)?)\S*@", r"\1", str(text))


def _check_model(model: Any, version: Any, label: Any) -> None:
    if not isinstance(model, str) or not model:
        raise argument_error("`model`, the name of a model", repr(model))
    if version is not None and label is not None:
        raise argument_error(
            "`version` or `label`", f"both, {version} and {label!r}"
        )
    if label is not None and (not isinstance(label, str) or not label):
        expected = "`label`, a text such as 'stable'; a number is a `version`"
        raise argument_error(expected, repr(label))
    if version is None:
        return
    is_number = isinstance(version, Integral) and not isinstance(version, bool)
    if not is_number or not 0 <= version < 2**63:
        received = f"{version!r}. Pass a label as `label={version!r}`"
        raise argument_error("`version`, a number of 0 or more", received)


def tls_context(
    encrypted: bool, authorities: Any, certificate: Any, key: Any
) -> ssl.SSLContext | None:
    """Build a TLS context with the given files, after checks."""
    files = {"ca_certificate": authorities, "client_certificate": certificate}
    paths = [path for path in (*files.values(), key) if path is not None]
    if not paths:
        return None
    if not encrypted:
        received = f"{paths[0]} with an address that is not encrypted"
        raise argument_error("certificates with https:// or grpcs://", received)
    if certificate is None and key is not None:
        expected = "`client_certificate` together with `client_key`"
        raise argument_error(expected, "the key alone")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if authorities is None:
        import httpx  # Slow to import.

        context = httpx.create_ssl_context()
    for name, file in files.items():
        try:
            if name == "ca_certificate" and file is not None:
                context.load_verify_locations(file)
            elif file is not None:
                # Without a password OpenSSL would ask at the terminal.
                context.load_cert_chain(file, key, password="")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            expected = f"`{name}`, PEM; a key in it needs no password"
            raise argument_error(expected, f"{file} ({reason})") from error
    return context
