"""A standalone Spark cluster on loopback: a master and a worker, with room for the executors of several drivers."""

from __future__ import annotations

from pathlib import Path

from ...java import Java
from ...runtime import processes
from ...runtime.guardian import Child
from ...runtime.ports import LOOPBACK, Port
from ...runtime.waiting import NotYet
from ...spark import QUICK_START, SparkInstall
from ..base import Failure, Unavailable
from ..driver_start import EXECUTORS
from ..host import SPARKS, Host, inherited, wait_available
from ..spark_master import MASTER_CLASS, WORKER_CLASS, alive_workers

START_SECONDS = 60.0
DRIVERS = 8
"""So many may have their executors at a time: of trials side by side, of a driver that stands still and of the one that
takes its place, of a second query."""
WORKER_CORES, WORKER_MEMORY = DRIVERS * EXECUTORS, "8g"
"""What the worker may promise; it is not taken from the machine before an executor does."""


class StandaloneCluster:
    """Started once and kept warm. pip's pyspark has no sbin: master and worker are run by spark-class."""

    def __init__(self, host: Host, java: Java, spark: SparkInstall) -> None:
        self.host = host
        self.java = java
        self.spark = spark
        self.ports = [host.port() for _ in range(4)]
        self.work = host.directory("work")
        self.children: dict[str, Child] = {}

    @property
    def url(self) -> str:
        return f"spark://{LOOPBACK}:{self.ports[0].number}"

    def start(self) -> None:
        """Returns once the worker is registered with the master."""
        master, master_ui, worker, worker_ui = self.ports
        self._launch("spark-master", master, [MASTER_CLASS, *_listen(master, master_ui)])
        room = ["-c", str(WORKER_CORES), "-m", WORKER_MEMORY, "-d", str(self.work)]
        self._launch("spark-worker", worker, [WORKER_CLASS, *_listen(worker, worker_ui), *room, self.url])
        wait_available(self._worker_registered, START_SECONDS, "the Spark worker to register")

    def executors(self, rows: processes.Table) -> list[processes.Process]:
        """Executors and everything below them."""
        worker = self.children.get("spark-worker")
        return processes.descendants([worker.pid], rows) if worker else []

    def logs(self) -> dict[str, Path]:
        """Output of the executors by name: Spark keeps it in ``work/APPLICATION/EXECUTOR/``."""
        paths = sorted(self.work.glob("app-*/*/std*"))
        return {f"executor-{path.parts[-3]}-{path.parts[-2]}-{path.name}.log": path for path in paths}

    def clear(self) -> None:
        """Remove the copies of jars that dead executors leave in their directories, and keep their output."""
        applications = list(self.work.glob("app-*"))
        # Looked at after the directories: an executor that has a jar in one of them is then among the processes.
        busy = " ".join(word for row in self.executors(processes.table()) for word in processes.command(row.pid))
        for application in applications:
            if application.name not in busy:
                for jar in application.glob("*/*.jar"):
                    jar.unlink(missing_ok=True)

    def failures(self) -> list[Failure]:
        dead = [part for part, child in self.children.items() if child.ended]
        return [
            Failure(part, f"ended by itself (exit code {self.children.pop(part).wait(0)}): {self.host.tail(part)}")
            for part in dead
        ]

    def _launch(self, part: str, port: Port, arguments: list[str]) -> None:
        port.check(part)
        environment = inherited(SPARKS) | {
            "JAVA_HOME": str(self.java.home),
            "SPARK_HOME": str(self.spark.home),
            "SPARK_LOCAL_IP": LOOPBACK,
            "SPARK_LOCAL_DIRS": str(self.host.directory("tmp")),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": " ".join([*QUICK_START, "-XX:-UsePerfData"]),
            "SPARK_LAUNCHER_OPTS": " ".join([*QUICK_START, "-XX:-UsePerfData"]),
            "TMPDIR": str(self.host.directory("tmp")),
            "TZ": "UTC",
            "ONCEPROOF_PLACE": "local",
        }
        command = [str(self.spark.home / "bin" / "spark-class"), *arguments]
        self.children[part] = self.host.start(part, command, environment)

    def _worker_registered(self) -> bool | NotYet:
        failed = self.failures()
        if failed:
            raise Unavailable(f"{failed[0].part} {failed[0].detail}")
        alive = alive_workers(self.ports[1].number)
        return bool(alive) or NotYet("no answer of the master" if alive is None else "no worker")


def _listen(port: Port, ui: Port) -> list[str]:
    return ["--host", LOOPBACK, "--port", str(port.number), "--webui-port", str(ui.number)]
