"""A small streaming job, run once by ``onceproof setup`` so that the class-data archive has what trials load.

Usage: ``python training.py BOOTSTRAP TOPIC_IN TOPIC_OUT DIRECTORY AGENT``. It goes through the kinds of sinks: Kafka's
own, a foreachBatch function, and a Python data source, and loads the classes of AGENT, a jar on its class path. Nothing
of ours is imported: it runs in the job's interpreter.
"""

from __future__ import annotations

import sys
import traceback
import zipfile
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter

SCHEMA = "id BIGINT, key STRING, value DOUBLE, event_time TIMESTAMP, payload STRING"


class Discard(DataSource):
    """A sink that counts the rows of each task."""

    @classmethod
    def name(cls) -> str:
        return "onceproof_training"

    def streamWriter(self, schema: Any, overwrite: bool) -> DataSourceStreamWriter:
        return DiscardWriter()


class DiscardWriter(DataSourceStreamWriter):
    def write(self, iterator: Any) -> WriterCommitMessage:
        for _row in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: Any, batchId: int) -> None:
        pass

    def abort(self, messages: Any, batchId: int) -> None:
        pass


def collect(batch: DataFrame, batch_id: int) -> None:
    batch.persist()
    rows = batch.collect()
    columns = ", ".join(f"{name} {kind}" for name, kind in batch.dtypes)
    batch.sparkSession.createDataFrame(rows[:2], columns).count()
    batch.rdd.mapPartitions(lambda part: [sum(1 for _row in part)]).collect()
    batch.foreachPartition(lambda part: None)
    batch.unpersist()


def main(bootstrap: str, source: str, target: str, directory: str, agent: str) -> None:
    spark = SparkSession.builder.appName("onceproof training").getOrCreate()
    raw = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 120)
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    rows = raw.selectExpr(f"from_json(CAST(value AS STRING), '{SCHEMA}') AS row").select("row.*")
    json = rows.selectExpr("key", "to_json(struct(*)) AS value")
    kafka = json.writeStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("topic", target)
    # The two Kafka sinks share one checkpoint layout: the second start of a query on it is what a recovery does.
    run(kafka, directory + "/kafka")
    run(kafka, directory + "/kafka")
    run(rows.writeStream.foreachBatch(collect), directory + "/batch")
    attempt_python_sink(spark, rows, directory + "/python")
    load_classes(spark, agent)
    spark.stop()


def attempt_python_sink(spark: SparkSession, rows: DataFrame, checkpoint: str) -> None:
    """An interpreter without pyarrow cannot run Python data sources: the archive is then made without their classes."""
    try:
        spark.dataSource.register(Discard)
        run(rows.writeStream.format(Discard.name()), checkpoint)
    except Exception:
        traceback.print_exc()


def load_classes(spark: SparkSession, jar: str) -> None:
    """Those that can be loaded: some of a jar's classes may need others that are not on the class path."""
    java = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
    loader = java.ClassLoader.getSystemClassLoader()
    for entry in zipfile.ZipFile(jar).namelist():
        if entry.endswith(".class") and not entry.startswith("META-INF"):
            try:
                java.Class.forName(entry.removesuffix(".class").replace("/", "."), False, loader)
            except Py4JJavaError:
                continue


def run(writer: DataStreamWriter, checkpoint: str) -> None:
    query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
