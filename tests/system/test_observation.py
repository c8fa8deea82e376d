"""What is observed of a real broker and a real Postgres is what is there."""

from __future__ import annotations

import socket
import time
import uuid

import psycopg
import pytest
from confluent_kafka import Producer
from kafka.admin import KafkaAdminClient
from onceproof.assertions import Open, Workload, committed_rows, encode, rows_of_json, same_rows
from onceproof.harness.environments.base import Environment
from onceproof.harness.errors import ObservationError
from onceproof.harness.kafka_topics import create_topics, end_offsets, read_topic, stable, unstable_partitions
from onceproof.harness.kafka_transactions import abort_transaction, open_transactions
from onceproof.harness.targets import postgres
from onceproof.harness.trial.settle import ABORT_SECONDS, seconds_left
from onceproof.harness.trial.source import SourceError, check_as_planned, write_workload
from probed import wait_until


@pytest.fixture(scope="module")
def bootstrap(environment: Environment) -> str:
    return str(environment.addresses("harness").kafka)


@pytest.fixture(scope="module")
def conninfo(environment: Environment) -> str:
    return str(environment.addresses("harness").postgres)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"t-{uuid.uuid4().hex[:8]}"
    create_topics(bootstrap, {name: 3})
    return name


@pytest.fixture
def hanging(bootstrap: str, topic: str) -> str:
    """The transactional id of an open transaction with one record in partition 1 of ``topic``: its producer is gone."""
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-left"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"left open", partition=1)
    producer.flush(10)
    return f"{topic}-left"


def test_written_workload_lies_at_the_planned_offsets(bootstrap: str, topic: str) -> None:
    workload = Workload(seed=1)
    acks = write_workload(bootstrap, topic, workload)
    assert acks.sort_by("id").equals(workload.planned_acks().sort_by("id"))
    last_batch = workload.batch_bounds()[workload.batches - 1]
    assert end_offsets(bootstrap, topic, "read_committed") == {p: end for p, (_, end) in last_batch.items()}


def test_an_input_of_which_readers_see_what_was_to_be_aborted_is_refused(bootstrap: str, topic: str) -> None:
    acks = write_workload(bootstrap, topic, Workload(seed=1)).to_pylist()
    check_as_planned(bootstrap, topic, acks)
    last = next(ack for ack in reversed(acks) if ack["committed"])
    with pytest.raises(SourceError, match="1 records of aborted transactions can be read, and 0 of committed"):
        check_as_planned(bootstrap, topic, [one | {"committed": one["committed"] and one != last} for one in acks])


def test_a_workload_is_written_in_little_time(bootstrap: str, topic: str) -> None:
    write_workload(bootstrap, topic, Workload(seed=1))
    create_topics(bootstrap, {f"{topic}-again": 3})
    start = time.monotonic()
    write_workload(bootstrap, f"{topic}-again", Workload(seed=1))
    assert time.monotonic() - start < 15, "0.4 s on an idle machine"


def test_aborted_rows_are_read_uncommitted_only(bootstrap: str, topic: str) -> None:
    workload = Workload(seed=1)
    write_workload(bootstrap, topic, workload)
    committed = {record.value for record in read_topic(bootstrap, topic, "read_committed")}
    everything = {record.value for record in read_topic(bootstrap, topic, "read_uncommitted")}
    transactions = list(workload.transactions())
    seen = rows_of_json(read_topic(bootstrap, topic, "read_committed"))
    assert same_rows(seen, committed_rows(workload))
    assert committed == {encode(row) for txn in transactions if txn.commit for _, row in txn.records}
    assert everything == {encode(row) for txn in transactions for _, row in txn.records}


def test_an_empty_topic_is_read_as_empty(bootstrap: str, topic: str) -> None:
    assert read_topic(bootstrap, topic, "read_committed") == []
    assert stable(bootstrap, topic)


def test_a_topic_that_ends_in_an_aborted_transaction_is_read_to_its_end(bootstrap: str, topic: str) -> None:
    write_workload(bootstrap, topic, Workload(seed=1, partitions=3, batches=1, rows=6))
    start = time.monotonic()
    assert len(read_topic(bootstrap, topic, "read_committed")) == 6
    assert time.monotonic() - start < 5


def test_a_missing_topic_is_a_clear_error(bootstrap: str) -> None:
    with pytest.raises(ObservationError, match="topic no-such-topic: the brokers do not know it"):
        read_topic(bootstrap, "no-such-topic", "read_committed", timeout=5)


def test_an_absent_broker_is_a_clear_error() -> None:
    nobody = f"127.0.0.1:{free_port()}"
    with pytest.raises(ObservationError, match="topic t: no metadata"):
        stable(nobody, "t", timeout=0.5)
    with pytest.raises(ObservationError, match="brokers at"):
        open_transactions(nobody, ["t"], timeout=0.5)
    with pytest.raises(SourceError, match="topic t: init_transactions"):
        write_workload(nobody, "t", Workload(seed=1), timeout=0.5)


def test_a_topic_cannot_be_created_twice(bootstrap: str, topic: str) -> None:
    with pytest.raises(ObservationError, match=f"topic {topic}: not created: .*already exists"):
        create_topics(bootstrap, {topic: 3})


def test_an_open_transaction_is_found_by_name_and_place(bootstrap: str, topic: str, hanging: str) -> None:
    assert not stable(bootstrap, topic)
    assert unstable_partitions(bootstrap, topic) == {1: (0, 1)}
    found = open_transactions(bootstrap, [topic])
    assert [(one.kind, one.name, one.state, one.detail) for one in found] == [
        ("kafka", hanging, "Ongoing", f"{topic}-1")
    ]


@pytest.mark.usefixtures("hanging")
def test_an_open_transaction_on_another_topic_is_nobodys_concern(bootstrap: str, topic: str) -> None:
    create_topics(bootstrap, {f"{topic}-other": 1})
    assert open_transactions(bootstrap, [f"{topic}-other"]) == []


def test_an_aborted_transaction_holds_nobody_up(bootstrap: str, topic: str, hanging: str) -> None:
    [transaction] = open_transactions(bootstrap, [topic])
    assert transaction.name == hanging
    abort_transaction(bootstrap, transaction)
    assert open_transactions(bootstrap, [topic]) == []
    assert stable(bootstrap, topic)
    assert read_topic(bootstrap, topic, "read_committed") == []


def test_its_timeout_ends_a_transaction_within_the_time_that_is_waited_for(bootstrap: str, topic: str) -> None:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": f"{topic}-left", "transaction.timeout.ms": 1000}
    producer = Producer(settings)
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"left open")
    producer.flush(10)
    left = seconds_left(open_transactions(bootstrap, [topic]))
    assert 0 < left <= ABORT_SECONDS + 1
    assert wait_until(lambda: not open_transactions(bootstrap, [topic]) and stable(bootstrap, topic), left)


def test_a_transaction_that_its_coordinator_forgot_is_aborted_in_its_partition(
    bootstrap: str, topic: str, hanging: str
) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    producer = admin.describe_transactions([hanging])[hanging].producer_id
    admin.close()
    abort_transaction(bootstrap, Open("kafka", f"producer {producer}", "Orphan", f"{topic}-1"))
    assert stable(bootstrap, topic)


def test_what_is_behind_an_open_transaction_is_not_waited_for(bootstrap: str, topic: str, hanging: str) -> None:
    assert open_transactions(bootstrap, [topic])[0].name == hanging
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"behind", partition=1)
    producer.flush(10)
    assert read_topic(bootstrap, topic, "read_committed", timeout=5) == []
    assert len(read_topic(bootstrap, topic, "read_uncommitted", timeout=5)) == 2


def test_sessions_of_a_database_are_seen_until_they_end(conninfo: str) -> None:
    job = postgres.create_database(conninfo, "trial 1")
    with psycopg.connect(job, application_name="job") as connection:
        connection.execute("SELECT 1")
        assert [line.split("(")[1] for line in postgres.sessions(conninfo, "trial 1")] == [
            "job), idle in transaction: SELECT 1"
        ]
        assert postgres.sessions(conninfo, "trial 1", besides="job") == []
    assert postgres.sessions(conninfo, "trial 1") == []


def test_a_prepared_transaction_is_seen_until_it_is_rolled_back(conninfo: str) -> None:
    prepare_in(postgres.create_database(conninfo, "trial-2"), "it's left")
    [found] = postgres.prepared_transactions(conninfo, "trial-2")
    assert (found.kind, found.name, found.state) == ("postgres", "it's left", "prepared")
    assert postgres.prepared_transactions(conninfo, "postgres") == []
    postgres.rollback_prepared(conninfo, "trial-2", found.name)
    assert postgres.prepared_transactions(conninfo, "trial-2") == []


def test_a_database_is_dropped_with_what_holds_it(conninfo: str) -> None:
    job = postgres.create_database(conninfo, "trial-3")
    prepare_in(job, "left")
    with psycopg.connect(job):
        postgres.drop_database(conninfo, "trial-3")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(job).close()
    postgres.drop_database(conninfo, "trial-3")


def prepare_in(conninfo: str, gid: str) -> None:
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE TABLE rows_under_test (id bigint)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO rows_under_test VALUES (1)")
        connection.execute(psycopg.sql.SQL("PREPARE TRANSACTION {}").format(gid))
