"""Rows and a marker of their batch in one Kafka transaction; each try takes a new producer with an id of its own. Flaw:
duplicated, hanging.

What was given up cannot become part of another transaction so: its producer has none. Otherwise the sink does what
sinks/kafka_marker.py does.

Breaks in two ways, because nobody comes back to an id. A driver that was taken for dead is not fenced off. And rows
that arrive behind the abort of their transaction begin one that no coordinator knows, where the brokers do not verify
that there is one (KIP-890, transaction.partition.verification.enable): nobody ends it, and it holds back all readers
of committed records.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from uuid import uuid4

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.errors import KafkaTimeoutError, RequestTimedOutError
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("kafka",)
FLAW = ("duplicated", "hanging")

TRIES = 3

PATIENCE_MS = 5_000
"""For how long a row may be on its way."""

DEADLINE = 60.0
"""Seconds in which the markers must have been read."""


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
    if batch_id <= last_marked(target, query):
        return
    for attempt in range(1, TRIES + 1):
        producer = new_producer(target)
        try:
            producer.init_transactions()
            producer.begin_transaction()
            send(producer, target, rows, query, batch_id)
            producer.commit_transaction()
            return
        except (KafkaTimeoutError, RequestTimedOutError):
            producer.abort_transaction()
            if attempt == TRIES:
                raise
        finally:
            producer.close(timeout=10)


def new_producer(target: SimpleNamespace) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=target.kafka,
        transactional_id=f"{target.name}-{uuid4().hex}",
        transaction_timeout_ms=60_000,
        acks="all",
        request_timeout_ms=PATIENCE_MS,
        delivery_timeout_ms=PATIENCE_MS,  # so the client itself sends nothing twice
        retry_backoff_ms=20,
        allow_auto_create_topics=False,
    )


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


def send(producer: KafkaProducer, target: SimpleNamespace, rows: list[Row], query: str, batch_id: int) -> None:
    """Returns once all are acknowledged. Raises one of the two errors if a row is not in time."""
    sent = [producer.send(target.topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
    producer.flush(timeout=50)
    for future in sent:
        future.get(timeout=0)
    producer.send(markers(target).topic, key=query.encode(), value=str(batch_id).encode()).get(timeout=50)
