"""One statement of DuckDB over Arrow tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


AGAIN = 0.1
"""Seconds until a statement is told again to end: one that has not begun yet does not hear it."""


def select(statement: str, seconds: float | None = None, /, **tables: pa.Table) -> pa.Table:
    """Run one SELECT over ``tables``, an Arrow table back; nothing is downloaded.

    Raises duckdb.Error, and TimeoutError where it takes longer than ``seconds``. It runs in a thread of its own: in the
    main thread DuckDB makes a RuntimeError of what a signal's handler raises, KeyboardInterrupt as well.
    """
    with _database().cursor() as connection, ThreadPoolExecutor(1) as thread:
        running = thread.submit(_selected, connection, statement, tables)
        try:
            return running.result(seconds)
        finally:
            _end(running, connection)


def _selected(connection: DuckDBPyConnection, statement: str, tables: Mapping[str, pa.Table]) -> pa.Table:
    import duckdb  # not above: it takes a while to load, and most commands judge nothing

    for name, table in tables.items():
        connection.register(name, table)
    kinds = [parsed.type for parsed in connection.extract_statements(statement)]
    if len(kinds) != 1:
        raise duckdb.Error(f"{len(kinds)} statements where one SELECT is needed")
    if kinds != [duckdb.StatementType.SELECT]:
        raise duckdb.Error(f"a statement of the kind {kinds[0].name} where one SELECT is needed")
    return connection.sql(statement).to_arrow_table()


def _end(running: Future[pa.Table], connection: DuckDBPyConnection) -> None:
    while not running.done():
        connection.interrupt()
        wait([running], AGAIN)


@cache
def _database() -> DuckDBPyConnection:
    """An empty database: to make one takes twenty times longer than a statement.

    Its zone is not the machine's, which would decide how a time without a zone compares with one that has it; and it
    has one thread, since several add up floating-point numbers in any order.
    """
    import duckdb

    return duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": "false", "TimeZone": "UTC", "threads": "1"}
    )


def quoted(name: str) -> str:
    """A column's name as SQL has it: in quotes, its own quotes doubled."""
    escaped = name.replace('"', '""')
    return f'"{escaped}"'


def equal(one: str, other: str, columns: Sequence[str]) -> str:
    """Whether row ``one`` and row ``other`` agree in ``columns``; null is equal to null only."""
    pairs = (f"{one}.{quoted(column)} IS NOT DISTINCT FROM {other}.{quoted(column)}" for column in columns)
    return " AND ".join(pairs) or "TRUE"
