"""Requests to a target's service on the running system: where the job stops, and what becomes of a lost one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
import redis
from onceproof.assertions import Workload
from onceproof.harness.session import Request, Session
from onceproof.harness.trial import act
from onceproof.harness.trial.spec import TrialResult
from trials import long

SMALL = Workload(batches=3, rows=48)

COUNT = "SELECT count(*) FROM events"


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Edge and kind of each request of batch 0, and the rows that another client finds in the target meanwhile."""
    found: list[tuple[str, str, int]] = []
    made = act._observer

    def observer(resources: Any, *rest: Any) -> Any:
        observe, target = made(resources, *rest), resources.namespaces["harness"]

        def look(point: Mapping[str, Any]) -> Any:
            if point.get("phase") == "request" and point.get("batch") == 0:
                found.append((str(point["edge"]), str(point["kind"]), rows_in(target)))
            return observe(point)

        return look

    monkeypatch.setattr(act, "_observer", observer)
    return found


def rows_in(target: Mapping[str, Any]) -> int:
    if target["redis"]:
        with redis.Redis.from_url(target["redis"]) as client:
            return int(client.dbsize())
    with psycopg.connect(target["postgres"]) as connection:
        row = connection.execute(COUNT).fetchone()
    return int(row[0]) if row else 0


def run(session: Session, sink: str, plan: str) -> TrialResult:
    return session.trial(Request(sink, plan=plan, workload=SMALL, watch=False))


def test_a_request_is_stopped_before_it_reaches_the_service_and_after_it_has_been_answered(
    session: Session, looked: list[tuple[str, str, int]]
) -> None:
    result = run(session, "postgres_upsert", "request:after[kind=COMMIT, batch=1] -> kill(driver)")
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    before, after = (next(rows for edge, kind, rows in looked if (edge, kind) == (one, "COMMIT")) for one in EDGES)
    assert before == 0, "what is not committed cannot be seen"
    assert after > 0, "the commit has been done"


EDGES = ("before", "after")


@pytest.mark.long
def test_a_command_of_redis_is_stopped_likewise(session: Session, looked: list[tuple[str, str, int]]) -> None:
    result = run(session, "redis_ledger", "request:before[service=redis, batch=1] -> kill(driver)")
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert next(rows for edge, _, rows in looked if edge == "before") == 0
    assert [rows for edge, _, rows in looked if edge == "after"][-1] > 0


def test_a_transaction_whose_end_was_done_and_its_answer_lost_is_not_written_again(session: Session) -> None:
    """By each of its tasks' transactions: brokers are found by the proxy, whichever of them coordinates it."""
    result = run(session, "kafka_transactional", "request:after[kind=EndTxn, batch=1] -> drop")
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    ended = [event["text"] for event in result.journal if event.get("kind") == "EndTxn" and "text" in event]
    assert max(map(ended.count, ended)) > 2, "its end was asked for again"
    assert {event["service"] for event in result.journal if event.get("phase") == "request"} == {"kafka"}


@pytest.mark.parametrize("edge", [long("before"), "after"])
def test_a_commit_that_is_lost_or_whose_answer_is_lost_is_made_good_by_an_upsert(session: Session, edge: str) -> None:
    result = run(session, "postgres_upsert", f"request:{edge}[kind=COMMIT, batch=1] -> drop")
    [fault] = result.verdict.faults
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert fault.confirmed
    [dropped] = [event for event in result.journal if event["event"] == "probe.dropped"]
    assert (dropped["kind"], dropped["edge"]) == ("COMMIT", edge)
