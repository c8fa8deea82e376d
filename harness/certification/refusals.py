"""Refusals that come back: who asks again must not go on as if the last time had succeeded.

Whether a sink asks again by itself shows in the trial that refused it once: the same run, or the same attempt of a
task, comes to such a request more often than in the reference trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...faults import format_fault
from .limits import tries
from .points import Question, SweepPoint, dies_behind, has_next
from .requests import ANSWER
from .retries import again_and_again
from .starts import Struck
from .trace import Event, Line, Step, around, executions, line_of, reports

ALIKE = ("phase", "edge", "service", "kind", "partition", "attempt")


def is_refused(point: SweepPoint) -> bool:
    """Whether it is one request that the service says it has not done."""
    if len(point.plan.faults) > 1 or point.batch is None or not isinstance(point.at, Step):
        return False
    return point.at.edge == "before" and point.plan.faults[0].actions[0].name == ANSWER


def refused_again(question: Question, struck: Iterable[Struck]) -> Iterator[SweepPoint]:
    """The same refusal several times in a row; ``struck`` are refused points with the journals of their trials. Once
    for each line that follows a refusal also with the driver's death behind the batch: what is given up may be kept for
    the next one."""
    given_up: dict[Line | None, SweepPoint] = {}
    for point, journal in struck:
        if asked_again(question, point, journal):
            again = again_and_again(point, tries(question))
            yield again
            assert point.batch is not None  # a request is refused in one
            if has_next(question, point.batch):
                given_up.setdefault(_line_behind(point, journal), dies_behind(again))
    yield from given_up.values()


def asked_again(question: Question, point: SweepPoint, journal: Sequence[Event]) -> bool:
    """Whether the run, or the attempt of a task, that lost a request, or had it refused, has made more such requests
    than in the reference trace."""
    assert point.batch is not None  # a request is lost in one
    _, after = around(format_fault(point.plan.faults[0]), journal)
    refused = after[0]["point"]
    asked = [event for event in _alike(journal, point.batch, refused) if event.get("run") == refused.get("run")]
    return len(asked) > len(_alike(question.trace, point.batch, refused))


def _line_behind(point: SweepPoint, journal: Sequence[Event]) -> Line | None:
    _, after = around(format_fault(point.plan.faults[0]), journal)
    return next((line_of(event) for event in executions(after, point.batch, after[0]["point"].get("run"))), None)


def _alike(journal: Sequence[Event], batch: int, request: Event) -> list[Event]:
    return [one for one in reports(journal, batch) if all(one.get(name) == request.get(name) for name in ALIKE)]
