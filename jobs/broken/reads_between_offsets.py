"""Rows in Kafka, and in Postgres the offsets between which a batch's are read. Flaw: duplicated.

They are the first and the last one that brokers have acknowledged, and are published with the batch's id in one
transaction; a second driver finds the batch and leaves it. What other attempts have left lies in front of the first
offset or behind the last one, and records of other batches have another header.

Breaks when a driver that was taken for dead and its successor write the same batch at the same time: between the
offsets of one lie records of the other, with the same header.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import psycopg
from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame, Row
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("kafka", "postgres")

CHUNK = 100
"""Records that wait for their acknowledgement at the same time."""
DEADLINE = 30.0
"""Seconds in which a part of the topic must have been read."""

TABLES = """
    CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch));
    CREATE TABLE extents (name text, partition int, first_offset bigint, last_offset bigint)
"""
KNOWN = "SELECT 1 FROM ledger WHERE query = %s AND batch = %s"
RECORD = "INSERT INTO ledger (query, batch) VALUES (%s, %s) ON CONFLICT DO NOTHING"
PUBLISH = "INSERT INTO extents VALUES (%s, %s, %s, %s)"
EXTENTS = "SELECT name, partition, first_offset, last_offset FROM extents"


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(to_json(struct(*target.key), times).alias("key"), to_json(struct("*"), times).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    with psycopg.connect(target.postgres) as connection:
        if connection.execute(KNOWN, (query, batch_id)).fetchone():
            return
    name = f"{query} {batch_id}"
    extents = append(target, df.collect(), name)
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.execute(RECORD, (query, batch_id))
        if cursor.rowcount == 1:
            cursor.executemany(PUBLISH, [(name, partition, *extent) for partition, extent in extents.items()])


def append(target: SimpleNamespace, rows: list[Row], name: str) -> dict[int, tuple[int, int]]:
    """The first and the last offset in each partition, once all records are acknowledged."""
    found: dict[int, tuple[int, int]] = {}
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", enable_idempotence=True, retry_backoff_ms=20)
    try:
        for start in range(0, len(rows), CHUNK):
            sent = [
                producer.send(target.topic, row.value.encode(), row.key.encode(), [("batch", name.encode())])
                for row in rows[start : start + CHUNK]
            ]
            producer.flush()
            for record in (future.get(timeout=0) for future in sent):
                first, last = found.get(record.partition, (record.offset, record.offset))
                found[record.partition] = min(first, record.offset), max(last, record.offset)
    finally:
        producer.close(timeout=10)
    return found


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres) as connection:
        extents = connection.execute(EXTENTS).fetchall()
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, enable_auto_commit=False, fetch_max_wait_ms=20)
    try:
        return [
            json.loads(value)
            for name, number, first, last in extents
            for value in between(consumer, TopicPartition(target.topic, number), first, last, name.encode())
        ]
    finally:
        consumer.close()


def between(consumer: KafkaConsumer, partition: TopicPartition, first: int, last: int, name: bytes) -> Iterator[bytes]:
    consumer.assign([partition])
    consumer.seek(partition, first)
    until = time.monotonic() + DEADLINE
    while consumer.position(partition) <= last:
        if time.monotonic() > until:
            raise TimeoutError(f"{partition} was not read up to {last} within {DEADLINE:g} s")
        for record in consumer.poll(timeout_ms=100).get(partition, ()):
            if record.offset <= last and ("batch", name) in record.headers:
                yield record.value
