"""A topic read as a table, written by a producer of its own that is flushed at the end of a batch. Flaw: lost.

The last record of each key counts, as in sinks/kafka_compacted.py, so that a replay overwrites rows with themselves.

Breaks when a broker refuses records: send() only queues them, and flush() waits until each was either acknowledged or
given up, and raises nothing. What became of a record is told by its future alone (in other clients by a callback),
which nobody asks here. The batch counts as done, and Spark never hands it over again.
"""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("kafka",)
KEY = "target.key"
FLAW = ("lost",)

DEADLINE = 30.0
"""Seconds in which the topic must have been read."""


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(to_json(struct(*target.key), times).alias("key"), to_json(struct("*"), times).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", retry_backoff_ms=20)
    try:
        for row in df.collect():
            producer.send(target.topic, key=row.key.encode(), value=row.value.encode())
        producer.flush()
    finally:
        producer.close(timeout=10)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    """The last record of each key, up to where the topic ends now."""
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, enable_auto_commit=False, fetch_max_wait_ms=20)
    table: dict[bytes, bytes] = {}
    try:
        partitions = [TopicPartition(target.topic, number) for number in consumer.partitions_for_topic(target.topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends, until = consumer.end_offsets(partitions), time.monotonic() + DEADLINE
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            if time.monotonic() > until:
                raise TimeoutError(f"topic {target.topic}: not read up to {ends} within {DEADLINE:g} s")
            for records in consumer.poll(timeout_ms=100).values():
                table |= {record.key: record.value for record in records}
    finally:
        consumer.close()
    return [json.loads(value) for value in table.values()]
