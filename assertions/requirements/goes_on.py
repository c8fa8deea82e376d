"""A process or a thread was stopped for a time: it goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..journal import is_at, points
from ..model import Event
from ..successors import has_successor, kept_out, refused, taken_over
from ..traces import Found, Struck

APART = ("executor", "broker", "python-sink")
"""Roles of processes that may run apart from the driver."""


def check(struck: Struck) -> Found:
    """The very process that was stopped reports afterwards; a driver that has nothing more to report ends by itself.
    Where another one takes its place, that was handed the batch meanwhile, or the sink kept it out or refused it.

    All processes of a driver count as one. A Python worker's task goes on too, since it needs what the worker returns;
    and an executor by what its Python does for the task that was stopped.
    """
    required, start = "the same process goes on", struck.confirmed_at
    stopped = _Stopped(struck)
    if has_successor(struck) and not (taken_over(struck) or kept_out(struck) or refused(struck)):
        instead = "no other driver was handed the batch before it went on, or seen to be kept out by the sink"
        return Found(required, None, instead)
    if answer := _answer(struck, stopped.process):
        return Found(required, answer)
    for _, event in points(struck.journal, start):
        if stopped.reports(event):
            return Found(required, f"{event.get('process')} reported {event.get('phase')} afterwards")
    end = _own_end(stopped, start) if stopped.is_a_driver else None
    return Found(required, end, None if end else f"{stopped.process} reported nothing afterwards")


@dataclass(frozen=True)
class _Stopped:
    """What was stopped. A journal may have a report for each of many thousand rows: what it says is looked up once."""

    struck: Struck

    @cached_property
    def process(self) -> str | None:
        """As the harness names it (``process.resumed``), else that of the stopped thread."""
        struck = self.struck
        between = enumerate(struck.journal[: struck.confirmed_at])
        named = [
            str(event["process"])
            for index, event in between
            if index > struck.fired_at
            and event["event"] == "process.resumed"
            and event["target"] == struck.action.target
        ]
        return named[-1] if named else struck.point.get("process") or struck.process

    @cached_property
    def is_a_driver(self) -> bool:
        """Whether the driver was stopped, or a thread in one of its processes."""
        struck = self.struck
        if struck.action.target is not None:
            return struck.action.target == "driver"
        own = {event.get("process") for _, event in points(struck.journal) if event.get("role") not in APART}
        return self.process in own or str(struck.point.get("role")).startswith("python")

    @cached_property
    def incarnation(self) -> int:
        """The driver that was stopped, by its process, else by the run or the process of the stopped thread."""
        struck = self.struck
        for event in struck.journal:
            if event["event"] == "driver.started" and event["process"] == self.process:
                return int(event["incarnation"])
        name, value = ("run", struck.point["run"]) if "run" in struck.point else ("process", self.process)
        return min(_incarnation_of(name, value, struck.journal), _newest(struck.journal[: struck.fired_at]))

    @cached_property
    def runs(self) -> frozenset[str]:
        """Those of its incarnation."""
        journal = self.struck.journal
        runs = {event["run"] for _, event in points(journal) if event.get("run") is not None}
        return frozenset(run for run in runs if _incarnation_of("run", run, journal) == self.incarnation)

    def reports(self, event: Event) -> bool:
        """Whether a report is of the process, of the same driver, or of the task that the stopped worker serves."""
        if self.process is not None and event.get("process") == self.process:
            return True
        if self.struck.action.target == "worker":
            return _is_end_of(event, self.struck.point)
        if self.struck.action.target == "executor":
            return _same_attempt(event, self.struck.point)
        return self.is_a_driver and event.get("role") not in APART and event.get("run") in self.runs


def _answer(struck: Struck, process: str | None) -> str | None:
    """What the process answered when it was asked, once it had been resumed."""
    for event in struck.journal[struck.fired_at :]:
        if event["event"] == "process.answers" and event.get("process") == process:
            return str(event["detail"])
    return None


def _is_end_of(event: Event, task: Mapping[str, object]) -> bool:
    same = _same_attempt(event, task) and event.get("process") == task.get("process")
    return same and (is_at(event, "task.run", "after") or is_at(event, "task.commit"))


def _same_attempt(event: Event, task: Mapping[str, object]) -> bool:
    return "task" in task and all(event.get(name) == task.get(name) for name in ("run", "task", "attempt"))


def _own_end(stopped: _Stopped, start: int) -> str | None:
    """How the driver that had been stopped ended: another driver's end says nothing of it.

    One that was replaced may see that on its first step, and end with an error: it has gone on.
    """
    journal = stopped.struck.journal
    for index, event in enumerate(journal):
        if index < start or event.get("incarnation") != stopped.incarnation:
            continue
        if event["event"] == "driver.stayed":
            return "the driver's query ended afterwards"
        if event["event"] == "driver.exited":
            replaced = any(one > stopped.incarnation for one in _started(journal[:index]))
            if replaced and not event.get("planned"):
                return f"the driver that had been replaced ended by itself with code {event.get('code')} afterwards"
            return "the driver ended cleanly afterwards" if event.get("code") == 0 else None
    return None


def _incarnation_of(name: str, value: object, journal: Sequence[Event]) -> int:
    """The newest driver when this run or process was first heard of."""
    first = next((index for index, event in points(journal) if event.get(name) == value), len(journal))
    return _newest(journal[:first])


def _newest(journal: Sequence[Event]) -> int:
    return max(_started(journal), default=1)


def _started(journal: Sequence[Event]) -> list[int]:
    return [event["incarnation"] for event in journal if event["event"] == "driver.started"]
