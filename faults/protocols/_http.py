"""HTTP/1.1 (RFC 9112): a request with its body, and the answer with its own. h11 says where they end.

A client that waits to be told that it may send the body (100-continue, RFC 9110, 10.1.1) is told so at once, since
nothing goes out before the request is whole. An answer without a length ends with its connection.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus

import h11

from ._declaration import Answered, Request, Sent

HARMLESS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
"""Safe methods, RFC 9110, 9.2.1."""
LOOKUPS = ("GET", "HEAD")
CHANGING = ("POST", "PUT", "PATCH", "DELETE")

GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"
SHOWN = 200
"""Characters of a request that are told."""
ERRORS = (
    "UNAUTHORIZED", "FORBIDDEN", "TOO_MANY_REQUESTS", "INTERNAL_SERVER_ERROR", "BAD_GATEWAY", "SERVICE_UNAVAILABLE",
    "GATEWAY_TIMEOUT",
)  # fmt: skip
"""RFC 9110, 15.5 and 15.6, and RFC 6585, 4, by their names in http.HTTPStatus."""
OF_GATEWAYS = frozenset({"BAD_GATEWAY", "SERVICE_UNAVAILABLE", "GATEWAY_TIMEOUT"})
"""Those that come from something in front of the service as well, and then without a document."""
LENGTHS = frozenset({b"content-length", b"transfer-encoding"})
LARGEST_HEAD = 1024 * 1024
"""Bytes."""


@dataclass
class _Message:
    """A request or an answer, as far as it has come: read by h11 in the place of the ``peer`` that it is for."""

    peer: h11.Connection
    data: bytearray = field(default_factory=bytearray)
    head: h11.Request | h11.Response | None = None
    whole: bool = False
    goes_on: bool = False
    """whether its sender was told to go on with the body"""

    def read(self, data: bytes) -> bytes:
        """What is not of this message any more. Raises ValueError for what is not of HTTP."""
        try:
            self.peer.receive_data(data)
            while not self.whole:
                event = self.peer.next_event()
                if event is h11.NEED_DATA:
                    break
                self.head = event if isinstance(event, h11.Request | h11.Response) else self.head
                self.whole = isinstance(event, h11.EndOfMessage) or event is h11.PAUSED
        except h11.RemoteProtocolError as error:
            raise ValueError(f"{bytes(data[:20])!r} is not of HTTP: {error}") from error
        rest = self.peer.trailing_data[0] if self.whole else b""
        self.data += data[: len(data) - len(rest)]
        return rest

    @property
    def open_ended(self) -> bool:
        """Whether it ends with its connection: it has begun, and says nothing of its length."""
        lengths = {name for name, _ in self.head.headers} & LENGTHS if self.head else LENGTHS
        return not self.whole and not lengths

    @property
    def has_to_be_told(self) -> bool:
        return self.peer.they_are_waiting_for_100_continue and not self.goes_on


def _connection(role: type[h11.CLIENT] | type[h11.SERVER]) -> h11.Connection:
    return h11.Connection(role, max_incomplete_event_size=LARGEST_HEAD)


def _refusal(method: str, error: str) -> bytes:
    """With a document where the service itself says it; to HEAD without its body (RFC 9110, 9.3.2)."""
    status = HTTPStatus[error]
    body = b"" if error in OF_GATEWAYS else json.dumps({"error": status.phrase, "status": status.value}).encode()
    about = "Content-Type: application/json\r\n" if body else ""
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n{about}Content-Length: {len(body)}\r\n\r\n".encode()
    return head if method == "HEAD" else head + body


class Http:
    """Behind a switch to another protocol (a WebSocket, CONNECT) everything passes at once; nothing is a request."""

    def __init__(self) -> None:
        self._request = _Message(_connection(h11.SERVER))
        self._answer: _Message | None = None
        self._asked = deque[h11.Request]()
        self._switched = False

    def sent(self, data: bytes) -> Iterator[Sent]:
        while data and not self._switched:
            data = self._request.read(data)
            if self._request.whole:
                yield self._requested()
            elif self._request.has_to_be_told:
                self._request.goes_on = True
                yield Sent(b"", reply=GO_ON)
        if data:
            yield Sent(data)

    def _requested(self) -> Sent:
        message, self._request = self._request, _Message(_connection(h11.SERVER))
        assert isinstance(message.head, h11.Request)
        self._asked.append(message.head)
        method, target = message.head.method.decode("ascii"), message.head.target.decode("ascii", "replace")
        changes, text = method not in HARMLESS, f"{method} {target}"[:SHOWN]
        refused = partial(_refusal, method)
        return Sent(bytes(message.data), Request(method, text, changes, refused, looks_up=method in LOOKUPS))

    def answered(self, data: bytes) -> Iterator[Answered]:
        while data and not self._switched:
            if self._answer is None and not self._asked:  # 408, before the service ends an idle connection
                break
            if self._answer is None:
                self._answer = _Message(self._reader())
            before = len(self._answer.data)
            data = self._answer.read(data)
            yield Answered(bytes(self._answer.data[before:]), self._answer.whole, self._answer.open_ended)
            if self._answer.whole:
                self._switched = self._answer.peer.their_state is h11.SWITCHED_PROTOCOL
                self._answer = None
        if data:
            yield Answered(data)

    def _reader(self) -> h11.Connection:
        """What reads the answer to the oldest request, which decides whether it has a body. Of HTTP/1.0 that names no
        host, which h11 does not send without."""
        request, reader = self._asked.popleft(), _connection(h11.CLIENT)
        names = {name for name, _ in request.headers}
        headers = [*request.headers, *([] if b"host" in names else [(b"host", b"")])]
        reader.send(h11.Request(method=request.method, target=request.target, headers=headers))
        if not names & LENGTHS:
            reader.send(h11.EndOfMessage())  # only then it may be one to switch
        return reader
