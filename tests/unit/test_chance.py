"""Points that no try reached are left out where they depend on time, and there only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from onceproof.assertions import Outcome
from onceproof.faults import parse
from onceproof.harness.certification.chance import Traces, left_to_chance
from onceproof.harness.certification.points import Space, SweepPoint
from onceproof.harness.certification.results import PointResult, Store
from onceproof.harness.certification.scope import scope_of
from onceproof.harness.certification.trace import Line, Step

ROLES = {"first": 0, "middle": 1}
MISSED = {"verdict": Outcome.INCONCLUSIVE.value, "reached": False, "without_trial": False}


def line(number: int, batch: int, run: str) -> dict[str, Any]:
    return {"event": "point", "phase": "line", "file": "s.py", "line": number, "batch": batch, "run": run}


def asked(kind: str, batch: int, run: str) -> list[dict[str, Any]]:
    of_request = {"event": "point", "phase": "request", "service": "postgres", "kind": kind, "batch": batch, "run": run}
    return [{**of_request, "edge": edge} for edge in ("before", "after")]


def ran(run: str, beats: dict[int, int]) -> list[dict[str, Any]]:
    """A run of these batches: line 7 inserts once in each, and beside it a thread updates so often, in line 9."""
    found = []
    for batch, times in beats.items():
        found += [line(7, batch, run), *asked("INSERT", batch, run)]
        found += [line(9, batch, run), *asked("UPDATE", batch, run)] * times
    return found


TRACES = Traces(ran("a", {0: 2, 1: 1}), [*ran("b", {0: 2}), *ran("c", {0: 1, 1: 0}), *ran("d", {1: 3})], [0, 1])


def point(plan: str) -> SweepPoint:
    text = plan.split("; ")[-1]
    at = Line("s.py", int(text[10])) if text.startswith("line") else Step(*text.split("[")[0].split(":"))
    return SweepPoint(at, "kill(driver)", "middle", 1, parse(f"{plan} -> kill(driver)"))


def left(missed: SweepPoint, tried: Sequence[dict[str, Any]] = (), **result: Any) -> Space:
    """The space of one point, with what became of it, and what its trial reported."""
    results = {missed.text: SimpleNamespace(**MISSED | result)}
    return left_to_chance(Space((missed,)), cast(Store, results), TRACES, lambda result: tried)


@pytest.mark.parametrize(
    "plan",
    [
        "line[s.py:9][batch=1]#1",
        "line[s.py:9][batch=0]#2",
        "line[s.py:9]#1",
        "request:after[service=postgres, kind=UPDATE, batch=0]#2",
        "batch.commit:before[batch=1] -> kill(driver); request:before[service=postgres, kind=UPDATE, batch=1]#1",
    ],
)
def test_what_batches_have_more_or_less_often_is_left_to_chance(plan: str) -> None:
    missed = replace(point(plan), detail="the second")
    found = left(missed)
    reason = "the second: it comes as time has it, and did not in any try"
    assert (found.points, [(gap.at, gap.reason) for gap in found.by_chance]) == ((), [(missed.at, reason)])
    assert found.whole


@pytest.mark.parametrize(
    "plan",
    [
        "line[s.py:7][batch=1]#1",
        "line[s.py:8][batch=1]#1",
        "request:before[service=postgres, kind=INSERT, batch=1]#1",
        "batch.commit:before[batch=1]",
    ],
)
def test_what_both_traces_have_equally_often_must_be_reached(plan: str) -> None:
    missed = point(plan)
    assert left(missed).points == (missed,)


@pytest.mark.parametrize("result", [{"reached": True}, {"without_trial": True}, {"verdict": "fail"}])
def test_only_what_was_not_reached_is_left_to_chance(result: dict[str, Any]) -> None:
    missed = point("line[s.py:9][batch=1]#1")
    assert left(missed, **result).points == (missed,)


def test_what_has_no_result_yet_and_what_was_never_traced_is_kept() -> None:
    missed = point("line[s.py:9][batch=1]#1")
    assert left_to_chance(Space((missed,)), cast(Store, {}), TRACES, lambda result: ()).points == (missed,)
    alone = Traces(TRACES.reference, (), [0, 1])
    results = cast(Store, {missed.text: SimpleNamespace(**MISSED)})
    assert left_to_chance(Space((missed,)), results, alone, lambda result: ()).points == (missed,)


def test_what_is_there_more_often_where_lines_are_reported_is_left_to_chance() -> None:
    """A sink that flushes by age."""
    trace = [event for run in ("a", "b") for event in asked("INSERT", 1, run) * 3]
    flushes = Traces(trace[:6], trace[6:], [1])
    third = point("request:before[service=postgres, kind=INSERT, batch=1]#3")

    def kept(*tried: dict[str, Any], of: SweepPoint = third) -> bool:
        results = cast(Store, {of.text: SimpleNamespace(**MISSED)})
        return left_to_chance(Space((of,)), results, flushes, lambda result: tried).points == (of,)

    committed = {"event": "point", "phase": "batch.commit", "edge": "after", "batch": 1, "run": "t"}
    twice = asked("INSERT", 1, "t") * 2
    assert not kept(*twice, committed)
    assert kept(*twice), "the batch was not committed"
    assert kept(committed), "that it was not seen at all has another reason"
    assert kept(*twice, *asked("INSERT", 1, "t"), committed), "the third one was there"
    crash = "batch.commit:before[batch=1] -> kill(driver); "
    assert kept(*twice, committed, of=point(f"{crash}request:before[service=postgres, kind=INSERT, batch=1]#3"))


def test_a_certificate_names_what_was_left_to_chance() -> None:
    met = point("line[s.py:7][batch=1]#1")
    space = Space((met,), by_chance=left(point("line[s.py:9][batch=1]#1")).by_chance)
    results = {met.text: cast(PointResult, SimpleNamespace(verdict="pass", reached=True))}
    found = scope_of(space, space, results, ROLES)
    assert found.summary == "1 point over 1 batch; left to chance: 1 point at line s.py:9"
    assert [(cell.step, cell.status, cell.missing) for cell in found.cells] == [
        ("line s.py:7", "pass", False),
        ("line s.py:9", "left to chance", False),
    ]
