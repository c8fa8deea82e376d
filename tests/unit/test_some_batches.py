"""What a run of twelve batches executes, and no batch of the traces does, is struck there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from onceproof.harness.certification.points import Code, Gap, Question, SweepPoint
from onceproof.harness.certification.some_batches import in_some_batches
from onceproof.harness.certification.trace import Line

CODE = Code(calls=lambda at: at.line == 3, errors=lambda lines: ["Full"] if lines[0].line == 3 else [])


def line(number: int, batch: int) -> dict[str, Any]:
    place = {"file": "s.py", "line": number, "process": "local:1", "thread": "MainThread"}
    return {"event": "point", "phase": "line", "role": "python-driver", "run": "1", "batch": batch, **place}


def asked() -> Question:
    trace = [line(number, 1) for number in (5, 7, 7, 8)]
    return Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None, code=CODE)


def struck(question: Question, journal: list[dict[str, Any]]) -> list[str]:
    return [one.text for one in in_some_batches(question, journal) if isinstance(one, SweepPoint)]


def run(*compacting: int) -> list[dict[str, Any]]:
    """Line 3 comes in some batches."""
    return [
        line(number, batch) for batch in range(12) for number in ((5, 7, 3, 8) if batch in compacting else (5, 7, 7, 8))
    ]


def test_the_first_batch_that_has_a_new_line_is_struck_there_and_behind_it() -> None:
    found = [one for one in in_some_batches(asked(), run(4, 9)) if isinstance(one, SweepPoint)]
    assert [one.text for one in found] == [
        "set batches = 12; line[s.py:3][batch=4]#1 -> kill(driver)",
        "set batches = 12; line[s.py:8][batch=4]#1 -> kill(driver)",
        "set batches = 12; line[s.py:3][batch=4]#1 -> fail(error=Full)",
        "set batches = 12; line[s.py:3][batch=4]#1 -> fail(error=Full, after=true)",
    ]
    assert all(one.seen_once for one in found)
    assert {(one.role, one.batch) for one in found} == {("late", 4)}


def test_a_new_line_at_the_end_is_struck_where_the_hand_over_ends() -> None:
    journal = [line(number, 9) for number in (5, 7, 7, 8, 4)]
    assert struck(asked(), journal) == [
        "set batches = 12; line[s.py:4][batch=9]#1 -> kill(driver)",
        "set batches = 12; sink.write:after[batch=9] -> kill(driver)",
        "set batches = 12; line[s.py:4][batch=9]#1 -> fail",
    ]


def test_a_kind_of_request_that_no_other_batch_has_is_struck_around_its_first_one() -> None:
    asks = {"event": "point", "phase": "request", "service": "postgres", "run": "1"}
    journal = [
        {**asks, "edge": "before", "kind": kind, "text": kind, "batch": batch}
        for batch in range(12)
        for kind in (["INSERT", "TRUNCATE"] if batch in (7, 9) else ["INSERT"])
    ]
    trace = [event for event in journal if event["batch"] == 1]
    question = Question(trace=trace, roles={"middle": 1}, refusal=lambda plan: None)
    assert struck(question, journal) == [
        f"set batches = 12; request:{edge}[service=postgres, kind=TRUNCATE, batch=7]#1 -> kill(driver)"
        for edge in ("before", "after")
    ]


@pytest.mark.parametrize("journal", [run(), []])
def test_what_every_batch_does_is_not_struck_anew(journal: list[dict[str, Any]]) -> None:
    assert not list(in_some_batches(asked(), journal))


def test_a_workload_of_as_many_batches_is_its_own_long_run() -> None:
    question = replace(asked(), trace=run(9), batches=12)
    assert struck(question, [])[0] == "line[s.py:3][batch=9]#1 -> kill(driver)"


def test_a_statement_and_a_name_of_a_file_that_no_other_batch_has_are_struck() -> None:
    """Of a kind that every batch has: INSERT, rename."""
    asks = {"event": "point", "edge": "before", "run": "1"}
    insert = {**asks, "phase": "request", "service": "postgres", "kind": "INSERT"}
    rename = {**asks, "phase": "file", "op": "rename"}
    journal: list[dict[str, Any]] = []
    for batch in range(12):
        journal.append({**insert, "text": f"INSERT INTO events VALUES ({batch})", "batch": batch})
        if batch == 9:
            journal.append({**insert, "text": "INSERT INTO archive SELECT", "batch": batch})
        path = f"target/log/{batch}{'.compact' if batch == 9 else ''}"
        journal += [{**rename, "edge": edge, "path": path, "batch": batch} for edge in ("before", "after")]
    trace = [event for event in journal if event["batch"] in (1, 2)]
    question = Question(trace=trace, roles={"second": 1, "middle": 2}, refusal=lambda plan: None)
    assert struck(question, journal) == [
        f"set batches = 12; {at} -> kill(driver)"
        for at in (
            "request:before[service=postgres, kind=INSERT, batch=9]#2",
            "request:after[service=postgres, kind=INSERT, batch=9]#2",
            'file:before[op=rename, path="target/log/9.compact", batch=9]#1',
            'file:after[op=rename, path="target/log/9.compact", batch=9]#1',
        )
    ]


def test_an_error_that_states_a_fact_is_named() -> None:
    code = Code(calls=lambda at: True, facts=lambda lines: ["Known"] if lines[0].line == 3 else [])
    [gap] = [one for one in in_some_batches(replace(asked(), code=code), run(9)) if isinstance(one, Gap)]
    assert (gap.at, gap.action) == (Line("s.py", 3), "fail(error=Known)")
