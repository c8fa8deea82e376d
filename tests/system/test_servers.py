"""A crash of a target's server, and of brokers that the plan names, on the running system."""

from __future__ import annotations

import psycopg
import pytest
from onceproof.assertions import Workload
from onceproof.harness.environments.base import Environment
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.spec import TrialResult
from trials import described, landed, long

SMALL = Workload(batches=3, rows=48)
AT_COMMIT = "request:after[service=postgres, kind=COMMIT, batch=1] -> kill(postgres)"
REDIS_AWAY = "sink.write:before[batch=1] -> kill(redis) then restart(redis, after=1s)"
CONTROLLER = "sink.write:before[batch=1] -> kill(broker, which=controller) then restart(broker, after=1s)"
HUNG_LEADER = "sink.write:before[batch=1] -> pause(broker, which=leader, for=2s)"


def run(session: Session, sink: str, plan: str) -> TrialResult:
    result = session.trial(Request(sink, plan=plan, workload=SMALL))
    assert landed(result), described(result)
    return result


def started_at(environment: Environment) -> str:
    with psycopg.connect(str(environment.addresses("harness").postgres)) as connection:
        row = connection.execute("SELECT pg_postmaster_start_time()").fetchone()
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("sink", "outcome", "lost"), [("asynchronous_commit", "fail", {48, 72}), long("postgres_ledger", "pass", {0})]
)
def test_what_a_commit_did_not_wait_for_is_lost_with_the_server(
    session: Session, environment: Environment, sink: str, outcome: str, lost: set[int]
) -> None:
    """Batch 1 has 48 rows. The 24 of batch 0 are lost as well, unless PostgreSQL has flushed its log in between."""
    before = started_at(environment)
    result = run(session, sink, AT_COMMIT)
    assert started_at(environment) > before, "the server that answers now was started in the trial"
    assert result.verdict.outcome == outcome, described(result)
    assert sum(anomaly.count for anomaly in result.verdict.anomalies if anomaly.kind == "lost") in lost


@pytest.mark.long
@pytest.mark.parametrize(
    ("sink", "plan"),
    [("redis_ledger", REDIS_AWAY), ("postgres_upsert", CONTROLLER), ("kafka_transactional", HUNG_LEADER)],
)
def test_a_sink_withstands_a_service_that_is_away_for_a_while(session: Session, sink: str, plan: str) -> None:
    result = run(session, sink, plan)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
