"""What the text of a sink's module says of a line: the errors that are caught there, and whether it calls anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.faults.handlers import calls_at, errors_at, errors_in, returns_at

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


SHARED = """\
from __future__ import annotations
import contextlib as c
import common
import team.common as ours
from contextlib import suppress as quiet
from typing import Final
from common import TRANSIENT, Busy, Lost as Gone, rounds
from team import errors, more, passed_on
from psycopg import OperationalError
OWN: Final = (OperationalError, ValueError)
SUM = OWN + (KeyError,) + TRANSIENT
EMPTY: Final[tuple] = ()
def tries(f, conn):
    with quiet(OperationalError, *OWN):
        f()                                        # 15
    with c.suppress(KeyError), conn, quiet(OSError):
        f()                                        # 17
    with conn.suppress(KeyError), quiet():
        f()                                        # 19
    try: f()                                       # 20
    except OWN: pass
    try: f()                                       # 22
    except SUM: pass
    try: f()                                       # 24
    except (EMPTY, *common.TRANSIENT): pass
    try: f()                                       # 26
    except (Busy, Gone, rounds.X): pass
    try: f()                                       # 28
    except (ours.TRANSIENT, errors.SerializationFailure, more.LOST, more.common.Lost): pass
    try: f()                                       # 30
    except (passed_on, common.made): pass
"""
COMMON = """\
from psycopg import OperationalError as Lost
TRANSIENT = (Lost, ConnectionError)
made = tuple(TRANSIENT)
class Busy(Exception): pass
from round import rounds
"""


def test_suppress_and_tuples_of_other_modules_are_as_good_as_an_except_clause_with_their_classes(
    tmp_path: Path,
) -> None:
    (tmp_path / "team").mkdir()
    files = {
        "sink.py": SHARED,
        "common.py": COMMON,
        "round.py": "from common import rounds",
        "team/__init__.py": "from psycopg import errors\nfrom .common import TRANSIENT as passed_on",
        "team/common.py": "from common import TRANSIENT as T\nTRANSIENT = T + (EOFError,)",
        "team/more.py": "import common\nLOST = common.Lost",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    lost = "psycopg.OperationalError"
    assert {line: errors_at(tmp_path / "sink.py", line) for line in range(14, 31) if line % 2 or line > 19} == {
        15: (lost, "ValueError"),
        17: ("OSError", "KeyError"),
        19: (),
        20: (lost, "ValueError"),
        21: (),
        22: (lost, "ValueError", "KeyError", "ConnectionError"),
        23: (),
        24: (lost, "ConnectionError"),
        25: (),
        26: ("common.Busy", lost),
        27: (),
        28: (lost, "ConnectionError", "EOFError", "psycopg.errors.SerializationFailure"),
        29: (),
        30: (lost, "ConnectionError", "EOFError"),
    }


def test_a_module_that_cannot_be_read_leaves_a_name_as_it_is(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    sink.write_text("from common import LOST\ndef f():\n    try: g()\n    except LOST: pass\n")
    (tmp_path / "common.py").write_text("LOST = (")
    assert errors_at(sink, 3) == ("common.LOST",)


RETRYING = """\
import backoff, psycopg, tenacity
from functools import lru_cache
from psycopg import errors
from tenacity import retry, retry_if_exception_type as on
LOST = (psycopg.OperationalError, errors.DeadlockDetected)
AGAIN = retry(retry=on(LOST))
class Sink:
    @lru_cache(maxsize=None)
    @tenacity.retry(retry=on(TimeoutError) | on((OSError, psycopg.Timeout)), stop=tenacity.Timeout(2))
    @backoff.on_exception(backoff.expo, psycopg.OperationalError, max_tries=3)
    def write(self, rows):
        def inner():
            return rows                            # 13: no more inside than a try's is
        try:
            self.append(rows)                      # 15
        except ValueError:
            raise
    @property
    def plain(self):
        return 1                                   # 20
@AGAIN
async def late(rows=list()):
    await rows                                     # 23
@tenacity.retry
def always(rows):
    return rows                                    # 26
@backoff.on_exception(
    backoff.expo,
    [*LOST, unknown.TimeoutError],                 # 29: not its own body
    giveup=lambda error: not isinstance(error, ConnectionError),
)
def last(rows):
    return rows                                    # 33
"""


def test_a_decorator_whose_call_names_exception_classes_is_a_try_around_its_function(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    sink.write_text(RETRYING)
    lost, deadlock = "psycopg.OperationalError", "psycopg.errors.DeadlockDetected"
    expected = {
        13: (),
        15: ("ValueError", lost, "TimeoutError", "OSError", "psycopg.Timeout"),
        20: (),
        22: (),
        23: (lost, deadlock),
        26: (),
        29: (),
        33: (lost, deadlock, "ConnectionError"),
    }
    assert {line: errors_at(sink, line) for line in expected} == expected


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


def test_a_line_returns_if_its_statement_is_a_return(writer: Path) -> None:
    assert [line for line in range(1, 47) if returns_at(writer, line)] == [38, 41]
