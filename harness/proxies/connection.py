"""One connection through a proxy: requests are passed on one by one, and stopped before they go out and once they are
answered."""

from __future__ import annotations

import select
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Literal

from ...faults.protocols import Answered, Conversation, Request, Sent

READ = 256 * 1024
"""Bytes that are read at once."""

QUEUED = 4 * 1024 * 1024
"""Bytes of a client's that wait to be sent, beyond which nothing more is read from it."""

Stop = Callable[[Literal["before", "after"], Request], bool]
"""Reports a request and waits; False if nothing more may pass."""


class Connection:
    """Passes on what ``client`` and ``server`` send to each other, until one of them has ended or ``stop`` says so.

    ``gone``: whether the client's process is dead, not only its end of the connection closed. While a request, or its
    answer, is stopped, nothing passes in either direction.
    """

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        conversation: Conversation,
        stop: Stop,
        gone: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client = client
        self._server = server
        self._conversation = conversation
        self._stop = stop
        self._gone = gone
        self._waiting: deque[Sent] = deque()
        self._pending: Request | None = None
        self._answer = bytearray()
        self._open_ended = False

    def serve(self) -> None:
        """Until the end; the sockets are the caller's to close. Raises ValueError for what is not of the protocol."""
        with suppress(OSError):
            while self._pass_some():
                pass

    def _pass_some(self) -> bool:
        full = sum(len(piece.data) for piece in self._waiting) > QUEUED
        readable = _readable([self._server] if full else [self._client, self._server])
        if self._client in readable:
            data = self._client.recv(READ)
            if not data:
                return False
            self._waiting.extend(self._conversation.sent(data))
        if self._server in readable:
            data = self._server.recv(READ)
            if not data:
                self._end_of_answer()
                return False
            if not all(self._answered(piece) for piece in self._conversation.answered(data)):
                return False
        return self._send()

    def _send(self) -> bool:
        """Pass on what waits, up to the next request that has no answer yet."""
        while self._waiting and (self._pending is None or self._waiting[0].request is None):
            piece = self._waiting.popleft()
            if piece.reply:
                self._client.sendall(piece.reply)
            if piece.request is not None:
                if piece.request.changes and not self._may_pass("before", piece.request, piece.answered):
                    return False
                self._pending = piece.request if piece.answered else None
            self._server.sendall(piece.data)
        return True

    def _answered(self, piece: Answered) -> bool:
        request = self._pending
        if request is None or not request.changes:
            self._client.sendall(piece.data)
        else:
            self._answer += piece.data
            self._open_ended = piece.open_ended
        if piece.whole and request is not None:
            if request.changes and not self._may_pass("after", request):
                return False
            self._client.sendall(self._answer)
            self._answer.clear()
            self._pending = None
        return True

    def _end_of_answer(self) -> None:
        """Of an answer that the connection's end ends, what has come is all of it."""
        request = self._pending
        if self._open_ended and request is not None and self._may_pass("after", request):
            self._client.sendall(self._answer)

    def _may_pass(self, edge: Literal["before", "after"], request: Request, answered: bool = True) -> bool:
        """A request whose client has ended meanwhile is discarded; who waits for no answer may have sent all and closed
        its end."""
        return self._stop(edge, request) and not (has_ended(self._client) and (answered or self._gone()))


def _readable(peers: Sequence[socket.socket]) -> list[socket.socket]:
    """Those of ``peers`` that have sent something, or have ended; waits for the first. By poll, since select knows no
    more than 1024 files."""
    poll = select.poll()
    for peer in peers:
        poll.register(peer, select.POLLIN)
    found = {number for number, _ in poll.poll()}
    return [peer for peer in peers if peer.fileno() in found]


def has_ended(peer: socket.socket) -> bool:
    """Whether the other side has closed the connection, even if there is something left to read."""
    poll = select.poll()
    poll.register(peer, select.POLLRDHUP)
    return bool(poll.poll(0))
