"""What the job asks of the services of its targets, as points: crashes are told apart only by what lies between them.

So the driver dies before each request that may change something, and after the last one: in the batch of each role, and
where only a replay asks. Each kind is also lost once, on its way out and on its way back.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...faults import Action, Fault, Plan, Point, format_action
from ...faults.protocols import PROTOCOLS
from .points import KILL, Gap, Question, SweepPoint, crash_in
from .trace import Event, Step, reports, runs_of

DROP = Action("drop")

PHASE = "request"

Signature = tuple[str, str, str]
"""Service, kind, and the text without its numbers: two requests of one signature differ in their values only."""


@dataclass(frozen=True)
class _Request:
    """A request of a batch: the ``nth`` of its kind at its service, counted over the runs of the batch."""

    service: str
    kind: str
    nth: int
    signature: Signature

    def point(self, edge: str, batch: int) -> Point:
        where = {"service": self.service, "kind": self.kind, "batch": batch}
        return Point(PHASE, edge, where, self.nth)  # type: ignore[arg-type]

    @property
    def unsteady(self) -> bool:
        return self.service in PROTOCOLS and self.kind in PROTOCOLS[self.service].unsteady

    @property
    def shown(self) -> str:
        return f"{self.kind} {self.nth} to {self.service}"


def requests(question: Question) -> Iterator[SweepPoint | Gap]:
    if question.phases is not None and PHASE not in question.phases:
        return
    found = {role: _steady(question, batch) for role, batch in question.roles.items()}
    if not any(found.values()) and question.phases is not None:
        yield from _none(question)
    for role, of_role in found.items():
        yield from _crashes(of_role, role, question.roles[role], full=question.profile == "full")
    yield from _losses(question, found)
    for role, batch in question.roles.items():
        yield from _in_the_replay(question, role, batch)


def is_request(point: SweepPoint) -> bool:
    return isinstance(point.at, Step) and point.at.phase == PHASE


def _steady(question: Question, batch: int) -> list[_Request]:
    """The requests of a batch that any run of it has: how often a client asks may differ from run to run. So those that
    both traces have; and of kinds that are known to differ the first, but in a full sweep."""
    runs = runs_of(question.replay, batch)
    found = _of_batch(question.trace, batch)
    if question.profile != "full":
        found = [one for one in found if one.nth == 1 or not one.unsteady]
    if not runs:
        return found
    again = {(one.service, one.kind, one.nth) for one in _of_batch(question.replay, batch, runs[:1])}
    return [one for one in found if (one.service, one.kind, one.nth) in again]


def _none(question: Question) -> Iterator[SweepPoint | Gap]:
    """Why there are none: the environment cannot have them, or the sink asks its services for nothing in a batch."""
    here = Step(PHASE, "before")
    for role, batch in question.roles.items():
        reason = question.refusal(Plan((Fault(Point(PHASE, "before", {"batch": batch}), (KILL,)),)))
        missing = f"batch {batch} asked no service for a change in the reference trace"
        yield Gap(here, format_action(KILL), role, reason or missing)


def _crashes(found: Sequence[_Request], role: str, batch: int, *, full: bool) -> Iterator[SweepPoint]:
    """Before each request and after the last one; of several alike in a row, before the first and the last."""
    for number, request in enumerate(found):
        alike = [
            0 <= other < len(found) and found[other].signature == request.signature
            for other in (number - 1, number + 1)
        ]
        if full or not all(alike):
            yield _point(request, "before", KILL, role, batch)
    if found:
        yield _point(found[-1], "after", KILL, role, batch)


def _losses(question: Question, found: dict[str, list[_Request]]) -> Iterator[SweepPoint]:
    """The first of each signature, the roles in rotation."""
    where: dict[Signature, list[tuple[str, _Request]]] = {}
    for role, of_role in found.items():
        seen = set[Signature]()
        for request in of_role:
            if request.signature not in seen:
                seen.add(request.signature)
                where.setdefault(request.signature, []).append((role, request))
    for turn, (places, edge) in enumerate((places, edge) for places in where.values() for edge in ("before", "after")):
        role, request = places[turn % len(places)]
        yield _point(request, edge, DROP, role, question.roles[role])


def _in_the_replay(question: Question, role: str, batch: int) -> Iterator[SweepPoint]:
    """A second crash before each request that only the replay sends."""
    runs = runs_of(question.replay, batch)
    if len(runs) < 2:
        return
    crash = crash_in(batch)
    killed = _of_batch(question.replay, batch, runs[:1])
    known = {one.signature for one in (*_of_batch(question.trace, batch), *killed)}
    for request in _of_batch(question.replay, batch, runs[:2])[len(killed) :]:
        if request.signature not in known:
            known.add(request.signature)
            yield _point(request, "before", KILL, role, batch, crash)


def _point(
    request: _Request, edge: str, action: Action, role: str, batch: int, before: Fault | None = None
) -> SweepPoint:
    faults = (*([before] if before else []), Fault(request.point(edge, batch), (action,)))
    detail = ", ".join([*(["in the replay"] if before else []), request.shown])
    return SweepPoint(Step(PHASE, edge), format_action(action), role, batch, Plan(faults), detail)


def _of_batch(journal: Sequence[Event], batch: int, runs: Sequence[str] | None = None) -> list[_Request]:
    """The requests of a batch in the order in which they came, in these runs or in all."""
    counts = Counter[tuple[str, str]]()
    found = []
    for event in reports(journal, batch):
        if (event["phase"], event.get("edge")) == (PHASE, "before") and (runs is None or event.get("run") in runs):
            service, kind = event["service"], event["kind"]
            counts[service, kind] += 1
            signature = (service, kind, re.sub(r"\d+", "0", event.get("text", "")))
            found.append(_Request(service, kind, counts[service, kind], signature))
    return found
