"""What a plan does to connections that pass a proxy, besides stopping requests: they are impaired, or reset."""

from __future__ import annotations

import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from ...faults.capabilities import Impairment
from ..runtime.waiting import WaitTimeout, wait_for
from .peers import RST_ON_CLOSE, LinkCut, Peer

CLOSED_SECONDS = 2.0
"""How long a connection that was reset may take to be closed."""

SLICES = 10
"""Into how many pieces a second's worth of data is cut where little passes."""


@dataclass(eq=False)
class InForce:
    """An impairment from its beginning to its end, and what it has done by now.

    ``affected`` counts the pieces of data, and the ends of connections, that were kept, cut off or lost.
    """

    impairment: Impairment
    over: threading.Event = field(default_factory=threading.Event)
    affected: int = 0
    _passed: Counter[Link] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pass_on(self, link: Link, data: bytes, send: Callable[[bytes], None]) -> None:
        """``send`` what passes of the data, when it passes. Raises LinkCut."""
        kind = self.impairment
        if kind.refused:
            self.cut()
        if kind.silent:
            self._note()
            self.over.wait()
            raise LinkCut
        if kind.latency or kind.jitter:
            self._keep(kind.latency + random.uniform(-kind.jitter, kind.jitter))
        if kind.rate:
            data = self._trickle(data, kind.rate, send)
        allowed = self._allowed(link, len(data))
        send(data[:allowed])
        if allowed < len(data):
            self.cut()

    def cut(self) -> None:
        """Nothing more passes. Raises LinkCut."""
        self._note()
        raise LinkCut

    def linger(self) -> None:
        """Return when the other side may learn that a connection was closed."""
        if self.impairment.linger:
            self._keep(self.impairment.linger)

    def _trickle(self, data: bytes, rate: int, send: Callable[[bytes], None]) -> bytes:
        """Send slice by slice; returns what is left when the impairment is over."""
        size = max(1, rate // SLICES)
        while data and not self.over.is_set():
            self._keep(len(data[:size]) / rate)
            send(data[:size])
            data = data[size:]
        return data

    def _allowed(self, link: Link, size: int) -> int:
        if self.impairment.limit is None or self.over.is_set():
            return size
        with self._lock:
            left = self.impairment.limit - self._passed[link]
            self._passed[link] += size
        return max(0, min(size, left))

    def _keep(self, seconds: float) -> None:
        if not self.over.is_set():
            self._note()
            self.over.wait(seconds)

    def _note(self) -> None:
        with self._lock:
            self.affected += 1


class Links:
    """The connections through one proxy."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: set[Link] = set()
        self._in_force: tuple[InForce, ...] = ()

    @property
    def in_force(self) -> tuple[InForce, ...]:
        return self._in_force

    def impair(self, impairment: Impairment) -> InForce:
        """From now on, until :meth:`restore`."""
        begun = InForce(impairment)
        with self._lock:
            self._in_force += (begun,)
        if impairment.refused:
            begun.affected += self.reset()
        return begun

    def restore(self, ended: InForce) -> None:
        """What is kept passes at once."""
        with self._lock:
            self._in_force = tuple(one for one in self._in_force if one is not ended)
        ended.over.set()

    def admit(self, client: socket.socket) -> None:
        """A connection that comes may go on to its service. Raises LinkCut where none can, once it will get a RST."""
        for one in self.in_force:
            if one.impairment.refused:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RST_ON_CLOSE)
                one.cut()

    def reset(self) -> int:
        """End what is open; returns how many connections that were, once they are closed: all but those of which the
        plan stops a request, which are when it is let go."""
        with self._lock:
            found = list(self._open)
        for link in found:
            link.reset()
        with suppress(WaitTimeout):
            wait_for(
                lambda: all(one.over.is_set() or one.stopped for one in found), CLOSED_SECONDS, "closed connections"
            )
        return len(found)

    def add(self, link: Link) -> None:
        with self._lock:
            self._open.add(link)

    def remove(self, link: Link) -> None:
        with self._lock:
            self._open.discard(link)


@dataclass(eq=False)
class Link:
    """One connection: its two sides, among ``links``. ``on_its_way``: told with True when data for the service is
    kept, with False when it has been sent. ``over``: set once both sides are closed; ``stopped``: while the plan stops
    a request of it."""

    client: Peer
    server: Peer
    links: Links
    on_its_way: Callable[[bool], None] = field(default=lambda kept: None)
    over: threading.Event = field(default_factory=threading.Event)
    stopped: bool = False

    @property
    def _was_reset(self) -> bool:
        return self.client.was_reset

    def __enter__(self) -> Link:
        self.links.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.links.remove(self)
        for one in () if self._was_reset else self.links.in_force:
            one.linger()

    def pass_on(self, receiver: Peer, data: bytes) -> None:
        """Send it to one of the two. Raises LinkCut where the plan ends the connection, OSError where it has ended."""
        if self._was_reset:
            raise LinkCut
        impaired = self.links.in_force
        if not impaired:
            receiver.send(data)
            return
        kept = receiver is self.server
        if kept:
            self.on_its_way(True)
        self._through(impaired, data, receiver.send)
        if kept:
            self.on_its_way(False)

    def pass_end(self, receiver: Peer) -> None:
        """Tell one of the two that the other one sends nothing more. Raises LinkCut where the plan ends the connection,
        OSError where it has ended."""
        impaired = self.links.in_force
        for one in impaired:
            one.linger()
        self._through(impaired, b"", lambda _: receiver.end())

    def reset(self) -> None:
        """Both sides get a RST, once the thread that serves the connection sees that there is nothing more to read."""
        with suppress(OSError):
            for peer in (self.client, self.server):
                peer.reset_on_close()
            for peer in (self.client, self.server):
                peer.connection.shutdown(socket.SHUT_RD)

    def _through(self, impaired: tuple[InForce, ...], data: bytes, send: Callable[[bytes], None]) -> None:
        """What the first lets pass goes to the next one."""
        if not impaired:
            send(data)
            return
        first, *others = impaired
        first.pass_on(self, data, lambda piece: self._through(tuple(others), piece, send))
