"""Delta Lake's own streaming sink, read as the table that its log describes: exactly-once.

Each batch is one commit to the log, with a transaction (the query's id, the batch's number) in it: a batch whose number
the log has already is skipped. Files that a dead driver's tasks had written are in no commit, and no reader of the
table sees them.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable
from pyspark.sql.streaming.readwriter import DataStreamWriter

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("directory",)
ATOMIC = True
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


def read(target: SimpleNamespace) -> Any:
    table = Path(target.directory, "table")
    return DeltaTable(str(table)).to_pyarrow_table() if DeltaTable.is_deltatable(str(table)) else []
