"""What a sweep strikes with on machines of their own only."""

from __future__ import annotations

from pathlib import Path

from onceproof.assertions import Guarantee
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.session import Session


def test_a_task_that_was_taken_for_lost_comes_back_and_its_rows_are_there_twice(
    session: Session, tmp_path: Path
) -> None:
    request = Request("file_bare", claim=Guarantee.EXACTLY_ONCE)
    found = certify(session, request, tmp_path / "sweep", Wanted(points="task.row:before"))
    assert found.verdict == "fail", found.summary
    [point] = found.points
    assert point.step == "task.row:before, taken for lost, partition(executor), second batch"
    assert (point.verdict, set(point.anomalies)) == ("fail", {"duplicated"})
    assert "ran twice" in point.reason
