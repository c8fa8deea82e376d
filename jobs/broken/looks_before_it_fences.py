"""Rows and the batch's marker in one Kafka transaction; the marker is looked up before that. Flaw: duplicated.

Only a batch that has to be written opens a producer, which spares a known one the fencing: init_transactions() of the
query's transactional id, which ends what an earlier driver has begun, and takes the id away from it.

Breaks when a driver that was taken for dead goes on behind its look, while its successor has not come to its own: the
one writes and commits, the other has looked, found nothing, and fences a transaction that is over. Who looks behind
init_transactions() sees all that anybody else can have committed.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame
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


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    if batch_id <= last_marked(target, query):
        return
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
        producer.begin_transaction()
        futures = [producer.send(target.topic, key=row.key.encode(), value=row.value.encode()) for row in rows]
        futures.append(producer.send(markers(target).topic, key=query.encode(), value=str(batch_id).encode()))
        producer.flush(timeout=50)
        for future in futures:
            future.get(timeout=0)
        producer.commit_transaction()
    finally:
        producer.close(timeout=10)


def last_marked(target: SimpleNamespace, query: str) -> int:
    """The query's last batch that was committed; -1 if there is none."""
    partition = markers(target)
    consumer = KafkaConsumer(
        bootstrap_servers=target.kafka, isolation_level="read_committed", enable_auto_commit=False, fetch_max_wait_ms=20
    )
    try:
        consumer.assign([partition])
        end = consumer.end_offsets([partition])[partition]
        consumer.seek_to_beginning(partition)
        last, until = -1, time.monotonic() + DEADLINE
        while consumer.position(partition) < end:
            for record in consumer.poll(timeout_ms=100).get(partition, ()):
                if record.key.decode() == query:
                    last = int(record.value)
            if time.monotonic() > until:
                raise TimeoutError(f"{partition}: read up to {consumer.position(partition)} of {end}")
    finally:
        consumer.close()
    return last
