"""Making class-data archives (AppCDS): a JVM that maps its classes from one starts in half the time.

HotSpot writes such an archive when a JVM ends (``-XX:ArchiveClassesAtExit``), with the classes that it has loaded. So
one broker and one small streaming job are run, once for each Java, Spark and set of jars; see :mod:`.keys`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import javaproperties
from kafka import KafkaProducer
from kafka.errors import KafkaError

from ..java import Java
from ..runtime.leftovers import check_temporary
from ..runtime.scratch import scratch_directory
from ..spark import QUICK_START, SparkInstall
from ..spark_conf import lean_properties, write_conf_dir
from . import Artifacts
from .errors import ArtifactError, of_storage
from .keys import archive_path, broker_key, launcher_key, spark_key

BROKER_DEADLINE = 60.0
"""Seconds for a broker to serve its first producer, and to end after SIGTERM with the archive written."""
JOB_DEADLINE = 240.0
"""Seconds for the training job with the archive written (20 s on an idle machine with two cores)."""
KEPT = 8
"""Archives of each kind that stay in the cache (180 MB for one of Spark); the ones unused for longest go."""
SCALA = "2.13"
"""What bin/load-spark-env.sh tells the launcher; Spark 4 is built for no other."""
HEAP = "-Xmx256m"

LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c: %m%n%ex
"""


class TrainingFailed(ArtifactError):
    """An archive could not be made: trials run without it, their JVMs start more slowly."""


def make_broker_archive(artifacts: Artifacts, java: Java) -> Path:
    """The broker's archive, made now if it is not there (10 s). Raises ArtifactError."""
    present = artifacts.broker_archive(java)
    if present:
        return present
    path = archive_path(artifacts.cache, "broker", broker_key(java, artifacts.broker_classpath()))
    with _new(path) as dump, training_broker(artifacts, java, dump) as bootstrap:
        _traffic(bootstrap, "in")
    return path


def make_spark_archive(artifacts: Artifacts, java: Java, spark: SparkInstall) -> Path:
    """The archive for drivers, executors and Spark's daemons, made now if it is not there (40 s).

    Raises ArtifactError.
    """
    present = artifacts.spark_archive(java, spark)
    if present:
        return present
    path = archive_path(artifacts.cache, "spark", spark_key(java, spark, artifacts.lean_jars(spark.version)))
    with _new(path) as dump, training_broker(artifacts, java) as bootstrap:
        _traffic(bootstrap, "in")
        _training_job(artifacts, java, spark, dump, bootstrap)
    return path


def make_launcher_archive(artifacts: Artifacts, java: Java, spark: SparkInstall) -> Path:
    """The archive for Spark's launcher, made now if it is not there (1 s). Raises ArtifactError."""
    present = artifacts.launcher_archive(java, spark)
    if present:
        return present
    path = archive_path(artifacts.cache, "launcher", launcher_key(java, spark))
    with _new(path) as dump:
        # As bin/spark-class calls it for pyspark.
        main = ["org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit", "pyspark-shell"]
        classpath = f"{spark.home}/jars/*"
        options = ["-Xmx128m", *QUICK_START, f"-XX:ArchiveClassesAtExit={dump}", "-cp", classpath]
        variables = {"SPARK_HOME": str(spark.home), "SPARK_SCALA_VERSION": SCALA}
        output = _run([str(java.executable), *options, *main], variables)
        _expect(dump, "Spark's launcher", output)
    return path


@contextlib.contextmanager
def training_broker(artifacts: Artifacts, java: Java, dump: Path | None = None) -> Iterator[str]:
    """A single KRaft broker; gives its bootstrap address, ends it in order, and writes the archive ``dump`` then.

    Raises Unavailable.
    """
    check_temporary()
    with scratch_directory("setup") as directory:
        client, controller = _free_ports(2)
        properties = directory / "server.properties"
        properties.write_text(_server_properties(directory, client, controller))
        (directory / "log4j2.properties").write_text(LOG4J)
        options = [f"-Dlog4j2.configurationFile={directory}/log4j2.properties", f"-Djava.io.tmpdir={directory}"]
        command = broker_command(artifacts, java, *options)
        identity = str(uuid.uuid4())
        _run([*command, "kafka.tools.StorageTool", "format", "-t", identity, "-c", str(properties)])
        archiving = [f"-XX:ArchiveClassesAtExit={dump}"] if dump else []
        log = directory / "broker.log"
        with (
            log.open("wb") as output,
            _process([*command, *archiving, "kafka.Kafka", str(properties)], output) as broker,
        ):
            yield f"127.0.0.1:{client}"
            broker.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                broker.wait(BROKER_DEADLINE)
        if dump:
            _expect(dump, "the broker", log.read_text())


def broker_command(artifacts: Artifacts, java: Java, *options: str) -> list[str]:
    """The command line up to the main class for the broker's class path, with its archive where there is one."""
    archive = artifacts.broker_archive(java)
    shared = [f"-XX:SharedArchiveFile={archive}"] if archive else []
    classpath = os.pathsep.join(map(str, artifacts.broker_classpath()))
    return [str(java.executable), HEAP, *QUICK_START, *shared, *options, "-cp", classpath]


def _training_job(artifacts: Artifacts, java: Java, spark: SparkInstall, dump: Path, bootstrap: str) -> None:
    with scratch_directory("setup") as directory:
        options = f'{" ".join(QUICK_START)} -Djava.io.tmpdir={directory} "-XX:ArchiveClassesAtExit={dump}"'
        properties = lean_properties(java, spark, artifacts) | {
            "spark.master": "local[2]",
            "spark.driver.extraJavaOptions": options,
        }
        variables = write_conf_dir(directory, properties, LOG4J, java, spark, artifacts)
        variables |= {"SPARK_LOCAL_DIRS": str(directory), "TMPDIR": str(directory)}
        script = Path(__file__).with_name("training.py")
        arguments = [bootstrap, "in", "out", str(directory / "checkpoints"), str(artifacts.byteman())]
        output = _run([spark.python, str(script), *arguments], variables)
        _expect(dump, "Spark", output)


def _expect(dump: Path, what: str, output: str) -> None:
    if not dump.is_file():
        raise TrainingFailed(f"setup: {what} ended without writing its class-data archive ({_last_line(output)})")


def _traffic(bootstrap: str, topic: str) -> None:
    """Rows in a committed and an aborted transaction, once the broker serves."""
    deadline = time.monotonic() + BROKER_DEADLINE
    while True:
        try:
            producer = KafkaProducer(
                bootstrap_servers=bootstrap, transactional_id="setup", bootstrap_timeout_ms=int(BROKER_DEADLINE * 1000)
            )
            break
        except KafkaError as error:
            if time.monotonic() > deadline:
                raise TrainingFailed(
                    f"the broker that setup started does not answer at {bootstrap}: {error}"
                ) from error
    with contextlib.closing(producer):
        producer.init_transactions()
        for finish in (producer.commit_transaction, producer.abort_transaction):
            producer.begin_transaction()
            for number in range(100):
                key = f"k{number % 7}"
                row = {
                    "id": number,
                    "key": key,
                    "value": number / 8,
                    "event_time": "2026-01-01T00:00:00.000Z",
                    "payload": "x" * 20,
                }
                producer.send(topic, key=key.encode(), value=json.dumps(row).encode())
            producer.flush()
            finish()


def _server_properties(directory: Path, client: int, controller: int) -> str:
    properties = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"CLIENT://127.0.0.1:{client},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"CLIENT://127.0.0.1:{client}",
        "listener.security.protocol.map": "CLIENT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "CLIENT",
        "controller.listener.names": "CONTROLLER",
        "log.dirs": directory / "data",
        "num.partitions": 3,
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
    }
    return javaproperties.dumps({name: str(value) for name, value in properties.items()}, timestamp=None)


@contextlib.contextmanager
def _new(path: Path) -> Iterator[Path]:
    """A name for the archive while it is written; it becomes ``path`` when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        os.replace(temporary, path)
    except OSError as error:
        raise of_storage(error, path.parent) from error
    finally:
        temporary.unlink(missing_ok=True)
    _prune(path)


def _prune(newest: Path) -> None:
    kind = newest.name.split("-")[0]
    archives = sorted(newest.parent.glob(f"{kind}-*.jsa"), key=lambda archive: archive.stat().st_atime, reverse=True)
    for archive in archives[KEPT:]:
        archive.unlink(missing_ok=True)


def _run(command: Sequence[str], variables: Mapping[str, str] | None = None) -> str:
    """Run to the end, and return what was printed.

    The end is that of the output, not of the process: the JVM behind a Python driver lives on while it writes its
    archive, and holds the output open.
    """
    what = " ".join(Path(word).name for word in command if not word.startswith("-"))[:60]
    with _process(command, subprocess.PIPE, variables) as process:
        try:
            output, _ = process.communicate(timeout=JOB_DEADLINE)
        except subprocess.TimeoutExpired:
            raise TrainingFailed(f"setup: {what} did not end in {JOB_DEADLINE:.0f} s") from None
    text = output.decode(errors="replace")
    if process.returncode:
        raise TrainingFailed(f"setup: {what} failed with exit code {process.returncode} ({_last_line(text)})")
    return text


@contextlib.contextmanager
def _process(
    command: Sequence[str], output: IO[bytes] | int, variables: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child in a process group of its own, which is gone afterwards, however this block is left."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        env=_clean_environment() | dict(variables or {}),
        start_new_session=True,
        preexec_fn=_die_with_parent if sys.platform == "linux" else None,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _clean_environment() -> dict[str, str]:
    """Ours without what would change the JVMs or the Spark that are being measured."""
    disturbing = (
        "SPARK_",
        "PYSPARK_",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "HADOOP_",
        "PYTHONPATH",
    )
    return {key: value for key, value in os.environ.items() if not key.startswith(disturbing)}


def _die_with_parent() -> None:
    """PR_SET_PDEATHSIG (prctl 1): SIGKILL of setup takes its child along. Runs between fork and exec."""
    _LIBC.prctl(1, signal.SIGKILL)


_LIBC = ctypes.CDLL(None)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it printed nothing"])[-1].strip()


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
