"""Postgres' frontend/backend protocol 3 (PostgreSQL documentation, "Frontend/Backend Protocol").

A request is a Query; of the extended protocol all up to its Sync (or a Flush behind an Execute); the end of a COPY into
the server. The rows of a COPY pass at once: without its end they come to nothing. A connection is never encrypted: the
proxy declines in the server's place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ._buffers import length_at, taken
from ._declaration import Answered, Protocol, Request, Sent
from ._sql import statements

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
"""Codes of a connection's first packet that ask for something else than a session."""

DECLINED = b"N"
SHOWN = 200
"""Characters of a statement that are told."""

SYNC, FLUSH, EXECUTE, PARSE, BIND, QUERY, COPY_DONE, COPY_FAIL, CALL = b"SHEPBQcfF"
READY, COPY_IN = b"ZG"
ERROR = ord("E")
COMPLETED = b"CIs"
"""CommandComplete, EmptyQueryResponse, PortalSuspended: the end of one Execute."""

STARTUP = Request("startup", changes=False)


class _Session:
    """One connection. ``_waits``: for what the answer that is awaited ends with: ReadyForQuery, or so many ends of an
    Execute."""

    def __init__(self) -> None:
        self._from_client = bytearray()
        self._from_server = bytearray()
        self._started = False
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}
        self._pipeline = bytearray()
        self._executed: list[str] = []
        self._waits: list[int | None] = []
        self._extended = False
        self._copying: bool | None = None

    # -- what the client sends ------------------------------------------------------------------------------------

    def sent(self, data: bytes) -> Iterator[Sent]:
        self._from_client += data
        while not self._started:
            packet = _take(self._from_client, 0)
            if packet is None:
                return
            yield self._start(packet)
        while (message := _take(self._from_client, 1)) is not None:
            yield from self._message(message)

    def _start(self, packet: bytes) -> Sent:
        (code,) = struct.unpack_from("!i", packet, 4)
        if code in (SSL, GSS):
            return Sent(b"", reply=DECLINED)
        self._started = True
        if code == CANCEL:
            return Sent(packet)
        return self._asked(packet, STARTUP, None, extended=False)

    def _message(self, message: bytes) -> Iterator[Sent]:
        kind, body = message[0], message[5:]
        if kind == QUERY:
            yield self._asked(message, _request([_text(body)]), None, extended=False)
        elif kind == CALL:
            yield self._asked(message, Request("CALL"), None, extended=False)
        elif kind in (COPY_DONE, COPY_FAIL):
            yield from self._copied(message, done=kind == COPY_DONE)
        elif kind in b"PBDECSH":
            yield from self._pipelined(message, kind, body)
        else:  # CopyData, a password, Terminate
            yield Sent(message)

    def _pipelined(self, message: bytes, kind: int, body: bytes) -> Iterator[Sent]:
        self._pipeline += message
        if kind == PARSE:
            name, text = body.split(b"\0", 2)[:2]
            self._statements[name] = text.decode("utf-8", "replace")
        elif kind == BIND:
            portal, name = body.split(b"\0", 2)[:2]
            self._portals[portal] = self._statements.get(name, "")
        elif kind == EXECUTE:
            self._executed.append(self._portals.get(body.split(b"\0", 1)[0], ""))
        elif kind == SYNC or (kind == FLUSH and self._executed):
            ends = None if kind == SYNC else len(self._executed)
            yield self._asked(self._flushed(), self._whole(), ends, extended=True)
        elif kind == FLUSH:
            yield Sent(self._flushed())

    def _whole(self) -> Request:
        """What the pipeline asks for; the end of a COPY, if that came by one."""
        texts, self._executed = self._executed, []
        if self._copying is not None and not texts:
            done, self._copying = self._copying, None
            return Request("COPY", "end of its rows", changes=done)
        return _request(texts)

    def _flushed(self) -> bytes:
        data = bytes(self._pipeline)
        self._pipeline.clear()
        return data

    def _copied(self, message: bytes, done: bool) -> Iterator[Sent]:
        """The end of a COPY's rows. By the extended protocol the Sync behind it is part of the request."""
        if self._extended:
            self._copying = done
            self._pipeline += message
        else:
            yield self._asked(message, Request("COPY", "end of its rows", changes=done), None, extended=False)

    def _asked(self, data: bytes, request: Request, ends: int | None, *, extended: bool) -> Sent:
        self._waits.append(ends)
        self._extended = extended
        return Sent(data, request)

    # -- what the server sends ------------------------------------------------------------------------------------

    def answered(self, data: bytes) -> Iterator[Answered]:
        self._from_server += data
        while (message := _take(self._from_server, 1)) is not None:
            yield Answered(message, self._ends(message[0]))

    def _ends(self, kind: int) -> bool:
        """Whether a message ends the answer to the oldest request. A COPY's answer asks for its rows."""
        if not self._waits:
            return False
        left = self._waits[0]
        if left is not None and left > 1 and kind in COMPLETED:
            self._waits[0] = left - 1
            return False
        if kind in ((READY, COPY_IN) if left is None else (*COMPLETED, ERROR, COPY_IN)):
            self._waits.pop(0)
            return True
        return False


def _take(buffer: bytearray, head: int) -> bytes | None:
    """The first whole message: its type in ``head`` bytes, its length in four, which count themselves."""
    length = length_at(buffer, head, "Postgres'")
    return taken(buffer, None if length is None else head + length)


def _text(body: bytes) -> str:
    return body.rstrip(b"\0").decode("utf-8", "replace")


def _request(texts: list[str]) -> Request:
    """``kind`` has every kind of statement once, in their order: BEGIN+INSERT+COMMIT."""
    found = [statement for text in texts for statement in statements(text)]
    kinds = "+".join(dict.fromkeys(kind for kind, _ in found))
    text = "; ".join(dict.fromkeys(" ".join(text.split()) for text in texts))
    return Request(kinds or "SYNC", text[:SHOWN], any(changes for _, changes in found))


PROTOCOL = Protocol(
    lambda route: _Session(), kinds=("INSERT", "COPY", "COMMIT", "PREPARE TRANSACTION", "COMMIT PREPARED")
)
