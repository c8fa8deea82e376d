"""Which brokers a plan means that does not mean the parked one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ...assertions import Open
from ...faults.capabilities import Which
from ..environments.base import EffectError, Environment
from ..kafka_cluster import controller, group_coordinator
from ..kafka_topics import partition_copies, partition_leader, topics_like
from ..kafka_transactions import ORPHAN, transaction_coordinator
from ..runtime.waiting import WaitTimeout, wait_for

Report = Mapping[str, Any]

WILDCARDS = "*?["

PATIENCE = 5.0
"""Seconds for a coordinator to be found: while partitions change their leaders there may be none."""


@dataclass(frozen=True)
class Brokers:
    """Those of a trial's environment. ``source`` is its source topic, ``opened`` asks which transactions are open.
    Names of a trial's own topics begin with ``prefix``."""

    environment: Environment
    source: str
    prefix: str
    opened: Callable[[], Sequence[Open]]

    def find(self, which: Which, point: Report) -> list[int]:
        """Their ids. Raises EffectError if there is none, ObservationError if nobody says which it is."""
        known = self.environment.brokers()
        match which.role:
            case "all":
                return known
            case "controller":
                return [controller(self._bootstrap)]
            case "leader":
                return [partition_leader(self._bootstrap, *self._partition(which, point))]
            case "followers":
                return self._followers(*self._partition(which, point))
            case "group_coordinator":
                return [group_coordinator(self._bootstrap, str(which.of or point["group"]))]
            case "coordinator":
                return [self._coordinator(which, point)]
        number = int(which.role.removeprefix("broker"))
        if number not in known:
            raise EffectError(f"there is no {which}: there are {len(known)} brokers")
        return [number]

    def _partition(self, which: Which, point: Report) -> tuple[str, int]:
        """The one that is named, of whose topic the name may have wildcards; the point's; the source's first."""
        if which.of is None:
            return str(point.get("topic", self.source)), int(point.get("kafka_partition", 0))
        topic, _, number = which.of.rpartition("-")
        if not _has_wildcards(topic):
            return topic, int(number)
        found = topics_like(self._bootstrap, topic, self.prefix)
        if len(found) != 1:
            raise EffectError(f"{topic} means {' and '.join(found) or 'no topic'} of the trial: name one")
        return found[0], int(number)

    def _followers(self, topic: str, partition: int) -> list[int]:
        leader = partition_leader(self._bootstrap, topic, partition)
        found = [one for one in partition_copies(self._bootstrap, topic, partition) if one != leader]
        if not found:
            raise EffectError(f"{topic}-{partition} has no followers: broker {leader} has the only copy")
        return found

    def _coordinator(self, which: Which, point: Report) -> int:
        """Of the transaction that is named, or the point's; else of the first that is open, and is named so."""
        name = str(which.of or point.get("transactional_id") or "*")
        try:
            return wait_for(lambda: self._coordinating(name), PATIENCE, "a coordinator", poll=0.1)
        except WaitTimeout:
            if not _has_wildcards(name):
                raise EffectError(f"transaction {name} has no coordinator at the moment") from None
            named = f" that is called {which.of}" if which.of else ""
            raise EffectError(f"no transaction is open{named}, or none has a coordinator") from None

    def _coordinating(self, name: str) -> int | None:
        """Of the transaction, or of the first that is open and is named so. One that began while it was asked which are
        open may be known to its partition's leader only."""
        names = [name]
        if _has_wildcards(name):
            known = (one.name for one in self.opened() if not one.name.startswith(ORPHAN))
            names = [one for one in known if fnmatchcase(one, name)]
        return transaction_coordinator(self._bootstrap, names[0]) if names else None

    @property
    def _bootstrap(self) -> str:
        return str(self.environment.addresses("harness").kafka)


def _has_wildcards(name: str) -> bool:
    return any(wildcard in name for wildcard in WILDCARDS)
