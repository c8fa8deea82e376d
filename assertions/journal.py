"""Questions to a journal: which batch was handed to the sink how often, by which runs, and what happened in between.

Events are told apart by their place in the journal: ``index`` below is the position of the line, from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..plans import ActionReference
from .model import ActionRecord, Event, FaultRecord


@dataclass(frozen=True)
class HandOver:
    """A batch was handed to the sink (``sink.write:before``). ``offsets`` is the digest of the checkpoint's offsets/N.

    ``written``: the sink returned (``sink.write:after``); ``committed``: the engine recorded the batch as done.
    """

    index: int
    batch: int
    run: str | None
    query: str | None
    process: str | None
    offsets: str | None
    written: bool
    committed: bool


@dataclass(frozen=True)
class TaskAttempt:
    """An attempt of a task of a batch, by what its executor reported of it first."""

    index: int
    batch: int
    partition: int
    stage: int | None
    attempt: int
    process: str | None


def points(journal: Sequence[Event], start: int = 0) -> Iterator[tuple[int, Event]]:
    """The reports of probes from ``start`` on, each with its index."""
    return ((index, event) for index, event in enumerate(journal) if index >= start and event["event"] == "point")


def is_at(event: Event, phase: str, edge: str | None = None) -> bool:
    return event.get("phase") == phase and (edge is None or event.get("edge") == edge)


def hand_overs(journal: Sequence[Event], batch: int | None = None) -> list[HandOver]:
    """The hand-overs of one batch, or of all, in their order. A run hands a batch over once: Spark repeats a batch
    only in another run, so a second report of the same run (a sink inside a sink) is none."""
    found: dict[tuple[object, ...], tuple[int, Event]] = {}
    ends: dict[tuple[object, ...], set[str]] = {}
    for index, event in points(journal):
        number = event.get("batch")
        if number is None or batch not in (None, number):
            continue
        of = (event.get("query"), event.get("run"), number)
        if is_at(event, "sink.write", "before"):
            found.setdefault(of, (index, event))
        elif is_at(event, "sink.write", "after") or is_at(event, "batch.commit", "after"):
            ends.setdefault(of, set()).add(event["phase"])
    return [_hand_over(index, event, ends.get(of, set())) for of, (index, event) in found.items()]


def _hand_over(index: int, event: Event, ends: set[str]) -> HandOver:
    return HandOver(
        index=index,
        batch=event["batch"],
        run=event.get("run"),
        query=event.get("query"),
        process=event.get("process"),
        offsets=event.get("offsets"),
        written=bool(ends),
        committed="batch.commit" in ends,
    )


def task_attempts(journal: Sequence[Event], batch: int | None = None) -> list[TaskAttempt]:
    """Attempts of tasks of one batch, or of all, in the order in which they were first seen.

    They are told apart by run and Spark's number of the task too: a batch that is handed over again begins with attempt
    0 again. One that its executor and its Python report is the same one.
    """
    found: dict[tuple[object, ...], TaskAttempt] = {}
    for index, event in points(journal):
        number, partition, attempt = event.get("batch"), event.get("partition"), event.get("attempt")
        if number is None or partition is None or attempt is None or batch not in (None, number):
            continue
        process, stage, task = event.get("process"), event.get("stage"), event.get("task")
        of = (number, partition, stage, attempt, event.get("run"), process if task is None else task)
        found.setdefault(of, TaskAttempt(index, number, partition, stage, attempt, process))
    return list(found.values())


def runs(journal: Sequence[Event], start: int = 0, end: int | None = None) -> list[str]:
    """Run ids in the order in which they were first reported between two indices."""
    seen = {event["run"]: None for index, event in points(journal, start) if "run" in event and _before(index, end)}
    return list(seen)


def _before(index: int, end: int | None) -> bool:
    return end is None or index < end


def beginnings(journal: Sequence[Event]) -> dict[int, list[str]]:
    """Where the input of each batch began, each place once, as Spark's checkpoint has it (``batch.input``): a batch
    with several was planned again."""
    found: dict[int, dict[str, None]] = {}
    for _, event in points(journal):
        if is_at(event, "batch.input"):
            found.setdefault(event["batch"], {})[event["begin"]] = None
    return {batch: list(begins) for batch, begins in found.items()}


def commits(journal: Sequence[Event], batch: int) -> list[Event]:
    """Reports that the engine recorded ``batch`` as done (``batch.commit:after``)."""
    return [
        event for _, event in points(journal) if is_at(event, "batch.commit", "after") and event.get("batch") == batch
    ]


def disturbances(journal: Sequence[Event], faults: Sequence[FaultRecord], start: int, end: int | None) -> list[str]:
    """What happened to the job between two indices: fired actions with their place, drivers that went on after a pause,
    unplanned ends of drivers."""
    return list(
        dict.fromkeys(
            text
            for index, event in enumerate(journal)
            if start <= index and _before(index, end)
            for text in [_disturbance(event, faults, journal, index)]
            if text
        )
    )


def _disturbance(event: Event, faults: Sequence[FaultRecord], journal: Sequence[Event], index: int) -> str | None:
    if event["event"] == "fault.fired":
        return _fired(event, faults)
    if event["event"] == "process.resumed" and event.get("target") == "driver":
        return f"the resumption of driver {event.get('process')}"
    if event["event"] == "driver.exited" and not event.get("planned") and _too_early(event, journal[index:]):
        return f"the driver's own end with code {event.get('code')} ({event.get('error') or 'no exception found'})"
    return None


def _fired(event: Event, faults: Sequence[FaultRecord]) -> str | None:
    """What was done where; None for what only sets how another action goes on."""
    action = action_of(event, faults)
    if action is None:
        return "an unknown action at an unknown point"
    return f"{action.text} at {faults[event['fault']].place}" if action.requirements else None


def action_of(event: Event, faults: Sequence[FaultRecord]) -> ActionRecord | None:
    """The planned action that an event of a fault concerns."""
    reference = ActionReference.of(event)
    if reference is None or reference.find([record.fault for record in faults]) is None:
        return None
    return faults[reference.fault].actions[reference.number]


def _too_early(exited: Event, rest: Sequence[Event]) -> bool:
    """A driver that ends with code 0 is started again only if it left input behind."""
    return exited.get("code") != 0 or any(event["event"] == "driver.started" for event in rest)
