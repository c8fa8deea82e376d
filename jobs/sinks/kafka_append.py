"""Spark's own Kafka sink. Its tasks publish their rows at once and its global commit does nothing: at-least-once.

A batch that is written again, or a task that runs again, appends its rows again.
"""

from __future__ import annotations

from types import SimpleNamespace

from pyspark.sql import DataFrame
from pyspark.sql.functions import concat_ws, struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("kafka",)


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    return df.select(concat_ws("|", *target.key).alias("key"), to_json(struct("*")).alias("value"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.format("kafka").option("kafka.bootstrap.servers", target.kafka).option("topic", target.topic)
