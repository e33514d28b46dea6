"""HTTP from clients that are slow or send without end.

A request's head has bounds in time and size, which uvicorn's faster parser does not keep.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds that the head of a request has to arrive, and bytes that it has at most.
HEAD_SECONDS = 20.0
HEAD_BYTES = 65_536
#: Bytes that each header counts beside its own, as HTTP/2 has it: many short ones cost time, too.
BESIDE = 32


class Patient:
    """Closes connections over which no head of a request arrives in time. Before one of uvicorn's protocols."""

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start the clock of a connection."""
        super().connection_made(transport)  # type: ignore[misc]
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock of a connection."""
        self._settle()
        super().connection_lost(exc)  # type: ignore[misc]

    def data_received(self, data: bytes) -> None:
        """Read data, and stop the clock once a head is complete."""
        super().data_received(data)  # type: ignore[misc]
        self._wait() if self._idle() else self._settle()

    def _idle(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def _wait(self) -> None:
        if self._late is None and not self.transport.is_closing():
            self._late = self.loop.call_later(HEAD_SECONDS, self._close_late)

    def _settle(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _close_late(self) -> None:
        self._late = None
        if self._idle():
            self.transport.close()


class PatientH11(Patient, H11Protocol):
    """The parser in Python, which bounds a head's size itself."""


def patient_protocol() -> type[asyncio.Protocol]:
    """Return the fastest protocol that is installed."""
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    except ImportError:
        return PatientH11

    class PatientHttpTools(Patient, HttpToolsProtocol):
        """The parser in C. A head that comes in one piece is counted, too, by its parts."""

        _in_head = True
        _head = 0
        _parts = 0

        def data_received(self, data: bytes) -> None:
            self._head += len(data)
            super().data_received(data)
            if self._in_head and self._head > HEAD_BYTES + len(data):
                self.transport.close()

        def on_message_begin(self) -> None:
            self._in_head = True
            self._head = 0
            self._parts = 0
            super().on_message_begin()

        def on_url(self, url: bytes) -> None:
            self._count(len(url))
            super().on_url(url)

        def on_header(self, name: bytes, value: bytes) -> None:
            self._count(len(name) + len(value))
            super().on_header(name, value)

        def _count(self, size: int) -> None:
            self._parts += size + BESIDE
            if self._parts > HEAD_BYTES:
                raise ValueError("the head is too long")  # answered with 400

        def on_headers_complete(self) -> None:
            self._in_head = False
            super().on_headers_complete()

    return PatientHttpTools


#: As uvicorn's processes find it.
FASTEST = patient_protocol()
