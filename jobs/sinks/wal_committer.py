"""A write-ahead log in front of a target without transactions, a plain Kafka topic: at-least-once.

    log/QUERY-N.json        the batch's rows, durable before the first of them is sent
    committed/QUERY-N       its record, durable after the last of them was acknowledged

A batch with a record is skipped. One with a log but no record is sent again from the log, whatever a replay computes:
its copies are exact, and a reader can tell them by their bytes. Log and record appear whole and only once (a hard link
to a complete draft), so a second driver follows the first one's log.

Nothing is lost, because nothing counts as done before every row is acknowledged. Duplicates come in exactly one window:
from the first row that is sent until the record is there. A driver that dies in it, or an error, makes the restart send
the whole batch again. Before it and after it, up to the query's commit log, a crash leaves each row once. Two drivers
at once (one of them taken for dead) both send what neither has recorded yet.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from uuid import uuid4

from kafka import KafkaProducer
from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json

GUARANTEE = "at-least-once"
TECHNIQUE = "write-ahead log"
SERVICES = ("kafka", "directory")

Records = list[tuple[str, str]]


def prepare(target: SimpleNamespace) -> None:
    for name in ("log", "committed"):
        Path(target.directory, name).mkdir()


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    times = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
    return df.select(to_json(struct(*target.key), times).alias("key"), to_json(struct("*"), times).alias("value"))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    log = Path(target.directory, "log", f"{query}-{batch_id}.json")
    record = Path(target.directory, "committed", f"{query}-{batch_id}")
    if record.exists():
        return
    if not log.exists():
        publish(log, json.dumps([(row.key, row.value) for row in df.collect()]))
    send(target, json.loads(log.read_text()))
    publish(record, "")


def publish(file: Path, text: str) -> None:
    """Makes the file appear whole and for good, unless there is one: then that one counts."""
    draft = file.with_name(f".{file.name}.{uuid4().hex}")
    with open(draft, "x") as writing:
        writing.write(text)
        writing.flush()
        os.fsync(writing.fileno())
    with suppress(FileExistsError):
        os.link(draft, file)
    draft.unlink()
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)


def send(target: SimpleNamespace, records: Records) -> None:
    """Returns once each record is acknowledged. flush() waits but reports no failure, the futures do."""
    producer = KafkaProducer(bootstrap_servers=target.kafka, acks="all", linger_ms=5, allow_auto_create_topics=False)
    try:
        futures = [producer.send(target.topic, key=key.encode(), value=value.encode()) for key, value in records]
        producer.flush(timeout=60)
        for future in futures:
            future.get(timeout=0)
    finally:
        producer.close(timeout=10)
