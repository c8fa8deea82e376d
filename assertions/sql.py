"""One statement of DuckDB over Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def select(statement: str, **tables: pa.Table) -> pa.Table:
    """Run one SELECT over ``tables``, an Arrow table back; nothing is downloaded. Raises duckdb.Error."""
    import duckdb  # not above: it takes a while to load, and most commands judge nothing

    with _database().cursor() as connection:
        for name, table in tables.items():
            connection.register(name, table)
        kinds = [parsed.type for parsed in connection.extract_statements(statement)]
        if len(kinds) != 1:
            raise duckdb.Error(f"{len(kinds)} statements where one SELECT is needed")
        if kinds != [duckdb.StatementType.SELECT]:
            raise duckdb.Error(f"a statement of the kind {kinds[0].name} where one SELECT is needed")
        return connection.sql(statement).to_arrow_table()


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
