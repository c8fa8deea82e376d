"""Spark's own Kafka sink with acks=1, since it is the faster. Flaw: lost.

The leader of a partition acknowledges rows as soon as it has them itself, before any other broker has. Spark takes the
batch for written, and commits it.

Breaks when that broker dies before another one has copied the rows: a follower becomes the leader without them, and the
old one, when it is back, cuts off what the new one does not have. With acks=all (the producer's default since Kafka
3.0) a row counts as written once all brokers that keep up have it. It takes two brokers to be seen.
"""

from __future__ import annotations

from types import SimpleNamespace

from pyspark.sql import DataFrame
from pyspark.sql.functions import concat_ws, struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
FLAW = ("lost",)
SERVICES = ("kafka",)
BROKERS = 3


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(concat_ws("|", *target.key).alias("key"), to_json(struct("*")).alias("value"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    writing = stream.format("kafka").option("kafka.bootstrap.servers", target.kafka).option("topic", target.topic)
    return writing.option("kafka.acks", "1")
