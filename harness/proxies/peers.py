"""The two sides of a connection that passes a proxy: what is sent to each, and read from it."""

from __future__ import annotations

import select
import socket
import struct
from collections import deque
from collections.abc import Sequence

READ = 256 * 1024
"""Bytes that are read at once."""

RST_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER with no time to linger: see socket(7)."""


class LinkCut(ConnectionError):
    """The connection ends here, by the plan."""


class Peer:
    """The side at the other end of ``connection``.

    While it takes nothing of what is sent to it, what it sends itself is read and kept: it may be waiting for that.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.was_reset = False
        self._kept: deque[bytes] = deque()

    def fileno(self) -> int:
        return self.connection.fileno()

    @property
    def has_kept(self) -> bool:
        return bool(self._kept)

    def receive(self) -> bytes:
        """What it has sent, as soon as there is something; nothing at its end. Raises OSError."""
        return self._kept.popleft() if self._kept else self.connection.recv(READ)

    def send(self, data: bytes) -> None:
        """All of it, as soon as it is taken. Raises LinkCut where the plan has reset the connection, else OSError."""
        left = memoryview(data)
        while left:
            self._check()
            left = left[self._take(left) :]

    def end(self) -> None:
        """Nothing more will be sent to it. Raises as :meth:`send` does."""
        self._check()
        self.connection.shutdown(socket.SHUT_WR)

    def reset_on_close(self) -> None:
        """From now on nothing is sent to it, and it will get a RST."""
        self.was_reset = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)

    def _check(self) -> None:
        if self.was_reset:
            raise LinkCut

    def _take(self, data: memoryview) -> int:
        """How many bytes it takes now; none where it had to be waited for."""
        try:
            return self.connection.send(data, socket.MSG_DONTWAIT)
        except BlockingIOError:
            self._wait()
            return 0

    def _wait(self) -> None:
        """Until it takes something, or sends something, or its end."""
        ended = bool(self._kept) and not self._kept[-1]
        poll = select.poll()
        poll.register(self.connection, select.POLLOUT if ended else select.POLLOUT | select.POLLIN)
        [(_, events)] = poll.poll()
        if events & select.POLLIN:
            self._kept.append(self.connection.recv(READ))


def readable(peers: Sequence[Peer]) -> list[Peer]:
    """Those of ``peers`` that have sent something, or have ended; waits for the first. By poll, since select knows no
    more than 1024 files."""
    poll = select.poll()
    for peer in peers:
        poll.register(peer, select.POLLIN)
    at_once = any(peer.has_kept for peer in peers)
    found = {number for number, _ in poll.poll(0 if at_once else None)}
    return [peer for peer in peers if peer.has_kept or peer.fileno() in found]


def has_ended(peer: socket.socket | Peer) -> bool:
    """Whether the other side has closed the connection, even if there is something left to read."""
    poll = select.poll()
    poll.register(peer, select.POLLRDHUP)
    return bool(poll.poll(0))
