"""Functions and methods that a plan names, on the running system: where the job stops, and what becomes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from onceproof.assertions import Workload
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial import act
from onceproof.harness.trial.spec import TrialResult

SMALL = Workload(batches=3, rows=48)


@pytest.fixture
def rows_at(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[int]]:
    """By edge, the rows that another client finds in the target while batch 0 is stopped at the code that is named."""
    found: dict[str, list[int]] = {"before": [], "after": []}
    made = act._observer

    def observer(resources: Any, *rest: Any) -> Any:
        observe, address = made(resources, *rest), resources.namespace("harness")["postgres"]

        def look(point: Mapping[str, Any]) -> Any:
            if point.get("phase") in ("call", "jvm") and point.get("batch") == 0:
                with psycopg.connect(address) as connection:
                    [count] = connection.execute("SELECT count(*) FROM events").fetchall()
                found[str(point["edge"])].append(count[0])
            return observe(point)

        return look

    monkeypatch.setattr(act, "_observer", observer)
    return found


def run(session: Session, sink: str, plan: str) -> TrialResult:
    return session.trial(Request(sink, plan=plan, workload=SMALL, watch=False))


@pytest.mark.long
def test_a_call_of_a_function_is_stopped_before_it_and_after_it(
    session: Session, rows_at: dict[str, list[int]]
) -> None:
    commit = "call[psycopg.Connection.commit]"
    plan = f"{commit}:before[batch=1] -> kill(driver); {commit}:after[batch=2] -> fail(error=psycopg.OperationalError)"
    result = run(session, "postgres_ledger", plan)
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert [fault.confirmed for fault in result.verdict.faults] == [True, True]
    assert rows_at["before"][0] == 0, "what is not committed cannot be seen"
    assert rows_at["after"][0] > 0, "the commit has been done"


@pytest.mark.long
def test_a_function_that_is_not_there_proves_nothing(session: Session) -> None:
    result = run(session, "postgres_ledger", "call[psycopg.Connection.comit]:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome.value == "inconclusive"
    assert "calls of psycopg.Connection.comit are not reported: there is no such function" in result.verdict.reason


@pytest.mark.long
def test_a_method_of_a_class_of_the_jvm_is_stopped_likewise(session: Session, rows_at: dict[str, list[int]]) -> None:
    """The driver's JVM has the tasks of local[n], which write by JDBC, two at a time."""
    commit = "jvm[org.postgresql.jdbc.PgConnection#commit]"
    plan = f"{commit}:before[batch=1] -> fail; {commit}:after[batch=2] -> kill(driver)"
    result = run(session, "jdbc_append", plan)
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert [fault.confirmed for fault in result.verdict.faults] == [True, True]
    assert str(result.verdict.guarantee) == "at-least-once"
    assert min(rows_at["before"]) == 0, "what is not committed cannot be seen"
    assert rows_at["after"][0] > 0, "the commit has been done"
