"""What the injector asks of the running system. The harness implements it for its environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Report = Mapping[str, Any]
"""A reported point: the fields of the journal's ``point`` event."""


class Actuator(Protocol):
    """Effects on processes; each returns what was done in a few words once it is confirmed, and raises if it failed.

    ``target`` is ``driver``, ``executor``, ``worker``, ``node`` or ``broker``. ``point`` is the report at which a
    thread is parked; it is empty at a moment (``at(3s)``), where nothing is parked.
    """

    def kill(self, target: str, point: Report) -> str:
        """SIGKILL; returns when the death is confirmed."""

    def pause(self, target: str, point: Report, *, replace: bool = False) -> str:
        """SIGSTOP. With ``replace`` the cluster takes the process for dead and starts another one in its place."""

    def resume(self, target: str, point: Report) -> str:
        """SIGCONT."""

    def partition(self, target: str, point: Report, peer: str | None, seconds: float) -> str:
        """Cut the network between the machine of ``target`` and ``peer`` (None: every other machine), both ways.

        Returns once nothing passes; after ``seconds`` the network is healed without being asked.
        """
