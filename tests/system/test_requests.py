"""Requests to a target's service on the running system: where the job stops, and what becomes of a lost one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from http_store import HTTP_SINK, Store
from onceproof.assertions import JOURNAL, Workload
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial import act
from onceproof.harness.trial.spec import TrialResult
from trials import described, landed, long

SMALL = Workload(batches=3, rows=48)

DOES_NOT_LOOK = """
import http.client

def write_batch(df, batch_id, target):
    client = http.client.HTTPConnection(target.proxy["api"], timeout=30)
    client.request("PUT", f"/{target.name}/{batch_id}", json.dumps(df.toArrow().to_pylist(), default=str))
    client.getresponse().read()
"""

LOOKS_FIRST = """
import http.client

def write_batch(df, batch_id, target):
    client = http.client.HTTPConnection(target.proxy["api"], timeout=30)
    client.request("GET", f"/{target.name}/{batch_id}")
    known = client.getresponse()
    rows = known.read()
    if CHECK and known.status != 200:
        raise RuntimeError(f"the batch may be known: {known.status}")
    if known.status == 200 and json.loads(rows):
        return
    ask(target, "POST", batch_id, df.toArrow().to_pylist())
"""
"""A sink that adds a batch unless it is known, and may take a refusal for an answer."""

ASKS_AGAIN = """
import http.client

def write_batch(df, batch_id, target):
    rows = json.dumps(df.toArrow().to_pylist(), default=str)
    for _ in range(5):
        client = http.client.HTTPConnection(target.proxy["api"], timeout=30)
        client.request("PUT", f"/{target.name}/{batch_id}", rows)
        answer = client.getresponse()
        answer.read()
        if answer.status == 200:
            return
    if RAISES:
        raise RuntimeError(f"the service is overloaded: {answer.status}")
"""
"""A sink that tries five times, and may take the last refusal for an answer."""

COPIES = """
import psycopg

GUARANTEE, SERVICES = "exactly-once", ("postgres",)

def prepare(target):
    with psycopg.connect(target.postgres) as db:
        db.execute("CREATE TABLE events (id bigint, key text, value float8, event_time timestamptz, payload text)")
        db.execute("CREATE TABLE ledger (batch bigint PRIMARY KEY)")

def write_batch(df, batch_id, target):
    with psycopg.connect(target.postgres) as db, db.cursor() as cursor:
        cursor.execute("INSERT INTO ledger VALUES (%s) ON CONFLICT DO NOTHING", [batch_id])
        if cursor.rowcount:
            with cursor.copy("COPY events FROM STDIN") as copy:
                for row in df.toArrow().to_pylist():
                    copy.write_row(list(row.values()))

def read(target):
    with psycopg.connect(target.postgres, row_factory=psycopg.rows.dict_row) as db:
        return db.execute("SELECT * FROM events").fetchall()
"""
"""A right ledger, with the rows by COPY."""

GIVES_UP = """
import json

import redis

GUARANTEE, SERVICES = "exactly-once", ("redis",)

def write_batch(df, batch_id, target):
    db = redis.Redis.from_url(target.redis, socket_timeout=3)
    with db.pipeline() as pipe:
        if WATCHES:
            pipe.watch("batches")
        if db.sismember("batches", batch_id):
            return
        pipe.multi()
        for row in df.toArrow().to_pylist():
            pipe.rpush("rows", json.dumps(row, default=str))
        pipe.sadd("batches", batch_id)
        pipe.execute()

def read(target):
    return [json.loads(row) for row in redis.Redis.from_url(target.redis).lrange("rows", 0, -1)]
"""
"""A driver that dies of an EXEC that takes too long."""

COUNT = "SELECT count(*) FROM events"


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, int]]:
    """Edge and kind of each request of batch 0, and the rows that another client finds in the target meanwhile."""
    found: list[tuple[str, str, int]] = []
    made = act._observer

    def observer(resources: Any, *rest: Any) -> Any:
        observe, target = made(resources, *rest), resources.namespace("harness")

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


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.mark.parametrize(
    ("method", "action", "found"),
    [("POST", "drop", "duplicated"), long("PUT", "drop", None), long("PUT", "kill(driver)", None)],
)
def test_a_request_to_a_service_of_the_users_own_is_stopped_and_its_answer_lost(
    session: Session, store: Store, tmp_path: Path, method: str, action: str, found: str | None
) -> None:
    sink = tmp_path / "api.py"
    sink.write_text(HTTP_SINK.replace("METHOD", f'"{method}"'))
    plan = f"request:after[service=api, kind={method}, batch=1] -> {action}"
    own = {"api": f"127.0.0.1:{store.server_address[1]}"}
    result = session.trial(Request(str(sink), plan=plan, workload=SMALL, watch=False, own_services=own))
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), result.verdict.reason
    assert result.verdict.outcome.value == ("fail" if found else "pass"), result.verdict.reason
    [fault] = result.verdict.faults
    assert fault.confirmed


@pytest.mark.parametrize(("looks", "outcome"), [long(False, "fail"), long(True, "pass")])
def test_a_service_of_the_users_own_says_that_it_could_not_do_it(
    session: Session, store: Store, tmp_path: Path, looks: bool, outcome: str
) -> None:
    """Not every client raises that as an error: http.client does not, urllib.request does."""
    sink = tmp_path / "api.py"
    sink.write_text(HTTP_SINK.replace("METHOD", '"PUT"') + ("" if looks else DOES_NOT_LOOK))
    own = {"api": f"127.0.0.1:{store.server_address[1]}"}
    plan = "request:before[service=api, kind=PUT, batch=1] -> answer(SERVICE_UNAVAILABLE)"
    result = session.trial(Request(str(sink), plan=plan, workload=SMALL, watch=False, own_services=own))
    assert result.verdict.outcome.value == outcome, result.verdict.reason
    assert [one.kind for one in result.verdict.anomalies] == ([] if looks else ["lost"])
    assert landed(result)


@pytest.mark.parametrize(("raises", "outcome"), [(False, "fail"), long(True, "pass")])
def test_a_refusal_that_comes_back_must_not_be_taken_for_an_answer(
    session: Session, store: Store, tmp_path: Path, raises: bool, outcome: str
) -> None:
    """One that raises it is refused for the sixth time when the batch comes again."""
    plan = "request:before[service=api, kind=PUT, batch=1]#1 -> answer(FORBIDDEN, times=6)"
    result = session.trial(replace(asking_again(store, tmp_path, raises), plan=plan))
    assert result.verdict.outcome.value == outcome, result.verdict.reason
    assert [one.kind for one in result.verdict.anomalies] == ([] if raises else ["lost"])
    assert landed(result)
    assert (result.directory / JOURNAL).read_text().count('"fault.repeated"') == (5 if raises else 4)


@pytest.mark.long
def test_a_sink_that_asks_again_is_refused_again_by_a_sweep(session: Session, store: Store, tmp_path: Path) -> None:
    wanted = Wanted(points="request:before", batch=1, fail_fast=True)
    certificate = certify(session, asking_again(store, tmp_path, raises=False), tmp_path / "sweep", wanted)
    failed = [point for point in certificate.points if point.verdict == "fail"]
    assert failed, certificate.summary
    assert all(point.plan.endswith(", times=6)") and set(point.anomalies) == {"lost"} for point in failed)


def asking_again(store: Store, directory: Path, raises: bool) -> Request:
    sink = directory / "api.py"
    sink.write_text(HTTP_SINK + ASKS_AGAIN.replace("RAISES", str(raises)))
    own = {"api": f"127.0.0.1:{store.server_address[1]}"}
    return Request(str(sink), workload=SMALL, watch=False, own_services=own)


@pytest.mark.long
@pytest.mark.parametrize(("checks", "outcome"), [(False, "fail"), (True, "pass")])
def test_a_lookup_in_the_replay_that_is_refused_must_not_pass_for_an_answer(
    session: Session, store: Store, tmp_path: Path, checks: bool, outcome: str
) -> None:
    sink = tmp_path / "api.py"
    sink.write_text(HTTP_SINK + LOOKS_FIRST.replace("CHECK", str(checks)))
    own = {"api": f"127.0.0.1:{store.server_address[1]}"}
    crash = "batch.commit:before[batch=1] -> kill(driver)"
    plan = f"{crash}; lookup:before[service=api, kind=GET, batch=1]#2 -> answer(SERVICE_UNAVAILABLE)"
    result = session.trial(Request(str(sink), plan=plan, workload=SMALL, watch=False, own_services=own))
    assert result.verdict.outcome.value == outcome, result.verdict.reason
    assert [one.kind for one in result.verdict.anomalies] == ([] if checks else ["duplicated"])
    assert landed(result)


@pytest.mark.long
def test_a_lookup_that_is_stopped_has_not_reached_its_service(session: Session, store: Store, tmp_path: Path) -> None:
    """The driver dies there: the batch's lookup comes once, from its successor."""
    sink = tmp_path / "api.py"
    sink.write_text(HTTP_SINK + LOOKS_FIRST.replace("CHECK", "True"))
    own = {"api": f"127.0.0.1:{store.server_address[1]}"}
    plan = "lookup:before[service=api, kind=GET, batch=1] -> kill(driver)"
    result = session.trial(Request(str(sink), plan=plan, workload=SMALL, watch=False, own_services=own))
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert [path.rpartition("/")[2] for path in store.looked_up if not path.endswith("/")] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("sink", "point", "found"),
    [
        long("audits_at_best", "request:before[kind=INSERT, batch=1]#3", "lost"),
        long("postgres_ledger", "request:before[kind=INSERT, batch=1]#2", None),
        long("postgres_ledger", "request:before[kind=COMMIT, batch=1]", None),
        long("copies", "request:before[kind=COPY, batch=1]", None),
    ],
)
def test_a_statement_that_the_server_fails_fails_its_transaction(
    session: Session, tmp_path: Path, sink: str, point: str, found: str | None
) -> None:
    (tmp_path / "copies.py").write_text(COPIES)
    path = str(tmp_path / "copies.py") if sink == "copies" else sink
    result = run(session, path, f"{point} -> answer(QUERY_CANCELED)")
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), result.verdict.reason
    assert result.verdict.outcome.value == ("fail" if found else "pass"), result.verdict.reason
    assert landed(result)
    ended = [event["error"] for event in result.journal if event["event"] == "driver.exited" and event["error"]]
    assert bool(ended) is (found is None), "a sink that is told so and does not look away fails"
    assert all("injected by onceproof" in error for error in ended)


@pytest.mark.long
@pytest.mark.parametrize(("watches", "outcome"), [(False, "fail"), (True, "pass")])
def test_a_request_arrives_also_if_its_driver_has_died_of_the_wait(
    session: Session, tmp_path: Path, watches: bool, outcome: str
) -> None:
    sink = tmp_path / "gives_up.py"
    sink.write_text(GIVES_UP.replace("WATCHES", str(watches)))
    plan = "request:before[kind=EXEC, batch=1]#1 -> delay(longest=20s) until sink.write:before[batch=2]"
    result = session.trial(Request(str(sink), plan=plan, workload=SMALL, watch=False))
    assert result.verdict.outcome.value == outcome, result.verdict.reason
    assert [one.kind for one in result.verdict.anomalies] == ([] if watches else ["duplicated"])
    assert landed(result)


@pytest.mark.long
def test_a_transaction_whose_end_was_done_and_its_answer_lost_is_not_written_again(session: Session) -> None:
    """By each of its tasks' transactions: brokers are found by the proxy, whichever of them coordinates it."""
    result = run(session, "kafka_transactional", "request:after[kind=EndTxn, batch=1] -> drop")
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    ended = [event["text"] for event in result.journal if event.get("kind") == "EndTxn" and "text" in event]
    assert max(map(ended.count, ended)) > 2, "its end was asked for again"
    assert {event["service"] for event in result.journal if event.get("phase") == "request"} == {"kafka"}


@pytest.mark.parametrize(
    ("sink", "edge", "error", "found"),
    [
        # By a broker that is not the coordinator any more: it is asked for again, of another one.
        long("kafka_transactional", "before", "NOT_COORDINATOR", None),
        long("kafka_transactional", "after", "COORDINATOR_NOT_AVAILABLE", None),
        # It stops, and its next start commits what was decided.
        long("kafka_transactional", "before", "PRODUCER_FENCED", None),
        long("fenced_taken_for_committed", "before", "PRODUCER_FENCED", "lost"),
    ],
)
def test_a_transaction_whose_end_is_answered_with_an_error(
    session: Session, sink: str, edge: str, error: str, found: str | None
) -> None:
    result = run(session, sink, f"request:{edge}[kind=EndTxn, batch=1] -> answer({error})")
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), described(result)
    assert result.verdict.outcome.value == ("fail" if found else "pass"), described(result)
    assert landed(result), described(result)
    [answered] = [event for event in result.journal if event["event"] == "probe.answered"]
    assert (answered["kind"], answered["edge"], answered["error"]) == ("EndTxn", edge, error)


@pytest.mark.long
@pytest.mark.parametrize("edge", ["before", "after"])
def test_a_commit_that_is_lost_or_whose_answer_is_lost_is_made_good_by_an_upsert(session: Session, edge: str) -> None:
    result = run(session, "postgres_upsert", f"request:{edge}[kind=COMMIT, batch=1] -> drop")
    [fault] = result.verdict.faults
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert fault.confirmed
    [dropped] = [event for event in result.journal if event["event"] == "probe.dropped"]
    assert (dropped["kind"], dropped["edge"]) == ("COMMIT", edge)


@pytest.mark.parametrize(
    ("sink", "edge", "outcome"),
    [
        long("sends_again_after_a_timeout", "before", "fail"),
        long("sends_again_after_a_timeout", "after", "fail"),
        long("redis_ledger", "before", "pass"),
    ],
)
def test_a_request_that_its_client_gives_up_arrives_and_is_there_twice_if_it_is_sent_again(
    session: Session, sink: str, edge: str, outcome: str
) -> None:
    result = run(session, sink, f"request:{edge}[service=redis, kind=EXEC, batch=1] -> delay(11s)")
    assert result.verdict.outcome == outcome, described(result)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == (["duplicated"] if outcome == "fail" else [])
    assert landed(result), described(result)


KEPT_BACK = (
    "request:before[service=redis, kind=HSET]#1 -> delay(longest=2s) until sink.write:before[batch=1]; "
    "batch.commit:after[batch=0] -> kill(driver)"
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("sink", "verdict", "lost"), [("upserts_in_background", "fail", 24), ("redis_upsert", "pass", 0)]
)
def test_a_request_that_is_kept_back_while_its_batch_is_committed_is_lost_if_the_sink_does_not_wait(
    session: Session, sink: str, verdict: str, lost: int
) -> None:
    result = run(session, sink, KEPT_BACK)
    assert result.verdict.outcome == verdict, described(result)
    found = sum(anomaly.count for anomaly in result.verdict.anomalies if anomaly.kind == "lost")
    assert found == lost or found > lost > 0, "on a slow machine more of them has not been written yet"
    assert landed(result), described(result)


SLOW = "sink.write:before[batch=1] -> latency(200ms, jitter=50ms, for=5s)"
CUT_IN_THE_MIDDLE = "sink.write:before[batch=1] -> limit_data(bytes=1000, for=5s)"
STILL_OPEN = "request:before[kind=COMMIT, batch=1] -> slow_close(3s, for=20s) then kill(driver)"
ALL_RESET = "request:after[kind=COMMIT, batch=1] -> reset"


@pytest.mark.parametrize(
    ("sink", "plan", "found"),
    [
        long("redis_ledger", SLOW, None),
        long("kafka_transactional", SLOW, None),
        long("kafka_transactional", "sink.write:before[batch=1] -> bandwidth(rate=4096, for=5s)", None),
        long("kafka_transactional", "sink.commit:before[batch=1] -> timeout(for=4s)", None),
        long("postgres_ledger", "sink.write:before[batch=1] -> timeout(for=4s, service=postgres)", None),
        long("postgres_ledger", CUT_IN_THE_MIDDLE, None),
        long("postgres_ledger", STILL_OPEN, None),
        long("postgres_ledger", ALL_RESET, None),
        long("postgres_append", ALL_RESET, "duplicated"),
    ],
)
def test_connections_that_a_plan_impairs_are_as_before_at_the_end(
    session: Session, sink: str, plan: str, found: str | None
) -> None:
    result = run(session, sink, plan)
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), described(result)
    assert result.verdict.outcome.value == "pass", described(result)  # postgres_append claims at-least-once
    assert landed(result), described(result)
    impaired = [event for event in result.journal if event["event"].startswith("network.")]
    assert [event["event"] for event in impaired] in ([], ["network.impaired", "network.restored"])


@pytest.mark.parametrize(
    ("sink", "kind", "found"),
    [
        long("gives_up_after_five_tries", "INSERT", "lost"),
        long("postgres_ledger", "INSERT", None),
        long("postgres_prepared", '"COMMIT PREPARED"', None),
        long("kafka_transactional", "EndTxn", None),
    ],
)
def test_a_service_that_is_away_for_longer_than_its_clients_try(
    session: Session, sink: str, kind: str, found: str | None
) -> None:
    result = run(session, sink, f"request:before[kind={kind}, batch=1]#1 -> down(for=40s)")
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), described(result)
    assert result.verdict.outcome.value == ("fail" if found else "pass"), described(result)
    assert landed(result), described(result)


@pytest.mark.parametrize(
    ("sink", "point", "drivers"),
    [
        long("postgres_ledger", "sink.write:after[batch=1]", 2),  # the JVM, whose Python ends by itself
        long("postgres_ledger", "request:before[kind=COMMIT, batch=1]", 2),
        long("postgres_prepared", "request:before[kind=INSERT, batch=1, partition=1]", 1),  # a Python worker
    ],
)
def test_the_process_that_reached_a_point_dies_alone(session: Session, sink: str, point: str, drivers: int) -> None:
    result = run(session, sink, f"{point} -> kill(self)")
    assert result.verdict.outcome.value == "pass", described(result)
    assert landed(result), described(result)
    [confirmed] = [event for event in result.journal if event["event"] == "fault.confirmed"]
    assert confirmed["process"].rpartition(":")[2] in confirmed["detail"]
    assert sum(event["event"] == "driver.started" for event in result.journal) == drivers


@pytest.mark.parametrize(
    ("sink", "found"),
    [
        long("remembers_what_it_began", "lost"),
        long("remembers_before_it_commits", "lost"),
        long("postgres_upsert", None),
    ],
)
def test_a_query_that_its_application_starts_again_in_the_same_process(
    session: Session, sink: str, found: str | None
) -> None:
    result = run(session, sink, "set starts = 4; request:before[kind=COMMIT, batch=1]#1 -> drop")
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), described(result)
    assert landed(result), described(result)
    runs = {event["run"] for event in result.journal if event.get("phase") == "query.start"}
    drivers = [event for event in result.journal if event["event"] == "driver.started"]
    assert (len(runs), len(drivers)) == (2, 1)


@pytest.mark.long
@pytest.mark.parametrize(("sink", "found"), [("inserts_what_is_missing", "duplicated"), ("postgres_ledger", None)])
def test_a_driver_that_was_taken_for_dead_commits_behind_its_successor(
    session: Session, sink: str, found: str | None
) -> None:
    plan = "request:before[kind=COMMIT, batch=1]#1 -> pause(driver, longest=30s) until batch.commit:after[batch=1]"
    result = run(session, sink, plan)
    assert [one.kind for one in result.verdict.anomalies] == ([found] if found else []), described(result)
    assert landed(result), described(result)


@pytest.mark.long
def test_an_impairment_that_nothing_passes_is_inconclusive(session: Session) -> None:
    result = run(session, "redis_ledger", "query.start -> latency(1s, for=1ms)")
    assert result.verdict.outcome.value == "inconclusive", described(result)
    assert "nothing passed to or from redis meanwhile" in result.verdict.reason
