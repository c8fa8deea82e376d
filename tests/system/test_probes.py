"""The probes in real processes: Spark drivers on local[2], and a Kafka broker."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pyspark
import pytest
from onceproof.faults import PHASES, Plan, parse
from onceproof.faults.injection import Injector
from onceproof.faults.probes import rules
from onceproof.faults.probes.jvm import every_rule
from onceproof.faults.probes.rule import Side
from onceproof.harness.environments.driver_start import LEAN_RULES
from onceproof.harness.java import find_java
from onceproof.harness.probe_check import check_probes, unusable
from probed import SIDES, Journal, Killer, artifacts, script_for, wait_until
from probed_drivers import BATCHES, SPARK_JARS, Start, line_of, starting

LEAN = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
JAVA = {
    "Writer": """
import org.apache.spark.sql.connector.write.*;
class Done implements WriterCommitMessage {}
abstract class Writer implements DataWriter<org.apache.spark.sql.catalyst.InternalRow> {
    public void write(org.apache.spark.sql.catalyst.InternalRow row) {}
    public void abort() {}
    public void close() {}
}
abstract class Committing extends Writer {
    public WriterCommitMessage commit() { return new Done(); }
}
class Own extends Writer {
    public WriterCommitMessage commit() { return new Done(); }
}
class Overriding extends Committing {
    public WriterCommitMessage commit() { return again(); }
    private WriterCommitMessage again() { return super.commit(); }
    public void abort() { super.abort(); }
}
""",
    "Format": """
import java.util.*;
import org.apache.spark.sql.connector.catalog.*;
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.connector.write.streaming.*;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;
abstract class Format implements TableProvider, Table, SupportsWrite, WriteBuilder, Write, StreamingWrite {
    public StructType inferSchema(CaseInsensitiveStringMap options) { return new StructType(); }
    public Table getTable(StructType schema, Transform[] by, Map<String, String> properties) { return this; }
    public boolean supportsExternalMetadata() { return true; }
    public String name() { return "probed"; }
    public StructType schema() { return new StructType(); }
    public Set<TableCapability> capabilities() {
        return EnumSet.of(TableCapability.STREAMING_WRITE, TableCapability.ACCEPT_ANY_SCHEMA);
    }
    public WriteBuilder newWriteBuilder(LogicalWriteInfo info) { return this; }
    public Write build() { return this; }
    public StreamingWrite toStreaming() { return this; }
    public void commit(long epoch, WriterCommitMessage[] messages) {}
    public void abort(long epoch, WriterCommitMessage[] messages) {}
}
""",
    "Inherits": """
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.connector.write.streaming.*;
public class Inherits extends Format {
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        return (partition, task, epoch) -> new Own();
    }
}
""",
    "Overrides": """
import org.apache.spark.sql.connector.write.*;
import org.apache.spark.sql.connector.write.streaming.*;
public class Overrides extends Format {
    public StreamingDataWriterFactory createStreamingWriterFactory(PhysicalWriteInfo info) {
        return (partition, task, epoch) -> new Overriding();
    }
}
""",
    "V1": """
import org.apache.spark.sql.*;
import org.apache.spark.sql.execution.streaming.Sink;
import scala.collection.immutable.*;
public class V1 implements org.apache.spark.sql.sources.StreamSinkProvider {
    public Sink createSink(
        SQLContext context, Map<String, String> options, Seq<String> columns,
        org.apache.spark.sql.streaming.OutputMode mode
    ) {
        return new Derived();
    }
}
abstract class Base implements Sink {
    public void addBatch(long batch, Dataset<Row> rows) { System.out.println(rows.sparkSession().version()); }
}
class Derived extends Base {
    public void addBatch(long batch, Dataset<Row> rows) { super.addBatch(batch, rows); }
}
""",
}
"""Sinks whose classes have the interface from a class that they extend, as those of Iceberg do."""


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as start:
        yield start


def steps(points: list[dict[str, Any]], batch: int) -> list[str]:
    """``phase:edge`` of the points of a batch, in the order of their reports."""
    return [f"{point['phase']}:{point['edge']}" for point in points if point.get("batch") == batch]


@pytest.mark.parametrize("side", [*SIDES, "broker"])
def test_byteman_accepts_every_rule_against_the_classes_of_this_spark_and_broker(side: Side, tmp_path: Path) -> None:
    script = tmp_path / "rules.btm"
    phases = {str(rule.phase) for rule in every_rule() if rule.phase and rule.side == side}
    with Injector(Plan(), None, Journal().record) as injector:
        script.write_text(script_for(side, phases, injector, tmp_path / "gate"))
    kept = artifacts()
    connector = kept.connector_jars(pyspark.__version__)
    jars = kept.broker_classpath() if side == "broker" else [Path(SPARK_JARS), *connector]
    assert "TestScript: no errors" in checked(script, [str(jar) for jar in jars])


def test_byteman_accepts_the_rules_of_a_lean_start(tmp_path: Path) -> None:
    script = tmp_path / "lean.btm"
    script.write_text(LEAN_RULES)
    assert "TestScript: no errors" in checked(script, [SPARK_JARS])


def test_a_rule_that_does_not_fit_the_classes_is_named() -> None:
    script = rules(["txn.end", "txn.prepare"], "broker", spark_version="4.2.0", host="127.0.0.1", port=1, token="t")
    classes = [artifacts().byteman(), *artifacts().broker_classpath()]
    assert unusable(script, classes, find_java()) == set()
    assert unusable(script.replace("handleEndTransaction", "handleTheEnd"), classes, find_java()) == {"txn.end:before"}


def test_doctor_holds_every_probe_against_the_releases_that_are_there() -> None:
    checks = check_probes(sys.executable)
    assert [one.name for one in checks if one.needed and not one.ok] == []
    assert {one.name for one in checks} >= {f"probes of Spark {pyspark.__version__}, {side}" for side in SIDES}
    said = {one.name: one.detail for one in checks}
    for side in SIDES:
        reported = {rule.phase for rule in every_rule() if rule.side == side}
        phases = ", ".join(phase.name for phase in PHASES if phase.name in reported)
        assert said[f"probes of Spark {pyspark.__version__}, {side}"].endswith(f" rules fit; phases: {phases}")


def checked(script: Path, jars: list[str]) -> str:
    """What Byteman says of the rules in ``script`` for the classes of ``jars``."""
    classpath = os.pathsep.join([str(artifacts().byteman()), *jars])
    command = ["java", *LEAN.split(), "-cp", classpath, "org.jboss.byteman.check.TestScript", str(script)]
    return subprocess.run(command, capture_output=True, text=True).stdout


ALL = ("batch.offsets", "sink.commit", "task.run", "task.open", "task.row", "task.commit", "task.worker")
DRIVER_SIDE = ("batch.offsets", "sink.write", "sink.commit", "batch.commit")


def test_a_v2_sink_reports_every_phase_in_order_with_its_identity(start: Start, journal: Journal) -> None:
    with Injector(Plan(), None, journal.record) as injector:
        query, run = start("noop", injector, (*ALL, "query.end")).finish()
    [begun] = journal.points("query.start")
    assert (begun["query"], begun["run"], begun["edge"]) == (query, run, "before")
    for batch in range(BATCHES):
        assert steps(journal.points(*DRIVER_SIDE), batch) == [
            "batch.offsets:before",
            "batch.offsets:after",
            "sink.write:before",
            "sink.commit:before",
            "sink.commit:after",
            "sink.write:after",
            "batch.commit:before",
            "batch.commit:after",
        ]
        phases = ("task.run", "task.open", "task.row", "task.commit")
        tasks = [point for point in journal.points(*phases) if point["batch"] == batch]
        for partition in {point["partition"] for point in tasks}:
            assert steps([point for point in tasks if point["partition"] == partition], batch) == [
                "task.run:before",
                "task.open:after",
                "task.row:before",
                "task.row:before",
                "task.commit:before",
                "task.commit:after",
                "task.run:after",
            ]
        assert {point["partition"] for point in tasks} == {0, 1}
        assert {(point["query"], point["run"], point["attempt"]) for point in tasks} == {(query, run, 0)}
        assert len({point["task"] for point in tasks}) == 2
        assert {point.get("row") for point in tasks} == {None, 2, 5}
    for point in journal.points(*DRIVER_SIDE):
        assert (point["query"], point["run"], point["role"]) == (query, run, "driver")
    assert {point["process"] for point in journal.points(*ALL)} == {begun["process"]}
    assert journal.events[-1] == ("query.ended", {"role": "driver", "phase": "query.end", "process": begun["process"]})


class AtTheLog(Journal):
    """Notes which batches the offset log has when batch.plan is reported, and the commit log at query.stop."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.checkpoint = checkpoint
        self.found: list[tuple[str, int | None, set[str]]] = []

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        logs = {"batch.plan": "offsets", "query.stop": "commits"}
        if event == "point" and fields["phase"] in logs:
            log = self.checkpoint / logs[fields["phase"]]
            there = {file.name for file in log.iterdir() if file.name.isdigit()} if log.exists() else set()
            self.found.append((fields["phase"], fields.get("batch"), there))
        super().record(event, fields)


@pytest.mark.long
def test_a_batch_is_planned_before_it_is_in_the_log_and_a_query_stops_behind_its_last_one(
    start: Start, tmp_path: Path
) -> None:
    journal = AtTheLog(tmp_path / "checkpoint")
    with Injector(Plan(), None, journal.record) as injector:
        start("noop", injector, ("batch.plan", "query.stop", "query.end")).finish()
    before = [{str(batch) for batch in range(number)} for number in range(BATCHES + 1)]
    asked = [("batch.plan", number, before[number]) for number in range(BATCHES + 1)]
    assert journal.found == [*asked, ("query.stop", None, before[BATCHES])]
    assert journal.events[-1][0] == "query.ended", "behind it"


class AtTheFifthRow(Journal):
    """Notes which files with rows there are, and which of Spark's notes of whole batches, at row 5 of each task."""

    def __init__(self, out: Path) -> None:
        super().__init__()
        self.out = out
        self.found: list[tuple[int, int, bool, bool]] = []

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "point" and fields["phase"] == "task.row" and fields["row"] == 5:
            batch = int(fields["batch"])
            begun = any(f"-{fields['partition']:05}-" in file.name for file in self.out.rglob("*part-*.json"))
            noted = (self.out / "_spark_metadata" / str(batch)).exists()
            self.found.append((batch, int(fields["partition"]), begun, noted))
        super().record(event, fields)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["files", "files_of_a_batch"])
def test_a_writer_of_files_reports_its_rows_while_its_file_is_there_and_its_batch_is_not_noted(
    start: Start, tmp_path: Path, kind: str
) -> None:
    journal = AtTheFifthRow(tmp_path / "out")
    with Injector(Plan(), None, journal.record) as injector:
        start(kind, injector, ("task.row",)).finish()
    assert sorted(journal.found) == [(batch, task, True, False) for batch in range(BATCHES) for task in (0, 1)]


def compile_java(directory: Path) -> None:
    """The classes of JAVA, where a driver of this directory finds them."""
    compiler = shutil.which("javac")
    if compiler is None:
        pytest.skip("a Java runtime without a compiler")
    sources = directory / "java" / "probed"
    sources.mkdir(parents=True)
    for name, text in JAVA.items():
        (sources / f"{name}.java").write_text(f"package probed;\n{text}")
    command = [compiler, "--release", "17", "-nowarn", "-cp", SPARK_JARS, "-d", str(directory / "classes")]
    ended = subprocess.run([*command, *map(str, sources.glob("*.java"))], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr


@pytest.mark.long
@pytest.mark.parametrize("kind", ["inherits", "overrides"])
def test_a_writer_that_has_its_interface_from_a_base_class_reports_each_commit_once(
    start: Start, journal: Journal, tmp_path: Path, kind: str
) -> None:
    compile_java(tmp_path)
    with Injector(Plan(), None, journal.record) as injector:
        start(kind, injector, ("task.commit",)).finish()
    commits = [
        (point["batch"], point["partition"], point["edge"])
        for point in sorted(journal.points("task.commit"), key=lambda point: (point["batch"], point["partition"]))
    ]
    edges = ("before", "after")
    assert commits == [(batch, task, edge) for batch in range(BATCHES) for task in (0, 1) for edge in edges]


@pytest.mark.long
def test_a_v1_sink_that_has_its_interface_from_a_base_class_reports_each_hand_over_once(
    start: Start, journal: Journal, tmp_path: Path
) -> None:
    compile_java(tmp_path)
    with Injector(Plan(), None, journal.record) as injector:
        start("v1", injector).finish()
    for batch in range(BATCHES):
        assert steps(journal.points("sink.write", "batch.commit"), batch) == [
            "sink.write:before",
            "sink.write:after",
            "batch.commit:before",
            "batch.commit:after",
        ]


class Overtaken(Journal):
    """Another run writes the commit log's entry of batch 1 while this one is stopped before it."""

    def __init__(self, checkpoint: Path) -> None:
        super().__init__()
        self.commits = checkpoint / "commits"

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "point" and (fields["phase"], fields.get("edge"), fields.get("batch")) == BEFORE_COMMIT:
            shutil.copy(self.commits / "0", self.commits / "1")
        super().record(event, fields)


BEFORE_COMMIT = ("batch.commit", "before", 1)


@pytest.mark.long
def test_a_commit_log_entry_that_another_run_has_written_is_no_commit(start: Start, tmp_path: Path) -> None:
    journal = Overtaken(tmp_path / "checkpoint")
    with Injector(Plan(), None, journal.record) as injector:
        assert start("noop", injector).process.wait(120) != 0
    commits = [(point["batch"], point["edge"]) for point in journal.points("batch.commit")]
    assert commits == [(0, "before"), (0, "after"), (1, "before")]


def test_a_python_data_source_reports_its_commit_lines_and_the_worker_of_each_task(
    start: Start, journal: Journal
) -> None:
    with Injector(Plan(), None, journal.record) as injector:
        start("source", injector, ALL, lines=True).finish()
    lines = journal.points("line")
    commits = [point for point in lines if point["function"] == "commit"]
    first = line_of("first = ")
    assert [(point["batch"], point["line"]) for point in commits] == [
        (batch, line) for batch in range(BATCHES) for line in (first, first + 1)
    ]
    assert {point["role"] for point in commits} == {"python-sink"}
    writes = [point for point in lines if point["function"] == "write"]
    assert {(point["batch"], point["role"]) for point in writes} == {(b, "python-worker") for b in range(BATCHES)}
    workers = {(hello["process"], hello["role"]) for hello in journal.named("probe.hello")}
    tasks = journal.points("task.worker")
    assert len(tasks) == 2 * BATCHES
    for point in tasks:
        assert (point["worker"], "python-worker") in workers
    assert {(point["batch"], point["partition"]) for point in tasks} == {(b, p) for b in range(BATCHES) for p in (0, 1)}


def test_foreach_batch_reports_its_lines_with_their_batch(start: Start, journal: Journal) -> None:
    with Injector(Plan(), None, journal.record) as injector:
        query, run = start("foreach", injector, ("batch.offsets", "task.run"), lines=True).finish()
    [count] = {line_of("rows = df.count()")}
    seen = [point for point in journal.points("line") if point["line"] == count]
    assert [(point["batch"], point["query"], point["run"]) for point in seen] == [
        (b, query, run) for b in range(BATCHES)
    ]
    assert {(point["role"], point["file"]) for point in seen} == {("python-driver", "sink.py")}
    attached = [point for point in journal.points("line") if point["function"] == "foreach"]
    assert {(point.get("batch"), point["when"]) for point in attached} == {(None, "start")}, "before any batch"
    of_batches = [point for point in journal.points("sink.write", "line", "batch.commit") if "batch" in point]
    order = [f"{point['phase']}:{point.get('edge')}" for point in of_batches]
    assert order[0] == "sink.write:before"
    assert order.index("line:None") < order.index("sink.write:after") < order.index("batch.commit:before")
    assert "python-driver" in {hello["role"] for hello in journal.named("probe.hello")}


@pytest.mark.long
def test_fail_at_a_line_is_raised_there_and_later_lines_are_still_reported(start: Start, journal: Journal) -> None:
    plan = parse(f"line[sink.py:{line_of('rows = df.count()')}][batch=1] -> fail")
    with Injector(plan, Killer(), journal.record) as injector:
        start("foreach", injector, lines=True).finish()
        assert injector.status()[0].confirmed
    swallowed = [point["line"] for point in journal.points("line") if point.get("batch") == 1]
    assert swallowed[-3:] == [line_of("except RuntimeError"), line_of("rows = -1"), line_of("return rows")]


@pytest.mark.long
def test_fail_in_the_jvm_is_seen_by_the_engine(start: Start, journal: Journal) -> None:
    with Injector(parse("batch.commit:before[batch=1] -> fail"), Killer(), journal.record) as injector:
        driver = start("noop", injector)
        assert driver.process.wait(90) == 1
        assert injector.status()[0].confirmed
    assert "java.lang.RuntimeException: injected by onceproof at batch.commit:before" in driver.log()
    assert journal.points("batch.commit")[-1]["batch"] == 1


@pytest.mark.long
def test_the_end_of_a_tasks_abort_is_reported_also_where_its_beginning_is_not(start: Start, journal: Journal) -> None:
    plan = parse("task.commit:before[batch=0, partition=0] -> fail")
    with Injector(plan, Killer(), journal.record) as injector:
        points = (("task.commit", "before"), ("task.abort", "after"))
        assert start("noop", injector, points).process.wait(90) == 1
    assert {point["edge"] for point in journal.points("task.abort")} == {"after"}


@pytest.mark.long
@pytest.mark.parametrize("kind", ["noop", "overrides"])
def test_the_abort_of_a_task_and_then_that_of_the_batch_are_reported_once(
    start: Start, journal: Journal, tmp_path: Path, kind: str
) -> None:
    if kind != "noop":
        compile_java(tmp_path)
    with Injector(parse("task.commit:before[batch=1, partition=0] -> fail"), Killer(), journal.record) as injector:
        assert start(kind, injector, ("task.commit", "task.abort", "sink.abort")).process.wait(90) == 1
    aborts = [point for point in journal.points("task.abort", "sink.abort") if point.get("partition") != 1]
    assert [(point["phase"], point["edge"], point["batch"], point["role"]) for point in aborts] == [
        ("task.abort", "before", 1, "executor"),
        ("task.abort", "after", 1, "executor"),
        ("sink.abort", "before", 1, "driver"),
        ("sink.abort", "after", 1, "driver"),
    ]


@pytest.mark.long
def test_a_driver_whose_injector_is_gone_dies_at_once_without_its_atexit(start: Start, journal: Journal) -> None:
    parked = threading.Event()
    with Injector(parse("sink.write:before[batch=1] -> delay(1m)"), Killer(), journal.record) as injector:
        driver = start("noop", injector)
        jvm = journal.wait_for("fault.reached")["process"].split(":")[1]
        parked.set()
    assert wait_until(lambda: not psutil.pid_exists(int(jvm)), 5), "the JVM halts"
    assert driver.process.wait(10) != 0
    assert journal.points("sink.write")[-1]["edge"] == "before", "the harness was gone in mid-batch"


@pytest.mark.long
def test_a_python_line_whose_injector_is_gone_kills_the_whole_driver_before_any_atexit(
    start: Start, journal: Journal, tmp_path: Path
) -> None:
    plan = parse(f"line[sink.py:{line_of('rows = df.count()')}][batch=1] -> delay(1m)")
    with Injector(plan, Killer(), journal.record) as injector:
        driver = start("foreach", injector, lines=True)
        journal.wait_for("fault.reached")
    assert wait_until(lambda: not driver.alive(), 5), driver.alive()
    assert driver.process.wait(10) == -signal.SIGKILL
    assert not (tmp_path / "atexit").exists()
