"""Rows and a marker of their batch in one Kafka transaction, by one producer for all batches. Flaw: duplicated.

The producer is the Java client that Spark's connector brings along (3.9), and the driver keeps it, since beginning one
for each batch takes time. Otherwise the sink does what sinks/kafka_marker.py does.

Breaks when a commit takes long on its way: the client gives it up, asks again, is answered, and goes on with the next
batch. Clients of that age speak version 1 of Kafka's transactions: all transactions of a producer have the same id and
epoch. So the first request, when it arrives, commits what the next batch has written by then, without its marker. The
driver fails, and its successor writes that batch again. KIP-890 gives each transaction an epoch of its own, for clients
from 4.0 on; a producer that begins anew with each batch (initTransactions) has one, too.
"""

from __future__ import annotations

import functools
import time
from types import SimpleNamespace
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from pyspark import SparkContext
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("kafka",)

DEADLINE = 60.0
"""Seconds in which the markers must have been read."""


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
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(to_json(struct(*target.key), times).alias("key"), to_json(struct("*"), times).alias("value"))


def java() -> Any:
    """The driver's JVM."""
    context = SparkContext._active_spark_context
    assert context is not None
    return context._jvm


@functools.cache
def producer_of(kafka: str, transactional_id: str) -> Any:
    settings = {
        "bootstrap.servers": kafka,
        "transactional.id": transactional_id,
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "value.serializer": "org.apache.kafka.common.serialization.StringSerializer",
        "request.timeout.ms": "10000",
    }
    producer = java().org.apache.kafka.clients.producer.KafkaProducer(settings)
    producer.initTransactions()
    return producer


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.collect()
    producer = producer_of(target.kafka, f"{target.name}-{query}")
    if batch_id > last_marked(target, query):
        write_transaction(producer, target, rows, query, batch_id)


def write_transaction(producer: Any, target: SimpleNamespace, rows: list[Row], query: str, batch_id: int) -> None:
    record = java().org.apache.kafka.clients.producer.ProducerRecord
    producer.beginTransaction()
    for row in rows:
        producer.send(record(target.topic, row.key, row.value))
    producer.flush()
    producer.send(record(markers(target).topic, query, str(batch_id)))
    producer.commitTransaction()


def last_marked(target: SimpleNamespace, query: str) -> int:
    """The query's last batch that was committed, by all of the markers' topic; -1 if there is none."""
    partition = markers(target)
    consumer = KafkaConsumer(
        bootstrap_servers=target.kafka, isolation_level="read_committed", enable_auto_commit=False, fetch_max_wait_ms=20
    )
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        last, end, until = -1, end_of(target, partition), time.monotonic() + DEADLINE
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=100).get(partition, ()):
                if record.key.decode() == query:
                    last = int(record.value)
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{partition}: read up to {consumer.position(partition)} of {end}: an open transaction holds the"
                    " markers back; it ends by its producer's restart, or by its timeout"
                )
    finally:
        consumer.close()
    return last


def end_of(target: SimpleNamespace, partition: TopicPartition) -> int:
    """Where the partition ends for a reader of all records: a committed one's end is where a transaction is open."""
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, isolation_level="read_uncommitted")
    try:
        return int(consumer.end_offsets([partition])[partition])
    finally:
        consumer.close()
