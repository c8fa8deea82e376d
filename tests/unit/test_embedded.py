"""Which errors of SQLite say that a statement has been undone."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.faults.embedded import undone_at

SINK = """
import json
import sqlite3
from contextlib import closing
from pyspark.sql import DataFrame
{more}
INSERT = "INSERT INTO events SELECT value FROM json_each(?)"

def write_batch(df, batch_id, target):
    with closing(sqlite3.connect(target.directory{mode})) as db, db:
        {statement}
"""
BUSY = "sqlite3.OperationalError"


def undone(
    directory: Path, statement: str, error: str = BUSY, mode: str = "", more: str = "", at: str | None = None
) -> bool:
    """At the line of the statement, or at the one that has ``at``."""
    path = directory / "sink.py"
    text = SINK.format(statement=statement, mode=mode, more=more)
    path.write_text(text)
    line = next(number for number, one in enumerate(text.splitlines(), 1) if (at or statement) in one)
    return undone_at(path, line, error, directory)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("db.execute(INSERT, (json.dumps([]),))", True),
        ('db.executemany("insert or ignore into batches values (?)", [[batch_id]])', True),
        ('db.execute(f"DELETE FROM {target.name}")', True),
        ('db.execute("BEGIN IMMEDIATE")', True),
        ('db.execute("COMMIT")', False),
        ("db.commit()", False),
        ('db.execute("WITH one AS (SELECT 1) INSERT INTO events SELECT * FROM one")', False),
        ('db.executescript("INSERT INTO events VALUES (1)")', False),
        ("db.execute(statement_of(df))", False),
        ("db.execute(INSERT, publish(db, batch_id))", False),
        ("publish(db, batch_id)", False),
    ],
)
def test_a_change_inside_a_transaction_that_fails_is_undone_and_a_commit_may_not_be(
    tmp_path: Path, statement: str, expected: bool
) -> None:
    assert undone(tmp_path, statement) is expected


@pytest.mark.parametrize(("more", "expected"), [("", True), ('END = "COMMIT"', False), ('"END" in text', False)])
def test_a_helper_commits_only_where_the_module_has_a_text_that_does(tmp_path: Path, more: str, expected: bool) -> None:
    assert undone(tmp_path, "db.execute(statement, parameters)", more=more) is expected


@pytest.mark.parametrize("mode", [", isolation_level=None", ", autocommit=True"])
def test_in_autocommit_a_change_is_a_commit_unless_a_transaction_is_begun(tmp_path: Path, mode: str) -> None:
    insert = "db.execute(INSERT, [])"
    assert not undone(tmp_path, insert, mode=mode)
    assert undone(tmp_path, insert, mode=mode, more='START = "BEGIN IMMEDIATE"')
    assert undone(tmp_path, 'db.execute("BEGIN")', mode=mode)


@pytest.mark.parametrize(
    ("error", "more", "expected"),
    [
        ("sqlite3.Error", "", True),
        ("Exception", "", True),
        ("Exception", "import psycopg", False),
        ("psycopg.OperationalError", "import psycopg", False),
        ("OSError", "", False),
    ],
)
def test_only_what_sqlite_raises_says_so(tmp_path: Path, error: str, more: str, expected: bool) -> None:
    assert undone(tmp_path, "db.execute(INSERT, [])", error, more=more) is expected


def test_leaving_a_transaction_may_have_committed(tmp_path: Path) -> None:
    assert not undone(tmp_path, "db.execute(INSERT)", at="with closing")
