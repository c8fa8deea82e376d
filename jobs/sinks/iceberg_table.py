"""Iceberg's own streaming sink, read as the table that its metadata describes: exactly-once.

Each batch is one snapshot of the table, which has the query's id and the batch's number in its summary: a batch whose
number the table's history has already is skipped.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("directory",)
ATOMIC = True
SPARK = ">=4.1,<4.2"
JARS = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0",)

TYPES = {"bigint": "bigint", "double": "double", "timestamp": "timestamp", "text": "string"}


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    spark = SparkSession.active()
    spark.conf.set("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    spark.conf.set("spark.sql.catalog.lake.type", "hadoop")
    spark.conf.set("spark.sql.catalog.lake.warehouse", target.directory)
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    spark.sql(f"CREATE TABLE IF NOT EXISTS lake.db.events ({columns}) USING iceberg")
    return stream.format("iceberg").option("path", f"{target.directory}/db/events").outputMode("append")


def read(target: SimpleNamespace) -> Any:
    versions = sorted(Path(target.directory, "db/events/metadata").glob("v*.metadata.json"), key=_number)
    return StaticTable.from_metadata(str(versions[-1])).scan().to_arrow() if versions else []


def _number(file: Path) -> int:
    return int(file.name[1:].partition(".")[0])
