"""A query that is started again in the same process, as points: from what the trace recorded."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import format_plan, parse
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of

ROLES = {"first": 0, "middle": 1}


def reported(phase: str, edge: str | None = "before", **fields: Any) -> dict[str, Any]:
    edges = {} if edge is None else {"edge": edge}
    return {"event": "point", "phase": phase, "batch": 1, "run": "r", "thread": "t", "process": "p", **edges, **fields}


COMMITTED = reported("batch.commit")
INSERT = reported("request", service="postgres", kind="INSERT")
COMMIT = reported("request", service="postgres", kind="COMMIT")
CREATED = reported("file", op="create", path="target/1.json")
LINE = reported("line", None, file="s.py", line=7, role="python")


def points(*trace: dict[str, Any], reference_job: bool = True) -> list[SweepPoint]:
    question = Question(trace=trace, roles=ROLES, refusal=lambda plan: None, reference_job=reference_job)
    return [point for point in space_of(question).points if point.detail.startswith("started again in place")]


def texts(*trace: dict[str, Any], reference_job: bool = True) -> list[str]:
    """Those with one fault."""
    return [one.text for one in points(*trace, reference_job=reference_job) if len(one.plan.faults) == 1]


AGAIN = "set starts = 4; "
BEHIND = f"{AGAIN}batch.commit:before[batch=1] -> fail"


def test_the_query_fails_behind_its_batch_and_by_a_request_that_is_lost() -> None:
    assert texts(INSERT, INSERT, INSERT, COMMIT, CREATED, COMMITTED) == [
        BEHIND,
        f"{AGAIN}request:before[service=postgres, kind=INSERT, batch=1]#1 -> drop",
        f"{AGAIN}request:before[service=postgres, kind=INSERT, batch=1]#3 -> drop",
        f"{AGAIN}request:before[service=postgres, kind=COMMIT, batch=1]#1 -> drop",
        f"{AGAIN}request:after[service=postgres, kind=COMMIT, batch=1]#1 -> drop",
    ]
    assert format_plan(parse(BEHIND)) == BEHIND


def test_the_answer_of_a_commit_that_others_follow_is_lost_too() -> None:
    delete = reported("request", service="postgres", kind="DELETE")
    lost = [text for text in texts(INSERT, COMMIT, delete, COMMIT) if "after" in text]
    assert lost == [f"{AGAIN}request:after[service=postgres, kind=COMMIT, batch=1]#{nth} -> drop" for nth in (1, 2)]


def test_in_the_last_batch_the_first_and_the_last_change_are_lost_or_fail() -> None:
    def at_the_end(*trace: dict[str, Any], **more: Any) -> list[str]:
        question = Question(
            trace=[one | {"batch": 4} for one in trace], roles={"middle": 1, "last": 4}, refusal=lambda plan: None,
            **{"reference_job": True} | more,
        )  # fmt: skip
        return [one.text for one in space_of(question).points if one.role == "last" and "starts = 4" in one.text]

    assert at_the_end(INSERT, COMMIT) == [
        f"{AGAIN}request:before[service=postgres, kind={kind}, batch=4]#1 -> drop" for kind in ("INSERT", "COMMIT")
    ]
    assert at_the_end(CREATED) == [f'{AGAIN}file:before[op=create, path="target/1.json", batch=4]#1 -> fail']
    assert at_the_end(INSERT, reference_job=False) == []


def test_a_commit_that_others_follow_is_lost_too_and_of_many_kinds_some() -> None:
    delete = reported("request", service="postgres", kind="DELETE")
    trace = [*[INSERT] * 9, COMMIT, *(reported("request", service="postgres", kind=f"K{n}") for n in range(3)), delete]
    lost = [text.partition("kind=")[2].partition(",")[0] for text in texts(*trace, COMMIT) if "before" in text]
    assert lost == ["INSERT", "COMMIT", "K1", "K2", "COMMIT"]
    lost = [text.partition("kind=")[2].partition(", batch=1]")[::2] for text in texts(INSERT, COMMIT, delete, COMMIT)]
    assert [kind + nth.partition(" ")[0] for kind, nth in lost][:4] == ["INSERT#1", "COMMIT#1", "DELETE#1", "COMMIT#2"]


@pytest.mark.parametrize(
    ("reported", "change", "action"),
    [
        (INSERT, "request:before[service=postgres, kind=INSERT, batch=1]", "drop"),
        (CREATED, 'file:before[op=create, path="target/1.json", batch=1]', "fail"),
    ],
)
def test_the_last_of_a_batch_fails_in_each_run_but_the_last(reported: dict[str, Any], change: str, action: str) -> None:
    [several] = [one for one in points(reported, COMMITTED) if one.detail.endswith("3 times in a row")]
    assert several.text == AGAIN + "; ".join(f"{change}#{nth} -> {action}" for nth in (1, 2, 3))
    if action == "drop":
        [of_two] = [one for one in points(reported, reported, COMMITTED) if one.detail.endswith("3 times in a row")]
        assert of_two.text == AGAIN + "; ".join(f"{change}#{nth} -> drop" for nth in (2, 4, 6))
    [once] = [one for one in points(reported, COMMITTED) if one.way == several.way and one != several]
    assert once.text == f"{AGAIN}{change}#1 -> {action}", "it stands for it where that does not come again"


def test_where_there_are_no_requests_a_change_of_a_file_fails() -> None:
    [_, changed] = texts(CREATED, COMMITTED)
    assert changed == f'{AGAIN}file:before[op=create, path="target/1.json", batch=1]#1 -> fail'


def test_it_also_fails_by_an_error_of_its_own_which_leaves_its_connection_alone() -> None:
    [_, before, after, failed] = texts(INSERT, LINE, COMMITTED)
    assert (before.endswith("#1 -> drop"), after.endswith("#1 -> drop")) == (True, True)
    assert failed == f"{AGAIN}line[s.py:7][batch=1]#1 -> fail"
    [_, middle, last] = texts(LINE, LINE, LINE, COMMITTED)
    assert (middle, last) == (f"{AGAIN}line[s.py:7][batch=1]#2 -> fail", f"{AGAIN}line[s.py:7][batch=1]#3 -> fail")


def test_a_job_that_may_not_know_how_is_not_asked_to() -> None:
    assert texts(INSERT, COMMITTED, reference_job=False) == []
