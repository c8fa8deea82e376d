"""Delta Lake by foreachBatch, with txnAppId and txnVersion: exactly-once.

An append is a commit to the table's log. The two options put a transaction of the application's name and the batch's
number into it, and Delta skips a write whose number the log has already. Without them a replay appends its rows again.
The name has the query's id in it, because a query with a new checkpoint counts its batches from 0 again.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deltalake import DeltaTable
from pyspark.sql import DataFrame

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
QUERY_ID = "sql.streaming.queryId"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    write = df.write.format("delta").mode("append")
    write.option("txnAppId", query).option("txnVersion", batch_id).save(f"{target.directory}/table")


def read(target: SimpleNamespace) -> Any:
    table = Path(target.directory, "table")
    return DeltaTable(str(table)).to_pyarrow_table() if DeltaTable.is_deltatable(str(table)) else []
