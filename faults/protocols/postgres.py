"""Postgres' frontend/backend protocol 3 (PostgreSQL documentation, "Frontend/Backend Protocol").

A request is a Query; of the extended protocol all up to its Sync (or a Flush behind an Execute); the end of a COPY into
the server. The rows of a COPY pass at once: without its end they come to nothing. Behind an error the server reads
nothing up to the next Sync: what comes there is no request. Outside of a transaction block the Sync commits what was
flushed before it, and so may change something. A connection is never encrypted: the proxy declines in the server's
place.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ._buffers import length_at, taken
from ._declaration import Answered, Instead, Protocol, Request, Sent
from ._sql import statements

NAME = "Postgres'"
SSL, GSS, CANCEL = 80877103, 80877104, 80877102
"""Codes of a connection's first packet that ask for something else than a session."""

DECLINED = b"N"
SHOWN = 200
"""Characters of a statement that are told."""

SYNC, FLUSH, EXECUTE, PARSE, BIND, QUERY, COPY_DONE, COPY_FAIL, CALL = b"SHEPBQcfF"
GATHERED = b"PBDEC"
"""Parse, Bind, Describe, Execute, Close."""
READY, COPY_IN = b"ZG"
IDLE = b"I"
"""ReadyForQuery's word for a session that is in no transaction block."""
ERROR = ord("E")
COMPLETED = b"CIs"
"""CommandComplete, EmptyQueryResponse, PortalSuspended: the end of one Execute."""

STARTUP = Request("startup", changes=False)

INJECTED = "injected by onceproof"
CANCELED, SERIALIZATION = "QUERY_CANCELED", "SERIALIZATION_FAILURE"
ERRORS = {
    CANCELED: "57014", SERIALIZATION: "40001", "DEADLOCK_DETECTED": "40P01", "LOCK_NOT_AVAILABLE": "55P03",
    "DISK_FULL": "53100",
}  # fmt: skip
"""PostgreSQL documentation, appendix A; the first is that of statement_timeout, and of a COPY that its client ends."""
FAILING = f"DO $$ BEGIN RAISE EXCEPTION '{INJECTED}' USING ERRCODE = '{{}}'; END $$"

BEGINNING = frozenset({"BEGIN", "START"})
ENDING = frozenset({"COMMIT", "END", "ROLLBACK", "ABORT", "PREPARE TRANSACTION"})
"""Statements that begin and end a transaction block."""


class _Session:
    """One connection. ``_waits``: for what each answer that is awaited ends with: ReadyForQuery (None), or so many ends
    of an Execute. ``_takes_rows``: a COPY into the server has begun, and has neither ended nor failed. ``_failed``:
    the server reads nothing more up to a Sync, which has yet to come. ``_in_block``: of a transaction.
    ``_uncommitted``: since the last Sync something that may change something was flushed outside of a block."""

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
        self._takes_rows = False
        self._failed = False
        self._in_block = False
        self._uncommitted = False

    # -- what the client sends ------------------------------------------------------------------------------------

    def sent(self, data: bytes) -> Iterator[Sent]:
        self._from_client += data
        while not self._started:
            packet = taken(self._from_client, length_at(self._from_client, 0, NAME))
            if packet is None:
                return
            yield self._start(packet)
        for message in _messages(self._from_client):
            if message[0] in GATHERED:
                self._gather(message)
            else:
                yield self._message(message)

    def _start(self, packet: bytes) -> Sent:
        (code,) = struct.unpack_from("!i", packet, 4)
        if code in (SSL, GSS):
            return Sent(b"", reply=DECLINED)
        self._started = True
        if code == CANCEL:
            return Sent(packet)
        return self._asked(packet, STARTUP, None, extended=False)

    def _message(self, message: bytes) -> Sent:
        kind = message[0]
        if kind == QUERY:
            texts = [_text(message[5:])]
            return self._asked(message, _request(texts, _statements(texts)), None, extended=False)
        if kind == CALL:
            return self._asked(message, Request("CALL"), None, extended=False)
        if kind in (COPY_DONE, COPY_FAIL):
            return self._copied(message, done=kind == COPY_DONE)
        if kind in (SYNC, FLUSH):
            self._pipeline += message
            return self._sync(kind)
        return Sent(message)  # CopyData, a password, Terminate

    def _gather(self, message: bytes) -> None:
        """A message of the extended protocol that waits for its Sync: there may be as many as rows."""
        self._pipeline += message
        kind = message[0]
        end = message.find(b"\0", 5)
        name = message[5:end]
        if kind == EXECUTE:
            self._executed.append(self._portals.get(name, ""))
        elif kind == BIND:
            self._portals[name] = self._statements.get(message[end + 1 : message.find(b"\0", end + 1)], "")
        elif kind == PARSE:
            text = message[end + 1 : message.find(b"\0", end + 1)]
            self._statements[name] = text.decode("utf-8", "replace")

    def _sync(self, kind: int) -> Sent:
        """What the pipeline has. A Sync ends a request, a Flush only behind an Execute that the server will read."""
        if kind == FLUSH and (self._failed or not self._executed):
            self._executed.clear()
            return Sent(self._flushed())
        self._failed = False
        ends = None if kind == SYNC else len(self._executed)
        request = self._whole() if kind == FLUSH else self._committing(self._whole())
        return self._asked(self._flushed(), request, ends, extended=True)

    def _committing(self, request: Request) -> Request:
        """One that ends with a Sync: outside of a block that commits what was flushed before."""
        commits, self._uncommitted = self._uncommitted and not self._in_block, False
        if request.changes or not commits:
            return request
        return replace(request, text=request.text or "end of what was flushed", changes=True)

    def _follow(self, found: list[tuple[str, bool]]) -> None:
        """Where a transaction block begins and ends; what is outside of one is committed by the next Sync."""
        for kind, changes in found:
            if kind in BEGINNING | ENDING:
                self._in_block = kind in BEGINNING
            else:
                self._uncommitted |= changes and not self._in_block

    def _whole(self) -> Request:
        """What the pipeline asks for; the end of a COPY, if that came by one."""
        texts, self._executed = self._executed, []
        if self._copying is not None and not texts:
            done, self._copying = self._copying, None
            return Request("COPY", "end of its rows", changes=done)
        texts = list(dict.fromkeys(texts))
        found = _statements(texts)
        self._follow(found)
        return _request(texts, found)

    def _flushed(self) -> bytes:
        data = bytes(self._pipeline)
        self._pipeline.clear()
        return data

    def _copied(self, message: bytes, done: bool) -> Sent:
        """The end of a COPY's rows. By the extended protocol the Sync behind it is part of the request; of a COPY that
        has failed meanwhile the server drops it without an answer."""
        if self._extended:
            self._copying = done
            self._pipeline += message
            return Sent(b"")
        if not self._takes_rows:
            return Sent(message)
        self._takes_rows = False
        return self._asked(message, Request("COPY", "end of its rows", changes=done), None, extended=False)

    def _asked(self, data: bytes, request: Request, ends: int | None, *, extended: bool) -> Sent:
        self._waits.append(ends)
        self._extended = extended
        if request.changes:
            begins = "BEGIN; " if _opens_a_block(request) else ""
            request = replace(request, refused=partial(_failing, data, begins, flushed=ends is not None))
        return Sent(data, request)

    # -- what the server sends ------------------------------------------------------------------------------------

    def answered(self, data: bytes) -> Iterator[Answered]:
        """In pieces that end where an answer does."""
        self._from_server += data
        piece = list[bytes]()
        for message in _messages(self._from_server):
            kind = message[0]
            piece.append(message)
            self._takes_rows = kind == COPY_IN or (self._takes_rows and kind != ERROR)
            self._failed = self._failed and kind != READY
            ends, unread = self._ends(kind), self._unread() if kind == ERROR else 0
            if kind == READY and not self._waits:
                self._in_block = message[5:] != IDLE
            if ends:
                yield Answered(b"".join(piece), whole=True, unread=unread)
                piece.clear()
        if piece:
            yield Answered(b"".join(piece))

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

    def _unread(self) -> int:
        """How many requests an error leaves behind it that the server does not do: those up to the next Sync."""
        unread = self._waits.index(None) if None in self._waits else len(self._waits)
        del self._waits[:unread]
        if not self._waits:
            self._failed, self._in_block, self._uncommitted = True, False, False
        return unread


def _messages(buffer: bytearray) -> Iterator[bytes]:
    """The whole messages, which leave the buffer once all are read: a type in one byte, a length in four, which count
    themselves."""
    data, start = bytes(buffer), 0
    while (length := length_at(data, start + 1, NAME)) is not None and len(data) >= start + 1 + length:
        yield data[start : start + 1 + length]
        start += 1 + length
    del buffer[:start]


def _text(body: bytes) -> str:
    return body.rstrip(b"\0").decode("utf-8", "replace")


def _statements(texts: list[str]) -> list[tuple[str, bool]]:
    return [statement for text in texts for statement in statements(text)]


def _request(texts: list[str], found: list[tuple[str, bool]]) -> Request:
    """``kind`` has every kind of statement once, in their order: BEGIN+INSERT+COMMIT."""
    kinds = "+".join(dict.fromkeys(kind for kind, _ in found))
    text = "; ".join(dict.fromkeys(" ".join(text.split()) for text in texts))
    return Request(kinds or "SYNC", text[:SHOWN], any(changes for _, changes in found))


def _opens_a_block(request: Request) -> bool:
    kinds = request.kind.split("+")
    return kinds[0] in BEGINNING and not ENDING & {*kinds}


def _failing(data: bytes, begins: str, error: str, *, flushed: bool) -> Instead:
    """What makes the server answer with this error, in the place of a request. A transaction block has failed then, and
    its COMMIT rolls back, also one that the request ``begins``. One that is ``flushed`` leaves its Sync to come. Raises
    ValueError for an error that it cannot be."""
    statement = FAILING.format(ERRORS[error])
    if flushed:
        return Instead(_packet(PARSE, "", statement, rest=NONE) + BOUND + _packet(FLUSH))
    if data[0] != COPY_DONE:
        return Instead(_packet(QUERY, begins + statement))
    if error != CANCELED:
        raise ValueError(f"the end of a COPY fails by {CANCELED} only")
    return Instead(_packet(COPY_FAIL, INJECTED) + data[len(_packet(COPY_DONE)) :])


def _packet(kind: int, *texts: str, rest: bytes = b"") -> bytes:
    body = b"".join(text.encode() + b"\0" for text in texts) + rest
    return bytes([kind]) + struct.pack("!i", 4 + len(body)) + body


NONE = b"\0\0"
"""No parameters, no formats."""
BOUND = _packet(BIND, "", "", rest=NONE * 3) + _packet(EXECUTE, "", rest=NONE * 2)
"""The unnamed statement, as the unnamed portal, whose rows are all asked for."""


PROTOCOL = Protocol(
    lambda route: _Session(),
    kinds=("INSERT", "COPY", "COMMIT", "PREPARE TRANSACTION", "COMMIT PREPARED"),
    in_capitals=True,
    refuses_any=True,
    errors=tuple(ERRORS),
    refusals={"before": (CANCELED, SERIALIZATION)},
    only_refused_by={"COPY": (CANCELED,)},
    sessions=True,
)
