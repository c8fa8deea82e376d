"""Spark's own JDBC writer, which appends: at-least-once.

Each task inserts its rows in a transaction of its own and commits it at its end; nothing holds the tasks of a batch
together, and nothing tells a batch that is handed over again from a new one. So a task that is tried again after its
commit doubles its rows, and a driver that dies doubles those of all tasks that had ended, until the commit log has the
batch. Nothing is lost: the batch is done when all tasks are.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "at-least-once"
TECHNIQUE = "append"
SERVICES = ("postgres",)
JARS = ("org.postgresql:postgresql:42.7.7",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(f"CREATE TABLE events ({columns})")


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    server = conninfo_to_dict(target.postgres)
    df.write.jdbc(
        f"jdbc:postgresql://{server['host']}:{server['port']}/{server['dbname']}",
        "events",
        mode="append",
        properties={
            "user": str(server["user"]),
            "password": str(server["password"]),
            "driver": "org.postgresql.Driver",
        },
    )


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
