"""The process of this machine that opened a connection, by its port."""

from __future__ import annotations

from typing import Any

import psutil

from ....faults.protocols import Address
from ...runtime import processes
from ..base import Client
from ..clients import client
from .driver import PLACE


def client_of(peer: Address, port: int) -> Client | None:
    """The process whose socket is bound to ``peer`` and connected to ``port``.

    None if it has ended meanwhile, or is no process of a job's.
    """
    for connection in psutil.net_connections("tcp"):
        if connection.pid and connection.raddr and connection.raddr.port == port and _address(connection.laddr) == peer:
            return _client(connection.pid)
    return None


def _address(local: Any) -> Address:
    """Of IPv4, also where it is written as one of IPv6, as a JVM's sockets are."""
    return str(local.ip).removeprefix("::ffff:"), int(local.port)


def _client(pid: int) -> Client | None:
    row = processes.look(pid)
    if row is None:
        return None
    variables = processes.environment(pid)
    place, command = variables.get("ONCEPROOF_PLACE", PLACE), processes.command(pid)
    return client(place, pid, variables, command, lambda: not processes.lives(row.identity))
