"""The files of certificates that a client was given."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

File = str | PathLike[str]


@dataclass(frozen=True)
class TlsFiles:
    """Certificates in PEM.

    Attributes:
        ca_certificate: of the authorities that may have signed the server's;
            None for those that are known everywhere.
        client_certificate: what the client shows of itself, or None.
        client_key: its private key, where that is in another file.
    """

    ca_certificate: File | None = None
    client_certificate: File | None = None
    client_key: File | None = None

    def check(self, encrypted: bool) -> None:
        """Tells at once what cannot be.

        Raises:
            ValueError: for certificates without TLS, a key without its
                certificate, and files that do not hold what they should.
        """
        given = [x for x in vars(self).values() if x is not None]
        if given and not encrypted:
            raise ValueError(
                "Expected: certificates with https:// or grpcs://. Received: "
                f"{given[0]} with an address that is not encrypted."
            )
        if self.client_key is not None and self.client_certificate is None:
            raise ValueError(
                "Expected: `client_certificate` beside `client_key`. "
                "Received: the key alone."
            )
        if given:
            self.load_into(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def load_into(self, context: ssl.SSLContext) -> None:
        """Adds what was given to a context."""
        if self.ca_certificate is not None:
            try:
                context.load_verify_locations(self.ca_certificate)
            except OSError as error:
                raise _unreadable(
                    "ca_certificate", self.ca_certificate, error
                ) from error
        if self.client_certificate is not None:
            try:
                # Without a password it would ask at the terminal.
                context.load_cert_chain(
                    self.client_certificate, self.client_key, password=""
                )
            except (OSError, ValueError) as error:
                raise _unreadable(
                    "client_certificate", self.client_certificate, error
                ) from error

    def contents(self) -> tuple[bytes | None, bytes | None, bytes | None]:
        """The authorities, the key and the certificate, for gRPC."""
        key = self.client_key or self.client_certificate
        return (
            _bytes(self.ca_certificate),
            _bytes(key),
            _bytes(self.client_certificate),
        )


def _bytes(file: File | None) -> bytes | None:
    return None if file is None else Path(file).read_bytes()


def _unreadable(name: str, file: File, error: Exception) -> ValueError:
    reason = getattr(error, "strerror", None) or error
    return ValueError(
        f"Expected: `{name}`, a file of certificates in PEM, with a key that "
        f"needs no password. Received: {file} ({reason})."
    )
