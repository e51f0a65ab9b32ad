"""A translator in a server: what both clients ask."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from luong_keras_client.answer_columns import OUTPUTS, outputs_of
from luong_keras_client.attempts import Answer, repeated
from luong_keras_client.client_settings import ClientSettings
from luong_keras_client.contract import (
    SPOKEN,
    Contract,
    contract_of,
    has_no_contract,
)
from luong_keras_client.questions import Question, Result
from luong_keras_client.row_requests import (
    OK,
    TOO_LONG,
    TOO_MANY,
    RowRequests,
    Rows,
)
from luong_keras_client.server_address import ServerAddress
from luong_keras_client.server_error import (
    UNREADABLE,
    TranslationServerError,
)


class Transport(Protocol):
    """Sends one request, once."""

    async def predict(
        self,
        signature: str,
        inputs: dict[str, np.ndarray],
        outputs: Sequence[str],
        timeout: float,
    ) -> dict[str, np.ndarray]:
        """The arrays that a signature answers."""

    async def status(self, timeout: float) -> dict[int, str]:
        """The state of every version."""

    async def aclose(self) -> None:
        """Closes the connections."""


@dataclass(frozen=True)
class Call:
    """What the requests of a call share.

    Attributes:
        deadline: of all of them; None where each has the whole time.
        slots: of requests in flight, where other calls have the same.
    """

    deadline: float | None
    slots: AbstractAsyncContextManager[Any] = nullcontext()  # noqa: RUF009


class ServedTranslator:
    """Asks questions of one model, in one event loop.

    Connections are made at the first question.

    Args:
        address: of the server and the model.
        settings: how it is asked.
        connect: makes the connections.
    """

    def __init__(
        self,
        address: ServerAddress,
        settings: ClientSettings,
        connect: Callable[[], Transport],
    ) -> None:
        self.address, self.settings = address, settings
        self._connect = connect
        self._open: Transport | None = None
        self._home: tuple[int, Any] | None = None
        self._closed = False
        self._contract: Contract | None = None
        self._asking_contract = asyncio.Lock()

    @property
    def is_connected(self) -> bool:
        """Whether it has connections, of this process."""
        return (
            self._open is not None
            and self._home is not None
            and self._home[0] == os.getpid()
        )

    async def answer(
        self, question: Question[Result], call: Call | None = None
    ) -> list[Result]:
        """The results of all lines, in their order."""
        if not len(question):
            return []
        call = call or self._call()
        contract = await self.contract(call)
        rows = RowRequests(
            question,
            partial(self._rows, call, contract.version),
            min(self.settings.batch_size, contract.max_rows),
            self.settings.attempts,
        )
        return await rows.results(self.settings.concurrency, contract)

    async def contract(self, call: Call | None = None) -> Contract:
        """What the server takes; it is asked once."""
        call = call or self._call()
        transport = self._transport()
        async with self._asking_contract:
            if self._contract is None:
                self._contract = await self._ask_contract(transport, call)
        return self._contract

    async def status(self) -> dict[int, str]:
        """The states of all versions."""
        transport = self._transport()
        return await self._ask("the status of", transport.status, self._call())

    async def aclose(self) -> None:
        """Closes the connections; nothing can be asked then."""
        transport, self._open = self._open, None
        self._closed = True
        if transport is not None and self._home == _here():
            await transport.aclose()

    def _call(self) -> Call:
        return Call(time.monotonic() + self.settings.timeout)

    def _deadline(self, call: Call) -> float:
        if call.deadline is None:
            return time.monotonic() + self.settings.timeout
        return call.deadline

    def _transport(self) -> Transport:
        if self._closed:
            raise RuntimeError(
                "Expected: an open client. Received: one that was closed. "
                "Make another one, or ask inside of `with`."
            )
        if self._open is None:
            self._open, self._home = self._connect(), _here()
        elif self._home != _here():
            assert self._home is not None
            forked = self._home[0] != os.getpid()
            raise RuntimeError(
                "Expected: a client in the process and the event loop that "
                "used it first. Received: a call "
                f"{'after a fork' if forked else 'in another event loop'}. "
                f"Make a client in each {'process' if forked else 'loop'}."
            )
        return self._open

    async def _ask(
        self,
        what: str,
        request: Callable[[float], Awaitable[Answer]],
        call: Call,
    ) -> Answer:
        """What one request answers, with its repetitions."""
        settings, address = self.settings, self.address

        async def without_secrets(seconds: float) -> Answer:
            try:
                return await request(seconds)
            except TranslationServerError as error:
                raise TranslationServerError(
                    address.hide(str(error)), error.code, error.retry_after
                ) from None

        async with call.slots:
            return await repeated(
                without_secrets,
                f"{what} model {address.model!r} at {address.url} within "
                f"{settings.timeout} s",
                settings.attempts,
                self._deadline(call),
                settings.request_timeout,
            )

    async def _ask_contract(self, transport: Transport, call: Call) -> Contract:
        async def request(seconds: float) -> Contract:
            # What it reads is not looked at.
            text = np.array([""], object)
            try:
                arrays = await transport.predict(
                    "contract", {"text": text}, OUTPUTS["contract"], seconds
                )
            except TranslationServerError as error:
                if has_no_contract(error):
                    raise TranslationServerError(
                        "a model without one", "CONTRACT"
                    ) from None
                raise
            return _checked(lambda: contract_of(arrays))

        return await self._ask(
            f"a translator of contract {' or '.join(map(str, SPOKEN))}, as",
            request,
            call,
        )

    async def _rows(
        self,
        call: Call,
        version: int,
        question: Question[Any],
        places: np.ndarray,
    ) -> Rows:
        """Status and result of the rows of some places, of one request."""
        batch = {name: x[places] for name, x in question.columns.items()}

        outputs = outputs_of(question.signature, version)

        async def request(seconds: float) -> Rows:
            arrays = await self._transport().predict(
                question.signature, batch, outputs, seconds
            )
            return _checked(lambda: _rows(arrays, question, len(places)))

        what = f"an answer of signature {question.signature!r} of"
        return await self._ask(what, request, call)


def _here() -> tuple[int, Any]:
    return os.getpid(), asyncio.get_running_loop()


def _rows(arrays, question: Question[Any], count: int) -> Rows:
    if any(len(array) != count for array in arrays.values()):
        raise ValueError(f"not {count} rows in every output")
    for status in set(arrays["status"]) - {OK, TOO_LONG, TOO_MANY}:
        raise ValueError(f"the status {status!r}")
    return [
        (status, question.result_of(arrays, row) if status == OK else None)
        for row, status in enumerate(arrays["status"])
    ]


def _checked(read: Callable[[], Answer]) -> Answer:
    """What an answer says; an error where it cannot be read."""
    try:
        return read()
    except UNREADABLE as error:
        raise TranslationServerError(repr(error), "MALFORMED") from None
