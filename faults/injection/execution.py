"""What is done for a fault whose point was reported: its actions in turn, and what each waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from ...plans import ActionReference
from ..capabilities import Actuator, InjectionError, Scene
from ..catalogue import action_named, restart_delay
from ..declarations import ITSELF, SPARK_TARGETS
from ..matching import Counter
from .armed import ArmedFault, Awaited
from .outcomes import OUTCOMES
from .parked import Answer, ParkedThread, Step, Stopped, stopped_at

Record = Callable[[str, Mapping[str, Any]], None]

Stopwatch = Callable[[], Callable[[], float]]
"""Starts to count; what it returns says how many seconds that is ago, as far as they count."""

LOOK_SECONDS = 0.5
"""Between two looks at a stopwatch."""

JOBS = ("driver", *SPARK_TARGETS, ITSELF)
"""Targets that are processes of the job, or have some."""

ARRIVAL = 2.0
"""Seconds that whoever reported the point of an ``until`` is kept at most, until a late request has been answered."""


def wall_time() -> Callable[[], float]:
    began = time.monotonic()
    return lambda: time.monotonic() - began


class Execution:
    """Carries out the actions of faults, each on the thread that reported its point.

    ``record`` is called with ``lock``, which also guards what this class and its caller share. ``closing`` is set once
    the trial has ended. ``stopwatch`` counts the time of what is to end after so long at the latest.
    """

    def __init__(
        self,
        actuator: Actuator | None,
        record: Record,
        lock: threading.RLock,
        closing: threading.Event,
        stopwatch: Stopwatch,
    ) -> None:
        self._actuator = actuator
        self._record = record
        self._lock = lock
        self._closing = closing
        self._stopwatch = stopwatch
        self._awaited: list[Awaited] = []
        self._orders: dict[Stopped, Step] = {}
        self._arrivals: dict[Stopped, threading.Event] = {}
        self._begun: set[tuple[str, str | None]] = set()
        self._deaths = 0
        self._dying: set[str] = set()
        self._acting = 0

    # -- what is asked of it --------------------------------------------------------------------------------------

    @property
    def acting(self) -> bool:
        """Whether actions are under way; waiting for the point of an ``until`` is not acting."""
        return self._acting > 0

    def has_begun(self, actions: frozenset[tuple[str, str | None]]) -> bool:
        """Whether all of these actions, each with its target, have been begun."""
        return actions <= self._begun

    def is_dying(self, point: Mapping[str, Any]) -> bool:
        """Whether it is of a run whose driver is being killed: its other threads go on until it is dead, and what they
        report until then is behind the moment of its death."""
        return point.get("run") in self._dying

    def awaited_at(self, point: Mapping[str, Any]) -> list[Awaited]:
        """What waits for this report. Counts it."""
        return [waiting for waiting in self._awaited if waiting.point.count(point) == waiting.point.nth]

    def arrived(self, point: Mapping[str, Any]) -> None:
        """A late request of this connection has been answered, if there was one."""
        with self._lock:
            answered = self._arrivals.pop(stopped_at(point), None)
        if answered is not None:
            answered.set()

    def give_up(self) -> None:
        """What is awaited cannot come any more."""
        for awaited in self._awaited:
            awaited.given_up = True
            awaited.seen.set()

    @contextmanager
    def under_way(self) -> Iterator[None]:
        with self._lock:
            self._acting += 1
        try:
            yield
        finally:
            with self._lock:
                self._acting -= 1

    # -- what it does ---------------------------------------------------------------------------------------------

    def carry_out(self, armed: ArmedFault, point: Mapping[str, Any], answer: Answer, first: int = 0) -> None:
        """Do the fault's actions in turn from number ``first`` on; one that fails ends them.

        What comes after the first part of an action that lets the thread go is done by another thread.
        """
        with self.under_way():
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

    def repeat(self, armed: ArmedFault, point: Mapping[str, Any], answer: Answer) -> None:
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

    def outcome(self, event: str, fields: Mapping[str, Any]) -> None:
        """Whoever was ordered to do something says what became of it; with the last order the fault is over."""
        with self._lock:
            step = self._orders.pop(stopped_at(fields), None)
        if step is None:
            return
        try:
            detail = OUTCOMES[event](fields, step.scene.point)
        except InjectionError as error:
            self._failed(step, error)
            return
        self._confirmed(step, detail)
        if step.armed.status.error is None and not self._has_orders(step.armed):
            self._over(step.armed, confirmed=True)

    # -- one action -----------------------------------------------------------------------------------------------

    def _step(self, armed: ArmedFault, number: int, point: Mapping[str, Any], answer: Answer) -> Step:
        delay = restart_delay(armed.fault, number)
        reference, thread = ActionReference(armed.index, number), ParkedThread(self._closing, answer)
        return Step(armed, number, thread, Scene(point, thread, reference, self._actuator, delay))

    def _has_orders(self, armed: ArmedFault) -> bool:
        """Whether a line has yet to raise what the fault ordered."""
        with self._lock:
            return any(step.armed is armed for step in self._orders.values())

    def _perform(self, step: Step) -> None:
        """One action with its events."""
        self._fired(step)
        self._note_begun(step)
        detail = step.spec.act(step.action, step.scene)
        if step.thread.told_to_act:
            with self._lock:
                self._orders[stopped_at(step.scene.point)] = step
        else:
            self._confirmed(step, detail)

    def _begin(self, step: Step) -> None:
        """The first part of an action; the rest is left to a thread of its own, since the parked one goes on."""
        awaited = Awaited(Counter(step.action.until)) if step.action.until is not None else None
        with self._lock:
            self._awaited += [awaited] if awaited else []
        self._fired(step)
        try:
            detail = step.spec.act(step.action, step.scene)
        except BaseException:
            self._forget(awaited)
            raise
        self._note_begun(step)
        under_way, over, deaths = threading.Event(), threading.Event(), self._deaths
        if step.keeps_thread:
            step.thread.answer.kept_until.append(over)

        def finish() -> None:
            try:
                self._end(step, awaited, detail, under_way)
            finally:
                if step.arrives_late and awaited is not None:
                    # What a plan kills had not sent it; who has died of the delay had, and it arrives all the same.
                    step.thread.answer.late = self._deaths == deaths
                    self._let_arrive(step, awaited, over)
                over.set()

        threading.Thread(target=finish, name=f"end of {step.action.name}", daemon=True).start()
        if awaited is None:
            under_way.wait()  # so that nobody takes the fault for done meanwhile

    def _note_begun(self, step: Step) -> None:
        action = step.action
        kills = "kill" in (action.name, action_named(action.name).counts_as)
        with self._lock:
            self._begun.add((action.name, action.target))
            self._deaths += kills and action.target in JOBS
            if kills and action.target == "driver" and "run" in step.scene.point:
                self._dying.add(step.scene.point["run"])

    def _forget(self, awaited: Awaited | None) -> None:
        if awaited is not None:
            with self._lock:
                self._awaited.remove(awaited)
            awaited.acted.set()

    # -- what outlasts the report ---------------------------------------------------------------------------------

    def _end(self, step: Step, awaited: Awaited | None, detail: str, under_way: threading.Event) -> None:
        """The second part of an action, then what follows it. With ``until`` it begins when the point is reported, by
        any process at any time, and the thread that reported it stays parked until it is done."""
        if awaited is not None:
            self._wait_for(awaited, step.longest)
        with self.under_way():
            under_way.set()
            try:
                self._confirmed(step, f"{detail}; {self._ended(step, awaited)}")
            except Exception as error:
                self._failed(step, error)
            finally:
                if not step.arrives_late:
                    self._forget(awaited)
            if step.armed.status.error is None:
                self.carry_out(step.armed, step.scene.point, step.thread.answer, step.number + 1)

    def _let_arrive(self, step: Step, awaited: Awaited, over: threading.Event) -> None:
        """What is late arrives before that which it was kept for: whoever asks for the same goes on once its answer has
        come."""
        answered = threading.Event()
        if awaited.reached:
            with self._lock:
                self._arrivals[stopped_at(step.scene.point)] = answered
            over.set()
            answered.wait(ARRIVAL)
        self._forget(awaited)

    def _wait_for(self, awaited: Awaited, longest: float | None) -> None:
        """Until the point is reported, or for so many seconds."""
        if longest is None:
            awaited.seen.wait()
            return
        waited = self._stopwatch()
        while waited() < longest and not awaited.seen.wait(min(longest, LOOK_SECONDS)):
            pass

    def _ended(self, step: Step, awaited: Awaited | None) -> str:
        assert step.spec.end is not None  # declarations.check_spec
        # Asked before: once it goes on, the process may report the point itself.
        reached = awaited is not None and awaited.reached
        detail = "it does not go on" if step.ends_by_death else step.spec.end(step.action, step.scene)
        if awaited is not None:
            with self._lock:
                fields = {"fault": step.armed.index, "process": step.process, "detail": detail}
                self._record("resumed", {**fields, "reached": reached, "given_up": awaited.given_up})
            if awaited.given_up and step.longest is None:
                raise InjectionError("resumed without the point that it was to wait for: that was never reported")
        return detail

    # -- what became of it ----------------------------------------------------------------------------------------

    def _fired(self, step: Step) -> None:
        with self._lock:
            step.armed.status = replace(step.armed.status, fired=True)
            self._record("fault.fired", step.as_fields() | {"process": step.process})

    def _confirmed(self, step: Step, detail: str) -> None:
        with self._lock:
            self._record("fault.confirmed", step.as_fields() | {"process": step.process, "detail": detail})

    def _failed(self, step: Step, error: Exception) -> None:
        with self._lock:
            text = str(error) or type(error).__name__
            step.armed.status = replace(step.armed.status, error=text)
            self._record("fault.failed", step.as_fields() | {"error": text})
            self._over(step.armed, confirmed=False)

    def _over(self, armed: ArmedFault, *, confirmed: bool) -> None:
        """The fault is done: what it held goes on."""
        with self._lock:
            armed.status = replace(armed.status, confirmed=confirmed)
        armed.over.set()
