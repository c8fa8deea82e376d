"""What the journal has of a fault and of each of its actions: what the checks of requirements look at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..plans import Action
from ..requirements import Step
from .journal import HandOver, hand_overs, points, runs
from .model import ActionRecord, Event, Evidence, FaultRecord, Open


@dataclass(frozen=True)
class Found:
    """What had to be seen, what was, and if nothing was: what was found instead.

    ``swallowed``: of an error, whether it never got through to the engine; None for all else.
    """

    required: str
    seen: str | None
    instead: str | None = None
    swallowed: bool | None = None


@dataclass(frozen=True)
class Traces:
    """What the journal has of fault number ``number``."""

    number: int
    fault: FaultRecord
    evidence: Evidence
    events: Sequence[tuple[int, Event]] = field(init=False)

    def __post_init__(self) -> None:
        mine = [
            (index, event)
            for index, event in enumerate(self.evidence.journal)
            if str(event["event"]).startswith("fault.") and event.get("fault") == self.number
        ]
        object.__setattr__(self, "events", mine)

    def of(self, kind: str, action: int | None = None) -> list[tuple[int, Event]]:
        """The events of one kind; of the fault's action of this number, or of all."""
        return [
            (index, event)
            for index, event in self.events
            if event["event"] == kind and action in (None, event.get("number"))
        ]

    @property
    def effective(self) -> list[int]:
        """The numbers of the actions with an effect of their own."""
        return [number for number, record in enumerate(self.fault.actions) if record.requirements]

    @property
    def fired(self) -> bool:
        return bool(self.of("fault.fired"))

    @property
    def unconfirmed(self) -> list[str]:
        """The actions that were not confirmed."""
        lacking = [number for number in self.effective if not self.of("fault.confirmed", number)]
        return list(dict.fromkeys(self.fault.actions[number].action.on_target for number in lacking))

    @property
    def error(self) -> str | None:
        failed = self.of("fault.failed")
        return str(failed[0][1].get("error")) if failed else None

    @cached_property
    def point(self) -> Mapping[str, Any]:
        """The report at which the fault was reached; empty for a moment."""
        reached = self.of("fault.reached")
        return (reached[0][1].get("point") if reached else None) or {}

    @property
    def process(self) -> str | None:
        """The process whose thread reached the fault, as far as the journal names it."""
        for kind in ("fault.confirmed", "fault.fired", "fault.reached"):
            for _, event in self.of(kind):
                if event.get("process"):
                    return str(event["process"])
        return self.point.get("process")


@dataclass(frozen=True)
class Struck:
    """One action of a fault that fired, and where it struck: the argument of each requirement's check.

    An index is the position of a line in the journal, from 0.
    """

    traces: Traces
    number: int

    @property
    def record(self) -> ActionRecord:
        return self.traces.fault.actions[self.number]

    @property
    def action(self) -> Action:
        return self.record.action

    @property
    def journal(self) -> Sequence[Event]:
        return self.traces.evidence.journal

    @property
    def hanging(self) -> Sequence[Open]:
        """The transactions that nobody ended."""
        return self.traces.evidence.settlement.hanging

    @property
    def process(self) -> str | None:
        """The process whose thread reached the fault, as far as the journal names it."""
        return self.traces.process

    @property
    def fired(self) -> bool:
        return bool(self.traces.of("fault.fired", self.number))

    @property
    def confirmed(self) -> bool:
        return bool(self.traces.of("fault.confirmed", self.number))

    @cached_property
    def fired_at(self) -> int:
        """The index from which on the action's consequences are looked for."""
        return (self.traces.of("fault.fired", self.number) or self.traces.of("fault.fired"))[0][0]

    @cached_property
    def confirmed_at(self) -> int:
        """The index at which a dead process cannot report any more."""
        confirmed = self.traces.of("fault.confirmed", self.number)
        return confirmed[0][0] if confirmed else self.fired_at

    @cached_property
    def point(self) -> Mapping[str, Any]:
        """The report at which the action struck: the fault's, or a later one of what ran on; empty at a moment."""
        return self._last_report() or self.traces.point

    @property
    def step(self) -> Step | None:
        """Phase and edge at which the action struck; None at a moment."""
        last = self._last_report()
        return (last["phase"], last.get("edge")) if last else self.traces.fault.step

    @property
    def batch(self) -> int | None:
        return self.point.get("batch")

    def new_hand_overs(self, start: int, batch: int | None = None) -> list[HandOver]:
        """Hand-overs after ``start`` by runs that were not there before, of the same query."""
        old = set(runs(self.journal, 0, start)) | {self.point.get("run")}
        return [
            hand_over
            for hand_over in hand_overs(self.journal, batch)
            if hand_over.index > start and hand_over.run not in old and self._same_query(hand_over.query)
        ]

    def new_points(self, start: int) -> Iterator[tuple[int, Event]]:
        """Reports after ``start`` by runs that were not there before, of the same query."""
        old = {None, self.point.get("run"), *runs(self.journal, 0, start)}
        for index, event in points(self.journal, start):
            if event.get("run") not in old and self._same_query(event.get("query")):
                yield index, event

    def _same_query(self, query: object) -> bool:
        return None in (query, self.point.get("query")) or query == self.point.get("query")

    def _last_report(self) -> Event | None:
        """How far the query got by itself between the point and its confirmed death; None if it did not move."""
        run = self.traces.point.get("run")
        if not self.record.runs_on or run is None:
            return None
        between = (event for index, event in points(self.journal, self.fired_at) if index < self.confirmed_at)
        own = [event for event in between if event.get("run") == run and event.get("role") in (None, "driver")]
        return own[-1] if own else None
