"""Payments to one Kafka topic, refunds to another; what became of the refunds is not asked. Flaw: lost.

Both topics are read as tables: the last record of each key counts (KEY), which a replay overwrites with itself. The
payments' futures are asked, because everybody knows that flush() raises nothing; the refunds came to the sink later.

Breaks when brokers take the payments and refuse the refunds (no ACL for the new topic, records that are too large for
it, too few replicas in sync until the delivery timeout): flush() returns, and Spark commits the batch. No crash is
needed.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from pyspark.sql import DataFrame
from pyspark.sql.functions import col, struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("kafka",)
KEY = "target.key"
FLAW = ("lost",)


def refunds(target: SimpleNamespace) -> str:
    return f"{target.topic}_refunds"


def prepare(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.create_topics({refunds(target): {"num_partitions": 3}}, wait_for_metadata=True)
    admin.close()


def cleanup(target: SimpleNamespace) -> None:
    admin = KafkaAdminClient(bootstrap_servers=target.kafka)
    admin.delete_topics([refunds(target)])
    admin.close()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(
        to_json(struct(*target.key), times).alias("key"),
        to_json(struct("*"), times).alias("value"),
        (col("value") < 0).alias("refund"),
    )


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    rows = df.collect()
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", linger_ms=5)
    try:
        sent = [
            producer.send(target.topic, key=row.key.encode(), value=row.value.encode())
            for row in rows
            if not row.refund
        ]
        for future in sent:
            future.get(timeout=60)
        for row in rows:
            if row.refund:
                producer.send(refunds(target), key=row.key.encode(), value=row.value.encode())
        producer.flush()
    finally:
        producer.close()


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    rows: dict[bytes, dict[str, Any]] = {}
    consumer = KafkaConsumer(bootstrap_servers=target.kafka, enable_auto_commit=False)
    for topic in (target.topic, refunds(target)):
        parts = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
        ends = consumer.end_offsets(parts)
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        while any(consumer.position(part) < ends[part] for part in parts):
            for records in consumer.poll(timeout_ms=200).values():
                rows |= {record.key: json.loads(record.value) for record in records}
    consumer.close()
    return list(rows.values())
