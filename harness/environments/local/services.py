"""The services of a local environment: brokers, databases, cluster. They outlive the drivers that use them.

Whoever owns the environment holds this object itself; whoever attaches to a named one speaks to it through
:mod:`..holder`. So arguments and results are plain data.
"""

from __future__ import annotations

import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_all
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

from ...artifacts import Artifacts
from ...java import find_java
from ...runtime import processes
from ...runtime.guardian import Guardian
from ...runtime.leftovers import check_temporary, remove_leftovers, state_directory
from ...spark import spark_of
from ..base import Addresses, EffectError, Failure, ProbePoint, Unavailable
from ..host import Host
from .cluster import StandaloneCluster
from .kafka import Broker, KafkaCluster
from .options import LocalOptions
from .postgres import Postgres
from .server import Server
from .valkey import Valkey

KNOWN = ("kafka", "postgres", "redis")
ENDED_SECONDS = 3.0
"""How long the close of an environment waits for starts that were under way."""


class Services(Protocol):
    """What a local environment needs of its services, wherever they run."""

    def options(self) -> LocalOptions: ...

    def guardian_identity(self) -> str: ...

    def provide(self, services: Collection[str]) -> None: ...

    def versions(self) -> dict[str, str]: ...

    def addresses(self) -> Addresses: ...

    def master_url(self) -> str: ...

    def cluster_url(self) -> str:
        """The master of a cluster, which is started if there is none. Raises Unavailable."""

    def executor_pids(self) -> list[int]:
        """Executors with everything below them."""

    def gate(self) -> str: ...

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None: ...

    def broker_of(self, pid: int) -> int: ...

    def brokers(self) -> list[int]: ...

    def broker_process(self, broker: int) -> int: ...

    def await_broker(self, broker: int) -> str: ...

    def kill_broker(self, broker: int) -> str: ...

    def start_broker(self, broker: int) -> str: ...

    def kill_server(self, service: str) -> str: ...

    def start_server(self, service: str) -> str: ...

    def failures(self) -> list[Failure]: ...

    def collect_logs(self, directory: str) -> None: ...

    def tidy(self) -> None:
        """Between two drivers: remove what ended executors left on disk."""

    def close(self) -> None: ...


class LocalServices:
    """Services that are processes of this one. ``name`` makes the state directory findable, for a holder."""

    def __init__(self, options: LocalOptions, name: str | None = None) -> None:
        check_temporary()
        remove_leftovers()
        self._options = options
        self.java = find_java()
        self.spark = spark_of(options.python)
        self.artifacts = Artifacts.open(progress=True)
        with ExitStack() as stack:
            self.guardian = Guardian.start(name or "local")
            stack.callback(self.guardian.close)
            self.host = Host(self.guardian, state_directory(self.guardian, name))
            stack.callback(self.host.release_ports)
            self._starts: list[Future[None]] = []
            stack.callback(self._end_starts)
            self._stack = stack.pop_all()
        self._providing = threading.Lock()
        self.kafka: KafkaCluster | None = None
        self.postgres: Postgres | None = None
        self.redis: Valkey | None = None
        self.cluster: StandaloneCluster | None = None

    def options(self) -> LocalOptions:
        return self._options

    def guardian_identity(self) -> str:
        return self.guardian.identity

    def provide(self, services: Collection[str]) -> None:
        """Start what does not run yet, all at once. Raises Unavailable."""
        with self._providing:
            self._provide(services)

    def _provide(self, services: Collection[str]) -> None:
        unknown = [service for service in services if service not in KNOWN]
        if unknown:
            raise Unavailable(f"the local environment has no {unknown[0]}: it has {', '.join(KNOWN)}")
        starts: list[Callable[[], None]] = []
        if "kafka" in services and self.kafka is None:
            starts.append(self._start_kafka)
        if "postgres" in services and self.postgres is None:
            starts.append(self._start_postgres)
        if "redis" in services and self.redis is None:
            starts.append(self._start_redis)
        if self._options.standalone and self.cluster is None:
            starts.append(self._start_cluster)
        self._all_at_once(starts)

    def _all_at_once(self, starts: list[Callable[[], None]]) -> None:
        """Run all; on an error or an interrupt do not wait for the rest: the end of their processes ends them."""
        pool = ThreadPoolExecutor(max(1, len(starts)), thread_name_prefix="start")
        try:
            futures = [pool.submit(start) for start in starts]
            self._starts += futures
            for future in futures:
                future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def _end_starts(self) -> None:
        """Starts that are still under way write to the state directory, which is to be removed next."""
        self.guardian.end_processes()
        wait_for_all(self._starts, ENDED_SECONDS)

    def versions(self) -> dict[str, str]:
        found = {
            "python": _version_of(self._options.python),
            "spark": self.spark.version,
            "java": f"{self.java.version} ({self.java.vendor})",
            "kafka": self.artifacts.lock.kafka_version(),
        }
        found |= {"postgres": self.postgres.version} if self.postgres else {}
        return found | ({"valkey": self.redis.version} if self.redis else {})

    def addresses(self) -> Addresses:
        return Addresses(
            kafka=self.kafka.addresses if self.kafka else None,
            postgres=self.postgres.address if self.postgres else None,
            redis=self.redis.address if self.redis else None,
        )

    def master_url(self) -> str:
        return self.cluster_url() if self._options.standalone else self._options.master

    def cluster_url(self) -> str:
        with self._providing:
            if self.cluster is None:
                self._all_at_once([self._start_cluster])
        assert self.cluster is not None
        return self.cluster.url

    def executor_pids(self) -> list[int]:
        return [row.pid for row in self.cluster.executors(processes.table())] if self.cluster else []

    def gate(self) -> str:
        return str(self._brokers().gate)

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        if rules is not None:
            self._brokers().arm(rules, injector)
        elif self.kafka is not None:
            self.kafka.disarm()

    def broker_of(self, pid: int) -> int:
        for number, broker in self._brokers().brokers.items():
            if broker.child is not None and broker.child.pid == pid:
                return number
        raise EffectError(f"process {pid} is not a broker of this environment")

    def brokers(self) -> list[int]:
        return list(self._brokers().brokers)

    def broker_process(self, broker: int) -> int:
        child = self._broker(broker).child
        if child is None or child.ended:
            raise EffectError(f"broker {broker} does not run")
        return child.pid

    def await_broker(self, broker: int) -> str:
        self._broker(broker)
        return self._brokers().await_broker(broker)

    def kill_broker(self, broker: int) -> str:
        return self._broker(broker).kill()

    def start_broker(self, broker: int) -> str:
        self._broker(broker)
        return self._brokers().start_broker(broker)

    def kill_server(self, service: str) -> str:
        return self._server(service).kill()

    def start_server(self, service: str) -> str:
        return self._server(service).start_again()

    def failures(self) -> list[Failure]:
        parts = [part for part in (self.kafka, self.postgres, self.redis, self.cluster) if part is not None]
        return [failure for part in parts for failure in part.failures()]

    def collect_logs(self, directory: str) -> None:
        paths = {path.name: path for path in sorted(self.host.directory("logs").glob("*.log"))}
        self.host.collect(paths | (self.cluster.logs() if self.cluster else {}), Path(directory))

    def tidy(self) -> None:
        if self.cluster:
            self.cluster.clear()

    def recover(self) -> None:
        """After a user that may have died at any point: nobody waits at a probe, no executor runs, all brokers and
        servers do, and Redis is empty, whose databases are numbered and few.

        Raises EffectError, Unavailable or processes.Survivor.
        """
        self.arm_brokers(None, None)
        if self.cluster:
            processes.end(self.cluster.executors)
        if self.kafka:
            self.kafka.recover()
        for server in (self.postgres, self.redis):
            if server:
                server.recover()
        self.failures()

    def close(self) -> None:
        self._stack.close()

    def _start_kafka(self) -> None:
        kafka = KafkaCluster(self.host, self.java, self.artifacts, self._options.brokers)
        kafka.start()
        self.kafka = kafka

    def _start_postgres(self) -> None:
        postgres = Postgres(self.host)
        postgres.start()
        self.postgres = postgres

    def _start_redis(self) -> None:
        server = Valkey(self.host)
        server.start()
        self.redis = server

    def _start_cluster(self) -> None:
        cluster = StandaloneCluster(self.host, self.java, self.spark)
        cluster.start()
        self.cluster = cluster

    def _brokers(self) -> KafkaCluster:
        if self.kafka is None:
            raise EffectError("no broker runs: kafka was not asked for")
        return self.kafka

    def _server(self, service: str) -> Server:
        servers: dict[str, Server | None] = {"postgres": self.postgres, "redis": self.redis}
        server = servers.get(service)
        if server is None:
            raise EffectError(f"no {service} runs: it was not asked for")
        return server

    def _broker(self, number: int) -> Broker:
        if number not in self._brokers().brokers:
            raise EffectError(f"there is no broker {number}: there are 1 to {len(self._brokers().brokers)}")
        return self._brokers().brokers[number]


def _version_of(python: str) -> str:
    if python == sys.executable:
        return platform.python_version()
    answer = subprocess.run([python, "-c", "import platform; print(platform.python_version())"], capture_output=True)
    return answer.stdout.decode().strip()
