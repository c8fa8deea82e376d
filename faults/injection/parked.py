"""The thread that is parked at a point: what it will be told, and the action that is done meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...plans import Action
from ..capabilities import InjectionError, Scene
from ..catalogue import action_named, ends_by_death
from ..declarations import ActionSpec
from ..printing import format_action
from ..rendezvous import ANSWER, DROP, FAIL, GO_ON
from .armed import ArmedFault, times_of

Stopped = tuple[str, ...]
"""The process and thread of what acts on an order, a connection too, and the file and line of a line that raises."""


def stopped_at(fields: Mapping[str, Any]) -> Stopped:
    return (str(fields.get("process")), *(str(fields.get(name)) for name in ("thread", "file", "line")))


CUT_TWICE = "it is cut, or answered, already: it can be one of the two, once"


@dataclass
class Answer:
    """What a parked thread will be told: all actions that are done while it is parked share it. It is told that once
    all of ``kept_until`` are set."""

    text: bytes = GO_ON
    ordered: bool = False
    late: bool = False
    kept_until: list[threading.Event] = field(default_factory=list)


@dataclass
class ParkedThread:
    """The thread that waits for its answer, as one action has it; implements :class:`..capabilities.Thread`.

    ``told_to_act``: what the action ordered it to do is confirmed by the probe that does it.
    """

    closing: threading.Event
    answer: Answer
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
class Step:
    """The ``number``-th action of a fault, and where it is done."""

    armed: ArmedFault
    number: int
    thread: ParkedThread
    scene: Scene

    @property
    def action(self) -> Action:
        return self.armed.fault.actions[self.number]

    @property
    def spec(self) -> ActionSpec:
        return action_named(self.action.name)

    @property
    def times(self) -> int:
        return times_of(self.action)

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
    def keeps_thread(self) -> bool:
        """Whether the parked thread goes on behind the action's end only."""
        return self.spec.keeps_thread or (self._goes_out and self.action.target in self.spec.keeps_requests_of)

    @property
    def ends_by_death(self) -> bool:
        """Whether what it has stopped is killed before it goes on."""
        return ends_by_death(self.armed.fault, self.number)

    @property
    def arrives_late(self) -> bool:
        """Whether the parked thread passes a request on once the action, the last of its fault, is over."""
        last = self.number == len(self.armed.fault.actions) - 1
        return last and self.spec.keeps_thread and self._goes_out and self.scene.point["phase"] == "request"

    @property
    def _goes_out(self) -> bool:
        point = self.scene.point
        return point.get("phase") in ("request", "lookup") and point.get("edge") == "before"

    @property
    def process(self) -> str | None:
        """The process whose thread is parked."""
        return self.scene.point.get("process")

    def as_fields(self) -> dict[str, Any]:
        return self.scene.reference.as_fields() | {"action": format_action(self.action)}
