"""Two-phase commit whose coordinator writes no decision down before it commits. Flaw: duplicated.

Breaks when the driver dies after the first EndTxn and before the commit log: nothing tells the replay that the batch
was decided, so it writes the batch anew. What was committed is doubled; only what was still open is aborted in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace

from kafka import KafkaProducer
from kafka.errors import NoError, for_code
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import CoordinatorType, FindCoordinatorRequest
from kafka.protocol.producer import EndTxnRequest
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
    SparkSession.active().dataSource.register(NoDecision)
    options = {"bootstrap": target.kafka, "topic": target.topic, "name": target.name}
    return stream.format(NoDecision.name()).options(**options)


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """A task's open transaction; without a producer id for a task without rows."""

    transactional_id: str
    producer_id: int | None
    epoch: int


class NoDecision(DataSource):
    @classmethod
    def name(cls) -> str:
        return "commit_without_decision"

    def streamWriter(self, schema: StructType, overwrite: bool) -> NoDecisionWriter:
        return NoDecisionWriter(self.options)


class NoDecisionWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def write(self, iterator: Iterator[Row]) -> Prepared:
        context = TaskContext.get()
        assert context is not None
        transactional_id = f"{self.options['name']}-{context.partitionId()}"
        producer = KafkaProducer(
            bootstrap_servers=self.options["bootstrap"],
            transactional_id=transactional_id,
            transaction_timeout_ms=15 * 60 * 1000,
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
            current = producer._transaction_manager.producer_id_and_epoch
        finally:
            producer.close(timeout=10)  # sends no EndTxn: the transaction stays open
        return Prepared(transactional_id, current.producer_id if futures else None, current.epoch)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.end(messages, committed=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        self.end(messages, committed=False)

    def end(self, messages: list[WriterCommitMessage | None], committed: bool) -> None:
        network = NetworkSelector()
        manager = KafkaConnectionManager(network, bootstrap_servers=self.options["bootstrap"])
        manager.bootstrap(timeout_ms=60_000)
        try:
            for message in messages:
                if isinstance(message, Prepared) and message.producer_id is not None:
                    end_transaction(manager, message, committed)
        finally:
            manager.close()
            network.close()


def end_transaction(manager: KafkaConnectionManager, prepared: Prepared, committed: bool) -> None:
    key, kind = prepared.transactional_id, CoordinatorType.TRANSACTION
    answer = manager.run(manager.send, FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key]))
    node = manager.cluster.add_coordinator(answer.coordinators[0], kind, key, synthesize_node_id=False)
    request = EndTxnRequest(
        transactional_id=key,
        producer_id=prepared.producer_id,
        producer_epoch=prepared.epoch,
        committed=committed,
        max_version=3,
    )
    error = for_code(manager.run(manager.send, request, node).error_code)
    if error is not NoError:
        raise error(f"EndTxn of {prepared}")
