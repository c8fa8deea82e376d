"""Spark drivers of the tests' own, on local[2], with the probes of some phases and without a trial around them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import pyspark
from onceproof.faults.injection import Injector
from onceproof.faults.probes import PYTHON_PROBE
from onceproof.harness.environments.base import DriverSpec, ProbePoint
from onceproof.harness.environments.driver_start import DriverStart
from onceproof.harness.java import find_java
from onceproof.harness.runtime.ports import LOOPBACK
from onceproof.harness.spark import spark_of
from probed import artifacts, script_for

SPARK_JARS = str(Path(pyspark.__path__[0]) / "jars" / "*")
BATCHES = 3
ROWS = 8

JOB = """
import atexit, sys
from pathlib import Path
from pyspark.sql import SparkSession
import sink
work = Path(sys.argv[1])
atexit.register(lambda: (work / "atexit").write_text("ran"))
lean = {"spark.ui.enabled": "false", "spark.sql.shuffle.partitions": "2"}
spark = SparkSession.builder.config(map=lean).getOrCreate()
stream = spark.readStream.option("maxFilesPerTrigger", 2).schema("id long").json(str(work / "in"))
writer = getattr(sink, sys.argv[2])(spark, stream)
query = writer.option("checkpointLocation", str(work / "checkpoint")).trigger(availableNow=True).start()
query.awaitTermination()
print("QUERY", query.id, query.runId, flush=True)
spark.stop()
"""

SINK = """
import os
import sys
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage

def write_batch(df, batch_id):
    try:
        rows = df.count()
    except RuntimeError:
        rows = -1
    return rows

def foreach(spark, stream):
    return stream.writeStream.foreachBatch(write_batch)

def noop(spark, stream):
    return stream.writeStream.format("noop")

def files(spark, stream):
    return stream.writeStream.format("json").option("path", os.path.join(sys.argv[1], "out"))

def files_of_a_batch(spark, stream):
    return stream.writeStream.foreachBatch(
        lambda df, batch_id: df.write.mode("append").json(os.path.join(sys.argv[1], "out"))
    )

def counts(spark, stream):
    return stream.groupBy("id").count().writeStream.outputMode("update").foreachBatch(write_batch)

class Writer(DataSourceStreamWriter):
    def __init__(self, work):
        self.work = work

    def write(self, rows):
        count = sum(1 for _ in rows)
        context = TaskContext.get()
        self.note("written", context.getLocalProperty("streaming.sql.batchId"), context.partitionId())
        return WriterCommitMessage()

    def commit(self, messages, batch_id):
        first = os.getpid()
        self.note("committed", batch_id)

    def abort(self, messages, batch_id):
        self.note("aborted", batch_id)

    def note(self, *what):
        open(os.path.join(self.work, "-".join(map(str, what))), "w").close()

class Source(DataSource):
    @classmethod
    def name(cls):
        return "probed"

    def streamWriter(self, schema, overwrite):
        return Writer(self.options["work"])

def source(spark, stream):
    spark.dataSource.register(Source)
    return stream.writeStream.format("probed").option("work", sys.argv[1])

def java(name):
    def attach(spark, stream):
        return stream.writeStream.format(f"probed.{name}")
    return attach

inherits, overrides, v1 = java("Inherits"), java("Overrides"), java("V1")
"""


def line_of(text: str) -> int:
    """The number of the first line of SINK that has ``text``."""
    return next(number for number, line in enumerate(SINK.splitlines(), 1) if text in line)


@cache
def driver_start() -> DriverStart:
    java, spark = find_java(), spark_of(sys.executable)
    return DriverStart(java, spark, artifacts(), "local[2]", host=LOOPBACK, bind=LOOPBACK, place="here", lean=True)


@dataclass
class JobDirectory:
    """A directory with a job, its sink and its input: ``batches`` batches of two files each."""

    root: Path

    def __post_init__(self) -> None:
        (self.root / "in").mkdir()
        (self.root / "job.py").write_text(JOB)
        (self.root / "sink.py").write_text(SINK)
        for number in range(2 * BATCHES):
            rows = "\n".join(f'{{"id": {number * ROWS + row}}}' for row in range(ROWS))
            (self.root / "in" / f"{number:02}.json").write_text(rows)

    def start(
        self, kind: str, injector: Injector, phases: Collection[str | tuple[str, str]] = (), lines: bool = False
    ) -> Driver:
        start = driver_start()
        spec = DriverSpec(
            [str(self.root / "job.py"), str(self.root), kind],
            log=self.root / "log",
            incarnation=1,
            injector=ProbePoint(injector.host, injector.port, injector.token),
            driver_rules=script_for("driver", phases, injector),
            executor_rules=script_for("executor", phases, injector),
            conf={"spark.driver.memory": "512m", "spark.driver.extraClassPath": self.classes},
            python_path=(str(PYTHON_PROBE), str(self.root)),
            variables={"ONCEPROOF_LINES": str(self.root / "sink.py")} if lines else {},
        )
        environment = {**os.environ, **start.environment(spec, str(self.root), self.root / "start")}
        log = (self.root / "log").open("w")
        return Driver(subprocess.Popen(start.command(spec), stdout=log, stderr=log, env=environment), self.root)

    @property
    def classes(self) -> str:
        """Of the sinks that a test has compiled. Where there are some, the class-data archive does not fit."""
        found = self.root / "classes"
        return str(found) if found.exists() else ""


@dataclass
class Driver:
    """The driver's Python process, and all that has its mark."""

    process: subprocess.Popen[bytes]
    root: Path

    def finish(self) -> list[str]:
        """Query id and run id of a job that ended well."""
        assert self.process.wait(400) == 0, self.log()[-3000:]
        return next(line for line in self.log().splitlines() if line.startswith("QUERY")).split()[1:]

    def log(self) -> str:
        return (self.root / "log").read_text()

    def alive(self) -> list[psutil.Process]:
        """Processes with this driver's mark that run."""
        return [process for process in psutil.process_iter() if _marked(process, str(self.root))]

    def end(self) -> None:
        for process in self.alive():
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(10)


def _marked(process: psutil.Process, mark: str) -> bool:
    try:
        running = process.status() != psutil.STATUS_ZOMBIE
        return running and process.environ().get("ONCEPROOF_DRIVER") == mark
    except psutil.Error:
        return False


Start = Callable[..., Driver]


@contextmanager
def starting(directory: Path) -> Iterator[Start]:
    """Starts drivers in the directory and ends what is left of them."""
    job, drivers = JobDirectory(directory), list[Driver]()

    def start(*arguments: Any, **options: Any) -> Driver:
        drivers.append(job.start(*arguments, **options))
        return drivers[-1]

    try:
        yield start
    finally:
        for driver in drivers:
            driver.end()
