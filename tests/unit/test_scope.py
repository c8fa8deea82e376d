"""The sentence that says what a certificate covers."""

from __future__ import annotations

from onceproof.faults import parse
from onceproof.harness.certification.points import Gap, Space, SweepPoint
from onceproof.harness.certification.results import PointResult
from onceproof.harness.certification.scope import scope_of
from onceproof.harness.certification.space import chosen as chosen_of
from onceproof.harness.certification.steps import IN_THE_REPLAY
from onceproof.harness.certification.trace import Step

ROLES = {"middle": 1}


def point(text: str) -> SweepPoint:
    return SweepPoint(Step("task.run", "after"), "fail", "middle", 1, parse(text))


def failed(asked: SweepPoint) -> PointResult:
    return PointResult(
        verdict="fail", exactly_once="fail", guarantee="none", reason="", anomalies={}, seconds=1, run_directory="/run",
        step=asked.label, plan=asked.text, tries=1, cell=("task.run:after", "fail", "middle"), batch=1, reached=True,
        landed=True, packed=1,
    )  # fmt: skip


def test_points_that_a_sweep_was_too_short_for_are_not_left_out_by_choice() -> None:
    """The three are one cell of the matrix: its worst point, which failed, hides that others were not run."""
    first, second, third = (point(f"task.run:after[batch=1]#{number} -> fail") for number in (1, 2, 3))
    space = Space((first, second, third))
    results = {first.text: failed(first)}
    assert scope_of(space, space, results, ROLES).summary == "1 of 3 points over 1 batch"
    chosen = Space((first, second))
    assert scope_of(space, chosen, results, ROLES).summary == "1 of 2 points over 1 batch; not asked: 1 point"


def test_what_is_not_possible_here_is_missing_only_where_it_was_asked_for() -> None:
    """So that a sweep and the check of what it has stored come to the same."""
    untried = Gap(Step("sink.write", "before"), "kill(broker, which=leader)", "middle", "there is one broker")
    space = Space((point("task.run:after[batch=1] -> fail"),), untried=(untried,))
    for points, status in (("phases", "not tried"), ("task.run:after", "not asked")):
        asked = chosen_of(space, points)
        (cell,) = (cell for cell in scope_of(space, asked, {}, ROLES).cells if not cell.points)
        assert (cell.status, cell.missing, asked.whole) == (status, not asked.whole, status == "not asked")


def test_a_batch_that_was_not_replayed_is_missing_whatever_needed_its_replay() -> None:
    gap = Gap(IN_THE_REPLAY, "kill(driver)", "middle", "batch 1 was not replayed in the trace")
    space = Space((), unreached=(gap,))
    for points in ("lines", "effects", "line mine.py:7", "all"):
        assert not chosen_of(space, points).whole
