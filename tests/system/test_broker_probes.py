"""The probes in a real Kafka broker: it is stopped where its phases say, and goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import IsolationLevel
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka.admin import KafkaAdminClient
from onceproof.faults import parse
from onceproof.faults.injection import Injector
from onceproof.harness.environments.base import ProbePoint
from onceproof.harness.environments.local import LocalEnvironment, LocalOptions, open_local
from onceproof.harness.kafka_topics import create_topics
from onceproof.harness.runtime.waiting import NotYet, wait_for
from probed import Journal, Killer, script_for, wait_until
from trials import long


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture(scope="module")
def armed() -> Iterator[LocalEnvironment]:
    """An environment whose broker may be armed: it is restarted for that."""
    environment = open_local(LocalOptions())
    try:
        environment.provide(["kafka"])
        yield environment
    finally:
        environment.close()


def transact(bootstrap: str, transactional_id: str, *, commit: bool = True, topic: str = "t") -> None:
    """One transaction with one row."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"row")
    producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(60)


def committed(bootstrap: str) -> None:
    """Wait until the topic's first row is visible: the client's commit is answered before the markers are sent."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition("t", 0, 0)])
    message = consumer.poll(30)
    consumer.close()
    assert message is not None
    assert message.error() is None


def test_a_broker_reports_prepared_transactions_only_behind_its_gate(armed: LocalEnvironment, journal: Journal) -> None:
    bootstrap = str(armed.addresses("harness").kafka)
    create_topics(bootstrap, {"t": 1})
    with Injector(parse("txn.prepare:after[result=abort] -> delay(1m)"), Killer(), journal.record) as injector:
        rules_of_broker = script_for("broker", ["txn.prepare"], injector, armed.broker_gate())
        point = ProbePoint(injector.host, injector.port, injector.token)
        armed.arm_brokers(rules_of_broker, point)
        armed.arm_brokers(None, None)
        transact(bootstrap, "workload")
        committed(bootstrap)
        assert journal.points("txn.prepare") == []
        armed.arm_brokers(rules_of_broker, point)
        transact(bootstrap, "job-1")
        journal.wait_for("point")
        [prepared] = journal.points("txn.prepare")
        assert (prepared["transactional_id"], prepared["result"], prepared["edge"]) == ("job-1", "commit", "after")
        assert prepared["role"] == "broker"
        assert armed.broker_of(prepared["process"]) == 1
        aborting = threading.Thread(target=transact, args=(bootstrap, "job-2"), kwargs={"commit": False})
        aborting.start()
        journal.wait_for("fault.reached")
        armed.arm_brokers(None, None)
    aborting.join(60)
    assert not aborting.is_alive()
    transact(bootstrap, "job-3")
    assert armed.failures(0.0) == [], "a broker goes on without its injector"


def state_of(bootstrap: str, transactional_id: str) -> str:
    """Of a transaction, as its coordinator has it."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        return str(admin.describe_transactions([transactional_id])[transactional_id].state.value)
    finally:
        admin.close()


def offsets_of(bootstrap: str, topic: str) -> tuple[int, int]:
    """Behind the last record that a reader of committed ones is given, and behind the last one."""
    asked = {confluent_kafka.TopicPartition(topic, 0): OffsetSpec.latest()}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    levels = (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)

    def told() -> tuple[int, int] | NotYet:
        answers = [admin.list_offsets(asked, isolation_level=level) for level in levels]
        try:
            committed, written = (int(next(iter(answer.values())).result(30).offset) for answer in answers)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() != confluent_kafka.KafkaError.UNKNOWN_LEADER_EPOCH:
                raise
            return NotYet(str(error))
        return committed, written

    return wait_for(told, 20, "a broker that has just come back to learn what it leads")


def committed_by(bootstrap: str, group: str) -> int | None:
    """The offset that the group has committed, if any."""
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        found = admin.list_group_offsets({group: None})[group]
    finally:
        admin.close()
    return next((one.offset for one in found.values() if one.offset >= 0), None)


def records_of_groups(bootstrap: str) -> int:
    """How many there are in the log of all groups' coordinators."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    topics = admin.list_topics(timeout=30).topics
    partitions = topics["__consumer_offsets"].partitions if "__consumer_offsets" in topics else {}
    asked = {confluent_kafka.TopicPartition("__consumer_offsets", one): OffsetSpec.latest() for one in partitions}
    answers = admin.list_offsets(asked) if asked else {}
    return sum(int(answer.result(30).offset) for answer in answers.values())


Act = Callable[[str, str], None]
"""Does something at the broker of a bootstrap server, with the topic, transaction or group of this name."""


@contextmanager
def parked(armed: LocalEnvironment, journal: Journal, point: str, act: Act, name: str) -> Iterator[str]:
    """A topic ``name``, and a broker whose thread is stopped at the point while ``act`` is done. At the end of the
    block both go on to their end."""
    bootstrap, phase = str(armed.addresses("harness").kafka), point.partition(":")[0]
    create_topics(bootstrap, {name: 1})
    with Injector(parse(f"{point} -> delay(1m)"), Killer(), journal.record) as injector:
        gate = script_for("broker", [phase], injector, armed.broker_gate())
        armed.arm_brokers(gate, ProbePoint(injector.host, injector.port, injector.token))
        acting = threading.Thread(target=act, args=(bootstrap, name))
        acting.start()
        journal.wait_for("fault.reached")
        yield bootstrap
        assert acting.is_alive() or phase.startswith("txn."), "the client has no answer"
        armed.arm_brokers(None, None)
    acting.join(60)
    assert not acting.is_alive()


def in_a_transaction(bootstrap: str, name: str) -> None:
    transact(bootstrap, name, topic=name)


@pytest.mark.parametrize(
    ("step", "state", "offsets"),
    [
        ("txn.end:before", "Ongoing", (0, 1)),
        ("txn.prepare:after", "PrepareCommit", (0, 1)),
        long("txn.marker:before", "PrepareCommit", (0, 1)),
        long("txn.marker:after", "PrepareCommit", (2, 2)),
        long("txn.complete:before", "PrepareCommit", (2, 2)),
    ],
)
def test_a_coordinator_or_a_leader_is_stopped_where_the_phase_says(
    armed: LocalEnvironment, journal: Journal, step: str, state: str, offsets: tuple[int, int]
) -> None:
    name = step.replace(":", ".")
    selectors = f"topic={name}" if "marker" in step else f"transactional_id={name}"
    with parked(armed, journal, f"{step}[{selectors}, result=commit]", in_a_transaction, name) as bootstrap:
        assert (state_of(bootstrap, name), offsets_of(bootstrap, name)) == (state, offsets)
    assert wait_until(lambda: state_of(bootstrap, name) == "CompleteCommit", 30)
    assert offsets_of(bootstrap, name) == (2, 2), "the record and the marker behind it"


@pytest.mark.parametrize(("edge", "written"), [long("before", 0), long("after", 1)])
def test_a_leader_is_stopped_before_and_after_it_appends_to_its_log(
    armed: LocalEnvironment, journal: Journal, edge: str, written: int
) -> None:
    name = f"appended.{edge}"
    step = f"log.append:{edge}[topic={name}, kafka_partition=0]"
    with parked(armed, journal, step, in_a_transaction, name) as bootstrap:
        assert offsets_of(bootstrap, name) == (0, written)
    assert wait_until(lambda: offsets_of(bootstrap, name) == (2, 2), 30)


def offset_alone(bootstrap: str, name: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    consumer.commit(offsets=[confluent_kafka.TopicPartition(name, 0, 7)], asynchronous=False)
    consumer.close()


def offset_in_a_transaction(bootstrap: str, name: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": name})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(60)
    producer.begin_transaction()
    position = [confluent_kafka.TopicPartition(name, 0, 7)]
    producer.send_offsets_to_transaction(position, consumer.consumer_group_metadata(), 60)
    producer.commit_transaction(60)
    consumer.close()


@pytest.mark.parametrize(
    ("edge", "act", "written"),
    [
        long("before", offset_alone, 0),
        long("after", offset_alone, 1),
        long("before", offset_in_a_transaction, 0),
        long("after", offset_in_a_transaction, 1),
    ],
)
def test_a_groups_coordinator_is_stopped_before_and_after_it_commits_an_offset(
    armed: LocalEnvironment, journal: Journal, edge: str, act: Act, written: int
) -> None:
    """By its log: a coordinator that is stopped behind its write does not say what a group has committed."""
    name, before = f"{act.__name__}.{edge}", records_of_groups(str(armed.addresses("harness").kafka))
    with parked(armed, journal, f"group.commit:{edge}[group={name}]", act, name) as bootstrap:
        assert records_of_groups(bootstrap) - before == written
    assert wait_until(lambda: committed_by(bootstrap, name) == 7, 30)


class Leading(Journal):
    """Notes at each log.leader of a topic how many epochs of leaders the partition's directory has: the broker writes a
    new one down as it becomes the leader (Partition.makeLeader, LeaderEpochFileCache)."""

    def __init__(self, topic: str, broker: Path) -> None:
        super().__init__()
        self.topic, self.broker = topic, broker
        self.epochs: list[tuple[str, int]] = []

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "point" and fields["phase"] == "log.leader" and fields["topic"] == self.topic:
            (checkpoint,) = self.broker.rglob(f"{self.topic}-0/leader-epoch-checkpoint")
            _, count, *_ = checkpoint.read_text().splitlines()
            self.epochs.append((fields["edge"], int(count)))
        super().record(event, fields)


@pytest.mark.long
def test_a_broker_that_comes_back_is_stopped_where_it_leads_again_and_where_it_has_read_its_transactions(
    armed: LocalEnvironment,
) -> None:
    """It dies with a decided transaction, whose marker nobody has."""
    name, bootstrap = "back", str(armed.addresses("harness").kafka)
    create_topics(bootstrap, {name: 1})
    journal = Leading(name, armed.broker_gate().parent)
    plan = f"txn.prepare:after[transactional_id={name}] -> delay(1m); txn.load:after -> delay(1m)"
    with Injector(parse(plan), Killer(), journal.record) as injector:
        rules = script_for("broker", ["txn.prepare", "txn.load", "log.leader"], injector, armed.broker_gate())
        armed.arm_brokers(rules, ProbePoint(injector.host, injector.port, injector.token))
        committing = threading.Thread(target=in_a_transaction, args=(bootstrap, name))
        committing.start()
        journal.wait_for("fault.reached")
        armed.kill_broker(1)
        armed.start_broker(1)
        assert wait_until(lambda: bool(journal.points("txn.load")), 60)
        assert offsets_of(bootstrap, name) == (0, 1), "it knows the decision, and has told nobody"

        assert wait_until(lambda: len(journal.epochs) == 2, 30), journal.epochs
        (before, known), (after, begun) = journal.epochs
        assert (before, after) == ("before", "after")
        assert begun == known + 1, "its epoch begins in between"
        armed.arm_brokers(None, None)
    committing.join(60)
    assert wait_until(lambda: offsets_of(bootstrap, name) == (2, 2), 30)
