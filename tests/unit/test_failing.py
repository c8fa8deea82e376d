"""Which statements may fail for a reason outside of them, and which may have been done where they raise."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from onceproof.faults.failing import may_be_done_at, may_fail_at

SINK = """
import json
import os
import queue
from collections import deque
import psycopg
from pyspark.sql import DataFrame
{more}
def write_batch(df, batch_id, target):
    chunks, errors = queue.Queue(), []
    work = deque()
    with psycopg.connect(target.postgres) as db:
        {statement}

def store(row):
    os.replace(row, row)
"""


def at(directory: Path, statement: str, more: str = "") -> tuple[Path, int]:
    path = directory / "sink.py"
    text = SINK.format(statement=statement, more=more)
    path.write_text(text)
    first = statement.partition("\n")[0]
    return path, next(number for number, one in enumerate(text.splitlines(), 1) if first in one)


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("db.execute('SELECT 1')", True),
        ("rows = df.collect()", True),
        ("state = json.loads(path.read_text())", True),
        ("return json.loads(text)", True),
        ("found = client.get(key)", True),
        ("result = future.get()", True),
        ("client.append(key, row)", True),
        ("with open(path) as file:\n            pass", True),
        ("for row in rows:\n            pass", True),
        ("rows = list(cursor)", True),
        ("names = [store(row) for row in rows]", True),
        ("thread.join()", True),
        ("return len(rows)", False),
        ("count = 0", False),
        ("chunk = work.popleft()", False),
        ("while (chunk := chunks.get()) is not None:\n            pass", False),
        ("chunks.put(None)", False),
        ("yield tuple(row.values())", False),
        ("errors.append(row)", False),
        ("errors.extend([row])", False),
        ("errors.extend(store(row))", True),
        ("client.extend(row)", True),
        ("until = time.monotonic() + 60", False),
        ("if failures > 5 and isinstance(error, OSError):\n            pass", False),
    ],
)
def test_what_is_done_in_memory_does_not_fail(tmp_path: Path, statement: str, expected: bool) -> None:
    assert may_fail_at(*at(tmp_path, statement), tmp_path) is expected


def done(
    directory: Path, statement: str, error: str, services: Collection[str] = ("postgres",), more: str = ""
) -> bool:
    return may_be_done_at(*at(directory, statement, more), error, directory, services)


@pytest.mark.parametrize(
    ("error", "services", "expected"),
    [
        ("psycopg.OperationalError", ("postgres",), False),
        ("psycopg.OperationalError", ("redis",), True),
        ("psycopg.OperationalError", (), True),
        ("redis.ConnectionError", ("redis",), False),
        ("kafka.errors.KafkaTimeoutError", ("kafka",), False),
        ("requests.Timeout", ("rows",), False),
        ("requests.Timeout", ("postgres",), True),
        ("Exception", ("postgres",), False),
        ("Exception", (), True),
    ],
)
def test_a_lost_answer_of_a_service_whose_requests_are_struck_is_left_to_them(
    tmp_path: Path, error: str, services: Collection[str], expected: bool
) -> None:
    """They take the connection with them, and the transaction: a retry in it does not find it as it was."""
    assert done(tmp_path, "db.execute(INSERT, row)", error, services) is expected


def test_an_error_of_any_class_is_a_services_only_where_nothing_else_is_called_like_that(tmp_path: Path) -> None:
    assert done(tmp_path, "db.execute(INSERT, row)", "Exception", more="import duckdb")
    assert done(tmp_path, "os.replace(draft, path)", "Exception")


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("os.replace(draft, path)", True),
        ("names.append(write(rows))", False),
        ("names.append(store(rows))", False),
        ("errors.extend(store(rows))", False),
        ("store(rows)", False),
        ("found = json.loads(path.read_text())", True),
        ("sizes = [os.replace(one, path) for one in list(names)]", True),
        ("count = 1", False),
    ],
)
def test_what_a_statement_does_last_may_be_done_unless_it_does_it_in_memory_or_in_the_sinks_own_code(
    tmp_path: Path, statement: str, expected: bool
) -> None:
    assert done(tmp_path, statement, "OSError") is expected
