"""Iceberg by foreachBatch: each batch overwrites its own partition of the table. Exactly-once.

An overwrite by filter is one snapshot: it takes the files of the partition out and puts the new ones in. A replay so
replaces what the batch wrote before, and one that finds nothing there appends; of two drivers that write the same
batch, the later one replaces the other's files, since Iceberg applies a commit that lost the race again to what is
there now. File names are new with each write (of a UUID), so nobody writes over another's files, as Iceberg's streaming
sink does (see jobs/broken/iceberg_streaming.py).

The catalog is a table in Postgres, where a commit is one UPDATE with the old metadata file in its condition. A catalog
in a directory has no such step: on a local file system and on S3 two drivers may both rename to the same version.

MERGE with WHEN NOT MATCHED alone would not do, see jobs/broken/iceberg_merge.py.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from pyiceberg.table import StaticTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, lit

GUARANTEE = "exactly-once"
TECHNIQUE = "idempotent"
SERVICES = ("postgres", "directory")
ATOMIC = True
SPARK = ">=4.1,<4.2"
JARS = ("org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0", "org.postgresql:postgresql:42.7.7")

TABLE = "lake.db.events"
TYPES = {"bigint": "bigint", "double": "double", "timestamp": "timestamp", "text": "string"}
QUERY_ID = "sql.streaming.queryId"


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty(QUERY_ID)
    create_table(df.sparkSession, target)
    rows = df.withColumn("query_id", lit(query)).withColumn("batch_id", lit(batch_id).cast("bigint"))
    rows.writeTo(TABLE).overwrite((col("query_id") == query) & (col("batch_id") == batch_id))


def create_table(spark: SparkSession, target: SimpleNamespace) -> None:
    for name, value in catalog(target).items():
        spark.conf.set(f"spark.sql.catalog.lake{name}", value)
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    spark.sql("CREATE NAMESPACE IF NOT EXISTS lake.db")
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {TABLE} ({columns}, query_id string, batch_id bigint) USING iceberg "
        "PARTITIONED BY (query_id, batch_id) TBLPROPERTIES ('write.distribution-mode' = 'none')"
    )


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
