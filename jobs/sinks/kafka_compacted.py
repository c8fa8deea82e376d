"""A topic read as a table: Spark's own Kafka sink, with the job's key as the record's key. Exactly-once for such
readers.

A table's reader keeps the last record of each key, as a compacted topic (cleanup.policy=compact), a KTable or a state
store does. Spark's sink publishes at least once, but a record that comes again has the key and the value of the first:
in the table it overwrites it with itself. All records of a key lie in one partition, by the hash of the key, and those
of a task are written in its order.

It holds as long as a replay computes the same rows, all rows of a key are written by one task (they come from one Kafka
partition, or a shuffle by the key), and the topic's number of partitions stays. Windows: a reader of the bare records
sees duplicates. While a batch is written again, a key with several versions in it goes through the older ones once
more. A driver that was taken for dead and goes on puts a batch's rows after those of its successor's later batches:
where a key has versions in both, the older stays. Keep the old driver from running, as YARN and Kubernetes do.
"""

from __future__ import annotations

import json
import time
from types import SimpleNamespace
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("kafka",)
KEY = "target.key"

DEADLINE = 30.0
"""Seconds in which the topic must have been read."""


def prepare(target: SimpleNamespace) -> None:
    """Make the topic a table: brokers keep the last record of each key, and never elect a leader that lacks some."""
    config = {"cleanup.policy": "compact", "unclean.leader.election.enable": "false"}
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    answers = admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, target.topic, configs=config)])
    admin.close()
    if (answer := answers["topic"][target.topic]) != "OK":
        raise RuntimeError(f"{target.topic} is not compacted: {answer}")


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(
        to_json(struct(*target.key), times).alias("key"),  # a text that two keys never share, as "a|b" and "c" do
        to_json(struct("*"), times).alias("value"),
    )


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.format("kafka").option("kafka.bootstrap.servers", target.kafka).option("topic", target.topic)


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    """The last record of each key, up to where the topic ends now for a committed reader."""
    consumer = KafkaConsumer(
        bootstrap_servers=target.kafka, isolation_level="read_committed", enable_auto_commit=False, fetch_max_wait_ms=20
    )
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
