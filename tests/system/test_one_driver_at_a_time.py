"""Sinks that let no driver in while its predecessor lives, and a predecessor that stands still and goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.sinks import find_sink
from trials import Run, described, landed

LEADS = """

import functools

@functools.cache
def leader(address):
    connection = psycopg.connect(address, autocommit=True)
    {lock}
    return connection

def attach(stream, target):
    leader(target.postgres)
    return stream.foreachBatch(lambda df, batch_id: write(df, batch_id, target))
"""
WAITS = 'connection.execute("SELECT pg_advisory_lock(1)")'
FAILS = 'assert connection.execute("SELECT pg_try_advisory_lock(1)").fetchone()[0], "there is a leader"'

PAUSED = "sink.write:before[batch=1] -> pause(driver, longest=6s) until batch.commit:after[batch=1]"


def leads(directory: Path, lock: str) -> Path:
    """A correct sink whose driver takes a lock of its session before its query starts."""
    sink = directory / "leads.py"
    correct = find_sink("postgres_ledger").read_text().replace("def write_batch(", "def write(")
    sink.write_text(correct + LEADS.format(lock=lock))
    return sink


@pytest.mark.long
def test_a_sink_that_keeps_the_next_driver_out_until_the_first_goes_on_is_judged(trial: Run, tmp_path: Path) -> None:
    result = trial(leads(tmp_path, WAITS), PAUSED)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    (note,) = result.verdict.notes
    assert note.startswith("the sink let no other driver in while one stood still for 6 s")


@pytest.mark.long
def test_a_sink_that_refuses_the_next_driver_is_judged(trial: Run, tmp_path: Path) -> None:
    result = trial(leads(tmp_path, FAILS), PAUSED)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    (note,) = result.verdict.notes
    assert note.startswith("the sink refused the driver that was to take the place of one that stood still")
