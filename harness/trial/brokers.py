"""Which brokers a plan means that does not mean the parked one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...assertions import Open
from ..environments.base import EffectError, Environment
from ..kafka_cluster import controller, group_coordinator
from ..kafka_topics import partition_leader
from ..kafka_transactions import transaction_coordinator

Report = Mapping[str, Any]


@dataclass(frozen=True)
class Brokers:
    """Those of a trial's environment. ``source`` is its source topic, ``opened`` asks which transactions are open."""

    environment: Environment
    source: str
    opened: Callable[[], Sequence[Open]]

    def find(self, which: str, point: Report) -> list[int]:
        """Their ids. Raises EffectError if there is none, ObservationError if nobody says which it is."""
        known = self.environment.brokers()
        match which:
            case "all":
                return known
            case "controller":
                return [controller(self._bootstrap)]
            case "leader":
                topic, partition = str(point.get("topic", self.source)), int(point.get("kafka_partition", 0))
                return [partition_leader(self._bootstrap, topic, partition)]
            case "group_coordinator":
                return [group_coordinator(self._bootstrap, str(point["group"]))]
            case "coordinator":
                return [self._coordinator(point)]
        number = int(which.removeprefix("broker"))
        if number not in known:
            raise EffectError(f"there is no {which}: there are {len(known)} brokers")
        return [number]

    def _coordinator(self, point: Report) -> int:
        """Of the point's transaction; else of the first that is open."""
        names = [str(point["transactional_id"])] if "transactional_id" in point else [one.name for one in self.opened()]
        if not names:
            raise EffectError("no transaction is open: none has a coordinator")
        found = transaction_coordinator(self._bootstrap, names[0])
        if found is None:
            raise EffectError(f"transaction {names[0]} has no coordinator at the moment")
        return found

    @property
    def _bootstrap(self) -> str:
        return str(self.environment.addresses("harness").kafka)
