"""What tests of whole trials share, whichever environment these run in."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import pytest
from onceproof.assertions import Workload
from onceproof.harness.sinks import find_sink
from onceproof.harness.trial.spec import TrialResult

Run = Callable[..., TrialResult]

SMALL = Workload(batches=3, rows=96)
"""What a trial of a test has, unless it says more: enough for a batch before the struck one and one behind it."""


def long(*values: object) -> Any:
    """A case that only ``make test-long`` runs: others of its class are tested anyway."""
    return pytest.param(*values, marks=pytest.mark.long)


EVERY_SINK = (
    "batch.offsets:after",
    "sink.write:before",
    "sink.write:after",
    "batch.commit:before",
    "batch.commit:after",
)
PROTOCOL = "query.*,batch.*,sink.*,task.*,one task ended"
"""--points: the steps of the protocol, without changes of files, of which a table format has hundreds."""

TWO_PHASE = ("task.commit:before", "task.commit:after", "sink.commit:before", "sink.commit:after")

_WRITES_A_BATCH_ONCE = """

def write_batch(df, batch_id, target):
    with psycopg.connect(target.postgres) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS seen (batch bigint)")
        connection.commit()
        if connection.execute("SELECT 1 FROM seen WHERE batch = %s", [batch_id]).fetchone():
            raise RuntimeError(f"batch {batch_id} was seen before")
        connection.execute("INSERT INTO seen VALUES (%s)", [batch_id])
        connection.commit()
    write(df, batch_id, target)
"""


def raises_on_replay() -> str:
    """The text of a sink that never writes a batch twice: it raises instead."""
    return find_sink("postgres_upsert").read_text().replace("def write_batch(", "def write(") + _WRITES_A_BATCH_ONCE


_KEEPS_ITS_CONNECTION = """

import contextlib

KEPT = []

@contextlib.contextmanager
def connected(address, row_factory=None):
    if not KEPT:
        KEPT.append(psycopg.connect(address, row_factory=dict_row, {more}))
    with KEPT[0].transaction():
        yield KEPT[0]
"""


def keeps_its_connection(more: str) -> str:
    """The text of a correct sink that keeps one connection in each of its processes open until they end; ``more`` are
    further arguments of psycopg.connect."""
    text = find_sink("postgres_ledger").read_text().replace("psycopg.connect(", "connected(")
    return text + _KEEPS_ITS_CONNECTION.format(more=more)


def line_of(sink: str, text: str) -> int:
    """The first line of a reference sink's file that has ``text``."""
    lines = find_sink(sink).read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


def flaw_of(sink: str) -> tuple[str, ...]:
    """The anomalies that a broken sink's file says a certification must find."""
    tree = ast.parse(find_sink(sink).read_text())
    (value,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "FLAW"
    ]
    return tuple(ast.literal_eval(value))


def landed(result: TrialResult) -> bool:
    return all(fault.confirmed and fault.replay.get("seen") for fault in result.verdict.faults)


def described(result: TrialResult) -> str:
    """The verdict for the message of a failed test: its reason in front, because a long text is cut off."""
    return f"{result.verdict.reason}\n{result.verdict}"
