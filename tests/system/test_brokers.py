"""What a plan sets, of brokers or else, is there in its trial and as before afterwards; and which broker it means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource
from onceproof.faults.capabilities import Which
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.environments.base import Addresses, EffectError, Environment
from onceproof.harness.environments.local import LocalOptions, open_local
from onceproof.harness.errors import ObservationError, UsageError
from onceproof.harness.kafka_settings import set_brokers
from onceproof.harness.kafka_topics import create_topics, partition_leader
from onceproof.harness.request import Request, with_brokers
from onceproof.harness.session import Session
from onceproof.harness.trial.brokers import Brokers
from trials import SMALL, described, landed, long


@dataclass
class Addressed:
    """As much of an environment as finding a broker takes."""

    bootstrap: str

    def addresses(self, side: str) -> Addresses:
        return Addresses(kafka=self.bootstrap)

    def brokers(self) -> list[int]:
        return [1, 2]


VERIFICATION = "transaction.partition.verification.enable"
IN_SYNC = "min.insync.replicas"

PLAN = f"set batches = 2; set rows = 12; set spark.sql.shuffle.partitions = 3; set broker.{VERIFICATION} = false"


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    with closing(open_local(LocalOptions(brokers=2))) as environment:
        environment.provide(["kafka"])
        yield str(environment.addresses("harness").kafka)


def values(bootstrap: str, name: str) -> set[str]:
    """What each broker says it is."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    brokers = admin.list_topics(timeout=30).brokers
    asked = [ConfigResource(ConfigResource.Type.BROKER, str(one)) for one in brokers]
    answers = [answer.result(30) for one in asked for answer in admin.describe_configs([one]).values()]
    return {answer[name].value for answer in answers}


@pytest.mark.parametrize(("name", "own", "wanted"), [(VERIFICATION, "true", "false"), long(IN_SYNC, "1", "2")])
def test_all_brokers_have_a_property_until_it_is_set_back(brokers: str, name: str, own: str, wanted: str) -> None:
    assert values(brokers, name) == {own}
    back = set_brokers(brokers, {name: wanted})
    assert values(brokers, name) == {wanted}
    back()
    assert values(brokers, name) == {own}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("min.insync.replica", "brokers have no such property: did you mean min.insync.replicas?"),
        ("log.dirs", "brokers refuse it: Cannot update these configs dynamically"),
    ],
)
def test_a_property_that_cannot_be_set_is_one_clear_error(brokers: str, name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        set_brokers(brokers, {name: "1"})


def test_a_broker_is_found_by_what_it_is_to_the_point(brokers: str) -> None:
    create_topics(brokers, {"led": 3})
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "first"})
    consumer.commit(offsets=[TopicPartition("led", 0, 1)], asynchronous=False)  # the log of groups is made now
    consumer.close()
    found = Brokers(cast(Environment, Addressed(brokers)), "led", "le", list)
    leaders = [partition_leader(brokers, "led", number) for number in range(3)]
    points = [{"topic": "led", "kafka_partition": number} for number in range(3)]
    assert [found.find(Which("leader"), point) for point in points] == [[leader] for leader in leaders]
    assert set(leaders) == {1, 2}
    assert [found.find(Which("leader", f"le*-{number}"), {}) for number in range(3)] == [[one] for one in leaders]
    assert [found.find(Which("followers"), point) for point in points] == [[3 - leader] for leader in leaders]
    assert found.find(Which("followers", "led-1"), {}) == [3 - leaders[1]]
    with pytest.raises(EffectError, match=r"no\* means no topic of the trial: name one"):
        found.find(Which("leader", "no*-0"), {})
    with pytest.raises(ObservationError, match="topic led partition 7 has no leader"):
        found.find(Which("leader", "led-7"), {})
    for group in ("0", "1", "2"):  # whose hashes are 48, 49 and 50
        partition = ord(group) % 3
        keeps = partition_leader(brokers, "__consumer_offsets", partition)
        assert found.find(Which("group_coordinator"), {"group": group}) == [keeps]
        assert found.find(Which("group_coordinator", group), {}) == [keeps]


@pytest.mark.long
def test_a_trial_has_what_its_plan_sets(session: Session) -> None:
    result = session.trial(Request("kafka_append", plan=f"{PLAN}; sink.write:before[batch=1] -> kill(driver)"))
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result), described(result)
    assert (result.spec.workload.batches, result.spec.workload.rows) == (2, 12)
    assert result.spec.conf["spark.sql.shuffle.partitions"] == "3"
    [told] = [event for event in result.journal if event["event"] == "brokers.set"]
    assert told["properties"] == {VERIFICATION: "false"}
    assert values(str(session.environment.addresses("harness").kafka), VERIFICATION) == {"true"}


def test_a_plan_that_needs_brokers_is_refused_where_there_are_others(session: Session) -> None:
    with pytest.raises(UsageError, match="the plan needs 3 brokers, and there is 1: --brokers 3"):
        session.trial(Request("kafka_append", plan="set brokers = 3; query.start -> kill(driver)"))
    assert with_brokers(EnvironmentOptions(), "set brokers = 3").brokers == 3
    assert with_brokers(EnvironmentOptions(brokers=2), "set brokers = 3").brokers == 2


@pytest.mark.long
def test_all_brokers_and_the_driver_die_at_once() -> None:
    plan = "sink.commit:before[batch=1] -> kill(broker, which=all) then kill(driver)"
    with Session(EnvironmentOptions(brokers=2)) as own:
        result = own.trial(Request("kafka_transactional", plan=plan, workload=SMALL))
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result), described(result)
    of_brokers, of_driver = (event["detail"] for event in result.journal if event["event"] == "fault.confirmed")
    assert re.findall(r"killed broker (\d)", of_brokers) == ["1", "2"]
    dead = re.findall(r"(?:process|java|python) (\d+)", f"{of_brokers}; {of_driver}")
    assert len(dead) > 3
    assert not [pid for pid in dead if Path(f"/proc/{pid}").exists()]
    assert "landed: brokers 1 and 2 registered again" in result.verdict.reason
