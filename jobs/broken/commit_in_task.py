"""A two-phase sink that does the second phase in the first: each task commits its own transaction. Flaw: duplicated.

Breaks when the driver dies after the first task has ended and before the commit log: what tasks have committed stays,
and the replay writes it again. A transaction only makes each task's rows appear at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import SimpleNamespace

from kafka import KafkaProducer
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "two-phase commit"
FLAW = ("duplicated",)
SERVICES = ("kafka",)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select("key", to_json(struct("*")).alias("value"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(TaskCommits)
    options = {"bootstrap": target.kafka, "topic": target.topic, "name": target.name}
    return stream.format(TaskCommits.name()).options(**options)


class TaskCommits(DataSource):
    @classmethod
    def name(cls) -> str:
        return "commit_in_task"

    def streamWriter(self, schema: StructType, overwrite: bool) -> TaskCommitsWriter:
        return TaskCommitsWriter(self.options)


class TaskCommitsWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        producer = KafkaProducer(
            bootstrap_servers=self.options["bootstrap"],
            transactional_id=f"{self.options['name']}-{context.partitionId()}",
            linger_ms=5,
            retry_backoff_ms=20,
        )
        try:
            producer.init_transactions()
            producer.begin_transaction()
            futures = [producer.send(self.options["topic"], row.value.encode(), row.key.encode()) for row in iterator]
            producer.flush()
            for future in futures:
                future.get(timeout=0)
            producer.commit_transaction()
        finally:
            producer.close(timeout=10)
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Too late to decide anything."""

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Too late to decide anything."""
