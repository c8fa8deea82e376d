"""What a sink runs before its query starts is struck in the first start of the driver, and in the one after a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onceproof.faults import Plan, parse
from onceproof.harness.certification.points import Code, Question, SweepPoint
from onceproof.harness.certification.recoveries import shows_a_recovery
from onceproof.harness.certification.starts import later_starts, lines_of_starts, starts
from onceproof.harness.certification.trace import Line

STARTED = {"event": "driver.started"}
CRASH = "batch.commit:before[batch=1] -> kill(driver)"
HALF_WRITTEN = "line[s.py:9][batch=1]#1 -> kill(driver)"


def ran(*lines: int, **more: Any) -> list[dict[str, Any]]:
    """A driver that is started, and the lines of its main thread before its query starts."""
    where = {"event": "point", "phase": "line", "file": "s.py", "role": "python-driver", "thread": "MainThread"}
    return [STARTED, *({**where, "when": "start", "line": line, **more} for line in lines)]


def question(
    trace: Sequence[dict[str, Any]],
    replay: Sequence[dict[str, Any]] = (),
    calls: Sequence[int] = range(1, 99),
    roles: Mapping[str, int] = {"middle": 1},
) -> Question:
    code = Code(calls=lambda line: line.line in calls, begins=lambda line: line.line != 5)
    return Question(trace=trace, replay=replay, roles=roles, refusal=lambda plan: None, code=code)


def texts(found: Question) -> list[str]:
    return [point.text for point in starts(found)]


def test_a_statement_is_struck_where_another_one_has_called_something_before_it() -> None:
    assert texts(question(ran(2, 3, 4, 6), calls=(2, 4))) == [
        "line[s.py:3][when=start]#1 -> kill(driver)",
        "line[s.py:6][when=start]#1 -> kill(driver)",
    ]


def test_a_start_of_one_statement_is_not_struck_be_it_on_several_lines() -> None:
    assert texts(question(ran(4, 5, 4))) == []


def test_a_loop_is_struck_in_its_first_round() -> None:
    assert texts(question(ran(2, 3, 2, 3, 2))) == ["line[s.py:3][when=start]#1 -> kill(driver)"]


def test_the_start_after_a_crash_is_struck_too_at_the_next_execution_and_where_it_ends() -> None:
    replay = [*ran(2, 3, 3), *ran(2, 3, 7)]
    assert texts(question(ran(2, 3, 3), replay))[1:] == [
        f"{CRASH}; line[s.py:3][when=start]#3 -> kill(driver)",
        f"{CRASH}; line[s.py:7][when=start]#1 -> kill(driver)",
        f"{CRASH}; query.start:before#2 -> kill(driver)",
    ]


def test_a_start_after_the_middle_batch_stands_for_those_after_the_others() -> None:
    replay = [*ran(2, 3), *ran(2, 3, 6), *ran(2, 3), *ran(2, 3, 7)]
    found = texts(question(ran(2, 3), replay, roles={"first": 0, "middle": 1, "last": 2}))[1:]
    assert [text for text in found if ":3]" in text] == [f"{CRASH}; line[s.py:3][when=start]#2 -> kill(driver)"]
    assert [text.partition("; ")[0] for text in found if ":6]" in text or ":7]" in text] == [
        CRASH.replace("batch=1", f"batch={batch}") for batch in (0, 2)
    ]


def test_what_only_the_start_after_a_half_written_batch_runs_is_struck_there() -> None:
    same = ran(2, 3)
    asked = question(same, [*same, *same])
    point = SweepPoint(Line("s.py", 9), "kill(driver)", "middle", 1, parse(HALF_WRITTEN))
    reached = {"event": "fault.reached", "text": HALF_WRITTEN}
    found = later_starts(asked, [(point, [*same, *ran(2, 3), reached, *ran(2, 3, 7, 8)])] * 2)
    assert [one.text for one in found] == [
        f"{HALF_WRITTEN}; line[s.py:{line}][when=start]#1 -> kill(driver)" for line in (7, 8)
    ]


def test_an_error_starts_no_driver_of_its_own_and_shows_no_start() -> None:
    text = HALF_WRITTEN.replace("kill(driver)", "fail")
    point = SweepPoint(Line("s.py", 9), "fail", "middle", 1, parse(text))
    journal = [*ran(2), {"event": "fault.reached", "text": text}, *ran(2, 7)]
    assert list(later_starts(question(ran(2)), [(point, journal)])) == []


def test_threads_of_the_sink_are_no_part_of_a_start() -> None:
    assert lines_of_starts(ran(2, thread="heartbeat")) == frozenset()
    assert texts(question(ran(2, 3, 4, thread="heartbeat"))) == []


def test_points_of_a_start_know_no_batch_and_show_no_recovery_of_one() -> None:
    (point,) = starts(question(ran(2, 3)))
    assert (point.batch, point.alone, point.detail) == (None, True, "at the first start")
    assert not shows_a_recovery(point)
    assert point.plan != Plan()
