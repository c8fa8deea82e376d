"""Two-phase commit to Kafka whose transactional ids say nothing of the query. Flaw: lost.

Tasks leave Kafka transactions open, commit() writes them down and then commits them by producer id and epoch. If its
batch comes again, tasks write nothing any more, and a commit that is refused then is taken for one that was done.

Breaks when a second query writes by this sink to the same brokers: its tasks begin with InitProducerId on the ids of
the first one, which aborts what is open there, also what is decided. Flink had such ids: its Kafka sink made them of
the name of the task alone (FLINK-9295).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from uuid import uuid4

from kafka import KafkaProducer
from kafka.errors import InvalidProducerEpochError, InvalidTxnStateError, NoError, ProducerFencedError, for_code
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
FLAW = ("lost",)
SERVICES = ("kafka",)

REFUSED = (ProducerFencedError, InvalidProducerEpochError, InvalidTxnStateError)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct(*target.key)).alias("key"), to_json(struct("*")).alias("value"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(SharedTopic)
    options = {"bootstrap": target.kafka, "topic": target.topic, "checkpoint": target.checkpoint}
    return stream.format(SharedTopic.name()).options(**options)


class Transaction(NamedTuple):
    transactional_id: str
    producer_id: int
    epoch: int


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """A task's open transaction, or None if it wrote nothing."""

    transaction: Transaction | None


class SharedTopic(DataSource):
    @classmethod
    def name(cls) -> str:
        return "ids_without_a_query"

    def streamWriter(self, schema: StructType, overwrite: bool) -> SharedWriter:
        return SharedWriter(self.options)


class SharedWriter(DataSourceStreamWriter):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.options = dict(options)

    def write(self, iterator: Iterator[Row]) -> Prepared:
        context = TaskContext.get()
        assert context is not None
        if self.decision(int(context.getLocalProperty("streaming.sql.batchId"))).exists():
            return Prepared(None)
        transactional_id = f"events-{context.partitionId()}"
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
        return Prepared(Transaction(transactional_id, current.producer_id, current.epoch) if futures else None)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        decision = self.decision(batchId)
        again = decision.exists()
        if not again:
            write_down(decision, transactions_of(messages))
        for transaction in json.loads(decision.read_text()):
            self.commit_one(Transaction(*transaction), again)

    def decision(self, batch: int) -> Path:
        return Path(self.options["checkpoint"], "decided", str(batch))

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """The next attempt's InitProducerId aborts what is open."""

    def commit_one(self, transaction: Transaction, again: bool) -> None:
        network = NetworkSelector()
        manager = KafkaConnectionManager(network, bootstrap_servers=self.options["bootstrap"])
        manager.bootstrap(timeout_ms=60_000)
        try:
            error = commit(manager, transaction)
        finally:
            manager.close()
            network.close()
        if error is not NoError and not (again and error in REFUSED):  # refused: it was committed before
            raise error(f"EndTxn of {transaction}")


def transactions_of(messages: list[WriterCommitMessage | None]) -> list[Transaction]:
    return [message.transaction for message in messages if isinstance(message, Prepared) and message.transaction]


def write_down(decision: Path, transactions: list[Transaction]) -> None:
    decision.parent.mkdir(exist_ok=True)
    draft = decision.with_name(f".{decision.name}.{uuid4().hex}")
    draft.write_text(json.dumps(transactions))
    os.rename(draft, decision)


def commit(manager: KafkaConnectionManager, transaction: Transaction) -> type[Exception]:
    key, kind = transaction.transactional_id, CoordinatorType.TRANSACTION
    answer = manager.run(manager.send, FindCoordinatorRequest(key=key, key_type=kind.value, coordinator_keys=[key]))
    node = manager.cluster.add_coordinator(answer.coordinators[0], kind, key, synthesize_node_id=False)
    request = EndTxnRequest(
        transactional_id=key,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        committed=True,
        max_version=3,
    )
    return for_code(manager.run(manager.send, request, node).error_code)
