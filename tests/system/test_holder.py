"""Environments that outlive the command that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import psycopg
import pytest
import redis
from confluent_kafka.admin import AdminClient
from onceproof.harness.environments import holder
from onceproof.harness.environments.base import ProbePoint, Unavailable
from onceproof.harness.environments.local import LocalOptions
from onceproof.harness.errors import UsageError
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.guardian import MARK
from onceproof.harness.runtime.leftovers import named
from onceproof.harness.runtime.waiting import wait_for

NAME = f"test-{os.getpid()}"
ATTACHED = textwrap.dedent(
    """
    import sys
    from onceproof.harness.environments import holder
    from onceproof.harness.environments.base import ProbePoint
    environment = holder.attach(sys.argv[1])
    environment.arm_brokers("", ProbePoint("127.0.0.1", 1, "token"))
    environment.kill_broker(1)
    print(environment.broker_gate(), flush=True)
    sys.stdin.read()
    """
)
STOPPING = textwrap.dedent(
    """
    import sys
    from onceproof.harness.environments import holder
    from onceproof.harness.runtime import processes
    from onceproof.harness.runtime.guardian import MARK
    environment = holder.attach(sys.argv[1])
    held = processes.marked(MARK, environment.services.guardian_identity(), processes.table())
    (broker,) = [one.pid for one in held if "kafka.Kafka" in processes.command(one.pid)]
    environment.pause_process(f"local:{broker}")
    print(broker, flush=True)
    sys.stdin.read()
    """
)


@pytest.fixture(scope="module")
def held() -> Iterator[holder.NamedEnvironment]:
    held = holder.up(NAME, LocalOptions(), ttl=300)
    yield held
    if processes.lives(held.process):
        os.kill(int(held.process.partition(":")[0]), signal.SIGKILL)


def test_what_is_up_is_listed_and_serves_one_after_the_other(held: holder.NamedEnvironment) -> None:
    assert held in holder.environments()
    seen = set()
    for _ in range(2):
        environment = holder.attach(NAME)
        environment.provide(["kafka", "postgres"])
        with psycopg.connect(str(environment.addresses("harness").postgres)) as connection:
            assert connection.execute("select 1").fetchone() == (1,)
        seen.add(environment.addresses("job"))
        assert environment.name == NAME
        assert environment.job_processes() == environment.failures(0.0) == []
        environment.close()
    assert len(seen) == 1


def test_a_second_attach_is_refused_in_one_line_until_the_first_is_closed(held: holder.NamedEnvironment) -> None:
    first = holder.attach(NAME)
    with pytest.raises(Unavailable, match=rf"{NAME} is in use by process {os.getpid()}"):
        holder.attach(NAME)
    with pytest.raises(Unavailable, match="in use"):
        holder.down(NAME)
    first.close()
    holder.attach(NAME).close()


def test_the_same_name_cannot_be_up_twice(held: holder.NamedEnvironment) -> None:
    with pytest.raises(Unavailable, match="up already"):
        holder.up(NAME, LocalOptions(), ttl=60)


def test_a_dead_user_leaves_the_brokers_running_and_disarmed(held: holder.NamedEnvironment) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ATTACHED, NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        gate = user.stdout.readline().strip()
        assert os.path.exists(gate)
        user.kill()
    environment = holder.attach(NAME)
    assert not os.path.exists(gate)
    assert "killed broker 1" in environment.kill_broker(1)
    environment.start_broker(1)
    environment.close()


def test_a_broker_that_a_dead_user_had_stopped_serves_the_next_one(held: holder.NamedEnvironment) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOPPING, NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        broker = int(user.stdout.readline())
        user.kill()
    environment = holder.attach(NAME)
    row = processes.look(broker)
    assert row is not None
    assert row.state not in processes.STOPPED
    client = AdminClient({"bootstrap.servers": str(environment.addresses("harness").kafka)})
    assert list(client.list_topics(timeout=10).brokers) == [1]
    environment.close()


LEAVING = textwrap.dedent(
    """
    import sys
    from onceproof.harness.environments import holder
    from onceproof.harness.targets import redis
    environment = holder.attach(sys.argv[1])
    environment.provide(["redis"])
    url = environment.addresses("harness").redis
    number = redis.allot(url, "left")
    redis.add_user(url, "left", "job", number)
    print(number, flush=True)
    sys.stdin.read()
    """
)


def test_what_a_dead_user_had_of_redis_is_free_for_the_next_one(held: holder.NamedEnvironment) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAVING, NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as user:
        assert user.stdout is not None
        number = int(user.stdout.readline())
        user.kill()
    environment = holder.attach(NAME)
    environment.provide(["redis"])
    with redis.Redis.from_url(str(environment.addresses("harness").redis)) as client:
        assert (client.dbsize(), client.acl_users()) == (0, ["default"])
    assert number == 1
    environment.close()


def test_an_error_of_the_services_arrives_as_it_is(held: holder.NamedEnvironment) -> None:
    environment = holder.attach(NAME)
    with pytest.raises(Unavailable, match="no mongo"):
        environment.provide(["mongo"])
    with pytest.raises(Exception, match=r"there is no broker 7"):
        environment.kill_broker(7)
    environment.arm_brokers(None, ProbePoint("127.0.0.1", 1, "token"))
    environment.close()


def test_down_leaves_nothing() -> None:
    name = f"{NAME}-down"
    held = holder.up(name, LocalOptions(), ttl=60)
    environment = holder.attach(name)
    guardian = environment.services.guardian_identity()
    environment.close()
    holder.down(name)
    assert not named(name).exists()
    wait_for(lambda: not processes.lives(guardian), 3, "the end of the guardian")
    assert processes.marked(MARK, guardian, processes.table()) == []
    assert held not in holder.environments()
    with pytest.raises(Unavailable, match=rf"no environment called {name} is up.*onceproof up"):
        holder.attach(name)


def test_an_environment_ends_when_its_time_is_over() -> None:
    held = holder.up(f"{NAME}-short", LocalOptions(), ttl=0.1)
    wait_for(lambda: not named(held.name).exists(), 10, "the end of the environment")
    wait_for(lambda: not processes.lives(held.process), 5, "the end of the holder")


def test_a_name_that_is_no_name_is_refused() -> None:
    with pytest.raises(UsageError, match=r"'a/b'.*letters, digits"):
        holder.up("a/b", LocalOptions(), ttl=1)


def test_an_environment_that_cannot_start_says_why() -> None:
    with pytest.raises(Unavailable, match="no-such-python"):
        holder.up(f"{NAME}-bad", LocalOptions(python="/no-such-python"), ttl=60)
    assert not named(f"{NAME}-bad").exists()
