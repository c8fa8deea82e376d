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
from ..kafka_transactions import transaction_coordinator

Report = Mapping[str, Any]

WILDCARDS = "*?["


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
        name = which.of or point.get("transactional_id")
        if name is None or _has_wildcards(str(name)):
            name = next((one.name for one in self.opened() if fnmatchcase(one.name, str(name or "*"))), None)
        if name is None:
            raise EffectError(f"no transaction is open{f' that is called {which.of}' if which.of else ''}")
        found = transaction_coordinator(self._bootstrap, str(name))
        if found is None:
            raise EffectError(f"transaction {name} has no coordinator at the moment")
        return found

    @property
    def _bootstrap(self) -> str:
        return str(self.environment.addresses("harness").kafka)


def _has_wildcards(name: str) -> bool:
    return any(wildcard in name for wildcard in WILDCARDS)
