"""The process in a container that opened a connection, by its port."""

from __future__ import annotations

from pathlib import Path

from docker.models.containers import Container

from ..base import Client, EffectError
from ..clients import client
from . import containers
from .options import USER


def client_in(container: Container, tools: Path, own_port: int, port: int) -> Client | None:
    """The process whose own port is given, connected to ``port``. None if it has ended meanwhile, or is no process of a
    job's. It is looked for by the job's own user: what another one has open, root cannot see without CAP_SYS_PTRACE.
    Raises EffectError if the container does not answer."""
    start = containers.started_at(container)
    found = containers.inside(container, tools, "client", str(own_port), str(port), user=USER)
    if found is None:
        return None
    identity, variables = found["identity"], found["variables"]

    def gone() -> bool:
        try:
            started = containers.started_at(container)
            return started != start or not containers.inside(container, tools, "lives", identity)
        except EffectError:
            return True

    pid = int(identity.partition(":")[0])
    return client(variables.get("ONCEPROOF_PLACE", ""), pid, variables, found["command"], gone)
