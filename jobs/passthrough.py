"""The reference job: passes the JSON values of a Kafka topic on to a sink, row by row. A plain PySpark application.

The sink is a Python file, loaded by path under its own file's name, with ``write_batch`` (foreachBatch) or ``attach``
(a DataStreamWriter in and out) and, optionally, ``transform`` (a DataFrame in and out, before the sink). Everything
about the session (master, jars, memory) comes from Spark's configuration (SPARK_CONF_DIR or spark-submit).

    python passthrough.py --brokers HOST:PORT --topic in --checkpoint DIR --sink sink.py --target '{"name": "a"}'

It ends with exit code 0 once all that was in the topic at its start is processed, and with the query's exception on
stderr and exit code 1 if the query fails; with --starts 4 it starts a query that has failed again, three times. With
--trigger processingTime="500 milliseconds", or another of the triggers that do not end by themselves, it goes on until
the file of --stop-file is there, and then stops its query.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, from_json
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import DoubleType, LongType, StringType, StructType, TimestampType

SCHEMA = (
    StructType()
    .add("id", LongType())
    .add("key", StringType())
    .add("value", DoubleType())
    .add("event_time", TimestampType())
    .add("payload", StringType())
)
"""The rows under test: ids are unique, no field is null."""

AVAILABLE_NOW, ASYNC_PROGRESS, REAL_TIME = "availableNow", "asyncProgress", "realTime"
MODE_OF_REAL_TIME = "update"
"""The only output mode that it takes; rows that are not aggregated are the same in it."""
MILLISECONDS = {"millisecond": 1, "second": 1000}
LOOK_SECONDS = 1


def main(transform: Callable[[DataFrame], DataFrame] = lambda rows: rows, mode: str = "append") -> None:
    """Run the query: what ``transform`` makes of the rows goes to the sink in the output ``mode``."""
    arguments = parse_arguments()
    sink = load_sink(arguments.sink)
    target = SimpleNamespace(**json.loads(arguments.target))
    spark = SparkSession.builder.appName(arguments.app_name).getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")

    def start() -> StreamingQuery:
        # Real-time mode has no limit: its tasks read what comes for as long as a batch lasts.
        limit = {} if arguments.trigger.startswith(REAL_TIME) else {"maxOffsetsPerTrigger": arguments.max_offsets}
        parts = {"minPartitions": arguments.min_partitions} if arguments.min_partitions else {}
        rows = read_rows(spark, arguments.brokers, arguments.topic, {**limit, **parts})
        stream = (
            attach_sink(sink, transform(rows), target)
            .outputMode(mode)
            .queryName(arguments.app_name)
            .option("checkpointLocation", arguments.checkpoint)
        )
        return with_trigger(stream, arguments.trigger).start()

    for left in reversed(range(arguments.starts)):
        try:
            await_end(start(), arguments.stop_file)
            return
        except StreamingQueryException:
            if not left:
                raise


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a query from a Kafka topic to a sink.")
    parser.add_argument("--brokers", required=True, help="bootstrap servers of the source")
    parser.add_argument("--topic", required=True, help="the source topic, with JSON values")
    parser.add_argument("--checkpoint", required=True, help="the query's checkpoint location")
    parser.add_argument("--sink", required=True, type=Path, help="the sink's Python file")
    parser.add_argument("--target", required=True, help="the sink's target, a JSON object")
    parser.add_argument("--max-offsets", required=True, type=int, help="offsets per batch (maxOffsetsPerTrigger)")
    parser.add_argument(
        "--trigger",
        default=AVAILABLE_NOW,
        help="availableNow, or processingTime, asyncProgress, realTime or continuous with an interval: NAME=INTERVAL",
    )
    parser.add_argument("--min-partitions", type=int, help="read the topic in at least so many parts")
    parser.add_argument("--starts", type=int, default=1, help="how often it starts the query, if that fails")
    parser.add_argument("--stop-file", type=Path, help="the query is stopped once this file is there")
    parser.add_argument("--app-name", default=Path(sys.argv[0]).stem, help="name of application and query")
    return parser.parse_args()


def with_trigger(stream: DataStreamWriter, text: str) -> DataStreamWriter:
    """The interval is that between two batches, or epochs; of asynchronous progress tracking, that in which offsets are
    written down; of real-time mode, how long a batch lasts, whose tasks write each row as it comes."""
    name, _, interval = text.partition("=")
    if name == AVAILABLE_NOW:
        return stream.trigger(availableNow=True)
    if name == REAL_TIME:
        return stream.trigger(realTime=interval).outputMode(MODE_OF_REAL_TIME)
    if name != ASYNC_PROGRESS:
        return stream.trigger(**{name: interval})
    number, unit = interval.split()
    return (
        stream.trigger(processingTime="0 seconds")
        .option("asyncProgressTrackingEnabled", "true")
        .option("asyncProgressTrackingCheckpointIntervalMs", int(number) * MILLISECONDS[unit.rstrip("s")])
    )


def await_end(query: StreamingQuery, stop_file: Path | None) -> None:
    if stop_file is None:
        query.awaitTermination()
        return
    while not query.awaitTermination(LOOK_SECONDS):
        if stop_file.exists():
            query.stop()
            return


def load_sink(file: Path) -> ModuleType:
    """Imports ``file`` as a top-level module, in such a way that Python workers can import it by the same name."""
    directory = str(file.resolve().parent)
    sys.path.insert(0, directory)
    # The JVM is started with this environment and hands it on to the Python workers of its own machine. Executors
    # elsewhere need the directory in spark.executorEnv.PYTHONPATH, or the file in spark.submit.pyFiles.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (directory, os.environ.get("PYTHONPATH"))))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise SystemExit(f"sink {file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def read_rows(spark: SparkSession, brokers: str, topic: str, options: Mapping[str, int]) -> DataFrame:
    """The topic's rows, of committed transactions only; a value that does not parse ends the query."""
    records = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", brokers)
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .options(**options)
        .option("failOnDataLoss", "true")
        .option("kafka.isolation.level", "read_committed")
        # A broker's death stalls the driver's offset lookup for this long; the client's default is a minute. A request
        # may not take longer than the call that it belongs to.
        .option("kafka.default.api.timeout.ms", 6000)
        .option("kafka.request.timeout.ms", 5000)
        # A consumer that has read ahead to the topic's end waits there for this long before it can go to where the next
        # batch begins; the client's default is half a second, in each task.
        .option("kafka.fetch.max.wait.ms", 20)
        .load()
    )
    row = from_json(col("value").cast(StringType()), SCHEMA, {"mode": "FAILFAST"})
    return records.select(row.alias("row")).select("row.*")


def attach_sink(sink: ModuleType, rows: DataFrame, target: SimpleNamespace) -> DataStreamWriter:
    if hasattr(sink, "transform"):
        rows = sink.transform(rows, target)
    if hasattr(sink, "attach"):
        attached: DataStreamWriter = sink.attach(rows.writeStream, target)
        return attached
    return rows.writeStream.foreachBatch(lambda batch, batch_id: sink.write_batch(batch, batch_id, target))


if __name__ == "__main__":
    main()
