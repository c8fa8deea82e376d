"""A batch of many rows as points: it is run without a fault, and what it does is struck then."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from onceproof.harness.certification.points import Code, Question, Space, SweepPoint
from onceproof.harness.certification.results import PointResult
from onceproof.harness.certification.scope import scope_of
from onceproof.harness.certification.some_batches import in_a_large_batch
from onceproof.harness.certification.space import select, space_of
from onceproof.harness.certification.strikes.larger import LARGE_RUN, tried_without_a_fault

SET = "set batches = 1; set rows = 30000; "
BEHIND_THE_BATCH = "; batch.commit:before[batch=0] -> kill(driver)"

OF_BATCH = {"edge": "before", "run": "r", "event": "point", "process": "p", "thread": "1"}


def asked(kind: str, batch: int = 0, service: str = "postgres") -> dict[str, Any]:
    return {**OF_BATCH, "phase": "request", "batch": batch, "service": service, "kind": kind, "text": kind}


def changed(op: str, path: str, batch: int = 0) -> list[dict[str, Any]]:
    change = {**OF_BATCH, "phase": "file", "batch": batch, "op": op, "path": path}
    return [change, {**change, "edge": "after"}]


def line(number: int) -> dict[str, Any]:
    return {**OF_BATCH, "phase": "line", "batch": 0, "file": "s.py", "line": number, "role": "python-driver"}


def question(trace: list[dict[str, Any]], batches: int | None = 5) -> Question:
    roles = {"first": 0, "middle": 1}
    return Question(trace=trace, roles=roles, refusal=lambda plan: None, batches=batches, code=Code())


def space(trace: list[dict[str, Any]], batches: int | None = 5) -> Space:
    return space_of(question(trace, batches))


def texts(trace: list[dict[str, Any]], run: list[dict[str, Any]]) -> list[str]:
    found = [one for one in in_a_large_batch(question(trace), run) if isinstance(one, SweepPoint)]
    assert all(one.seen_once and one.role == "large" for one in found)
    return list(dict.fromkeys(one.text.removeprefix(SET) for one in found))


def dies(edge: str, kind: str, nth: int = 1) -> str:
    return f"request:{edge}[service=postgres, kind={kind}, batch=0]#{nth} -> kill(driver)"


def test_a_large_batch_is_run_without_a_fault_and_traced_where_several_batches_are_swept() -> None:
    found = space([asked("INSERT")])
    assert [point for point in found.points if point.role == "large"] == [LARGE_RUN]
    assert (LARGE_RUN.text, LARGE_RUN.traced) == (SET.removesuffix("; "), True)
    assert LARGE_RUN.label == "without a fault, 30000 rows in one batch, large batch"
    assert all(LARGE_RUN in select(found, points).points for points in ("effects", "request:after", "all"))
    assert LARGE_RUN not in select(found, "txn.end").points
    assert LARGE_RUN not in space([asked("INSERT")], batches=None).points


def test_the_driver_dies_behind_the_first_request_of_each_kind_of_the_large_batch_itself() -> None:
    """Whatever the small ones have: it may be written in another way."""
    run = [asked("COPY"), asked("COPY"), asked("COMMIT")]
    found = texts([asked("INSERT"), asked("COMMIT")], run)
    assert found[:3] == [dies("after", "COPY"), dies("after", "COMMIT"), dies("after", "COMMIT") + BEHIND_THE_BATCH]
    assert found[3:] == [dies("before", "COPY"), dies("before", "COPY", 2), dies("before", "COMMIT")]


def test_of_pieces_the_driver_dies_behind_the_second_too_and_behind_half_of_them_and_all_but_the_last() -> None:
    pieces = [asked("INSERT"), asked("COMMIT")]
    found = [text for text in texts(pieces, 12 * pieces) if " -> kill(driver);" not in text]
    assert [text for text in found if "after" in text] == [
        dies("after", "INSERT"), *(dies("after", "COMMIT", nth) for nth in (1, 2, 6, 11))
    ]  # fmt: skip


def test_and_before_what_follows_something_else_than_in_a_small_one() -> None:
    small = [asked("LOG"), asked("INSERT"), asked("RECORD"), asked("COMMIT")]
    large = [asked("LOG"), asked("COMMIT"), asked("INSERT"), asked("COMMIT"), asked("RECORD"), asked("COMMIT")]
    found = texts(small, large)
    assert [text for text in found if text.startswith("request:before")] == [
        dies("before", "COMMIT"), dies("before", "INSERT"), dies("before", "COMMIT", 2), dies("before", "RECORD"),
    ]  # fmt: skip
    assert texts(small, small) == [
        *(dies("after", kind) for kind in ("LOG", "INSERT", "RECORD", "COMMIT")),
        dies("after", "COMMIT") + BEHIND_THE_BATCH,
    ]


def test_and_behind_the_first_change_of_each_kind_in_a_directory() -> None:
    trace = [event for number in range(2) for event in changed("create", f"target/{number}.jsonl")]
    trace += [*changed("rename", "target/0.jsonl"), *changed("create", "elsewhere/0.jsonl")]
    assert texts(trace, trace) == [
        f'file:after[op={op}, path="{directory}/*", batch=0]#1 -> kill(driver){more}'
        for op, directory, more in (
            ("create", "target", ""),
            ("rename", "target", ""),
            ("create", "elsewhere", ""),
            ("create", "elsewhere", BEHIND_THE_BATCH),
        )
    ]


def test_new_lines_of_a_large_batch_are_struck() -> None:
    assert texts([line(5), line(8)], [line(5), line(6), line(8)]) == [
        "line[s.py:6][batch=0]#1 -> kill(driver)",
        "line[s.py:8][batch=0]#1 -> kill(driver)",
        "line[s.py:6][batch=0]#1 -> fail",
    ]


def test_nothing_is_struck_that_is_not_known_to_be_answered_or_in_no_run() -> None:
    assert texts([asked("chunk", service="api")], [asked("chunk", service="api")]) == []
    assert texts([asked("INSERT")], []) == []


def result(own_error: str | None = None) -> PointResult:
    verdict = "inconclusive" if own_error else "pass"
    return cast(PointResult, SimpleNamespace(own_error=own_error, verdict=verdict, reached=not own_error))


def test_what_the_sink_cannot_take_is_no_point_and_the_certificate_says_so() -> None:
    asked_for = select(space([asked("INSERT")]), "effects")
    assert tried_without_a_fault(asked_for, result()) == asked_for
    found = tried_without_a_fault(asked_for, result("sink s.py fails in batch 0 by itself: too many parameters"))
    assert list(found.points) == [point for point in asked_for.points if point != LARGE_RUN]
    assert found.whole
    assert scope_of(found, found, {}, {}).summary.endswith(
        "not possible here: 30000 rows in one batch are more than it can take: "
        "sink s.py fails in batch 0 by itself: too many parameters"
    )
