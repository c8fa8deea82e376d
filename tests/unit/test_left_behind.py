"""Where a run goes on after an error, a later batch may have to make up for what the struck one has left."""

from __future__ import annotations

from typing import Any

from onceproof.faults import parse
from onceproof.harness.certification.left_behind import Behind, noting_left_behind
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.trace import Line

FAIL = "line[s.py:7][batch=1]#1 -> fail(error=OSError)"
KILLED = "line[s.py:7][batch=1]#1 -> kill(driver)"


def lines(batch: int, *numbers: int, run: str = "1", role: str = "python-driver") -> list[dict[str, Any]]:
    place = {"file": "s.py", "run": run, "batch": batch, "role": role, "process": f"local:{run}", "thread": "T"}
    return [{"event": "point", "phase": "line", "line": number, **place} for number in numbers]


QUESTION = Question(trace=[*lines(1, 5, 7, 8), *lines(2, 5, 7, 8)], roles={"middle": 1}, refusal=lambda plan: None)


def reached(text: str, batch: int = 1) -> dict[str, Any]:
    return {"event": "fault.reached", "fault": 0, "text": text, "point": {"run": "1", "batch": batch}}


def found(text: str, *after: dict[str, Any]) -> list[str]:
    action = text.rpartition(" -> ")[2]
    point = SweepPoint(Line("s.py", 7), action, "middle", 1, parse(text))
    struck = [(point, [*lines(1, 5, 7), reached(text), *after])]
    noted: Behind = {}
    assert list(noting_left_behind(QUESTION, struck, noted)) == struck
    return [one.text for one in noted.values()]


def test_the_driver_dies_behind_the_batch_whose_error_was_caught() -> None:
    assert found(FAIL, *lines(1, 9), *lines(2, 5, 7, 8)) == [f"{FAIL}; batch.commit:after[batch=1] -> kill(driver)"]


def test_it_dies_where_the_next_batch_takes_another_way_or_does_more() -> None:
    assert found(FAIL, *lines(1, 9), *lines(2, 3, 5, 7, 7, 8))[1:] == [
        f"{FAIL}; line[s.py:{line}][batch=2]#{nth} -> kill(driver)" for line, nth in ((3, 1), (5, 1), (7, 2))
    ]


def test_how_often_a_task_executes_a_line_says_nothing() -> None:
    assert len(found(FAIL, *lines(1, 9), *lines(2, 5, 7, 8), *lines(2, 7, 7, role="python-worker"))) == 2, "a new way"


def test_what_another_fault_of_the_run_has_changed_is_no_point() -> None:
    other = reached("task.run:after[batch=2] -> fail", batch=2)
    assert len(found(FAIL, *lines(1, 9), other, *lines(2, 5, 3, 7, 8))) == 1


def test_a_run_that_ends_with_the_error_leaves_nothing_in_memory() -> None:
    assert found(FAIL, *lines(1, 9), *lines(1, 5, 7, 8, run="2"), *lines(2, 5, 7, 8, run="2")) == []
    assert found(KILLED, *lines(2, 5, 7, 8)) == []


def test_errors_that_one_line_handles_stand_for_each_other() -> None:
    other = "line[s.py:8][batch=1]#1 -> fail(error=OSError)"
    points = [SweepPoint(Line("s.py", 7), "fail", "middle", 1, parse(text)) for text in (FAIL, other)]
    journals = [[*lines(1, 5, 7), reached(point.text), *lines(1, 9), *lines(2, 5, 7, 8)] for point in points]
    noted: Behind = {}
    list(noting_left_behind(QUESTION, zip(points, journals, strict=True), noted))
    assert len(noted) == 1
