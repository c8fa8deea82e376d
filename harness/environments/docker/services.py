"""The services of a Docker environment: brokers, databases, cluster, as containers of one compose project."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psycopg
from docker.models.containers import Container
from psycopg.conninfo import make_conninfo

from ...artifacts import Artifacts
from ...runtime import connections, processes
from ...runtime.ports import LOOPBACK
from ...runtime.waiting import NotYet
from .. import server_settings
from ..base import Addresses, EffectError, Failure, ProbePoint, Unavailable
from ..broker_metadata import all_serve, registered
from ..host import Host, wait_available
from ..spark_master import alive_workers
from ..valkey_server import clear, version
from . import containers
from .engine import bridge_address, connect, engine_errors, owner_label, remove_dead_projects, require_compose
from .image import Image, our_image, present, users_image
from .options import BROKERS, USER, DockerOptions
from .project import ROLE, Project, can_build, compose_directory, env_text, program_that_removes, service_of

SERVERS = ("postgres", "redis")
KNOWN = ("kafka", *SERVERS)
START_SECONDS = 120.0
BROKER_SECONDS = 60.0
OURS = "onceproof:latest"
BROKER_NUMBERS = range(1, BROKERS + 1)
WORKERS = ("spark-worker1", "spark-worker2")
CLUSTER = ("spark-master", *WORKERS)
DRIVER = "driver"
PROGRAMS = (
    Path(__file__).with_name("inside.py"),
    *map(Path, (processes.__file__, connections.__file__, server_settings.__file__)),
    ROLE,
)
"""What runs in containers, each a copy of its own file."""
SYSTEM_CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
ENDED = ("exited", "dead")


@dataclass(frozen=True)
class AttachInfo:
    """Services that another process keeps up. ``state`` is its state directory, ``services`` are those that run."""

    state: Path
    project: str
    password: str
    ports: Mapping[str, int]
    services: Sequence[str]


class DockerServices:
    """Containers that are this process's own. Nothing but its guardian runs before it is asked for."""

    def __init__(self, options: DockerOptions, host: Host, attached: AttachInfo | None = None) -> None:
        """``attached``: the services run already, and belong to a holder: then nothing of it is removed at the end."""
        self._options = options
        self.host = host
        self.client = connect()
        self.compose_version = require_compose()
        self.bridge = bridge_address(self.client)
        self._owned = attached is None
        if attached is None:
            remove_dead_projects(self.client)
            state = host.state
            self._ports: dict[str, int] = {}
            self._password = os.environ.get("POSTGRES_PASSWORD") or secrets.token_urlsafe(18)
            name = f"onceproof-{secrets.token_hex(4)}"
        else:
            state, name, self._password = attached.state, attached.project, attached.password
            self._ports = dict(attached.ports)
        self.shared = state / "shared"
        self.project = Project(self.client, name, state / "compose.env", options.compose_files)
        self._started = set(attached.services) if attached else set[str]()
        self._planned: set[str] = set()
        self._read: dict[str, float] = {}
        self._rules: tuple[str, ProbePoint | None] | None = None
        self._lock = threading.RLock()
        self._collecting = threading.Lock()
        self._closed = False
        self._images: tuple[Image, Image] | None = None
        with engine_errors("say its version"):
            self._engine_version = str(self.client.version()["Version"])
        if attached is None:
            self._lay_out()
            host.guardian.run_on_close(program_that_removes(name))

    def options(self) -> DockerOptions:
        return self._options

    @property
    def tools(self) -> Path:
        """What runs inside containers."""
        return self.shared / "tools"

    # -- up and down ------------------------------------------------------------------------------------------------

    def provide(self, wanted: Collection[str]) -> None:
        """Start what does not run yet, all at once. Raises Unavailable."""
        unknown = [service for service in wanted if service not in KNOWN]
        if unknown:
            raise Unavailable(f"the docker environment has no {unknown[0]}: it has {', '.join(KNOWN)}")
        with self._lock:
            if self._closed:
                raise Unavailable("this environment is closed")
            self.image()
            services = [name for service in wanted for name in _containers_of(service)]
            services += CLUSTER if self._options.standalone else ()
            missing = [name for name in services if name not in self._started]
            if missing:
                self.project.up(missing)
                self._started |= set(missing)
                self._await_services(missing)

    def image(self) -> Image:
        """What master, workers and driver run on."""
        return self._both_images()[1]

    def attach_info(self) -> AttachInfo:
        """What another process needs to use these services."""
        services = tuple(sorted(self._started))
        return AttachInfo(self.host.state, self.project.name, self._password, dict(self._ports), services)

    def recover(self) -> None:
        """After a user that may have died at any point: no driver and no executor runs, nobody waits at a probe, all
        brokers, servers and workers do run, no machine is cut off, and Redis is empty. Raises EffectError, Unavailable.
        """
        self.failures()  # what that user has killed is none
        for driver in self.project.containers(DRIVER):
            if containers.running(driver):
                containers.kill(driver, "driver")
        self.arm_brokers(None, None)
        self._rules = None
        for container in self.project.containers():
            if container.status == "paused":
                containers.resume(container, service_of(container))
        for container in self.running():
            containers.execute(container, ["ip", "route", "flush", "type", "blackhole"], "healing of the network")
        self._recover_brokers()
        for worker in WORKERS if self._options.standalone else ():
            self._recover_worker(worker)
        self._recover_servers()
        self.failures()

    def close(self) -> None:
        """Remove all that is this process's own, also what another thread is just starting; what belongs to a holder
        stays."""
        if not self._owned or self._images is None:
            return
        self._closed = True
        self.project.down()
        with self._lock:
            problem = self.project.down()
        if problem:
            raise Unavailable(f"containers of {self.project.name} are left: {problem}")

    def drivers(self, count: int) -> list[Container]:
        """At least ``count`` containers for drivers."""
        found = self.project.containers(DRIVER)
        if not found:
            self.project.create(DRIVER)
            found = self.project.containers(DRIVER)
        for number in range(len(found) + 1, count + 1):
            self.project.copy(found[0], number)
        return found if len(found) >= count else self.project.containers(DRIVER)

    # -- what runs where --------------------------------------------------------------------------------------------

    def addresses(self, inside: bool) -> Addresses:
        host, port = ("postgres", 5432) if inside else (LOOPBACK, self._port("POSTGRES_PORT"))
        database = make_conninfo("", host=host, port=port, user="postgres", password=self._password, dbname="postgres")
        brokers = [f"kafka{one}:9092" if inside else self._broker_address(one) for one in BROKER_NUMBERS]
        return Addresses(
            kafka=",".join(brokers) if "kafka1" in self._started else None,
            postgres=database if "postgres" in self._started else None,
            redis=self._redis_address(inside) if "valkey" in self._started else None,
        )

    def versions(self) -> dict[str, str]:
        image = self.image()
        return {
            "python": image.python_version,
            "spark": image.spark.version,
            "java": f"{image.java.version} ({image.java.vendor})",
            "kafka": self._both_images()[0].kafka_version,
            "docker": f"{self._engine_version}, compose {self.compose_version}",
            "image": image.name,
        }

    def container(self, service: str) -> Container:
        """The container of a service. Raises EffectError, Unavailable."""
        found = self.project.containers(service)
        if not found:
            raise EffectError(f"there is no container of {service} in {self.project.name}")
        return found[0]

    def running(self) -> list[Container]:
        """The containers of the cluster that run, drivers included."""
        return [one for one in self.project.containers() if one.status == "running"]

    # -- brokers ----------------------------------------------------------------------------------------------------

    def gate(self) -> Path:
        return self.shared / "brokers" / "armed"

    def arm_brokers(self, rules: str | None, injector: ProbePoint | None) -> None:
        """Restart the brokers with these rules unless they have them, and open the gate; None closes it."""
        with self._lock:
            if rules is None:
                self.gate().unlink(missing_ok=True)
                return
            if self._rules != (rules, injector):
                self.gate().unlink(missing_ok=True)
                self._restart_brokers(rules, injector)
                self._rules = (rules, injector)
            self.host.write(self.gate(), "")

    def kill_broker(self, broker: int) -> str:
        container = self._broker(broker)
        if not containers.running(container):
            raise EffectError(f"broker {broker} does not run")
        self._planned.add(str(container.id))
        return containers.kill(container, f"broker {broker}")

    def start_broker(self, broker: int) -> str:
        """Start a dead broker again; returns once the new incarnation is registered."""
        container = self._broker(broker)
        if containers.running(container):
            raise EffectError(f"broker {broker} runs already")
        containers.start(container, f"broker {broker}")
        return self.await_broker(broker)

    def await_broker(self, broker: int) -> str:
        """Returns once it is registered, and says so itself. Raises Unavailable."""
        container = self._broker(broker)
        since = containers.started_at(container)
        self._planned.discard(str(container.id))

        def answer() -> str | NotYet:
            self._raise_failures()
            return registered(broker, self._broker_address(broker), containers.log_since(container, since))

        return wait_available(answer, BROKER_SECONDS, f"broker {broker} to be registered", poll=0.2)

    # -- servers of targets -----------------------------------------------------------------------------------------

    def kill_server(self, service: str) -> str:
        container = self._server(service)
        if not containers.running(container):
            raise EffectError(f"{service} does not run")
        self._planned.add(str(container.id))
        return containers.kill(container, service)

    def start_server(self, service: str) -> str:
        """Start a dead server again; returns once it answers."""
        container = self._server(service)
        if containers.running(container):
            raise EffectError(f"{service} runs already")
        containers.start(container, service)
        self._planned.discard(str(container.id))
        self._await_server(service)
        return f"{service} recovered and answers"

    # -- Spark's machines -------------------------------------------------------------------------------------------

    def kill_worker(self, service: str) -> str:
        container = self.container(service)
        self._planned.add(str(container.id))
        return containers.kill(container, service)

    def start_worker(self, service: str) -> str:
        """Start a dead worker again; returns once the master has it under a new name."""
        container, before = self.container(service), self._workers()
        containers.start(container, service)

        def back() -> bool:
            now = self._workers()
            return service in {now[name] for name in now.keys() - before}

        wait_available(back, START_SECONDS, f"{service} to register again", poll=0.2)
        self._planned.discard(str(container.id))
        return f"{service} registered again"

    def _recover_brokers(self) -> None:
        """Start the dead ones, all before one is waited for: alone it would have no quorum."""
        dead = [broker for broker in BROKER_NUMBERS if not containers.running(self._broker(broker))]
        if dead:
            self._start_brokers(dead)

    def _recover_servers(self) -> None:
        """Start those that are dead. Redis is emptied, whoever started it: its databases are numbered and few."""
        for service in SERVERS:
            for name in _containers_of(service):
                if any(not containers.running(one) for one in self.project.containers(name)):
                    self.start_server(service)
        if self.project.containers("valkey"):
            clear(self._redis_address(inside=False))

    def _recover_worker(self, service: str) -> None:
        """Have it run, and nothing of a job on it."""
        container = self.container(service)
        if not containers.running(container):
            self.start_worker(service)
        containers.inside(container, self.tools, "end-jobs")

    # -- what happened ----------------------------------------------------------------------------------------------

    def failures(self) -> list[Failure]:
        """Services that died without being asked to; each is said once."""
        ended = [one for one in self.project.containers() if one.status in ENDED and service_of(one) in self._started]
        unplanned = [one for one in ended if str(one.id) not in self._planned]
        self._planned |= {str(one.id) for one in unplanned}
        return [Failure(service_of(one), containers.why_ended(one)) for one in unplanned]

    def collect_logs(self, directory: Path) -> None:
        """What services and executors printed since the last call."""
        directory.mkdir(parents=True, exist_ok=True)
        for container in self.project.containers():
            service = service_of(container)
            with self._collecting:
                since = self._read.get(str(container.id), 0.0)
                self._read[str(container.id)] = time.time()
            text = containers.log_since(container, since) if service in self._started else b""
            if text:
                (directory / f"{service}.log").write_bytes(text)
        paths = sorted((self.shared / "work").glob("*/app-*/*/std*"))
        logs = {f"executor-{path.parts[-3]}-{path.parts[-2]}-{path.name}.log": path for path in paths}
        self.host.collect(logs, directory)

    # -- details ----------------------------------------------------------------------------------------------------

    def _both_images(self) -> tuple[Image, Image]:
        """Ours, and that of master, workers and driver; looked at once. Raises Unavailable."""
        with self._lock:
            if self._images is None:
                self._images = self._find_images()
            return self._images

    def _find_images(self) -> tuple[Image, Image]:
        """See to the images, and write the variables of docker-compose.yml."""
        if self._owned:
            self.host.write(self.project.env_file, env_text(self._variables()))
        owner = owner_label(self.host.guardian.identity)
        name = os.environ.get("ONCEPROOF_IMAGE", OURS)
        if self._owned and can_build(compose_directory()) and "ONCEPROOF_IMAGE" not in os.environ:
            self.project.build()
        elif not present(self.client, name):
            raise Unavailable(f"image {name} is absent: build it in a checkout (docker compose build), or pull it")
        ours = our_image(self.client, name, owner)
        users = self._options.image
        return ours, users_image(self.client, users, owner, self._copied_jars) if users else ours

    def _copied_jars(self, spark_version: str) -> Mapping[str, list[Path]]:
        """The connector of that Spark and Byteman, where containers find them."""
        artifacts, place = Artifacts.open(progress=True), self.shared / "jars"
        place.mkdir(exist_ok=True)
        jars = {"connector": artifacts.connector_jars(spark_version), "byteman": [artifacts.byteman()]}
        return {kind: [Path(shutil.copy2(jar, place)) for jar in found] for kind, found in jars.items()}

    def _variables(self) -> dict[str, str]:
        """Ports come from the shell where it names them, so that they are settable; else free ones are reserved."""
        ports = [f"KAFKA{one}_PORT" for one in BROKER_NUMBERS]
        ports += ["SPARK_UI_PORT", "POSTGRES_PORT", "VALKEY_PORT", "TOXIPROXY_PORT"]
        own = {
            "ONCEPROOF_OWNER": owner_label(self.host.guardian.identity),
            "ONCEPROOF_SHARED": str(self.shared),
            "ONCEPROOF_USER": USER,
            "ONCEPROOF_HEALTH_INTERVAL": "60s",
            "POSTGRES_PASSWORD": self._password,
        }
        bundle = trusted_certificates()
        own |= {"EXTRA_CA": bundle} if bundle else {}
        if self._options.image:
            own |= {"ONCEPROOF_SPARK_IMAGE": self._options.image, "ONCEPROOF_ROLE": str(self.tools / ROLE.name)}
        return own | {name: str(self._port(name)) for name in ports}

    def _port(self, name: str) -> int:
        if name not in self._ports:
            given = os.environ.get(name, "")
            if given and not given.isdigit():
                raise Unavailable(f"{name}={given} is not a port: give a number from 1 to 65535, or leave it out")
            self._ports[name] = int(given) if given else self.host.port().number
        return self._ports[name]

    def _lay_out(self) -> None:
        """The programs that run inside containers, and the directories that they expect."""
        self.host.directory("shared", "tools")
        for program in PROGRAMS:
            shutil.copy2(program, self.tools)
        for name in ("brokers", "drivers", "trials", "work", "published"):
            self.host.directory("shared", name)

    def _await_services(self, services: Collection[str]) -> None:
        self._raise_failures()
        if "kafka1" in services:
            for broker in BROKER_NUMBERS:
                self.await_broker(broker)
            self._await_leaders()
        for server in SERVERS:
            if set(_containers_of(server)) <= set(services):
                self._await_server(server)
        if "spark-master" in services:
            wait_available(self._workers_registered, START_SECONDS, "both Spark workers to register", poll=0.2)

    def _await_server(self, service: str) -> None:
        answers = {"postgres": self._postgres_answers, "redis": self._redis_answers}[service]
        wait_available(answers, START_SECONDS, f"{_containers_of(service)[0]} to answer")

    def _await_leaders(self) -> None:
        bootstrap = str(self.addresses(inside=False).kafka)
        what = "the brokers to serve every partition"
        wait_available(lambda: all_serve(bootstrap, BROKER_NUMBERS), BROKER_SECONDS, what, poll=0.1)

    def _restart_brokers(self, rules: str, injector: ProbePoint | None) -> None:
        directory = self.shared / "brokers"
        self.host.write(directory / "rules.btm", rules)
        variables = {}
        if injector:
            variables = {"ONCEPROOF_INJECTOR": f"{injector.host}:{injector.port}", "ONCEPROOF_TOKEN": injector.token}
        self.host.write(directory / "injector.json", json.dumps(variables))
        for broker in BROKER_NUMBERS:
            if containers.running(self._broker(broker)):
                self.kill_broker(broker)
        self._start_brokers(BROKER_NUMBERS)

    def _start_brokers(self, brokers: Sequence[int]) -> None:
        """Returns once they are registered and every partition has a leader."""
        for broker in brokers:
            containers.start(self._broker(broker), f"broker {broker}")
        for broker in brokers:
            self.await_broker(broker)
        self._await_leaders()

    def _raise_failures(self) -> None:
        failed = self.failures()
        if failed:
            raise Unavailable(f"{failed[0].part} {failed[0].detail}")

    def _postgres_answers(self) -> bool:
        self._raise_failures()
        try:
            with psycopg.connect(str(self.addresses(inside=False).postgres), connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def _redis_answers(self) -> str | NotYet:
        self._raise_failures()
        return version(self._redis_address(inside=False))

    def _workers_registered(self) -> bool | NotYet:
        self._raise_failures()
        found = set(self._workers().values())
        return found == set(WORKERS) or NotYet(f"{len(found)} workers")

    def _workers(self) -> dict[str, str]:
        return alive_workers(self._port("SPARK_UI_PORT")) or {}

    def _broker(self, broker: int) -> Container:
        if broker not in BROKER_NUMBERS:
            raise EffectError(f"there is no broker {broker}: there are 1 to {BROKERS}")
        return self.container(f"kafka{broker}")

    def _server(self, service: str) -> Container:
        if service not in SERVERS:
            raise EffectError(f"there is no server of {service}: there are {', '.join(SERVERS)}")
        return self.container(*_containers_of(service))

    def _redis_address(self, inside: bool) -> str:
        place = "valkey:6379" if inside else f"{LOOPBACK}:{self._port('VALKEY_PORT')}"
        return f"redis://{place}/0"

    def _broker_address(self, broker: int) -> str:
        return f"{LOOPBACK}:{self._port(f'KAFKA{broker}_PORT')}"


def trusted_certificates() -> str | None:
    """The bundle of certificates that this machine trusts: what the build of the image fetches is checked by it."""
    given = (os.environ.get(name, "") for name in ("EXTRA_CA", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"))
    return next((path for path in (*given, SYSTEM_CERTIFICATES) if path and Path(path).is_file()), None)


def _containers_of(service: str) -> list[str]:
    """The services of docker-compose.yml behind one that a sink asks for."""
    if service == "kafka":
        return [f"kafka{one}" for one in BROKER_NUMBERS]
    return ["valkey" if service == "redis" else service]
