"""Where a run goes on after an error, a later batch may have to make up for what the struck one has left."""

from __future__ import annotations

from dataclasses import replace
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


COMMITTED = {"event": "point", "phase": "batch.commit", "edge": "after", "batch": 1, "run": "1"}

QUESTION = Question(trace=[*lines(1, 5, 7, 8), *lines(2, 5, 7, 8)], roles={"middle": 1}, refusal=lambda plan: None)


def reached(text: str, batch: int = 1) -> dict[str, Any]:
    return {"event": "fault.reached", "fault": 0, "text": text, "point": {"run": "1", "batch": batch}}


def request(nth: int, batch: int = 2) -> dict[str, Any]:
    place = {"phase": "request", "edge": "before", "service": "redis", "kind": "RPUSH", "batch": batch, "run": "1"}
    return {"event": "point", **place, "role": "proxy", "thread": "c1", "process": "local:1", "nth": nth}


def noted(*struck: tuple[str, list[dict[str, Any]]], question: Question = QUESTION) -> list[str]:
    """After lines 5 and 7 of batch 1, each time."""
    found = Behind()
    journals = [(_point(text), [*lines(1, 5, 7), reached(text), *after]) for text, after in struck]
    assert list(noting_left_behind(question, journals, found)) == journals
    return [one.text for one in found.points()]


def _point(text: str) -> SweepPoint:
    return SweepPoint(Line("s.py", 7), text.rpartition(" -> ")[2], "middle", 1, parse(text))


def found(text: str, *after: dict[str, Any]) -> list[str]:
    return noted((text, list(after)))


END = f"{FAIL}; batch.commit:after[batch=1] -> kill(driver)"


def test_the_driver_dies_behind_the_batch_whose_error_was_caught() -> None:
    assert found(FAIL, *lines(1, 9), COMMITTED, *lines(2, 5, 7, 8)) == [END]


def test_it_dies_where_the_next_batch_takes_another_way_and_at_the_first_and_last_of_what_it_does_more_often() -> None:
    assert found(FAIL, *lines(1, 9), COMMITTED, *lines(2, 3, 5, 7, 7, 8)) == [
        END,
        *(f"{FAIL}; line[s.py:{at}][batch=2]#{nth} -> kill(driver)" for at, nth in ((3, 1), (5, 1), (7, 2), (7, 1))),
    ]


def test_it_dies_before_a_few_requests_of_the_next_batch() -> None:
    """What the batch before has left may be made up for by the same statements as ever."""
    trace = [*QUESTION.trace, *(request(nth) for nth in range(1, 8))]
    texts = noted((FAIL, [*lines(1, 9), COMMITTED]), question=replace(QUESTION, trace=trace))
    assert [text.split("; ")[1] for text in texts] == [
        "batch.commit:after[batch=1] -> kill(driver)",
        *(f"request:before[service=redis, kind=RPUSH, batch=2]#{nth} -> kill(driver)" for nth in (1, 3, 5, 7)),
        *PAUSED,
    ]


PAUSED = [
    f"request:before[service=redis, kind=RPUSH, batch=2]#{nth} -> "
    "pause(driver, longest=30s) until batch.commit:after[batch=2]"
    for nth in (1, 7)
]


def test_it_is_taken_for_dead_in_the_next_batch_also_where_the_sink_tries_again() -> None:
    trace = [*QUESTION.trace, *(request(nth) for nth in range(1, 8))]
    again = [*lines(1, 9, 7, 8), COMMITTED]
    texts = noted((FAIL, again), (FAIL.replace(":7", ":8"), again), question=replace(QUESTION, trace=trace))
    assert texts == [f"{FAIL}; {paused}" for paused in PAUSED], "errors that one line handles stand for each other"


def test_lines_in_tasks_and_those_of_a_thread_that_runs_at_any_time_are_no_points() -> None:
    after = [*lines(1, 9), COMMITTED, *lines(2, 5, 7, 8)]
    assert noted((FAIL, [*after, *lines(2, 6, 6, role="python-worker")])) == [END]
    replay = [*lines(2, 5, 6, 7, 8), *lines(2, 5, 7, 8, run="2")]
    assert noted((FAIL, [*after, *lines(2, 6, 6)]), question=replace(QUESTION, replay=replay)) == [END]


def test_what_another_fault_of_the_run_has_changed_is_no_point() -> None:
    other = reached("task.run:after[batch=2] -> fail", batch=2)
    assert found(FAIL, *lines(1, 9), COMMITTED, other, *lines(2, 5, 3, 7, 8)) == [END]


def test_a_run_that_ends_with_the_error_or_tries_again_leaves_nothing_behind() -> None:
    assert found(FAIL, *lines(1, 9), *lines(1, 5, 7, 8, run="2"), *lines(2, 5, 7, 8, run="2")) == []
    assert found(FAIL, *lines(1, 9, 7, 8), COMMITTED, *lines(2, 5, 7, 8)) == []
    assert found(KILLED, COMMITTED, *lines(2, 5, 7, 8)) == []
    assert noted((FAIL, [*lines(1, 9), COMMITTED]), question=replace(QUESTION, trace=lines(1, 5, 7, 8))) == []


def test_errors_that_one_line_handles_stand_for_each_other() -> None:
    other = FAIL.replace(":7", ":8")
    after = [*lines(1, 9), COMMITTED]
    assert noted((FAIL, after), (other, after)) == [END]
    assert len(noted((FAIL, after), (other, [*lines(1, 10), COMMITTED]))) == 2
