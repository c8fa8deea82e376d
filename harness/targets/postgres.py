"""A Postgres database of the trial's own.

``conninfo`` is a libpq connection string of a superuser on any database of the server. Errors are psycopg's own, with
the server's message, besides those of a connection: all are :class:`psycopg.Error`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql

from ...assertions import Open
from ...faults.protocols import Address
from ._declaration import SIDES, Endpoint, Fields, Location, Target

APPLICATION = "onceproof-sink"
"""What sessions of the sink's own process say of themselves (PGAPPNAME of libpq, where the sink gives no
application_name): they are not the job's."""

HOLDS_UP = "its locks and old row versions stay"
"""What a prepared transaction does to others."""

CONNECT_TIMEOUT = 10
"""Seconds for a connection to come up."""


def create_database(conninfo: str, name: str) -> str:
    """Create an empty database in UTF-8; returns the connection string to it."""
    with _connect(conninfo) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(sql.Identifier(name))
        )
    return psycopg.conninfo.make_conninfo(conninfo, dbname=name)


def drop_database(conninfo: str, name: str) -> None:
    """Drop a database with all that still holds it: prepared transactions, then sessions. No error if it is gone."""
    for transaction in prepared_transactions(conninfo, name):
        rollback_prepared(conninfo, name, transaction.name)
    with _connect(conninfo) as connection:
        connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))


def sessions(conninfo: str, database: str, besides: str = "") -> list[str]:
    """Sessions of clients in ``database`` besides our own and those of the application ``besides``, one line each with
    process id, name, state and query."""
    with _connect(conninfo) as connection:
        rows = connection.execute(
            "SELECT pid, application_name, coalesce(state, 'unknown'), left(query, 80) FROM pg_stat_activity"
            " WHERE datname = %s AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
            " AND (%s = '' OR application_name <> %s) ORDER BY pid",
            [database, besides, besides],
        ).fetchall()
    return [
        f"session {pid} ({name or 'no name'}), {state}: {' '.join(query.split())}" for pid, name, state, query in rows
    ]


def prepared_transactions(conninfo: str, database: str) -> list[Open]:
    """Transactions of ``database`` that were prepared (two-phase commit) and neither committed nor rolled back."""
    with _connect(conninfo) as connection:
        rows = connection.execute(
            "SELECT gid, prepared, owner FROM pg_prepared_xacts WHERE database = %s ORDER BY gid", [database]
        ).fetchall()
    return [
        Open("postgres", gid, "prepared", f"by {owner} at {prepared.isoformat()}", HOLDS_UP)
        for gid, prepared, owner in rows
    ]


def count_rows(conninfo: str, database: str, column: str) -> dict[str, int]:
    """Rows of each table of ``database`` that has a ``column`` of this name, by the table's name; views are none."""
    with _connect(conninfo, dbname=database) as connection:
        tables = connection.execute(
            "SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = %s AND NOT a.attisdropped"
            " WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2",
            [column],
        ).fetchall()
        return {
            name if schema == "public" else f"{schema}.{name}": _count(connection, sql.Identifier(schema, name))
            for schema, name in tables
        }


def _count(connection: psycopg.Connection[Any], table: sql.Identifier) -> int:
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchone()
    return int(row[0]) if row else 0


def rollback_prepared(conninfo: str, database: str, gid: str) -> None:
    """Roll a prepared transaction back. This works only from within its own database."""
    with _connect(conninfo, dbname=database) as connection:
        connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))


@contextmanager
def _connect(conninfo: str, **changes: Any) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(conninfo, autocommit=True, connect_timeout=CONNECT_TIMEOUT, **changes) as connection:
        yield connection


def _create(location: Location) -> Fields:
    """``postgres``: a connection string."""
    create_database(location.address("postgres"), location.name)
    addresses = {side: location.address("postgres", side) for side in SIDES}
    return {side: {"postgres": psycopg.conninfo.make_conninfo(addresses[side], dbname=location.name)} for side in SIDES}


def _endpoint(address: str) -> list[Address]:
    found = psycopg.conninfo.conninfo_to_dict(address)
    return [(str(found["host"]), int(str(found["port"])))]


def _moved(address: str, to: Sequence[Address]) -> str:
    [(host, port)] = to
    return psycopg.conninfo.make_conninfo(address, host=host, port=port)


def _sessions(location: Location) -> list[str]:
    """Those that are not known to be of the sink's prepare and read."""
    found = sessions(location.address("postgres"), location.name, besides=APPLICATION)
    return [f"{session} is still open in the database" for session in found]


def _raw(location: Location, column: str) -> dict[str, int]:
    counted = count_rows(location.address("postgres"), location.name, column)
    return {f"table {name}": rows for name, rows in counted.items()}


TARGET = Target(
    create=_create,
    fields=("postgres",),
    service="postgres",
    variables={"PGAPPNAME": APPLICATION},
    raw=_raw,
    sessions=_sessions,
    open=lambda location: prepared_transactions(location.address("postgres"), location.name),
    abort=lambda location, transaction: rollback_prepared(
        location.address("postgres"), location.name, transaction.name
    ),
    drop=lambda location: drop_database(location.address("postgres"), location.name),
    endpoint=Endpoint(_endpoint, _moved),
    errors=(psycopg.Error,),
)
