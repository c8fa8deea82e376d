"""What a sink runs before its query starts is struck in the first start of the driver, and in the one after a crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from onceproof.faults import Plan, parse
from onceproof.harness.certification.points import Code, Question, SweepPoint
from onceproof.harness.certification.recoveries import shows_a_recovery
from onceproof.harness.certification.space import space_of
from onceproof.harness.certification.starts import (
    Crash,
    Struck,
    later_starts,
    lines_of_starts,
    noting_crashes,
    starts,
)
from onceproof.harness.certification.trace import Line

STARTED = {"event": "driver.started"}
CRASH = "batch.commit:before[batch=1] -> kill(driver)"


def ran(*lines: int, **more: Any) -> list[dict[str, Any]]:
    """A driver that is started, and the lines of its main thread before its query starts."""
    where = {"event": "point", "phase": "line", "file": "s.py", "role": "python-driver", "thread": "MainThread"}
    return [STARTED, *({**where, "when": "start", "line": line, **more} for line in lines)]


def question(
    trace: Sequence[dict[str, Any]],
    replay: Sequence[dict[str, Any]] = (),
    acts: Sequence[int] = range(1, 99),
    roles: Mapping[str, int] = {"middle": 1},
    caught: Mapping[int, str] = {},
) -> Question:
    """``caught``: what is caught at a line."""
    code = Code(
        acts=lambda line: line.line in acts,
        begins=lambda line: line.line != 5,
        errors=lambda lines: [caught[lines[0].line]] if lines[0].line in caught else [],
    )
    return Question(trace=trace, replay=replay, roles=roles, refusal=lambda plan: None, code=code)


def texts(found: Question) -> list[str]:
    return [point.text for point in starts(found)]


def test_a_statement_is_struck_where_another_one_may_have_changed_something_before_it() -> None:
    assert texts(question(ran(2, 3, 4, 6), acts=(2, 4))) == [
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


def died_at(line: int, *again: int, batch: Sequence[int] = ()) -> Struck:
    """The trial of a driver's death before a line of batch 1: what the next start ran, and the batch after it."""
    plan = f"line[s.py:{line}][batch=1]#1 -> kill(driver)"
    inside = {"event": "point", "phase": "line", "file": "s.py", "batch": 1}
    before = [{**inside, "line": number} for number in range(9, line + 1)]
    after = [{**inside, "line": number} for number in batch]
    journal = [*ran(2, 3), *before, {"event": "fault.reached", "text": plan}, *ran(2, 3, *again), *after]
    return SweepPoint(Line("s.py", line), "kill(driver)", "middle", 1, parse(plan)), journal


def later(asked: Question, *struck: Struck) -> list[str]:
    noted: list[Crash] = []
    assert list(noting_crashes(struck, noted)) == list(struck)
    return [point.text for point in later_starts(asked, noted)]


def test_the_start_after_a_half_written_batch_is_struck_at_each_of_its_statements() -> None:
    crash = "line[s.py:9][batch=1]#1 -> kill(driver)"
    assert later(question(ran(2, 3)), died_at(9, 7)) == [
        f"{crash}; line[s.py:3][when=start]#2 -> kill(driver)",
        f"{crash}; line[s.py:7][when=start]#1 -> kill(driver)",
        f"{crash}; query.start:before#2 -> kill(driver)",
    ]


def test_of_crashes_with_the_same_recovery_those_with_the_least_and_the_most_done_stand_for_all() -> None:
    written_anew = [died_at(line, batch=(9, 10, 11)) for line in (10, 9, 11)]
    skipped = [died_at(line, batch=(9,)) for line in (14, 12, 13)]
    found = later(question(ran(2, 3)), *written_anew, *skipped)
    assert [text.partition("; ")[0] for text in found if ":3]" in text] == [
        f"line[s.py:{line}][batch=1]#1 -> kill(driver)" for line in (9, 11, 12, 14)
    ]


def test_an_error_starts_no_driver_of_its_own_and_shows_no_start() -> None:
    point, journal = died_at(9)
    error = SweepPoint(point.at, "fail", "middle", 1, parse("line[s.py:9][batch=1]#1 -> fail"))
    assert later(question(ran(2, 3)), (error, journal)) == []


def test_an_error_that_a_start_catches_is_raised_there_in_each_start() -> None:
    error = "fail(error=psycopg.OperationalError)"
    asked = question(ran(2, 3), [*ran(2, 3), *ran(2, 3)], acts=(), caught={3: "psycopg.OperationalError"})
    assert [*texts(asked), *later(asked, died_at(9))] == [
        f"line[s.py:3][when=start]#1 -> {error}",
        f"{CRASH}; line[s.py:3][when=start]#2 -> {error}",
        f"line[s.py:9][batch=1]#1 -> kill(driver); line[s.py:3][when=start]#2 -> {error}",
    ]


def test_an_error_that_would_state_what_is_not_true_is_no_point_and_is_named() -> None:
    code = Code(facts=lambda lines: ["KeyError"] if lines[0].line == 3 else [])
    found = space_of(replace(question(ran(2, 3), [*ran(2, 3)] * 2), code=code))
    assert [(gap.step, gap.action, gap.role) for gap in found.impossible] == [
        ("line s.py:3", "fail(error=KeyError)", "any")
    ]
    assert not [point for point in found.points if point.action.startswith("fail")]


def test_threads_of_the_sink_are_no_part_of_a_start() -> None:
    assert lines_of_starts(ran(2, thread="heartbeat")) == frozenset()
    assert texts(question(ran(2, 3, 4, thread="heartbeat"))) == []


def test_points_of_a_start_know_no_batch_and_show_no_recovery_of_one() -> None:
    (point,) = starts(question(ran(2, 3)))
    assert (point.batch, point.alone, point.detail) == (None, True, "at the first start")
    assert not shows_a_recovery(point)
    assert point.plan != Plan()


def test_a_driver_is_taken_for_dead_once_a_start_has_found_something_out() -> None:
    def batch(number: int) -> dict[str, Any]:
        return {"event": "point", "phase": "sink.write", "edge": "before", "batch": number}

    def pauses(first: Sequence[int], again: Sequence[int], batches: int = 3, calls: Sequence[int] = range(99)) -> Any:
        trace = [*ran(*first), *map(batch, range(batches))]
        asked = question(trace, [*ran(*first), *ran(*again)], acts=())
        code = replace(asked.code, calls=lambda line: line.line in calls)
        found = [one for one in space_of(replace(asked, code=code)).points if one.action == "pause(driver)"]
        assert all((one.batch, one.alone) == (None, True) for one in found if "start" in one.detail)
        texts = [one.text for one in found if "start" in one.detail]
        return [text.replace("pause(driver, longest=30s) until batch.commit:after", "until") for text in texts]

    assert pauses((2, 3), (2, 3)) == [], "behind the last one the query begins"
    assert pauses((2, 3, 5, 6, 7), (2, 3, 7)) == [
        f"line[s.py:{line}][when=start]#1 -> until[batch=2]" for line in (3, 6)
    ], "where a statement begins"
    assert pauses((2, 3, 4, 6), (2, 3, 4, 6), calls=(2, 4, 6)) == ["line[s.py:4][when=start]#1 -> until[batch=2]"]
    assert pauses((2, 3), (2, 3, 4, 3), batches=1) == [f"{CRASH}; line[s.py:4][when=start]#1 -> until[batch=1]"]
    many = pauses(range(10, 30), range(10, 30))
    assert [text[len("line[s.py:") :][:2] for text in many] == ["11", "17", "22", "28"]
