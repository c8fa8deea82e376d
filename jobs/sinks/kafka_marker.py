"""Rows and a marker of their batch in one Kafka transaction, written by the driver: exactly-once for committed readers.

The marker is a record in a small topic of its own, next to the rows': its key is the query, its value the batch. A
batch that the query's last marker has reached is skipped, as a whole.

Why it holds: rows and marker are committed together or not at all. What the marker says is asked only after
init_transactions(), which waits until the fate of an earlier driver's transaction is settled (an open one is aborted,
one that is being committed is finished) and fences that driver: it cannot commit any more. So the marker that is read
is final, if all of its topic is read: up to the end that an uncommitted reader sees, as committed records only. A batch
is never marked by task or partition, because a replay may deal its Kafka partitions to other tasks. The markers' topic
is compacted: one record for each query stays, however long it runs.

Windows: the driver collects the whole batch. After a crash readers wait for an open transaction until the restart, or
until its timeout of a minute. Rows are seen partition by partition. A query with a new checkpoint has a new id, and so
a marker of its own, and begins anew; one whose checkpoint is put back from a backup plans other batches under old
numbers and must not use the old markers. Readers must use isolation.level=read_committed.
"""

from __future__ import annotations

import time
from types import SimpleNamespace

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("kafka",)

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
