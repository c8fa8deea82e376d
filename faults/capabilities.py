"""What an action can do: to machines and their processes, to the network, to the query's checkpoint, and to the thread
that is stopped.

The harness implements :class:`Machines`, :class:`Network` and :class:`Checkpoint`; the injector has the thread. Each
effect returns what was done in a few words once it is confirmed, and raises if it failed.

``target`` is ``driver``, ``executor``, ``worker``, ``node``, ``broker``, or the service whose server is meant
(``postgres``, ``redis``). ``point`` is the report at which a thread is stopped; it is empty at a moment (``at(3s)``),
where nothing is stopped. ``which`` broker or executor is meant, if not the parked one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..plans import ActionReference

Report = Mapping[str, Any]
"""A reported point: the fields of the journal's ``point`` event."""


class InjectionError(Exception):
    """An action could not be carried out: the trial is inconclusive."""


FOLLOWERS = "followers"


@dataclass(frozen=True)
class Which:
    """A broker, or some, by number (``broker1`` to ``broker3``) or by what they are just then: ``controller``,
    ``coordinator``, ``group_coordinator``, ``leader``, ``followers``, or ``all``. ``of``: the transactional id, group
    or ``TOPIC-PARTITION`` to which they are that; None for what the point names."""

    role: str
    of: str | None = None

    def __str__(self) -> str:
        return self.role if self.of is None else f"{self.role}({self.of})"


@dataclass(frozen=True)
class Nth:
    """An executor by its place among those that the job has just then, in the order of Spark's ids, from 0."""

    number: int

    def __str__(self) -> str:
        return f"executor[{self.number}]"


Meant = Which | Nth
"""Brokers or an executor that an action names."""


class Machines(Protocol):
    """Processes, and the machines on which they run. What ends is started again by its supervisor ``restart_after``
    seconds after its death."""

    def kill(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference | None = None,
        restart_after: float = 0.0,
        which: Meant | None = None,
    ) -> str:
        """SIGKILL, by this action of the plan: of a driver that an action of the same fault has stopped, if there is
        one. Returns when the death is confirmed."""

    def cut_power(self, target: str, point: Report, *, restart_after: float = 0.0, names_kept: bool = False) -> str:
        """The same, and what Python processes of the target's machine did to files and did not sync is gone; with
        ``names_kept`` what they wrote to them only."""

    def terminate(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference,
        restart_after: float = 0.0,
        which: Meant | None = None,
    ) -> str:
        """SIGTERM to the target's main process, as a cluster's manager does; :meth:`await_death` confirms."""

    def await_death(self, target: str, seconds: float, *, by: ActionReference) -> str:
        """Returns when no process of what :meth:`terminate` asked to end runs any more: what still does after so many
        ``seconds`` is killed."""

    def pause(
        self,
        target: str,
        point: Report,
        *,
        by: ActionReference,
        replace: bool = False,
        which: Meant | None = None,
    ) -> str:
        """SIGSTOP, by this action of the plan. With ``replace`` the cluster takes the process for dead and starts
        another one in its place."""

    def resume(self, target: str, point: Report, *, paused_by: ActionReference | None = None) -> str:
        """SIGCONT: to what the action ``paused_by`` has stopped, without one to what was stopped last."""


@dataclass(frozen=True)
class Impairment:
    """What connections to a service suffer for a time; a part that is left out is as without it.

    Each piece of data arrives ``latency`` seconds later, give or take up to ``jitter``. ``rate``: so many bytes pass in
    a second, each way of each connection. ``limit``: so many bytes pass over each connection, both ways together,
    then it is cut. ``linger``: for so many seconds one side is not told that the other has closed the connection.
    ``silent``: nothing passes, and what would have is lost: at the end its connection is cut. ``refused``: what is open
    is reset, and what is opened is, too.
    """

    latency: float = 0.0
    jitter: float = 0.0
    rate: int | None = None
    limit: int | None = None
    linger: float = 0.0
    silent: bool = False
    refused: bool = False


class Network(Protocol):
    """The network between machines, and the job's connections to the services of its targets, which pass a proxy.
    ``service`` None: those to all of them."""

    def cut(self, target: str, point: Report, peer: str | None, seconds: float, *, which: Meant | None = None) -> str:
        """Cut the network between the machine of ``target`` and ``peer`` (None: every other machine), both ways.

        Returns once nothing passes; after ``seconds`` the network is healed without being asked.
        """

    def impair(self, service: str | None, impairment: Impairment, seconds: float, *, by: ActionReference) -> str:
        """Impair the connections to a service, those that are opened meanwhile included, by this action of the plan."""

    def reset(self, service: str | None) -> str:
        """End the connections that there are with a reset (RST), on both sides. Raises where there is none."""


class Checkpoint(Protocol):
    """The checkpoint of the job's query. ``part`` is metadata, offsets, commits or state, of which the newest file is
    meant, or checkpoint: all of it. Each raises where there is nothing to change."""

    def remove(self, part: str) -> str:
        """The file is gone."""

    def truncate(self, part: str) -> str:
        """Its first half is left."""

    def corrupt(self, part: str) -> str:
        """Its second half is zeros."""

    def roll_back(self, part: str, batch: int) -> str:
        """The checkpoint, or its state, is what it was when this batch was committed."""

    def copy(self) -> str:
        """All of it lies at another place as well, where the drivers that follow find it."""


class Source(Protocol):
    """What the job reads."""

    def repartition(self, partitions: int) -> str:
        """The drivers that follow read it in at least so many partitions, and have so many by default."""


class Queries(Protocol):
    """Queries beside the trial's."""

    def start(self, point: Report) -> str:
        """A second query, of the same job and sink, with a checkpoint and targets of its own, has committed a batch,
        has ended, or has been waited for. The driver of the point stood still meanwhile."""


class Actuator(Machines, Network, Protocol):
    """All that the harness can do to the running system."""

    @property
    def checkpoint(self) -> Checkpoint: ...

    @property
    def source(self) -> Source: ...

    @property
    def queries(self) -> Queries: ...


class Thread(Protocol):
    """The thread that is stopped at the point."""

    def keep(self, seconds: float) -> None:
        """Returns after ``seconds``; the thread stays stopped. Raises InjectionError if the trial ends before."""

    def fail(self, order: Mapping[str, Any] | None = None) -> None:
        """The thread will raise when it is let go: what ``order`` says (Python), or a RuntimeException (JVM)."""

    def drop(self) -> None:
        """The connection that is stopped will be cut instead of going on."""

    def answer_with(self, error: str) -> None:
        """The client whose connection is stopped will get the answer that its request failed with ``error``."""


@dataclass(frozen=True)
class Scene:
    """Where an action is done, and ``reference``: which of the plan's it is. ``restart_after``: in seconds, what the
    fault says of the target's restart."""

    point: Report
    thread: Thread
    reference: ActionReference
    actuator: Actuator | None = None
    restart_after: float = 0.0

    @property
    def machines(self) -> Machines:
        return self._actuator()

    @property
    def network(self) -> Network:
        return self._actuator()

    @property
    def checkpoint(self) -> Checkpoint:
        return self._actuator().checkpoint

    @property
    def source(self) -> Source:
        return self._actuator().source

    @property
    def queries(self) -> Queries:
        return self._actuator().queries

    def _actuator(self) -> Actuator:
        if self.actuator is None:
            raise InjectionError("no actuator: there is nothing to act on")
        return self.actuator
