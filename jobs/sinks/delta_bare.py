"""Delta Lake's streaming sink, read as a bare directory of Parquet files: at-least-once.

The same sink as delta_table. Its tasks write files where they stay, and the log says which of them count; a reader that
takes them all (Hive, a glob) gets those of a batch that died before its commit, and those of the replay. A task that
died while it wrote leaves a file that is none, empty or without a footer: who does not skip it cannot read the table
at all any more.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as parquet
from pyarrow import ArrowInvalid
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("directory",)
JARS = (
    "io.delta:delta-spark_4.2_2.13:4.4.0",
    "io.delta:delta-storage:4.4.0",
    "io.delta:delta-kernel-api:4.4.0",
    "io.delta:delta-kernel-defaults:4.4.0",
    "io.delta:delta-kernel-unitycatalog:4.4.0",
    "io.unitycatalog:unitycatalog-client:0.6.0",
    "io.unitycatalog:unitycatalog-hadoop:0.6.0",
)
CONF = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # of a small table's log; 50 by default, each a task
}


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    return stream.format("delta").option("path", f"{target.directory}/table").outputMode("append")


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    files = Path(target.directory, "table").glob("*.parquet")
    return [row for file in files if is_whole(file) for row in parquet.read_table(file).to_pylist()]


def is_whole(file: Path) -> bool:
    try:
        parquet.read_metadata(file)
    except ArrowInvalid:
        return False
    return True
