"""A batch is appended to a Delta table, and then recorded in a ledger in Postgres, which says what is known already.
Flaw: duplicated.

Each of the two is atomic, and both together are not: the driver dies behind the commit to the table's log, before the
ledger's, and the replay appends the rows again. Delta's own ledger (txnAppId, txnVersion) is in the same commit.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
from deltalake import DeltaTable
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
SERVICES = ("directory", "postgres")
FLAW = ("duplicated",)
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


def prepare(target: SimpleNamespace) -> None:
    with psycopg.connect(target.postgres) as connection:
        connection.execute("CREATE TABLE ledger (query text, batch bigint, PRIMARY KEY (query, batch))")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    batch = (df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId"), batch_id)
    if not recorded(target, batch):
        df.write.format("delta").mode("append").save(f"{target.directory}/table")
        with psycopg.connect(target.postgres) as connection:
            connection.execute("INSERT INTO ledger VALUES (%s, %s) ON CONFLICT DO NOTHING", batch)


def recorded(target: SimpleNamespace, batch: tuple[str, int]) -> bool:
    with psycopg.connect(target.postgres) as connection:
        found = connection.execute("SELECT 1 FROM ledger WHERE query = %s AND batch = %s", batch)
        return found.fetchone() is not None


def read(target: SimpleNamespace) -> Any:
    table = Path(target.directory, "table")
    return DeltaTable(str(table)).to_pyarrow_table() if DeltaTable.is_deltatable(str(table)) else []
