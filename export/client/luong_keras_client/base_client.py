"""What the client of threads and that of event loops are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from luong_keras_client.client_settings import ClientSettings
from luong_keras_client.served_translator import ServedTranslator
from luong_keras_client.server_address import (
    ServerAddress,
    server_address,
    without_user,
)
from luong_keras_client.tls_files import File, TlsFiles


class BaseClient:
    """The arguments of both clients; see `TranslationClient`."""

    def __init__(
        self,
        url: str = "http://localhost:8501",
        model: str = "translator",
        *,
        version: int | None = None,
        label: str | None = None,
        timeout: float = 30.0,
        request_timeout: float | None = None,
        attempts: int = 5,
        batch_size: int = 32,
        concurrency: int = 4,
        alignment_step: Literal["produces", "reads"] = "produces",
        headers: Mapping[str, str] | None = None,
        token: str | None = None,
        ca_certificate: File | None = None,
        client_certificate: File | None = None,
        client_key: File | None = None,
    ) -> None:
        self._settings = ClientSettings(
            timeout,
            request_timeout,
            attempts,
            batch_size,
            concurrency,
            alignment_step,
        )
        address = server_address(url, model, version, label, headers, token)
        tls = TlsFiles(ca_certificate, client_certificate, client_key)
        tls.check(address.encrypted)
        self._address = address
        connect = _transport_class(address.scheme)
        self._translator = ServedTranslator(
            address, self._settings, lambda: _connected(connect, address, tls)
        )
        self._made()

    def _made(self) -> None:
        """For what a kind of client does besides."""

    @property
    def url(self) -> str:
        """The address, without a user and a password."""
        return self._address.url

    @property
    def model(self) -> str:
        """The name of the model."""
        return self._address.model

    def __repr__(self) -> str:
        """Where it asks, without what lets it in."""
        return f"{type(self).__name__}({self.url!r}, {self.model!r})"


def _transport_class(scheme: str) -> Any:
    # Imported where a client is made: so a package that is missing is told
    # there, and TensorFlow is not loaded inside of an event loop.
    if scheme in ("grpc", "grpcs"):
        from luong_keras_client.grpc_transport import GrpcTransport

        return GrpcTransport
    from luong_keras_client.rest_transport import RestTransport

    return RestTransport


def _connected(connect: Any, address: ServerAddress, tls: TlsFiles) -> Any:
    try:
        return connect(address, tls)
    except (ValueError, ImportError) as error:
        # Such as a proxy of the environment that cannot be, with its user.
        told = without_user(address.hide(str(error)))
        raise ValueError(
            f"Expected: connections to {address.url}. Received: {told} Look "
            "at the certificates and the proxies of the environment."
        ) from None
