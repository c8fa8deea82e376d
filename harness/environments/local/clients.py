"""The process of this machine that opened a connection, by its port."""

from __future__ import annotations

from ....faults.protocols import Address
from ...runtime import connections, processes
from ..base import Client
from ..clients import client
from .driver import PLACE


def client_of(peer: Address, port: int) -> Client | None:
    """The process whose socket is bound to ``peer`` and connected to ``port``.

    None if it has ended meanwhile, or is no process of a job's.
    """
    address, own_port = peer
    pid = connections.owner(own_port, port, address)
    return None if pid is None else _client(pid)


def _client(pid: int) -> Client | None:
    row = processes.look(pid)
    if row is None:
        return None
    variables = processes.environment(pid)
    place, command = variables.get("ONCEPROOF_PLACE", PLACE), processes.command(pid)
    return client(place, pid, variables, command, lambda: not processes.lives(row.identity))
