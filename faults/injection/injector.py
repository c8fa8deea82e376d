"""Executes the plan of a trial: probes report to it and stay parked until it answers; it counts, holds and fires.

Reports come by a :class:`..rendezvous.Rendezvous`, which says what answers mean. Counters live here, so they go on over
restarts of the driver; each fault fires once.

>>> from onceproof.faults.language import parse
>>> plan = parse("sink.commit:after[batch=1] -> delay(1ms)")
>>> with Injector(plan, actuator=None, record=lambda event, fields: None) as injector:
...     [status.reached for status in injector.status()], injector.host
([False], '127.0.0.1')
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any

from ...plans import Moment, Plan
from ..capabilities import Actuator
from ..printing import format_point
from ..rendezvous import GO_ON, LATE, Rendezvous
from ..report import Batches, Message, Runs, Stages, Tasks, process_of, to_point
from .armed import ArmedFault, FaultStatus, Matched, arm
from .execution import Execution, Record, Stopwatch, wall_time
from .outcomes import OUTCOMES
from .parked import Answer

Observe = Callable[[Mapping[str, Any]], Mapping[str, Any]]

HOLD_WAIT = 5.0
"""Seconds that a fault which is reached waits for the thread that it is to hold: tasks begin at about the same time."""


class Injector:
    """Executes ``plan`` on what probes report; a context manager that serves while it is entered.

    ``record(event, fields)`` is called for each event of the journal, one call at a time and in the order in which
    things were decided. ``observe(point)`` may add fields to a point before it is recorded. Probes find the injector at
    ``host`` and ``port`` and identify themselves with ``token``; ``rendezvous`` is the server that it shares with
    others, without one it has its own. ``stopwatch`` counts the time of what is to end after so long at the latest.
    """

    def __init__(
        self,
        plan: Plan,
        actuator: Actuator | None,
        record: Record,
        observe: Observe | None = None,
        rendezvous: Rendezvous | None = None,
        hold_wait: float = HOLD_WAIT,
        stopwatch: Stopwatch = wall_time,
    ) -> None:
        self.plan = plan
        self.token = secrets.token_hex(16)
        self.errors: list[str] = []
        """What went wrong in the injector itself: if there is any, a trial proves nothing."""
        self._record = record
        self._observe = observe
        self._hold_wait = hold_wait
        self._armed = tuple(arm(index, fault) for index, fault in enumerate(plan.faults))
        self._batches = Batches()
        self._stages = Stages()
        self._tasks = Tasks()
        self._runs = Runs()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._execution = Execution(actuator, record, self._lock, self._closing, stopwatch)
        self._held = 0
        self._shared = rendezvous
        self._rendezvous = rendezvous or Rendezvous()
        self._stack = ExitStack()

    # -- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Injector:
        if self._shared is None:
            self._stack.enter_context(self._rendezvous)
        self._rendezvous.add(self)
        self._stack.callback(self._rendezvous.remove, self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self.release_all()
        self._stack.close()

    @property
    def host(self) -> str:
        return self._rendezvous.host

    @property
    def port(self) -> int:
        return self._rendezvous.port

    def start_clock(self) -> None:
        """The first driver starts: moments (``at(3s)``) count from here."""
        for armed in self._armed:
            if isinstance(armed.fault.at, Moment):
                arguments = (armed, armed.fault.at.seconds)
                threading.Thread(target=self._at_moment, args=arguments, name="moment", daemon=True).start()

    def release_all(self, reason: str | None = None) -> None:
        """Let go of every held thread and every paused process: what they wait for cannot come any more.

        With a ``reason`` a fault that is still holding threads has failed by it, and does not fire any more.
        """
        with self._lock:
            self._execution.give_up()
            for armed in self._armed:
                if reason is not None and armed.held and not armed.over.is_set():
                    armed.status = replace(armed.status, error=reason)
                    self._record("fault.failed", {"fault": armed.index, "action": "hold", "error": reason})
                if armed.holds:
                    armed.over.set()

    # -- what the supervisor asks ---------------------------------------------------------------------------------

    def status(self) -> list[FaultStatus]:
        """What became of each fault of the plan, in its order."""
        with self._lock:
            return [armed.status for armed in self._armed]

    def acting(self) -> bool:
        """Whether the actions of a fault are under way; waiting for the point of an ``until`` is not acting."""
        return self._execution.acting

    def holding(self) -> int:
        """How many threads are held by the plan."""
        return self._held

    # -- what the rendezvous asks (Receiver) ----------------------------------------------------------------------

    def receive(self, message: Message) -> bytes | None:
        """The answer to a report; None once the trial has ended."""
        event = message.fields.get("event")
        if event is not None:
            self._note(str(event), message.fields)
            answer = GO_ON
        else:
            answer = self._point(message.fields)
        return None if self._closing.is_set() else answer

    def refuse(self, detail: str) -> None:
        with self._lock:
            self._record("probe.refused", {"detail": detail})

    def went_wrong(self, error: str) -> None:
        with self._lock:
            self.errors.append(error)
            self._record("injector.error", {"error": error})

    def _note(self, event: str, fields: Mapping[str, Any]) -> None:
        """``probe.hello``, ``query.writer``, ``query.ended``; ``probe.error``: something that a probe could not do as
        asked; ``probe.raised`` and ``probe.not_raised``: what became of a ``fail`` at a line; ``probe.dropped``,
        ``probe.answered`` and ``probe.not_answered``: of a ``drop`` and an ``answer`` at a connection;
        ``connection.opened`` and ``connection.closed``: of one that passes a proxy."""
        kept = (
            "role",
            "error",
            "phase",
            "file",
            "line",
            "function",
            "outside",
            "service",
            "connection",
            "kind",
            "edge",
            "op",
            "path",
            "given_up",
        )
        shown = {name: value for name, value in fields.items() if name in kept}
        process = process_of(fields)
        with self._lock:
            self._record(event, {**shown, "process": process})
        if event in OUTCOMES:
            self._execution.outcome(event, {**fields, "process": process})

    # -- points ---------------------------------------------------------------------------------------------------

    def _point(self, fields: Mapping[str, Any]) -> bytes:
        with self._lock:
            point = to_point(fields, self._batches, self._stages, self._tasks)
        if point is None:
            return GO_ON
        point.update(self._observed(point))
        with self._lock:
            self._record("point", point)
            matched = self._matching(self._runs.numbered(point), counts=not self._execution.is_dying(point))
        self._execution.arrived(point)
        for waiting in matched.awaited:
            waiting.reached = True
            waiting.seen.set()
            waiting.acted.wait()
        for armed in matched.holders:
            self._hold(armed, point)
        return self._fire_all(matched.fires, matched.again, point)

    def _observed(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._observe is None:
            return {}
        try:
            return self._observe(point)
        except Exception as error:
            self.went_wrong(f"observation at {point.get('phase')}: {type(error).__name__}: {error}")
            return {}

    def _matching(self, point: Mapping[str, Any], *, counts: bool) -> Matched:
        """What does not count sets nothing off: it is only kept from going on."""
        numbers = [(armed, self._number(armed, point)) for armed in self._armed if counts]
        counted = [(armed, number) for armed, number in numbers if number and armed.status.error is None]
        fires = [armed for armed, number in counted if number == 1]
        again = [armed for armed, number in counted if 1 < number <= armed.times]
        holders = [armed for armed in self._armed if self._parks(armed, point) and armed not in fires]
        return Matched(fires, again, holders, self._execution.awaited_at(point) if counts else [])

    def _number(self, armed: ArmedFault, point: Mapping[str, Any]) -> int:
        """1 for the report at which the fault is reached, 2 for the next one of its point; 0 for others."""
        if armed.at is None or not self._execution.has_begun(armed.awaits):
            return 0
        count = armed.at.count(point)
        return max(0, count - armed.at.nth + 1) if count else 0

    @staticmethod
    def _parks(armed: ArmedFault, point: Mapping[str, Any]) -> bool:
        counts = [(hold, hold.count(point)) for hold in armed.holds]
        return not armed.over.is_set() and any(number is not None and number >= hold.nth for hold, number in counts)

    def _hold(self, armed: ArmedFault, point: Mapping[str, Any]) -> None:
        """Park this thread until the fault is over."""
        with self._lock:
            self._held += 1
            armed.held += 1
            armed.has_held.set()
            self._record("hold", {"fault": armed.index, "process": point.get("process"), "point": point})
        armed.over.wait()
        with self._lock:
            self._held -= 1
            armed.held -= 1
            self._record("release", {"fault": armed.index, "process": point.get("process"), "point": point})

    # -- faults ---------------------------------------------------------------------------------------------------

    def _fire_all(self, fires: list[ArmedFault], again: list[ArmedFault], point: Mapping[str, Any]) -> bytes:
        """Carry out what the point set off, while its thread is parked; returns its answer."""
        answer = Answer()
        for armed in fires:
            self._fire(armed, point, answer)
        for armed in again:
            self._execution.repeat(armed, point, answer)
        for over in answer.kept_until:
            self._keep(over)
        on_its_way = answer.late and point.get("phase") == "request"
        return LATE if on_its_way and answer.text == GO_ON else answer.text

    def _keep(self, over: threading.Event) -> None:
        with self._lock:
            self._held += 1
        over.wait()
        with self._lock:
            self._held -= 1

    def _fire(self, armed: ArmedFault, point: Mapping[str, Any], answer: Answer) -> None:
        process = point.get("process")
        with self._lock:
            armed.status = replace(armed.status, reached=True, process=process)
            reached = {"fault": armed.index, "text": armed.status.text, "process": process, "point": point}
            self._record("fault.reached", reached)
        if self._holds(armed):
            self._execution.carry_out(armed, point, answer)

    def _holds(self, armed: ArmedFault) -> bool:
        """Whether one of the fault's holds has stopped a thread, or none is to; waits for it, and fails the fault if
        none comes: what the plan says would not have happened."""
        if not armed.holds:
            return True
        with self._execution.under_way():
            if armed.has_held.wait(self._hold_wait):
                return armed.status.error is None
        holds = " and ".join(f"hold({format_point(hold.selector)})" for hold in armed.holds)
        error = f"{holds} held no thread: none came there within {self._hold_wait:g} s"
        with self._lock:
            armed.status = replace(armed.status, error=error)
            self._record("fault.failed", {"fault": armed.index, "action": "hold", "error": error})
            armed.over.set()
        return False

    def _at_moment(self, armed: ArmedFault, seconds: float) -> None:
        if not self._closing.wait(seconds):
            self._fire(armed, {}, Answer())
