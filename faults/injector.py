"""Executes the plan of a trial: probes report to it and stay parked until it answers; it counts, holds and fires.

Reports come by a :class:`.rendezvous.Rendezvous`, which says what answers mean. Counters live here, so they go on over
restarts of the driver; each fault fires once.

>>> from .language import parse
>>> plan = parse("sink.commit:after[batch=1] -> delay(1ms)")
>>> with Injector(plan, actuator=None, record=lambda event, fields: None) as injector:
...     [status.reached for status in injector.status()], injector.host
([False], '127.0.0.1')
"""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, ClassVar

from ..plans import Action, ActionReference, Fault, Moment, Plan
from .capabilities import Actuator, InjectionError, Scene
from .catalogue import action_named, restart_delay
from .declarations import ActionSpec
from .matching import Counter
from .printing import format_action, format_fault, format_point
from .rendezvous import ANSWER, DROP, FAIL, GO_ON, LATE, Rendezvous
from .report import Batches, Message, Stages, Tasks, process_of, to_point

Record = Callable[[str, Mapping[str, Any]], None]
Observe = Callable[[Mapping[str, Any]], Mapping[str, Any]]

LOOK_SECONDS = 0.5
"""Between two looks at a stopwatch."""

CUT_TWICE = "it is cut, or answered, already: it can be one of the two, once"

ARRIVAL = 2.0
"""Seconds that whoever reported the point of an ``until`` is kept at most, until a late request has been answered."""

HOLD_WAIT = 5.0
"""Seconds that a fault which is reached waits for the thread that it is to hold: tasks begin at about the same time."""


@dataclass(frozen=True)
class FaultStatus:
    """What became of a fault so far. ``process`` is the one whose thread reached it (``place:pid``)."""

    index: int
    text: str
    reached: bool = False
    fired: bool = False
    confirmed: bool = False
    error: str | None = None
    process: str | None = None


@dataclass
class _Armed:
    """A fault with its counters. ``awaits``: what other faults begin and it ends, by action and target: its point
    counts once all of that has been begun. Its actions are done at ``times`` reports of it in a row. ``over`` is set
    when its actions are done, given up, or never to come; ``held`` is the number of threads that it holds, ``has_held``
    is set once it has held one."""

    index: int
    fault: Fault
    at: Counter | None
    holds: tuple[Counter, ...]
    status: FaultStatus
    over: threading.Event = field(default_factory=threading.Event)
    awaits: frozenset[tuple[str, str | None]] = frozenset()
    times: int = 1
    held: int = 0
    has_held: threading.Event = field(default_factory=threading.Event)


@dataclass
class _Awaited:
    """A point for which a paused process or a kept thread waits: ``until P``. ``reached``: it was reported, in time."""

    point: Counter
    seen: threading.Event = field(default_factory=threading.Event)
    acted: threading.Event = field(default_factory=threading.Event)
    reached: bool = False
    given_up: bool = False


_Stopped = tuple[str, ...]
"""The process and thread of what acts on an order, a connection too, and the file and line of a line that raises."""


@dataclass
class _Answer:
    """What a parked thread will be told: all actions that are done while it is parked share it. It is told that once
    all of ``kept_until`` are set."""

    text: bytes = GO_ON
    ordered: bool = False
    late: bool = False
    kept_until: list[threading.Event] = field(default_factory=list)


@dataclass
class _ParkedThread:
    """The thread that waits for its answer, as one action has it; implements :class:`.capabilities.Thread`.

    ``told_to_act``: what the action ordered it to do is confirmed by the probe that does it.
    """

    closing: threading.Event
    answer: _Answer
    told_to_act: bool = False

    def keep(self, seconds: float) -> None:
        self.answer.late = True
        if self.closing.wait(seconds):
            raise InjectionError(f"the trial ended before {seconds:g} s were over")

    def fail(self, order: Mapping[str, Any] | None = None) -> None:
        if order is None:
            self.answer.text = FAIL
            return
        twice = "the line is to raise already: it can raise one exception, not two"
        self._order(FAIL + json.dumps(order).encode() + b"\n", twice)

    def drop(self) -> None:
        self._order(DROP, CUT_TWICE)

    def answer_with(self, error: str) -> None:
        self._order(ANSWER + error.encode(), CUT_TWICE)

    def _order(self, text: bytes, twice: str) -> None:
        """``twice``: what is wrong with a second one."""
        if self.answer.ordered:
            raise InjectionError(twice)
        self.answer.text = text
        self.answer.ordered = self.told_to_act = True


@dataclass(frozen=True)
class _Step:
    """The ``number``-th action of a fault, and where it is done."""

    armed: _Armed
    number: int
    thread: _ParkedThread
    scene: Scene

    @property
    def action(self) -> Action:
        return self.armed.fault.actions[self.number]

    @property
    def spec(self) -> ActionSpec:
        return action_named(self.action.name)

    @property
    def times(self) -> int:
        return _times(self.action)

    @property
    def lets_go(self) -> bool:
        """Whether the thread goes on before the action is over."""
        return self.spec.lets_go or self.action.until is not None

    @property
    def longest(self) -> float | None:
        """Seconds for which the point of an ``until`` is waited for; None for as long as it takes."""
        limit = self.spec.value(self.action, self.spec.longest) if self.spec.longest else None
        return None if limit is None else float(limit)

    @property
    def arrives_late(self) -> bool:
        """Whether the parked thread passes a request on once the action, the last of its fault, is over."""
        last, point = self.number == len(self.armed.fault.actions) - 1, self.scene.point
        goes_out = (point.get("phase"), point.get("edge")) == ("request", "before")
        return last and self.spec.keeps_thread and goes_out

    @property
    def process(self) -> str | None:
        """The process whose thread is parked."""
        return self.scene.point.get("process")

    def as_fields(self) -> dict[str, Any]:
        return self.scene.reference.as_fields() | {"action": format_action(self.action)}


Stopwatch = Callable[[], Callable[[], float]]
"""Starts to count; what it returns says how many seconds that is ago, as far as they count."""


def wall_time() -> Callable[[], float]:
    began = time.monotonic()
    return lambda: time.monotonic() - began


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
        self._actuator = actuator
        self._record = record
        self._observe = observe
        self._hold_wait = hold_wait
        self._stopwatch = stopwatch
        self._armed = tuple(_arm(index, fault) for index, fault in enumerate(plan.faults))
        self._awaited: list[_Awaited] = []
        self._orders: dict[_Stopped, _Step] = {}
        self._arrivals: dict[_Stopped, threading.Event] = {}
        self._begun: set[tuple[str, str | None]] = set()
        self._batches = Batches()
        self._stages = Stages()
        self._tasks = Tasks()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._acting = 0
        self._held = 0
        self._moved = time.monotonic()
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
            for awaited in self._awaited:
                awaited.given_up = True
                awaited.seen.set()
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

    def pending(self) -> bool:
        """Whether a fault has not fired yet, a thread is held, or a paused process waits for a point."""
        with self._lock:
            return not all(armed.status.fired for armed in self._armed) or self._held > 0 or bool(self._awaited)

    def acting(self) -> bool:
        """Whether the actions of a fault are under way; waiting for the point of an ``until`` is not acting."""
        return self._acting > 0

    def holding(self) -> int:
        """How many threads are held by the plan."""
        return self._held

    def idle_seconds(self) -> float:
        """Seconds since the last report or the last action; 0 while one is under way."""
        return 0.0 if self.acting() else time.monotonic() - self._moved

    # -- what the rendezvous asks (Receiver) ----------------------------------------------------------------------

    def receive(self, message: Message) -> bytes | None:
        """The answer to a report; None once the trial has ended."""
        self._moved = time.monotonic()
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
        ``probe.answered`` and ``probe.not_answered``: of a ``drop`` and an ``answer`` at a connection."""
        kept = (
            "role",
            "error",
            "phase",
            "file",
            "line",
            "function",
            "outside",
            "service",
            "kind",
            "edge",
            "op",
            "path",
        )
        shown = {name: value for name, value in fields.items() if name in kept}
        with self._lock:
            self._record(event, {**shown, "process": process_of(fields)})
            stopped = _stopped({**fields, "process": process_of(fields)})
            ordered = self._orders.pop(stopped, None) if event in self._OUTCOMES else None
        if ordered is not None:
            self._OUTCOMES[event](self, fields, ordered)

    def _raised(self, fields: Mapping[str, Any], step: _Step) -> None:
        """An exception at a line, or an error of a change of a file, is confirmed by the probe that raised it."""
        outside = ", outside of the try around it" if fields.get("outside") else ""
        self._done(step, f"{_place(step)} raised {fields.get('error')}{outside}")

    def _not_raised(self, fields: Mapping[str, Any], step: _Step) -> None:
        error = f"{_place(step)} raised {fields.get('error')} itself: it has not been executed"
        self._failed(step, InjectionError(error))

    def _dropped(self, fields: Mapping[str, Any], step: _Step) -> None:
        """A connection that was cut is confirmed by the proxy that has closed it."""
        what = "request" if fields.get("edge") == "before" else "answer to"
        self._done(step, f"the {what} {fields.get('kind')} was dropped, and its connection to {fields['service']} cut")

    def _answered(self, fields: Mapping[str, Any], step: _Step) -> None:
        """A made-up answer is confirmed by the proxy that gives it."""
        what = "instead of being passed on" if fields.get("edge") == "before" else "though it was done"
        self._done(step, f"{fields.get('kind')} was answered with {fields.get('error')} {what}")

    def _not_answered(self, fields: Mapping[str, Any], step: _Step) -> None:
        error = f"{fields.get('kind')} cannot be answered with {fields.get('error')}: it was passed on"
        self._failed(step, InjectionError(error))

    _OUTCOMES: ClassVar[Mapping[str, Callable[[Injector, Mapping[str, Any], _Step], None]]] = {
        "probe.raised": _raised,
        "probe.not_raised": _not_raised,
        "probe.dropped": _dropped,
        "probe.answered": _answered,
        "probe.not_answered": _not_answered,
    }

    def _done(self, step: _Step, detail: str) -> None:
        """An order has been carried out; with the last one the fault is over."""
        self._confirmed(step, detail)
        if step.armed.status.error is None and not self._has_orders(step.armed):
            self._over(step.armed, confirmed=True)

    def _has_orders(self, armed: _Armed) -> bool:
        """Whether a line has yet to raise what the fault ordered."""
        with self._lock:
            return any(step.armed is armed for step in self._orders.values())

    # -- points ---------------------------------------------------------------------------------------------------

    def _point(self, fields: Mapping[str, Any]) -> bytes:
        with self._lock:
            point = to_point(fields, self._batches, self._stages, self._tasks)
        if point is None:
            return GO_ON
        point.update(self._observed(point))
        with self._lock:
            self._record("point", point)
            fires, again, holders, awaited = self._matching(point)
            arrived = self._arrivals.pop(_stopped(point), None)
        if arrived is not None:
            arrived.set()
        for waiting in awaited:
            waiting.reached = True
            waiting.seen.set()
            waiting.acted.wait()
        for armed in holders:
            self._hold(armed, point)
        return self._fire_all(fires, again, point)

    def _observed(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._observe is None:
            return {}
        try:
            return self._observe(point)
        except Exception as error:
            self.went_wrong(f"observation at {point.get('phase')}: {type(error).__name__}: {error}")
            return {}

    def _matching(self, point: Mapping[str, Any]) -> tuple[list[_Armed], list[_Armed], list[_Armed], list[_Awaited]]:
        """The faults that fire at this point, those that do again what they did before, those whose holds park it, and
        the pauses that end here."""
        numbers = [(armed, self._number(armed, point)) for armed in self._armed]
        counted = [(armed, number) for armed, number in numbers if number and armed.status.error is None]
        fires = [armed for armed, number in counted if number == 1]
        again = [armed for armed, number in counted if 1 < number <= armed.times]
        holders = [armed for armed in self._armed if self._parks(armed, point) and armed not in fires]
        awaited = [waiting for waiting in self._awaited if waiting.point.count(point) == waiting.point.nth]
        return fires, again, holders, awaited

    def _number(self, armed: _Armed, point: Mapping[str, Any]) -> int:
        """1 for the report at which the fault is reached, 2 for the next one of its point; 0 for others."""
        if armed.at is None or not armed.awaits <= self._begun:
            return 0
        count = armed.at.count(point)
        return max(0, count - armed.at.nth + 1) if count else 0

    @staticmethod
    def _parks(armed: _Armed, point: Mapping[str, Any]) -> bool:
        counts = [(hold, hold.count(point)) for hold in armed.holds]
        return not armed.over.is_set() and any(number is not None and number >= hold.nth for hold, number in counts)

    def _hold(self, armed: _Armed, point: Mapping[str, Any]) -> None:
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

    def _fire_all(self, fires: list[_Armed], again: list[_Armed], point: Mapping[str, Any]) -> bytes:
        """Carry out what the point set off, while its thread is parked; returns its answer."""
        answer = _Answer()
        for armed in fires:
            self._fire(armed, point, answer)
        for armed in again:
            self._repeat(armed, point, answer)
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

    def _fire(self, armed: _Armed, point: Mapping[str, Any], answer: _Answer) -> None:
        process = point.get("process")
        with self._lock:
            armed.status = replace(armed.status, reached=True, process=process)
            reached = {"fault": armed.index, "text": armed.status.text, "process": process, "point": point}
            self._record("fault.reached", reached)
        if self._holds(armed):
            self._carry_out(armed, point, answer)

    def _holds(self, armed: _Armed) -> bool:
        """Whether one of the fault's holds has stopped a thread, or none is to; waits for it, and fails the fault if
        none comes: what the plan says would not have happened."""
        if not armed.holds:
            return True
        with self._under_way():
            if armed.has_held.wait(self._hold_wait):
                return armed.status.error is None
        holds = " and ".join(f"hold({format_point(hold.selector)})" for hold in armed.holds)
        error = f"{holds} held no thread: none came there within {self._hold_wait:g} s"
        with self._lock:
            armed.status = replace(armed.status, error=error)
            self._record("fault.failed", {"fault": armed.index, "action": "hold", "error": error})
            armed.over.set()
        return False

    def _repeat(self, armed: _Armed, point: Mapping[str, Any], answer: _Answer) -> None:
        """Do once more what the fault does several times in a row."""
        for number in range(len(armed.fault.actions)):
            step = self._step(armed, number, point, answer)
            try:
                if step.times > 1:
                    detail = step.spec.act(step.action, step.scene)
                    with self._lock:
                        self._record("fault.repeated", step.as_fields() | {"process": step.process, "detail": detail})
            except Exception as error:
                self._failed(step, error)

    def _at_moment(self, armed: _Armed, seconds: float) -> None:
        if not self._closing.wait(seconds):
            self._fire(armed, {}, _Answer())

    def _carry_out(self, armed: _Armed, point: Mapping[str, Any], answer: _Answer, first: int = 0) -> None:
        """Do the fault's actions in turn from number ``first`` on; one that fails ends them.

        What comes after the first part of an action that lets the thread go is done by another thread.
        """
        with self._under_way():
            for number in range(first, len(armed.fault.actions)):
                step = self._step(armed, number, point, answer)
                try:
                    if step.lets_go:
                        self._begin(step)
                        return
                    self._perform(step)
                except Exception as error:
                    self._failed(step, error)
                    return
            self._over(armed, confirmed=not self._has_orders(armed))

    def _step(self, armed: _Armed, number: int, point: Mapping[str, Any], answer: _Answer) -> _Step:
        delay = restart_delay(armed.fault, armed.fault.actions[number].target)
        reference, thread = ActionReference(armed.index, number), _ParkedThread(self._closing, answer)
        return _Step(armed, number, thread, Scene(point, thread, reference, self._actuator, delay))

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._lock:
            self._acting += 1
        try:
            yield
        finally:
            with self._lock:
                self._acting -= 1
                self._moved = time.monotonic()

    def _perform(self, step: _Step) -> None:
        """One action with its events."""
        self._fired(step)
        self._note_begun(step.action)
        detail = step.spec.act(step.action, step.scene)
        if step.thread.told_to_act:
            with self._lock:
                self._orders[_stopped(step.scene.point)] = step
        else:
            self._confirmed(step, detail)

    def _begin(self, step: _Step) -> None:
        """The first part of an action; the rest is left to a thread of its own, since the parked one goes on."""
        awaited = _Awaited(Counter(step.action.until)) if step.action.until is not None else None
        with self._lock:
            self._awaited += [awaited] if awaited else []
        self._fired(step)
        try:
            detail = step.spec.act(step.action, step.scene)
        except BaseException:
            self._forget(awaited)
            raise
        self._note_begun(step.action)
        under_way, over = threading.Event(), threading.Event()
        if step.spec.keeps_thread:
            step.thread.answer.kept_until.append(over)

        def finish() -> None:
            try:
                self._end(step, awaited, detail, under_way)
            finally:
                if step.arrives_late and awaited is not None:
                    self._let_arrive(step, awaited, over)
                over.set()

        threading.Thread(target=finish, name=f"end of {step.action.name}", daemon=True).start()
        if awaited is None:
            under_way.wait()  # so that nobody takes the fault for done meanwhile

    def _note_begun(self, action: Action) -> None:
        with self._lock:
            self._begun.add((action.name, action.target))

    def _forget(self, awaited: _Awaited | None) -> None:
        if awaited is not None:
            with self._lock:
                self._awaited.remove(awaited)
            awaited.acted.set()

    def _end(self, step: _Step, awaited: _Awaited | None, detail: str, under_way: threading.Event) -> None:
        """The second part of an action, then what follows it. With ``until`` it begins when the point is reported, by
        any process at any time, and the thread that reported it stays parked until it is done."""
        if awaited is not None:
            self._wait_for(awaited, step.longest)
        with self._under_way():
            under_way.set()
            try:
                self._confirmed(step, f"{detail}; {self._ended(step, awaited)}")
            except Exception as error:
                self._failed(step, error)
            finally:
                if not step.arrives_late:
                    self._forget(awaited)
            if step.armed.status.error is None:
                self._carry_out(step.armed, step.scene.point, step.thread.answer, step.number + 1)

    def _let_arrive(self, step: _Step, awaited: _Awaited, over: threading.Event) -> None:
        """What is late arrives before that which it was kept for: whoever asks for the same goes on once its answer has
        come."""
        answered = threading.Event()
        if awaited.reached:
            with self._lock:
                self._arrivals[_stopped(step.scene.point)] = answered
            over.set()
            answered.wait(ARRIVAL)
        self._forget(awaited)

    def _wait_for(self, awaited: _Awaited, longest: float | None) -> None:
        """Until the point is reported, or for so many seconds."""
        if longest is None:
            awaited.seen.wait()
            return
        waited = self._stopwatch()
        while waited() < longest and not awaited.seen.wait(min(longest, LOOK_SECONDS)):
            pass

    def _ended(self, step: _Step, awaited: _Awaited | None) -> str:
        assert step.spec.end is not None  # declarations.check_spec
        detail = step.spec.end(step.action, step.scene)
        if awaited is not None:
            with self._lock:
                fields = {"fault": step.armed.index, "process": step.process, "detail": detail}
                self._record("resumed", {**fields, "reached": awaited.reached, "given_up": awaited.given_up})
            if awaited.given_up and step.longest is None:
                raise InjectionError("resumed without the point that it was to wait for: that was never reported")
        return detail

    def _fired(self, step: _Step) -> None:
        with self._lock:
            step.armed.status = replace(step.armed.status, fired=True)
            self._record("fault.fired", step.as_fields() | {"process": step.process})

    def _confirmed(self, step: _Step, detail: str) -> None:
        with self._lock:
            self._record("fault.confirmed", step.as_fields() | {"process": step.process, "detail": detail})

    def _failed(self, step: _Step, error: Exception) -> None:
        with self._lock:
            text = str(error) or type(error).__name__
            step.armed.status = replace(step.armed.status, error=text)
            self._record("fault.failed", step.as_fields() | {"error": text})
            self._over(step.armed, confirmed=False)

    def _over(self, armed: _Armed, *, confirmed: bool) -> None:
        """The fault is done: what it held goes on."""
        with self._lock:
            armed.status = replace(armed.status, confirmed=confirmed)
        armed.over.set()


def _arm(index: int, fault: Fault) -> _Armed:
    return _Armed(
        index=index,
        fault=fault,
        at=None if isinstance(fault.at, Moment) else Counter(fault.at),
        holds=tuple(map(Counter, fault.holds)),
        status=FaultStatus(index, format_fault(fault)),
        awaits=frozenset(_ended_elsewhere(fault)),
        times=max(map(_times, fault.actions)),
    )


def _times(action: Action) -> int:
    """At how many reports of its point in a row an action is done."""
    spec = action_named(action.name)
    return int(spec.value(action, spec.times) or 1) if spec.times else 1


def _ended_elsewhere(fault: Fault) -> Iterator[tuple[str, str | None]]:
    """What the fault's actions end and another fault begins: the action and the target."""
    for action in fault.actions:
        spec = action_named(action.name)
        if spec.follows and not spec.same_fault:
            yield spec.follows, action.target


def _stopped(fields: Mapping[str, Any]) -> _Stopped:
    return (str(fields.get("process")), *(str(fields.get(name)) for name in ("thread", "file", "line")))


def _place(step: _Step) -> str:
    point = step.scene.point
    if point.get("phase") == "file":
        return f"{point.get('op')} of {point.get('path')}, {point.get('edge')} it was done,"
    if point.get("phase") == "call":
        return f"the call of {point.get('function')}"
    return f"line {point.get('file')}:{point.get('line')}"
