"""Two-phase commit from Spark to Postgres, through Spark's Python data source API: exactly-once.

Each task writes its rows in a transaction of its own, prepares it (PREPARE TRANSACTION: it outlives the session, and is
not seen yet) and hands its name over, the gid. The driver's commit() first makes the *decision* durable, the list of
the batch's gids in a row of the same database, and then commits them one by one.

Why it holds: a batch with a decision is never written again, its recorded transactions are committed until they all
are. One that is there no more counts as committed only if the proof is, a row that it wrote itself: COMMIT PREPARED of
a gid that does not exist says nothing about what became of it. A gid is new for each attempt at a task. Only the driver
that prepared a transaction rolls it back before there is a decision, and never if the decision names it; so what an
older driver does when it wakes up cannot touch what a newer one decides. After the decision everything else of the
batch and of earlier ones is rolled back, whichever attempt left it, and however many tasks that had. A decision names
its input, by a digest of the source offsets: a batch that is planned anew after its decision stops the job.

Windows: what a dead attempt prepared holds its locks and a slot of max_prepared_transactions until its batch is written
again, so there must be slots for several attempts. Rows of a batch are seen transaction by transaction. A decision that
is deleted by hand while its batch is in flight doubles rows. A query whose checkpoint is given up leaves what its last
batch had prepared: its gids begin with the query id, and are ended by hand, as the decision says. Spark hands a Python
data source no jobs in update mode.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.rows import dict_row
from pyspark import TaskContext
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.functions import struct, to_json
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

GUARANTEE = "exactly-once"
TECHNIQUE = "two-phase commit"
SERVICES = ("postgres",)

TYPES = {"bigint": "bigint", "double": "double precision", "timestamp": "timestamptz", "text": "text"}

TABLES = """
    CREATE TABLE events ({columns});
    CREATE TABLE committed (gid text PRIMARY KEY);
    CREATE TABLE decisions (query text, batch bigint, offsets text, gids text[], PRIMARY KEY (query, batch))
"""
INSERT = "INSERT INTO events SELECT * FROM json_populate_record(NULL::events, %s::json)"
PROVE = "INSERT INTO committed (gid) VALUES (%s)"
PROVEN = "SELECT gid FROM committed WHERE gid = ANY (%s)"
DECIDE = "INSERT INTO decisions (query, batch, offsets, gids) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING"
DECIDED = "SELECT offsets, gids FROM decisions WHERE query = %s AND batch = %s"
PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"


def prepare(target: SimpleNamespace) -> None:
    columns = ", ".join(f"{name} {TYPES[kind]}" for name, kind in target.columns.items())
    with psycopg.connect(target.postgres) as connection:
        connection.execute(TABLES.format(columns=columns))


def transform(df: DataFrame, target: SimpleNamespace) -> DataFrame:
    """Rows as JSON, times with all their digits and their zone: Python would show them in the worker's time zone."""
    return df.select(to_json(struct("*"), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}).alias("row"))


def attach(stream: DataStreamWriter, target: SimpleNamespace) -> DataStreamWriter:
    SparkSession.active().dataSource.register(PreparedTable)
    options = {"postgres": target.postgres, "checkpoint": target.checkpoint}
    return stream.format(PreparedTable.name()).options(**options)


@dataclass(frozen=True)
class Prepared(WriterCommitMessage):
    """What a task hands over: its prepared transaction, or None if it wrote nothing."""

    gid: str | None


@dataclass(frozen=True)
class Decision:
    """The outcome of a batch, made once: these transactions are committed, and no others of the batch."""

    offsets: str
    gids: Sequence[str]


class PreparedTable(DataSource):
    @classmethod
    def name(cls) -> str:
        return "postgres_prepared"

    def streamWriter(self, schema: StructType, overwrite: bool) -> PreparedWriter:
        return PreparedWriter(self.options)


class PreparedWriter(DataSourceStreamWriter):
    """write() runs in the executors' Python workers, commit() and abort() in one on the driver's side."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.postgres = options["postgres"]
        self.checkpoint = Path(options["checkpoint"])

    def write(self, iterator: Iterator[Row]) -> Prepared:
        context = TaskContext.get()
        assert context is not None
        query = str(context.getLocalProperty("sql.streaming.queryId"))
        batch = int(str(context.getLocalProperty("streaming.sql.batchId")))
        with self.connect() as connection:
            decided = read_decision(connection, query, batch) is not None
        if decided:
            deque(iterator, maxlen=0)
            return Prepared(None)
        gid = f"{query}:{batch}:{context.partitionId()}:{uuid4().hex}"
        return Prepared(write_transaction(self.postgres, gid, [row.row for row in iterator]))

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        query = query_id(self.checkpoint)
        offsets = source_offsets(self.checkpoint, batchId)
        with self.connect() as connection:
            decision = decide(connection, query, batchId, Decision(offsets, gids_of(messages)))
            if decision.offsets != offsets:
                raise RuntimeError(
                    f"batch {batchId} was decided for other source offsets than it has now: put the old"
                    f" offsets/{batchId} of the checkpoint back, or compare the batch with the table before the"
                    " decision is removed"
                )
            commit_all(connection, decision.gids)
            for gid in prepared(connection, query, up_to=batchId):
                roll_back(connection, gid)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Spark calls it after a failed task or a failed commit(). What is decided stays: a replay finishes it."""
        query = query_id(self.checkpoint)
        with self.connect() as connection:
            decision = read_decision(connection, query, batchId)
            kept = decision.gids if decision else ()
            for gid in sorted({*gids_of(messages)} - {*kept}):
                roll_back(connection, gid)

    def connect(self) -> psycopg.Connection[Any]:
        """Each statement by itself, as COMMIT PREPARED has to be."""
        return psycopg.connect(self.postgres, autocommit=True)


def gids_of(messages: Sequence[WriterCommitMessage | None]) -> list[str]:
    gids = [message.gid for message in messages if isinstance(message, Prepared)]
    return [gid for gid in gids if gid is not None]


def write_transaction(postgres: str, gid: str, rows: Sequence[str]) -> str | None:
    """Writes ``rows`` in a transaction that is prepared on return; None without rows."""
    if not rows:
        return None
    with psycopg.connect(postgres) as connection, connection.cursor() as cursor:
        cursor.execute(PROVE, [gid])
        cursor.executemany(INSERT, [[row] for row in rows])
        cursor.execute(sql.SQL("PREPARE TRANSACTION {}").format(gid))
    return gid


# -- The decision ---------------------------------------------------------------------------------------------------


def query_id(checkpoint: Path) -> str:
    return str(json.loads((checkpoint / "metadata").read_text())["id"])


def source_offsets(checkpoint: Path, batch: int) -> str:
    """sha256 of the offsets that the batch ends at, by offsets/N: a line with the version, one with metadata (the time,
    which differs where a batch is planned again) and one for each source."""
    lines = (checkpoint / "offsets" / str(batch)).read_text(encoding="utf-8").split("\n")
    return hashlib.sha256("\n".join(lines[2:]).encode()).hexdigest()


def read_decision(connection: psycopg.Connection[Any], query: str, batch: int) -> Decision | None:
    found = connection.execute(DECIDED, (query, batch)).fetchone()
    return Decision(*found) if found else None


def decide(connection: psycopg.Connection[Any], query: str, batch: int, proposed: Decision) -> Decision:
    """Makes the decision unless another driver has made it; returns the one that counts."""
    connection.execute(DECIDE, (query, batch, proposed.offsets, list(proposed.gids)))
    made = read_decision(connection, query, batch)
    assert made is not None
    return made


# -- Ending transactions by their gid -------------------------------------------------------------------------------


def commit_all(connection: psycopg.Connection[Any], gids: Sequence[str]) -> None:
    """Commits those that are not proven to be committed. Raises UndefinedObject if one is neither there nor proven."""
    done = {gid for (gid,) in connection.execute(PROVEN, [list(gids)])}
    for gid in gids:
        if gid not in done:
            connection.execute(sql.SQL("COMMIT PREPARED {}").format(gid))


def prepared(connection: psycopg.Connection[Any], query: str, up_to: int) -> list[str]:
    """Transactions of the query's batches up to this one; later ones may be another driver's that has gone on."""
    found = [gid for (gid,) in connection.execute(PREPARED) if gid.startswith(f"{query}:")]
    return [gid for gid in found if int(gid.split(":")[1]) <= up_to]


def roll_back(connection: psycopg.Connection[Any], gid: str) -> None:
    connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(gid))


def read(target: SimpleNamespace) -> list[dict[str, Any]]:
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
