"""Iceberg's own streaming sink. Flaw: lost.

Each batch is one snapshot of the table, which has the query's id and the batch's number in its summary: a batch whose
number the table's history has already is not committed again. But its tasks write all the same, to files that are
named after the task's number, its id (TID), the query and the batch. TIDs begin at 0 with each driver: a batch that is
the first of two drivers has the same names twice, and the second writes over files that the table has.

Breaks when the driver dies behind the commit of the first batch since its start: a replay puts other rows into these
files, since Spark does not promise which task gets which. The table's manifest has the sizes of the first files, by
which Iceberg's readers find the footer: they fail on files of another size. In more tasks than before, rows are gone
besides. Seen with Iceberg 1.12.0 on Spark 4.1.3 (org.apache.iceberg.spark.source.SparkWrite).
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as parquet
from pyiceberg.table import StaticTable
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("lost",)
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
    if not versions:
        return []
    files = [task.file for task in StaticTable.from_metadata(str(versions[-1])).scan().plan_files()]
    return [row for file in files for row in _rows_of(Path(file.file_path), file.file_size_in_bytes)]


def _rows_of(file: Path, recorded: int) -> list[dict[str, Any]]:
    """None of a file that has not the size which the table's manifest says: Iceberg's own readers fail on it, because
    they look for its footer where it was. (pyiceberg does not look at sizes.)"""
    rows: list[dict[str, Any]] = parquet.read_table(file).to_pylist() if file.stat().st_size == recorded else []
    return rows


def _number(file: Path) -> int:
    return int(file.name[1:].partition(".")[0])
