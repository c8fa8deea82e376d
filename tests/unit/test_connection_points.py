"""Connections that are reset between two requests, as points: from what the trace recorded."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Code, Question
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1}


def line(number: int, batch: int = 1, process: str = "p") -> dict[str, Any]:
    return {"event": "point", "phase": "line", "batch": batch, "run": "r", "thread": "t", "process": process,
            "role": "python", "file": "s.py", "line": number}  # fmt: skip


def connection(event: str, number: int = 1, process: str = "p", service: str = "redis") -> dict[str, Any]:
    return {"event": f"connection.{event}", "process": process, "service": service, "connection": f"{service} {number}"}


def struck(*trace: dict[str, Any], acts: Any = lambda line: True, detail: str = "between two requests") -> list[str]:
    question = Question(trace=trace, roles=ROLES, refusal=lambda plan: None, code=Code(acts=acts))
    return [point.text for point in space_of(question).points if detail in point.detail]


def plan(number: int) -> str:
    return f"line[s.py:{number}][batch=1]#1 -> reset(service=redis)"


OPENED, CLOSED = connection("opened"), connection("closed")


def test_a_line_is_struck_while_its_process_has_a_connection_that_lasts_until_the_next_one() -> None:
    trace = [line(3), OPENED, line(4), line(5), line(5), line(6), CLOSED, line(7)]
    assert struck(*trace) == [plan(4), plan(5)], "before 3 none is open, and that of 6 ends behind it"
    assert struck(*trace, acts=lambda line: line.line == 5) == [plan(5)]


def test_a_connection_of_another_process_or_one_that_was_opened_anew_is_no_reason() -> None:
    assert struck(connection("opened", process="q"), line(3), line(4)) == []
    assert struck(OPENED, line(3), CLOSED, connection("opened", 2), line(4)) == []


def test_one_that_is_kept_from_batch_to_batch_is() -> None:
    assert struck(OPENED, line(3, batch=0), line(4, batch=0), line(3), line(4)) == [plan(3)]
    assert struck(OPENED, line(3), line(3, batch=2)) == [plan(3)]


def test_where_no_request_depends_on_its_connection_there_is_nothing_to_lose() -> None:
    assert struck(connection("opened", service="kafka"), line(3), line(4)) == []


def test_six_lines_are_enough() -> None:
    found = struck(OPENED, *map(line, range(1, 20)), line(30))
    assert (len(found), found[0], found[-1]) == (6, plan(1), plan(19))


def test_where_another_one_is_opened_beside_it_another_driver_takes_the_drivers_place_meanwhile() -> None:
    """A lock of the first connection's is free by then."""

    def replaced(*trace: dict[str, Any]) -> list[str]:
        return struck(*trace, detail="its connections ended")

    other = [connection("opened", 2), connection("closed", 2)]
    pause = " then pause(driver, longest=30s) until batch.commit:after[batch=1]"
    trace = [line(3), OPENED, line(4), *other, line(5), line(6), *other, CLOSED, line(7), *other, line(8)]
    assert replaced(*trace) == [plan(4) + pause, plan(6) + pause]
    assert replaced(*({**one, "role": "python-worker"} if one["event"] == "point" else one for one in trace)) == []
    assert len(replaced(OPENED, *(one for number in range(9) for one in (line(number), *other)))) == 3
