"""What a trial gets of a real Redis is its own, is told from others', and goes with it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from onceproof.harness.environments.base import Addresses
from onceproof.harness.environments.local import LocalOptions, open_local
from onceproof.harness.errors import ObservationError
from onceproof.harness.runtime.waiting import wait_for
from onceproof.harness.targets import Location
from onceproof.harness.targets import redis as target
from onceproof.harness.trial.targets import Targets


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    environment = open_local(LocalOptions())
    try:
        environment.provide(["redis"])
        yield str(environment.addresses("harness").redis)
    finally:
        environment.close()


class Trial:
    """A trial's target, by the way that a trial makes it: ``job`` and ``sink`` are the URLs of the two sides."""

    def __init__(self, url: str, name: str) -> None:
        addresses = Addresses(redis=url)
        location = Location(name, 3, Path("/nowhere"), {"harness": addresses, "job": addresses})
        self.targets = Targets(location, {"redis": target.TARGET})
        fields = self.targets.create()
        self.job, self.sink = str(fields["job"]["redis"]), str(fields["harness"]["redis"])

    def drop(self) -> None:
        self.targets.drop("redis")


@pytest.fixture
def trial(url: str) -> Iterator[Trial]:
    made = Trial(url, "t1")
    yield made
    made.drop()


@pytest.fixture
def other(url: str) -> Iterator[Trial]:
    made = Trial(url, "t2")
    yield made
    made.drop()


def test_both_sides_see_one_database_and_another_trial_does_not(trial: Trial, other: Trial) -> None:
    with redis.Redis.from_url(trial.job) as job, redis.Redis.from_url(trial.sink) as sink:
        job.set("a", 1)
        assert sink.get("a") == b"1"
        with redis.Redis.from_url(other.job) as stranger:
            assert stranger.dbsize() == 0


REFUSED = [
    ("FLUSHALL",),
    ("SWAPDB", "1", "2"),
    ("SELECT", "0"),
    ("MOVE", "a", "0"),
    ("COPY", "a", "b", "DB", "0"),
    ("EVAL", "return redis.call('SELECT', '0')", "0"),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "FLUSH"),
    ("CONFIG", "SET", "maxmemory", "1"),
    ("ACL", "LIST"),
    ("SHUTDOWN", "NOSAVE"),
]


@pytest.mark.parametrize("command", REFUSED, ids=" ".join)
def test_a_job_cannot_reach_beyond_its_database(trial: Trial, command: tuple[str, ...]) -> None:
    with redis.Redis.from_url(trial.job) as job:
        job.set("a", 1)
        with pytest.raises(redis.ResponseError, match=r"(?i)no permissions"):
            job.execute_command(*command)  # type: ignore[no-untyped-call]


FUNCTION = "#!lua name=mine\nserver.register_function('f', function() end)"


def test_what_sinks_use_is_allowed(trial: Trial) -> None:
    with redis.Redis.from_url(trial.job, client_name="mine") as job:
        with job.pipeline() as transaction:
            transaction.watch("a")
            transaction.multi()
            transaction.rpush("a", 1)
            assert transaction.execute() == [1]
        assert job.eval("return redis.call('LLEN', KEYS[1])", 1, "a") == 1
        assert job.function_load(FUNCTION, replace=True) == b"mine"
        job.xadd("s", {"a": "1"})
        job.xgroup_create("s", "g")
        assert [message for _, message in job.pubsub_numsub("c")] == [0]
        job.flushdb()
        assert job.dbsize() == 0


def test_connections_of_the_job_are_seen_until_they_end_and_those_of_its_sinks_process_are_not(
    trial: Trial, other: Trial
) -> None:
    with redis.Redis.from_url(trial.sink) as sink, redis.Redis.from_url(other.job) as stranger:
        sink.ping()
        stranger.ping()
        assert trial.targets.sessions() == []
        with redis.Redis.from_url(trial.job, client_name="mine") as job:
            job.set("a", 1)
            (session,) = trial.targets.sessions()
            assert session.startswith("connection ")
            assert session.endswith(" (mine), last command set, is still open in the database")
        wait_for(lambda: trial.targets.sessions() == [], 5, "the end of the connection")


def test_a_target_is_dropped_with_what_holds_it(url: str, trial: Trial) -> None:
    with redis.Redis.from_url(trial.job) as job, job.pipeline() as queued:
        job.set("a", 1)
        queued.watch("a")
        queued.multi()
        queued.set("a", 2)
        number = target.number_of(url, "t1")
        trial.drop()
        with pytest.raises(redis.RedisError):
            queued.execute()
        with pytest.raises(redis.AuthenticationError):
            job.set("a", 3)
    trial.drop()
    with redis.Redis.from_url(url) as client:
        assert client.hget(target.ALLOTTED, str(number)) is None
        assert client.acl_users() == ["default"]
        assert client.info("keyspace").keys() <= {"db0"}
    with pytest.raises(ObservationError, match="trial t1 has no database in Redis any more"):
        trial.targets.raw("id", True)


def test_trials_that_begin_at_once_get_databases_of_their_own_and_give_them_back(url: str) -> None:
    names = [f"at-once-{number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda name: target.allot(url, name), names))
        assert len(set(numbers)) == len(names)
        assert 0 not in numbers
        assert [target.number_of(url, name) for name in names] == numbers
        list(pool.map(lambda name: target.release(url, name), names))
    with redis.Redis.from_url(url) as client:
        assert client.hlen(target.ALLOTTED) == 0


def test_when_no_database_is_left_it_is_said(url: str) -> None:
    with redis.Redis.from_url(url) as client:
        client.hset(target.ALLOTTED, mapping={str(number): "lost" for number in range(1, 1024)})
        try:
            with pytest.raises(ObservationError, match=r"all 1023 databases of Redis belong to trials.*start"):
                target.allot(url, "one-too-many")
        finally:
            client.delete(target.ALLOTTED)


def test_rows_are_counted_by_their_place_and_what_has_no_such_column_is_none(trial: Trial) -> None:
    row, not_one = json.dumps({"id": 1}), json.dumps({"other": 1})
    with redis.Redis.from_url(trial.job) as job:
        for number in range(2500):
            job.hset(f"row:{number}", mapping={"id": number, "value": 1})
        job.rpush("events", row, row, not_one, "text", "[1]", '{"id"')
        job.sadd("a set", row, not_one)
        job.zadd("ranked", {row: 1})
        job.hset("by id", mapping={"1": row, "2": not_one})
        job.set("doc:1", row)
        job.set("doc:2", not_one)
        job.set("counter", 7)
        job.set(b"\xff", b"{\xff")
        job.xadd("stream", {"id": "1"})
        job.xadd("stream", {"json": row})
        job.xadd("stream", {"json": not_one})
        job.sadd("ledger", "query:1")
    assert trial.targets.raw("id", True) == {
        "hash by id": 1,
        "hash row:*": 2500,
        "list events": 2,
        "set a set": 1,
        "stream stream": 2,
        "string doc:*": 1,
        "zset ranked": 1,
    }


def test_rows_under_names_that_have_nothing_in_common_are_not_all_named(trial: Trial) -> None:
    with redis.Redis.from_url(trial.job) as job:
        for number in range(30):
            job.hset(f"{number}", mapping={"id": number})
        job.rpush("events", *[json.dumps({"id": 1})] * 5)
    counted = trial.targets.raw("id", True)
    assert (len(counted), sum(counted.values())) == (11, 35)
    assert (counted["list events"], counted["21 further keys"]) == (5, 21)


def test_each_side_gets_its_own_address_and_user(url: str, trial: Trial) -> None:
    job, sink = urlsplit(trial.job), urlsplit(trial.sink)
    assert (job.username, sink.username) == ("t1-job", "t1-harness")
    assert job.password != sink.password
    assert job.path == sink.path == f"/{target.number_of(url, 't1')}"
    assert (job.hostname, job.port) == (urlsplit(url).hostname, urlsplit(url).port)


def test_a_server_that_is_not_there_is_a_target_that_does_not_answer() -> None:
    nowhere = Addresses(redis="redis://127.0.0.1:1/0")
    location = Location("t3", 3, Path("/nowhere"), {"harness": nowhere, "job": nowhere})
    absent = Targets(location, {"redis": target.TARGET})
    for question in (absent.create, absent.sessions, lambda: absent.raw("id", True)):
        with pytest.raises(ObservationError, match="Connection refused"):
            question()
