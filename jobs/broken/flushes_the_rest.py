"""An upsert into a topic that is read as a table: the last record of each id counts. What has become of the records is
asked for each hundred of them; what is left of a batch is flushed. Flaw: lost.

Breaks where a broker refuses records of that rest: flush() returns as well when records were given up, and only their
futures say so.
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
FLAW = ("lost",)

WINDOW = 100


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(df.id.cast("string").alias("key"), to_json(struct("*"), times).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", retry_backoff_ms=20, linger_ms=100)
    try:
        window = []
        for row in df.collect():
            window.append(producer.send(target.topic, key=row.key.encode(), value=row.value.encode()))
            if len(window) == WINDOW:
                for future in window:
                    future.get(timeout=60)
                window.clear()
        producer.flush()
    finally:
        producer.close(timeout=10)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, enable_auto_commit=False, fetch_max_wait_ms=20)
    table: dict[bytes, bytes] = {}
    try:
        partitions = [TopicPartition(target.topic, number) for number in consumer.partitions_for_topic(target.topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends, until = consumer.end_offsets(partitions), time.monotonic() + 30
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            if time.monotonic() > until:
                raise TimeoutError(f"topic {target.topic} was not read up to {ends}")
            for records in consumer.poll(timeout_ms=100).values():
                table |= {record.key: record.value for record in records}
    finally:
        consumer.close()
    return [json.loads(value) for value in table.values()]
