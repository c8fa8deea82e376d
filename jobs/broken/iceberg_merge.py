"""Iceberg by foreachBatch: MERGE by the job's key, which inserts the rows that the table has not. Flaw: duplicated.

Spark makes of a MERGE that has WHEN NOT MATCHED alone an append of the rows that a join with the table has left over.
Iceberg applies an append that lost the race to another commit again, to what is there now, and does not join again: two
drivers that write the same batch may both find its rows absent, and both append them. One driver's replay finds them.

An append after a look for the batch in the summaries of the table's snapshots breaks in the same way. With WHEN MATCHED
THEN UPDATE besides, it is an overwrite, which Iceberg refuses after a conflict (RewriteMergeIntoTable of Spark 4.1.3;
SparkWrite of Iceberg 1.12.0).
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
FLAW = ("duplicated",)
SERVICES = ("postgres", "directory")
ATOMIC = True
KEY = "target.key"
SPARK = ">=4.1,<4.2"
JARS = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.postgresql:postgresql:42.7.7")

TABLE = "lake.db.events"
TYPES = {"bigint": "bigint", "double": "double", "timestamp": "timestamp", "text": "string"}


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    spark = df.sparkSession
    create_table(spark, target)
    df.createOrReplaceTempView("batch")
    on = " AND ".join(f"t.{name} = s.{name}" for name in target.key)
    spark.sql(f"MERGE INTO {TABLE} t USING batch s ON {on} WHEN NOT MATCHED THEN INSERT *")


def create_table(spark: SparkSession, target: SimpleNamespace) -> None:
    for name, value in catalog(target).items():
        spark.conf.set(f"spark.sql.catalog.lake{name}", value)
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(f"CREATE TABLE IF NOT EXISTS {TABLE} ({columns}) USING iceberg")


def catalog(target: SimpleNamespace) -> dict[str, str]:
    server = conninfo_to_dict(target.postgres)
    return {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "jdbc",
        ".uri": f"jdbc:postgresql://{server['host']}:{server['port']}/{server['dbname']}",
        ".jdbc.user": str(server["user"]),
        ".jdbc.password": str(server["password"]),
        ".warehouse": target.directory,
    }


def read(target: SimpleNamespace) -> Any:
    with psycopg.connect(target.postgres) as connection:
        found = connection.execute("SELECT to_regclass('iceberg_tables')").fetchone()
        if found == (None,):
            return []
        location = connection.execute("SELECT metadata_location FROM iceberg_tables").fetchone()
    return StaticTable.from_metadata(location[0]).scan().to_arrow() if location else []
