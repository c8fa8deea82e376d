"""Rows and a marker in one Kafka transaction, where the marker is looked up by an uncommitted reader. Flaw: lost.

A batch whose marker is in the markers' topic is skipped. The consumer that looks it up keeps the client's default,
isolation.level=read_uncommitted, and so finds markers of transactions that were aborted: nothing seems wrong, as long
as none is.

Breaks when the driver dies, or an error is raised, between the marker's sending and the transaction's commit: the
restart aborts the transaction, meets its marker, and skips the batch. That the default reads aborted records surprises
again and again (IBMStreams/streamsx.kafka#192).
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
SERVICES = ("kafka",)


def markers(target: SimpleNamespace) -> TopicPartition:
    return TopicPartition(f"{target.topic}_markers", 0)


def prepare(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.create_topics({markers(target).topic: {"num_partitions": 1}}, wait_for_metadata=True)
    admin.close()


def cleanup(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.delete_topics([markers(target).topic])
    admin.close()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct(*target.key)).alias("key"), to_json(struct("*")).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    marker = f"{query}:{batch_id}".encode()
    rows = df.collect()
    producer = KafkaProducer(
        bootstrap_servers=target.kafka, transactional_id=f"{target.name}-{query}", linger_ms=5, retry_backoff_ms=20
    )
    try:
        producer.init_transactions()
        if marker in marked(target):
            return
        producer.begin_transaction()
        futures = [producer.send(target.topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
        futures.append(producer.send(markers(target).topic, key=marker))
        producer.flush(timeout=50)
        for future in futures:
            future.get(timeout=0)
        producer.commit_transaction()
    finally:
        producer.close(timeout=10)


def marked(target: SimpleNamespace) -> set[bytes]:
    """The markers of all batches, read up to the topic's end."""
    partition, found = markers(target), set()
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, enable_auto_commit=False, fetch_max_wait_ms=20)
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        end, until = consumer.end_offsets([partition])[partition], time.monotonic() + 60
        while consumer.position(partition) < end:
            found |= {record.key for record in consumer.poll(timeout_ms=100).get(partition, ())}
            if time.monotonic() > until:
                raise TimeoutError(f"{partition}: not read up to {end} within a minute")
    finally:
        consumer.close()
    return found
