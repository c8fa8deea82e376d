"""Rows and a marker of their batch in one Kafka transaction; the markers are read for two seconds. Flaw: duplicated.

Otherwise the sink does what sinks/kafka_marker.py does.

Breaks when the brokers are slower than that, as they are under load after a restart: poll() gives back what has come by
then, which may be nothing. A replay takes that for a batch that was never written. Read up to the topic's end, however
long it takes, and raise an error where it takes too long.
"""

from __future__ import annotations

from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("kafka",)
FLAW = ("duplicated",)

POLL_MS = 2_000
"""Milliseconds in which all markers should have come."""


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
        producer.close(timeout=10)  # sends no EndTxn: an open transaction is aborted by the next init_transactions()


def last_marked(target: SimpleNamespace, query: str) -> int:
    """The query's last batch that was committed, by what comes of the markers' topic; -1 if nothing does."""
    partition = markers(target)
    consumer = KafkaConsumer(
        bootstrap_servers=target.kafka, isolation_level="read_committed", enable_auto_commit=False, fetch_max_wait_ms=20
    )
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        read = consumer.poll(timeout_ms=POLL_MS).get(partition, ())
        last = max((int(record.value) for record in read if record.key.decode() == query), default=-1)
    finally:
        consumer.close()
    return last


def write_transaction(
    producer: KafkaProducer, target: SimpleNamespace, rows: list[Row], query: str, batch_id: int
) -> None:
    """Returns once rows and marker are committed. flush() waits but reports no failure, the futures do."""
    producer.begin_transaction()
    futures = [producer.send(target.topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
    futures.append(producer.send(markers(target).topic, key=query.encode(), value=str(batch_id).encode()))
    producer.flush(timeout=50)
    for future in futures:
        future.get(timeout=0)
    producer.commit_transaction()
