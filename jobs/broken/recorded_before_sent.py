"""A write-ahead log whose batch is recorded as committed before it is sent to a plain Kafka topic. Flaw: lost.

The batch lies in the log, so it cannot get lost, the reasoning goes, and a record that comes first keeps a replay from
sending twice. But nobody sends again what has a record.

Breaks when the driver dies, or the broker refuses a row, between the record and the last acknowledgement. Seen in sinks
that commit their offsets before the target has the rows (apache/iggy#3847, Altinity/clickhouse-sink-connector#1299).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

from kafka import KafkaProducer
from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "exactly-once"
TECHNIQUE = "write-ahead log"
FLAW = ("lost",)
SERVICES = ("kafka", "directory")


def prepare(target: SimpleNamespace) -> None:
    for name in ("log", "committed"):
        Path(target.directory, name).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(to_json(struct(*target.key)).alias("key"), to_json(struct("*")).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    log = Path(target.directory, "log", f"{query}-{batch_id}")
    record = Path(target.directory, "committed", f"{query}-{batch_id}")
    if record.exists():
        return
    publish(log, json.dumps([(row.key, row.value) for row in df.collect()]))
    publish(record, "")
    send(target, json.loads(log.read_text()))


def publish(file: Path, text: str) -> None:
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    with open(draft, "x") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    os.replace(draft, file)


def send(target: SimpleNamespace, records: list[tuple[str, str]]) -> None:
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", linger_ms=5)
    try:
        futures = [producer.send(target.topic, key=key.encode(), value=value.encode()) for key, value in records]
        producer.flush(timeout=60)
        for future in futures:
            future.get(timeout=0)
    finally:
        producer.close(timeout=10)
