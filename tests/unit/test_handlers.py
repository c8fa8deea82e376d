"""What the text of a sink's module says of a line: the errors that are caught there, and whether it calls anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.faults.handlers import errors_at, errors_in, says_undone, states_a_fact
from onceproof.faults.statements import calls_at, leaves_at

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
        (13, (OUTER[0], "ValueError", "Exception", *OUTER[1:])),
        (14, (OUTER[0], "ValueError", "Exception", *OUTER[1:])),
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
        26: ("Exception",),
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


def test_taking_from_a_queue_fails_or_takes_and_is_no_call_of_which_the_answer_can_be_lost(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    takes = (
        "row = await self.queue.get()",
        "row = await asyncio.wait_for(queue.get(), 1)",
        "await self.queue.put(row)",
        "await asyncio.wait_for(queue.put(row), 5)",
        "await asyncio.wait_for(gate.acquire(), 5)",
    )
    calls = (
        "row = table.get(key)",
        "row = requests.get(url, timeout=1)",
        "await wait_for(table.get(key), 1)",
        "producer.send(topic, row).get(timeout=10)",  # of kafka-python: it may have been sent
        "sent = future.get()",
        "await begun().get()",
        "row = await queue.get() or other()",
        "await asyncio.wait_for(table.put(row), 5)",
        "await asyncio.wait_for(lock.acquire(), 5)",  # of redis
        "queue.put(row)",
    )
    made = "import asyncio\nfrom asyncio import Semaphore\nqueue: asyncio.Queue[int] = asyncio.Queue(9)\n"
    made += "gate = Semaphore(2)\nlock = client.Lock(5)\n"
    for lines, expected in ((takes, False), (calls, True)):
        for line in lines:
            sink.write_text(f"{made}async def f():\n    {line}  # {len(line)}\n")
            assert calls_at(sink, 7) is expected, line


def test_each_second_execution_of_a_with_leaves_it(tmp_path: Path) -> None:
    sink = tmp_path / "sink.py"
    sink.write_text("def f():\n    with (\n        a() as x,\n        b() as y,\n    ):\n        x.do(y)\n    g()\n")
    found = [(line, nth) for line in (3, 4, 6, 7) for nth in (1, 2, 3, 4) if leaves_at(sink, line, nth)]
    assert found == [(3, 2), (3, 4), (4, 2), (4, 4)]


FACTS = """
    KeyError IndexError LookupError StopIteration StopAsyncIteration FileExistsError FileNotFoundError
    NotADirectoryError IsADirectoryError ProcessLookupError ValueError UnicodeDecodeError UnicodeError TypeError
    AttributeError NameError UnboundLocalError ImportError ModuleNotFoundError AssertionError ZeroDivisionError
    OverflowError EOFError SyntaxError NotImplementedError builtins.KeyError
    psycopg.IntegrityError psycopg2.DataError sqlite3.ProgrammingError sqlalchemy.exc.NotSupportedError
    psycopg.errors.UniqueViolation psycopg.errors.IntegrityConstraintViolation psycopg.errors.CheckViolation
    psycopg.errors.NoDataFound psycopg.errors.UndefinedTable psycopg.errors.DuplicateTable
    psycopg.errors.InvalidTextRepresentation psycopg.errors.DatatypeMismatch psycopg.errors.NumericValueOutOfRange
    psycopg.errors.StringDataRightTruncation psycopg.errors.FeatureNotSupported psycopg.errors.SyntaxError
    psycopg.errors.DependentObjectsStillExist psycopg.errors.DivisionByZero
    psycopg.errors.DataException psycopg.errors.TooManyRows
    redis.exceptions.WatchError kazoo.exceptions.NodeExistsError kazoo.exceptions.NoNodeError
    kafka.errors.TopicAlreadyExistsError kafka.errors.UnknownTopicOrPartitionError
    kafka.errors.UnknownProducerIdError kafka.errors.DuplicateSequenceNumberError kafka.errors.OffsetOutOfRangeError
    kafka.errors.TransactionalIdNotFoundError kafka.errors.MessageSizeTooLargeError
    kafka.errors.UnsupportedVersionError
    sqlalchemy.exc.NoResultFound sqlalchemy.exc.MultipleResultsFound django.core.exceptions.ObjectDoesNotExist
    pyiceberg.exceptions.NoSuchTableError pyiceberg.exceptions.TableAlreadyExistsError
    pymongo.errors.DuplicateKeyError duckdb.ConstraintException duckdb.ParserException
    elasticsearch.NotFoundError elasticsearch.ConflictError google.api_core.exceptions.Conflict
    google.api_core.exceptions.PreconditionFailed google.api_core.exceptions.FailedPrecondition
    google.api_core.exceptions.AlreadyExists google.api_core.exceptions.OutOfRange
    aws.ConditionalCheckFailedException json.JSONDecodeError requests.exceptions.JSONDecodeError
    requests.exceptions.MissingSchema xml.etree.ElementTree.ParseError pydantic.ValidationError
    queue.Empty queue.Full asyncio.QueueEmpty pandas.errors.EmptyDataError pyarrow.lib.ArrowInvalid
    portalocker.AlreadyLocked psycopg.errors.RaiseException
    duckdb.CatalogException duckdb.BinderException pyspark.errors.AnalysisException pyspark.sql.utils.AnalysisException
    pickle.UnpicklingError zipfile.BadZipFile gzip.BadGzipFile tarfile.ReadError struct.error zlib.error
"""

FAILURES = """
    BaseException Exception RuntimeError OSError IOError ConnectionError ConnectionResetError ConnectionRefusedError
    BrokenPipeError TimeoutError InterruptedError BlockingIOError PermissionError MemoryError RecursionError
    SystemError builtins.OSError
    psycopg.Error psycopg.DatabaseError psycopg.OperationalError psycopg.InterfaceError psycopg.InternalError
    psycopg.errors.SerializationFailure psycopg.errors.DeadlockDetected psycopg.errors.LockNotAvailable
    psycopg.errors.QueryCanceled psycopg.errors.AdminShutdown psycopg.errors.CannotConnectNow
    psycopg.errors.ConnectionDoesNotExist psycopg.errors.ConnectionFailure psycopg.errors.ProtocolViolation
    psycopg.errors.TransactionResolutionUnknown psycopg.errors.StatementCompletionUnknown psycopg.errors.DiskFull
    psycopg.errors.TransactionRollback psycopg.errors.ReadOnlySqlTransaction psycopg.errors.TooManyConnections
    psycopg.errors.IdleInTransactionSessionTimeout psycopg.errors.ObjectInUse
    kafka.errors.KafkaError kafka.errors.RetriableError kafka.errors.CommitFailedError kafka.errors.KafkaTimeoutError
    kafka.errors.UnknownError kafka.errors.InvalidMetadataError kafka.errors.MetadataEmptyBrokerList
    kafka.errors.UnknownBrokerIdError kafka.errors.NotLeaderForPartitionError kafka.errors.ProducerFencedError
    kafka.errors.ConcurrentTransactionsError kafka.errors.LeaderNotAvailableError confluent_kafka.KafkaException
    org.apache.kafka.common.errors.UnknownServerException google.api_core.exceptions.Unknown
    pyiceberg.exceptions.CommitFailedException pyiceberg.exceptions.CommitStateUnknownException
    delta.exceptions.ConcurrentAppendException pymongo.errors.WriteConflict aws.TransactionConflictException
    requests.exceptions.ConnectionError requests.exceptions.Timeout requests.exceptions.RequestException
    requests.exceptions.RetryError requests.exceptions.ChunkedEncodingError urllib3.exceptions.EmptyPoolError
    httplib2.ServerNotFoundError java.net.UnknownHostException redis.exceptions.InvalidResponse
    redis.exceptions.LockError sqlalchemy.exc.InvalidatedError pulsar.AlreadyClosed azure.ResourceLocked
    duckdb.TransactionException duckdb.IOException tarfile.TarError pickle.PickleError
    some.Shield some.Fullness some.Sparse some.Error some.Exception
"""


@pytest.mark.parametrize("name", FACTS.split())
def test_an_error_that_speaks_of_the_data_or_the_targets_state_states_a_fact(name: str) -> None:
    assert states_a_fact(name)


@pytest.mark.parametrize("name", FAILURES.split())
def test_an_error_that_says_that_something_failed_on_the_way_states_none(name: str) -> None:
    assert not states_a_fact(name)


def test_a_class_that_the_sinks_own_modules_define_states_a_fact(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "errors.py").write_text(
        "from psycopg import OperationalError as Lost\nclass Gone(Lost):\n    class Inner(Lost): pass\nLATER = f()\n"
    )
    own = {
        name: states_a_fact(name, tmp_path)
        for name in ("team.errors.Gone", "team.errors.Gone.Inner", "team.errors.Lost", "team.errors.LATER")
    }
    assert own == {
        "team.errors.Gone": True,
        "team.errors.Gone.Inner": True,
        "team.errors.Lost": False,
        "team.errors.LATER": False,
    }
    assert not states_a_fact("team.errors.Gone")
    assert not states_a_fact("psycopg.OperationalError", tmp_path)


@pytest.mark.parametrize(
    ("name", "undone"),
    [
        ("ConnectionRefusedError", True),
        ("psycopg.errors.SerializationFailure", True),
        ("psycopg.errors.DeadlockDetected", True),
        ("psycopg.errors.LockNotAvailable", True),
        ("psycopg.errors.QueryCanceled", True),
        ("pymongo.errors.WriteConflict", True),
        ("pyiceberg.exceptions.CommitFailedException", True),
        ("google.api_core.exceptions.Aborted", True),
        ("redis.exceptions.NoScriptError", True),
        ("redis.exceptions.OutOfMemoryError", True),
        ("redis.exceptions.ClusterDownError", True),
        ("psycopg.errors.DiskFull", True),
        ("MemoryError", False),
        ("redis.exceptions.ExecAbortError", True),
        ("psycopg.errors.ConnectionTimeout", True),
        ("elasticsearch.ConnectionTimeout", False),
        ("psycopg_pool.PoolTimeout", True),
        ("socket.gaierror", True),
        ("BufferError", True),
        ("httpx.ConnectError", True),
        ("aiohttp.ClientConnectorError", True),
        ("pymongo.errors.ServerSelectionTimeoutError", True),
        ("asyncpg.exceptions.TooManyConnectionsError", True),
        ("kafka.errors.NoBrokersAvailable", True),
        ("redis.exceptions.ConnectionError", False),
        ("kafka.errors.ProducerFencedError", False),
        ("ConnectionAbortedError", False),
        ("ConnectionResetError", False),
        ("TimeoutError", False),
        ("asyncio.CancelledError", False),
        ("psycopg.OperationalError", False),
        ("psycopg.errors.TransactionResolutionUnknown", False),
        ("pyiceberg.exceptions.CommitStateUnknownException", False),
        ("kafka.errors.KafkaError", False),
    ],
)
def test_an_error_that_says_that_nothing_was_done_does_not_come_after_it_was(name: str, undone: bool) -> None:
    assert says_undone(name) == undone
