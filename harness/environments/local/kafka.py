"""Kafka brokers in KRaft mode as processes on loopback."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path

from ...artifacts import Artifacts
from ...java import Java
from ...runtime import processes
from ...runtime.guardian import Child
from ...runtime.leftovers import disk_errors
from ...runtime.ports import LOOPBACK, Port
from ...runtime.waiting import NotYet
from ...spark import QUICK_START
from ..base import EffectError, Failure, ProbePoint, Unavailable
from ..broker_metadata import all_serve, registered
from ..host import Host, added, inherited, tail, wait_available
from ..server_settings import copy_storage, properties, random_id, replication
from .driver import let_go

HEAP = "-Xmx256m"
START_SECONDS = 60.0
FORMAT_SECONDS = 60.0
STOP_SECONDS = 3.0
SETTINGS = Path(__file__).parents[1] / "broker.properties"
LOGGING = Path(__file__).parents[1] / "broker-log4j2.properties"


class Broker:
    """One broker process through its incarnations. ``controller`` is its second port where it votes in the quorum."""

    def __init__(self, host: Host, number: int, command: Sequence[str], controller: Port | None) -> None:
        self.host = host
        self.number = number
        self.part = f"broker {number}"
        self.port = host.port()
        self.controller = controller
        self.directory = host.directory(f"broker-{number}")
        self.command = command
        self.child: Child | None = None
        self.ends_planned = False
        self._log_start = 0

    @property
    def address(self) -> str:
        return f"{LOOPBACK}:{self.port.number}"

    @property
    def running(self) -> bool:
        return self.child is not None and not self.child.ended

    @property
    def stopped(self) -> bool:
        """Whether it lives and was stopped by SIGSTOP: it serves nobody until it is resumed."""
        row = processes.look(self.child.pid) if self.child is not None and self.running else None
        return row is not None and row.state in processes.STOPPED

    def launch(self, agent: Path | None, environment: dict[str, str]) -> None:
        """Start the process; raises Unavailable if one of its ports is taken."""
        for port in filter(None, (self.port, self.controller)):
            port.check(self.part)
        log = self.host.log(self.part)
        self._log_start = log.stat().st_size if log.exists() else 0
        java, *rest = self.command
        options = [str(agent)] if agent else []
        self.ends_planned = False
        self.child = self.host.start(
            self.part,
            [java, *options, *rest, "kafka.Kafka", str(self.directory / "server.properties")],
            environment,
            self.directory,
        )

    def kill(self) -> str:
        """SIGKILL, confirmed."""
        if self.child is None or self.child.ended:
            raise EffectError(f"{self.part} does not run")
        self.ends_planned = True
        if self.child.kill() is None:
            raise EffectError(f"{self.part} (process {self.child.pid}) survived SIGKILL")
        return f"killed {self.part}, process {self.child.pid}"

    def resume(self) -> None:
        """SIGCONT, confirmed. Raises EffectError."""
        row = processes.look(self.child.pid) if self.child is not None else None
        if row is None or not row.alive:
            raise EffectError(f"{self.part} does not run")
        let_go([row])

    def stop(self) -> None:
        """End it in order, which spares the next incarnation the wait for this one's registration."""
        if self.child is None:
            return
        self.ends_planned = True
        self.child.signal(signal.SIGTERM)
        if self.child.wait(STOP_SECONDS) is None:
            self.child.kill()

    def registered(self) -> str | NotYet:
        """Whether this incarnation is registered and answers with itself among the living; says its epoch.

        The log tells this incarnation from its predecessor, whose registration the metadata may still show.
        """
        self.check_running()
        return registered(self.number, self.address, added(self.host.log(self.part), self._log_start))

    def check_running(self) -> None:
        """Raises Unavailable if the process has ended: whoever waits for it to serve waits in vain."""
        if not self.running:
            raise Unavailable(f"{self.part} ended at its start: {tail(self.host.log(self.part), self._log_start)}")

    def failure(self) -> Failure | None:
        """How the process ended, if nobody asked it to; said once."""
        if self.child is None or self.running or self.ends_planned:
            return None
        self.ends_planned = True
        last = tail(self.host.log(self.part), self._log_start)
        return Failure(self.part, f"ended by itself (exit code {self.child.wait(0)}): {last}")


class KafkaCluster:
    """One to three brokers. One or two: the first is the controller. Three: each votes, so that any one may die."""

    def __init__(self, host: Host, java: Java, artifacts: Artifacts, count: int) -> None:
        self.host = host
        self.java = java
        self.artifacts = artifacts
        self.gate = host.state / "brokers-armed"
        self._agent: tuple[str, ProbePoint | None] | None = None
        voters = range(1, (count if count > 2 else 1) + 1)
        controllers = {number: host.port() for number in voters}
        command = self._command()
        self.brokers = {
            number: Broker(host, number, command, controllers.get(number)) for number in range(1, count + 1)
        }
        self._cluster_id = random_id()
        self._voters = ",".join(f"{number}@{LOOPBACK}:{port.number}" for number, port in controllers.items())
        host.guardian.remove_on_close(self.gate, "gate")

    @property
    def addresses(self) -> str:
        return ",".join(broker.address for broker in self.brokers.values())

    def start(self) -> None:
        """Format the storage and start all brokers; returns when every one serves all."""
        for broker in self.brokers.values():
            self.host.write(broker.directory / "server.properties", self._properties(broker))
        self._format()
        self._launch_all()

    def arm(self, rules: str, injector: ProbePoint | None) -> None:
        """Restart the brokers with these rules unless they have them, and open the gate."""
        if self._agent != (rules, injector) or not all(broker.running for broker in self.brokers.values()):
            self.disarm()
            self._stop_all()
            self._agent = (rules, injector)
            self._launch_all()
        self.host.write(self.gate, "")

    def disarm(self) -> None:
        """Close the gate: the rules of the agent, if there is one, let everybody go on."""
        self.gate.unlink(missing_ok=True)

    def recover(self) -> None:
        """After a user who may have left any of them stopped or dead: returns once all serve.

        Raises EffectError or Unavailable.
        """
        stopped = [broker for broker in self.brokers.values() if broker.stopped]
        dead = [broker for broker in self.brokers.values() if not broker.running]
        for broker in stopped:  # first: the quorum with which the dead have to register may need them
            broker.resume()
        for broker in dead:
            self._launch(broker)
        if stopped or dead:
            self._await_all()

    def start_broker(self, number: int) -> str:
        """Start a dead broker again; returns once the new incarnation is registered."""
        broker = self.brokers[number]
        if broker.running:
            raise EffectError(f"{broker.part} runs already")
        self._launch(broker)
        return self.await_broker(broker.number)

    def await_broker(self, number: int) -> str:
        """Returns once it is registered, and says so itself. Raises Unavailable."""
        broker = self.brokers[number]
        return wait_available(broker.registered, START_SECONDS, f"{broker.part} to be registered")

    def failures(self) -> list[Failure]:
        return [failure for broker in self.brokers.values() if (failure := broker.failure())]

    def _stop_all(self) -> None:
        """A single broker in order (2.8 s to the next one's registration, 4.0 s after a SIGKILL); several by SIGKILL,
        because a controlled shutdown of all at once waits for a quorum that is gone (10.8 s, 5.6 s after a SIGKILL)."""
        for broker in self.brokers.values():
            if len(self.brokers) == 1:
                broker.stop()
            elif broker.running:
                broker.kill()

    def _launch_all(self) -> None:
        for broker in self.brokers.values():
            self._launch(broker)
        self._await_all()

    def _await_all(self) -> None:
        for broker in self.brokers.values():
            self.await_broker(broker.number)
        wait_available(self._all_serve, START_SECONDS, "the brokers to serve every partition")

    def _launch(self, broker: Broker) -> None:
        environment = inherited(("KAFKA_",)) | {"ONCEPROOF_PLACE": "local"}
        agent = None
        if self._agent:
            rules, injector = self._agent
            script = self.host.write(broker.directory / "rules.btm", rules)
            agent = Path(f"-javaagent:{self.artifacts.byteman()}=script:{script}")
            if injector:
                environment |= {
                    "ONCEPROOF_INJECTOR": f"{injector.host}:{injector.port}",
                    "ONCEPROOF_TOKEN": injector.token,
                }
        broker.launch(agent, environment)

    def _all_serve(self) -> bool | NotYet:
        for broker in self.brokers.values():
            broker.check_running()
        return all_serve(self.addresses, self.brokers)

    def _command(self) -> list[str]:
        archive = self.artifacts.broker_archive(self.java)
        return [
            str(self.java.executable),
            HEAP,
            *QUICK_START,
            *([f"-XX:SharedArchiveFile={archive}"] if archive else []),
            # No file of its own in the system's temporary directory, where a SIGKILL would leave it.
            "-XX:-UsePerfData",
            f"-Djava.io.tmpdir={self.host.directory('tmp')}",
            f"-Dlog4j2.configurationFile={LOGGING.as_uri()}",
            "-cp",
            ":".join(str(jar) for jar in self.artifacts.broker_classpath()),
        ]

    def _properties(self, broker: Broker) -> str:
        listeners = [f"PLAINTEXT://{broker.address}"]
        roles = ["broker"]
        if broker.controller:
            listeners.append(f"CONTROLLER://{LOOPBACK}:{broker.controller.number}")
            roles.append("controller")
        settings: dict[str, object] = {
            "process.roles": ",".join(roles),
            "node.id": broker.number,
            "controller.quorum.voters": self._voters,
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "PLAINTEXT",
            "listeners": ",".join(listeners),
            "advertised.listeners": f"PLAINTEXT://{broker.address}",
            "log.dirs": broker.directory / "data",
        }
        return properties(SETTINGS, settings | replication(len(self.brokers)))

    def _format(self) -> None:
        """Format the first broker's storage; the others get the same under their own ids, which saves a JVM each."""
        first, *others = self.brokers.values()
        java, *rest = self._command()
        tool = ["kafka.tools.StorageTool", "format", "-t", self._cluster_id]
        tool += ["-c", str(first.directory / "server.properties")]
        child = self.host.start("broker format", [java, *rest, *tool], inherited(("KAFKA_",)))
        code = child.wait(FORMAT_SECONDS)
        if code != 0:
            child.kill()
            raise Unavailable(f"Kafka's storage could not be formatted: {self.host.tail('broker format')}")
        for broker in others:
            with disk_errors():
                copy_storage(first.directory / "data", broker.directory / "data", broker.number)
