"""What the text of a sink's module says of a line: the errors that are caught there, and whether it calls anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.faults.handlers import calls_at, errors_at, errors_in

SOURCE = """\
import psycopg
import kafka.errors as broken
from psycopg import OperationalError as Lost, errors
from .common import Busy
RETRIED = (Lost, errors.SerializationFailure)
class Own(Exception):
    pass
def write(conn, rows, kinds, done):
    conn.begin()                                   # 9: in no try
    try:
        conn.insert(rows)                          # 11
        try:
            conn.commit()                          # 13
            done = True                            # 14
        except (Lost, ValueError):
            done = conn.check()                    # 16: a handler is not the body of its try
        except:
            pass
        else:
            conn.close()                           # 20
        finally:
            conn.log()                             # 22
    except RETRIED:
        pass
    except (broken.KafkaError, kinds, Busy, Own, psycopg.OperationalError, self.errors.X) as error:
        raise
    with conn:                                     # 27
        done = rows                                # 28
    for row in rows:                               # 29
        conn.insert(
            row,                                   # 31
            done,
        )
    while conn.waits():                            # 34
        done = lambda: conn.check()                # 35
    try:
        def inner():
            return conn.commit()                   # 38: runs elsewhere
    except OSError:
        pass
    return [done(row) for row in rows]             # 41
async def late(conn):
    await conn                                     # 43
    match conn:
        case 1:
            conn()                                 # 46
"""

OUTER = (
    "psycopg.OperationalError",
    "psycopg.errors.SerializationFailure",
    "kafka.errors.KafkaError",
    "team.common.Busy",
    "team.sub.writer.Own",
)


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    path = tmp_path / "team" / "sub" / "writer.py"
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE.replace("from .common", "from ..common"))
    return path


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        (9, ()),
        (11, OUTER),
        (13, (OUTER[0], "ValueError", *OUTER[1:])),
        (14, (OUTER[0], "ValueError", *OUTER[1:])),
        (16, OUTER),
        (20, OUTER),
        (22, OUTER),
        (38, ()),
        (99, ()),
    ],
)
def test_the_errors_of_a_line_are_those_that_the_tries_around_it_catch(
    writer: Path, tmp_path: Path, line: int, errors: tuple[str, ...]
) -> None:
    assert errors_at(writer, line, tmp_path) == errors


def test_what_a_function_does_not_catch_its_callers_do(writer: Path, tmp_path: Path) -> None:
    retry = tmp_path / "retry.py"
    retry.write_text("def again(f):\n    try:\n        f()\n    except (TimeoutError, ValueError):\n        f()\n")
    assert errors_in([(writer, 9), (retry, 3), (writer, 9)], tmp_path) == ("TimeoutError", "ValueError")
    assert errors_in([(writer, 13), (retry, 3)], tmp_path) == (*errors_at(writer, 13, tmp_path), "TimeoutError")
    assert errors_in([(writer, 9), (retry, 5)], tmp_path) == (), "a handler is not the body of its try"


def test_a_change_of_the_file_is_seen(writer: Path) -> None:
    assert errors_at(writer, 2) == ()
    writer.write_text("def f():\n    try: g()\n    except KeyError: pass\n")
    assert errors_at(writer, 2) == ("KeyError",)


def test_a_line_calls_if_its_own_part_of_the_statement_does(writer: Path) -> None:
    calling = [line for line in range(9, 47) if calls_at(writer, line)]
    assert calling == [9, 11, 13, 16, 20, 22, 27, 30, 31, 32, 33, 34, 38, 41, 43, 46]
