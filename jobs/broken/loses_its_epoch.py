"""Rows and the batch's id in one transaction, by the driver with the newest epoch only. Flaw: duplicated.

A driver raises the query's epoch with its first batch, and says its own to the session of its connection; a trigger
refuses what an older one commits. So it may keep the last batch in memory. A connection that is lost is replaced, and
the last batch is read again, since it may have been committed.

Breaks when a driver has replaced its connection, and is taken for dead in a later batch: the new session knows no
epoch, which the trigger lets pass, so that the batch is committed by its successor and by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import psycopg
from psycopg.rows import dict_row
from pyspark.sql import DataFrame

GUARANTEE = "exactly-once"
TECHNIQUE = "ledger"
FLAW = ("duplicated",)
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

TABLES = """
    CREATE TABLE events ({columns});
    CREATE TABLE progress (query text PRIMARY KEY, epoch bigint, batch bigint);
    CREATE FUNCTION refuse_older() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF nullif(current_setting('sink.epoch', true), '')::bigint < OLD.epoch THEN
            RAISE EXCEPTION 'query % has been taken over', OLD.query;
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER fence BEFORE UPDATE OF batch ON progress FOR EACH ROW EXECUTE FUNCTION refuse_older()
"""
TAKE_OVER = """
    INSERT INTO progress AS known VALUES (%s, 1, -1) ON CONFLICT (query) DO UPDATE SET epoch = known.epoch + 1
    RETURNING epoch, batch
"""
SAY = "SELECT set_config('sink.epoch', %s, false)"
LAST = "SELECT batch FROM progress WHERE query = %s FOR UPDATE"
ADVANCE = "UPDATE progress SET batch = %s WHERE query = %s"


@dataclass
class Writer:
    """A driver's connection, and the last batch that was committed."""

    connection: psycopg.Connection[Any]
    batch: int


_writers: dict[str, Writer] = {}


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES.replace("{columns}", columns))


def write_batch(df: DataFrame, batch_id: int, target: SimpleNamespace) -> None:
    query = df.sparkSession.sparkContext.getLocalProperty("sql.streaming.queryId")
    rows = df.toArrow().to_pylist()
    if query not in _writers:
        _writers[query] = take_over(target, query)
    try:
        write(_writers[query], query, batch_id, rows, target)
    except psycopg.OperationalError:
        _writers[query].connection.close()
        _writers[query] = reconnect(target, query)
        write(_writers[query], query, batch_id, rows, target)


def write(writer: Writer, query: str, batch_id: int, rows: list[dict[str, Any]], target: SimpleNamespace) -> None:
    if batch_id <= writer.batch:
        return
    with writer.connection.transaction(), writer.connection.cursor() as cursor:
        cursor.executemany(insert(target), rows)
        cursor.execute(ADVANCE, (batch_id, query))
    writer.batch = batch_id


def take_over(target: SimpleNamespace, query: str) -> Writer:
    connection = psycopg.connect(target.postgres)
    with connection.transaction():
        taken = connection.execute(TAKE_OVER, (query,)).fetchone()
        assert taken is not None
        connection.execute(SAY, (str(taken[0]),))
    return Writer(connection, taken[1])


def reconnect(target: SimpleNamespace, query: str) -> Writer:
    connection = psycopg.connect(target.postgres)
    with connection.transaction():
        last = connection.execute(LAST, (query,)).fetchone()
    assert last is not None
    return Writer(connection, last[0])


def insert(target: SimpleNamespace) -> str:
    names = list(target.columns)
    return f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(f'%({name})s' for name in names)})"


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
