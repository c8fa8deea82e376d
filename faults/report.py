"""What a probe sends: one line, ``TOKEN`` TAB ``key=value`` TAB ... newline; and the point that it stands for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .catalogue import PHASES

NUMBERS = frozenset({"batch", "partition", "kafka_partition", "stage", "attempt", "task", "row", "line", "pid"})
"""Fields that are whole numbers."""

OF_PYTHON = frozenset({"line", "call"})
"""Phases of the job's Python code, which are points inside batches and before the query starts only."""

ANY_THREAD = ""
OF_FILES = "files "
"""Stands before the number of a thread in the report of a change of a file."""

WITHOUT_BATCH = frozenset(
    phase.name
    for phase in PHASES
    if phase.where in ("connection", "files") or (phase.place and phase.where == "driver")
)
"""Phases whose reports do not say which batch the process works for, but for what a task says itself."""

STREAM_THREAD = re.compile(r"\[id = ([0-9a-f-]{36}), runId = ([0-9a-f-]{36})\]")
"""The name of a query's thread (StreamExecution.prettyIdString): ``... for NAME [id = .., runId = ..]``."""


class Malformed(ValueError):
    """A line that is no report."""


@dataclass(frozen=True)
class Message:
    """A line as it came: its token and its fields, numbers as int. Absent and null fields are left out."""

    token: str
    fields: Mapping[str, Any]


def read_message(line: bytes) -> Message:
    """Raises Malformed."""
    try:
        token, *pairs = line.decode("utf-8").rstrip("\n").split("\t")
        texts = dict(pair.split("=", 1) for pair in pairs)
        values = {name: int(text) if name in NUMBERS else text for name, text in texts.items() if text != "null"}
    except ValueError as error:
        raise Malformed(f"{line[:200]!r}: {error}") from None
    return Message(token, values)


@dataclass
class Batches:
    """Which batch a job's Python code works for: that of the last sink.write:before from the same driver, until the
    commit log has it.

    Drivers are told apart by the mark that all processes of one have in common, so that a paused driver and the one
    that replaced it do not mix. Of several queries in one driver, the one whose hand-over began last counts.
    """

    _last: dict[str, dict[str, Any]] = field(default_factory=dict)
    _started: set[str] = field(default_factory=set)
    _begun: dict[str, dict[str, Any]] = field(default_factory=dict)

    def note(self, driver: str, point: Mapping[str, Any]) -> None:
        if point.get("phase") in ("query.start", "sink.write"):
            self._started.add(driver)
        if point.get("phase") == "query.start":
            self._begun[driver] = {name: point[name] for name in ("query", "run") if name in point}
        if (point.get("phase"), point.get("edge")) == ("sink.write", "before"):
            self._last[driver] = {name: point[name] for name in ("query", "run", "batch") if name in point}
        elif (point.get("phase"), point.get("edge")) == ("batch.commit", "after"):
            self._last.pop(driver, None)

    def begun(self, driver: str) -> Mapping[str, Any]:
        """query and run of what the driver started last; empty before that."""
        return self._begun.get(driver, {})

    def of(self, driver: str) -> Mapping[str, Any]:
        """query, run and batch; empty where no batch is under way."""
        return self._last.get(driver, {})

    def when(self, driver: str) -> Mapping[str, Any]:
        """When a line is executed: the batch that is under way, or before any query starts; empty between batches."""
        return self.of(driver) if driver in self._started else {"when": "start"}


@dataclass
class Stages:
    """Numbers the stages of each batch of a run, from 1, in the order in which they first begin a task.

    Spark's own numbers go on through a driver's life, and differ from run to run.
    """

    _known: dict[tuple[object, ...], dict[int, int]] = field(default_factory=dict)

    def number(self, point: Mapping[str, Any]) -> int:
        """The number of the stage with Spark's id ``stage_id`` of the point."""
        known = self._known.setdefault(tuple(point.get(name) for name in ("query", "run", "batch")), {})
        return known.setdefault(point["stage_id"], len(known) + 1)


@dataclass
class Runs:
    """Numbers the runs of each query, from 1, in the order of their query.start, which every trial has reported: there
    is a new one at each restart, be it of a driver or, within it, of a query that failed."""

    _known: dict[object, dict[str, int]] = field(default_factory=dict)

    def numbered(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        """The point as selectors have it, with the number of its run in the place of the run's id.

        Before the query starts (``when``) that of the run to come; of a task whose job is in a group of the sink's own,
        that of the newest.
        """
        known = self._known.setdefault(point["query"], {}) if "query" in point else {}
        if point.get("phase") == "query.start" and "run" in point:
            known.setdefault(point["run"], len(known) + 1)
        if "run" in point:
            return {**point, "run": known.get(point["run"], len(known))}
        if "when" in point:
            return {**point, "run": 1 + max(map(len, self._known.values()), default=0)}
        return point


OF_A_TASK = ("query", "run", "batch", "stage", "stage_id", "partition", "attempt", "task")
"""What a task is known by."""


@dataclass
class Tasks:
    """Which task a process works for, or a thread of one: a Python worker serves one task at a time, and so does a
    thread of an executor. Known from ``task.worker`` and ``task.run``, where these are reported."""

    _of: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def note(self, point: Mapping[str, Any]) -> None:
        task = {name: point[name] for name in OF_A_TASK if name in point}
        if "worker" in point:
            self._of[point["worker"], ANY_THREAD] = task
        elif (point.get("phase"), point.get("edge")) == ("task.run", "before") and "tid" in point:
            self._of[point["process"], f"{OF_FILES}{point['tid']}"] = task
        elif (point.get("phase"), point.get("edge")) == ("task.run", "after"):
            ended = (point.get("run"), point.get("task"))  # each driver counts tasks from 0
            self._of = {place: one for place, one in self._of.items() if (one.get("run"), one.get("task")) != ended}

    def of(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is known of the task; empty where none is."""
        threads = (str(point.get("thread")), ANY_THREAD)
        return next((self._of[place] for thread in threads if (place := (point["process"], thread)) in self._of), {})


def to_point(
    fields: Mapping[str, Any], batches: Batches, stages: Stages | None = None, tasks: Tasks | None = None
) -> dict[str, Any] | None:
    """The point of a report; None for Python code between two batches, which is no point."""
    tasks = tasks or Tasks()
    point = dict(fields)
    driver = point.pop("driver", "")
    point["process"] = process_of(point)
    if "worker" in point:
        point["worker"] = f"{point['process'].partition(':')[0]}:{point['worker']}"
    point.pop("place", None)
    point.pop("pid", None)
    if named := STREAM_THREAD.search(str(point.get("thread", ""))):
        point = {"query": named[1], "run": named[2]} | point
    elif point.get("role") == "driver":  # the epochs of a continuous query end in a thread of Spark's RPC
        point = {**batches.begun(driver), **point}
    if "stage" in point:
        point["stage_id"] = point.pop("stage")
        point["stage"] = (stages or Stages()).number(point)
    batches.note(driver, point)
    tasks.note(point)
    point.pop("tid", None)
    if point.get("phase") in OF_PYTHON:
        when = batches.when(driver)
        return {**when, **point} if when else None
    if point.get("phase") in WITHOUT_BATCH and "batch" not in point:
        return {**batches.when(driver), **tasks.of(point), **point}
    return point


def process_of(fields: Mapping[str, Any]) -> str:
    """``place:pid``."""
    return f"{fields.get('place', 'local')}:{fields.get('pid', 0)}"
