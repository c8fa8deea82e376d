"""Rows and a marker of their batch in one Kafka transaction; markers are read from where the group stopped. Flaw:
duplicated.

Otherwise the sink does what sinks/kafka_marker.py does. The consumer that looks for the last marker has a group, so
that it need not read all of them each time, and commits its position when it is closed, as consumers do by default.

Breaks when a batch comes a third time: the first replay finds the marker, skips the batch, and leaves its position
behind it. If that driver dies before Spark has committed the batch, the next one finds no marker, and writes the batch
again. A single crash does no harm.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("kafka",)

DEADLINE = 60.0


def markers(target: SimpleNamespace) -> TopicPartition:
    return TopicPartition(f"{target.topic}_markers", 0)


def prepare(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.create_topics(
        {markers(target).topic: {"num_partitions": 1, "configs": {"cleanup.policy": "compact"}}},
        wait_for_metadata=True,
    )
    admin.close()


def cleanup(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.delete_topics([markers(target).topic])
    admin.close()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(to_json(struct(*target.key), times).alias("key"), to_json(struct("*"), times).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.collect()
    producer = KafkaProducer(
        bootstrap_servers=target.kafka,
        transactional_id=f"{target.name}-{query}",
        transaction_timeout_ms=60_000,
        acks="all",
        linger_ms=5,
        retry_backoff_ms=20,
        allow_auto_create_topics=False,
    )
    try:
        producer.init_transactions()
        if batch_id > last_marked(target, query):
            write_transaction(producer, target, rows, query, batch_id)
    finally:
        producer.close(timeout=10)


def last_marked(target: SimpleNamespace, query: str) -> int:
    """The query's last batch that was committed; -1 if there is none."""
    partition = markers(target)
    consumer = KafkaConsumer(
        bootstrap_servers=target.kafka,
        group_id=f"{target.name}-{query}",
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        fetch_max_wait_ms=20,
    )
    try:
        consumer.assign([partition])
        last, end, until = -1, end_of(target, partition), time.monotonic() + DEADLINE
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=100).get(partition, ()):
                if record.key.decode() == query:
                    last = int(record.value)
            if time.monotonic() > until:
                raise TimeoutError(f"{partition}: read up to {consumer.position(partition)} of {end}")
    finally:
        consumer.close()
    return last


def end_of(target: SimpleNamespace, partition: TopicPartition) -> int:
    """Where the partition ends for a reader of all records."""
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, isolation_level="read_uncommitted")
    try:
        return int(consumer.end_offsets([partition])[partition])
    finally:
        consumer.close()


def write_transaction(
    producer: KafkaProducer, target: SimpleNamespace, rows: list[Row], query: str, batch_id: int
) -> None:
    producer.begin_transaction()
    futures = [producer.send(target.topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
    futures.append(producer.send(markers(target).topic, key=query.encode(), value=str(batch_id).encode()))
    producer.flush(timeout=50)
    for future in futures:
        future.get(timeout=0)
    producer.commit_transaction()
