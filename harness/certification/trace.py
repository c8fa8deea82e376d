"""What a trace recorded of a batch: the steps and lines that one run executed in it, and how often."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Event = Mapping[str, Any]

WORKER = "python-worker"
"""The role of Python processes that run tasks."""
PYTHON_DRIVER = "python-driver"
"""The role of the driver's Python."""
DRIVER = "driver"
"""The role of the driver's JVM."""
OF_TASKS = (WORKER, "worker", "executor")
"""The roles of processes that run tasks: Python's, by its own reports and by those of its changes of files on another
machine than the driver's, and JVMs. On local[n] the driver's JVM reports as an executor, too."""


class Step(NamedTuple):
    """A phase with its edge; of a task's phase also the stage, counted within the batch, and the row that it asks for.

    Places that are no phase of the catalogue have no edge.

    >>> str(Step("task.run", "after", 2)), str(Step("one task ended"))
    ('task.run:after, stage 2', 'one task ended')
    """

    phase: str
    edge: str = ""
    stage: int | None = None
    row: int | None = None

    def __str__(self) -> str:
        return f"{self.name}{'' if self.stage is None else f', stage {self.stage}'}"

    @property
    def name(self) -> str:
        return f"{self.phase}:{self.edge}" if self.edge else self.phase


class Line(NamedTuple):
    """A line of the sink's code: a path relative to the sink's directory, and a number from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"line {self.file}:{self.line}"


@dataclass(frozen=True)
class Executed:
    """Steps and lines of one batch in one run, each with the number of its reports, in the order of the first ones.

    ``tasks`` counts the tasks that each stage of the batch began, ``partitions`` has the lowest partition of these: a
    job may be of some partitions only. ``writing`` is the stage whose tasks write to the sink: the one with a
    pre-commit, else the last.
    """

    steps: Mapping[Step, int]
    lines: Mapping[Line, int]
    tasks: Mapping[int, int]
    partitions: Mapping[int, int] = field(default_factory=dict)

    @property
    def writing(self) -> int | None:
        committing = [step.stage for step in self.steps if step.phase == "task.commit" and step.stage is not None]
        return max(committing or self.tasks, default=None)


NOTHING = Executed({}, {}, {})


def runs_of(trace: Sequence[Event], batch: int) -> list[str]:
    """The runs that worked on a batch, in their order: the first run, then that of its replay."""
    return list(dict.fromkeys(event["run"] for event in reports(trace, batch) if "run" in event))


def executed(trace: Sequence[Event], batch: int, run: str | None = None) -> Executed:
    """What a trace recorded of ``batch``, in one run or in all."""
    steps, lines, tasks, partitions = Counter[Step](), Counter[Line](), Counter[int](), dict[int, int]()
    for event in reports(trace, batch):
        if run is not None and event.get("run") != run:
            continue
        if event["phase"] == "line":
            lines[line_of(event)] += 1
        elif event.get("edge"):
            step = Step(event["phase"], event["edge"], event.get("stage"), event.get("row"))
            steps[step] += 1
            if step.name == "task.run:before" and step.stage is not None:
                tasks[step.stage] += 1
                partitions[step.stage] = min(event["partition"], partitions.get(step.stage, event["partition"]))
    return Executed(steps, lines, tasks, partitions)


Way = tuple[Line | None, Line | None]
"""From one line to the next of the same thread; None before its first and behind its last one."""


def executions(trace: Iterable[Event], batch: int | None = None, run: str | None = None) -> list[Event]:
    """The reports of lines that were executed in a batch, or in any, one after the other."""
    return [
        event
        for event in trace
        if event["event"] == "point" and event["phase"] == "line" and event.get("batch") is not None
        if batch in (None, event["batch"]) and run in (None, event.get("run"))
    ]


def ways_to(executions: Iterable[Event]) -> list[Way]:
    """The way on which each line was come to, then those behind each thread's last line.

    The Python processes of tasks serve several of them in turn: there each line counts by itself.
    """
    last: dict[object, Line] = {}
    found: list[Way] = []
    for event in executions:
        line = line_of(event)
        if event.get("role") == WORKER:
            found.append((None, line))
            continue
        thread = (event.get("process"), event.get("thread"))
        found.append((last.get(thread), line))
        last[thread] = line
    return [*found, *((line, None) for line in last.values())]


def line_of(event: Event) -> Line:
    return Line(event["file"], event["line"])


def phases_in(trace: Sequence[Event]) -> frozenset[tuple[str, str | None]]:
    """Every phase that was reported, with its edge; a line, which has none, only inside a batch."""
    return frozenset(
        (event["phase"], event.get("edge")) for event in trace if event["event"] == "point" and "when" not in event
    )


def around(fault: str, journal: Sequence[Event]) -> tuple[Sequence[Event], Sequence[Event]]:
    """The journal up to the moment at which a fault, given by its text, was reached, and from there on."""
    reached = (at for at, event in enumerate(journal) if event["event"] == "fault.reached" and event["text"] == fault)
    place = next(reached, len(journal))
    return journal[:place], journal[place:]


def driver_lines(trace: Sequence[Event], batch: int) -> list[Line]:
    """The lines that the driver's Python executed of a batch, one after the other."""
    return [line_of(event) for event in executions(trace, batch) if event.get("role") != WORKER]


def task_lines(trace: Sequence[Event], batch: int) -> set[Line]:
    """The lines that Python in tasks executed of a batch."""
    return {line_of(event) for event in executions(trace, batch) if event.get("role") == WORKER}


def processes_of(trace: Iterable[Event], roles: Collection[str]) -> set[str]:
    """The processes that reported in one of these roles."""
    return {str(event.get("process")) for event in trace if event.get("role") in roles}


def lines_in(trace: Iterable[Event]) -> frozenset[Line]:
    """The lines of the sink's code that were executed in any batch."""
    return frozenset(map(line_of, executions(trace)))


def reports(trace: Sequence[Event], batch: int) -> list[Event]:
    """What probes reported of a batch."""
    return [event for event in trace if event["event"] == "point" and event.get("batch") == batch]
