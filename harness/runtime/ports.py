"""Ports that nobody else takes, for as long as an environment lives.

A port found by bind(0) lies in the ephemeral range: while its server is down, any outgoing connection may get it. Ports
here lie below that range. Each is reserved among harnesses by a name: an abstract unix socket ``onceproof-port-N``
(unix(7)), which is as wide as a port (the network namespace), is seen by every user, leaves no file, and is free again
the moment its holder dies.
"""

from __future__ import annotations

import contextlib
import random
import socket
from collections.abc import Iterator
from pathlib import Path

from ..errors import Unavailable

LOWEST = 20000
EPHEMERAL = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOOPBACK = "127.0.0.1"


class Port:
    """A reserved port; free again after :meth:`release` or the end of this process."""

    def __init__(self, number: int, reservation: socket.socket) -> None:
        self.number = number
        self._reservation = reservation

    def check(self, part: str) -> None:
        """Raises Unavailable if another program listens on the port, or uses it for a connection."""
        if not bindable(self.number):
            raise Unavailable(
                f"{part} cannot start again: port {self.number} of {LOOPBACK} was taken by another program meanwhile"
            )

    def release(self) -> None:
        self._reservation.close()


def reserve(chosen: random.Random | None = None) -> Port:
    """A port between LOWEST and the ephemeral range that can be bound now. Raises Unavailable."""
    for number in _candidates(chosen or random.Random()):
        reservation = _reservation(number)
        if reservation is None:
            continue
        if bindable(number):
            return Port(number, reservation)
        reservation.close()
    raise Unavailable(
        f"no free port from {LOWEST} up to the ephemeral range (net.ipv4.ip_local_port_range = "
        f"{' '.join(EPHEMERAL.read_text().split())}): raise its lower end, or end what uses the ports below"
    )


def bindable(number: int) -> bool:
    """Whether a server could listen on the port: connections of a dead one in TIME_WAIT do not count."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_STREAM)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, number))
            probe.listen(1)
        except OSError:
            return False
        return True


def _candidates(chosen: random.Random) -> Iterator[int]:
    """Every port of the range once, from a random start."""
    highest = int(EPHEMERAL.read_text().split()[0])
    if highest <= LOWEST:
        return
    start = chosen.randrange(LOWEST, highest)
    yield from range(start, highest)
    yield from range(LOWEST, start)


def _reservation(number: int) -> socket.socket | None:
    """The name of this port, or None where another harness holds it."""
    name = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        name.bind(f"\0onceproof-port-{number}")
    except OSError:
        name.close()
        return None
    return name
