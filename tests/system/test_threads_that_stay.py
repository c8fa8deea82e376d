"""Sinks with a thread of their own that never ends: the trial does, once all input is committed."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.sinks import find_sink
from trials import Run, described, landed

BEATS = """

import threading

beating = []

def beat(target):
    while not threading.Event().wait(0.5):
        with psycopg.connect(target.postgres) as connection:
            connection.execute({statement!r})

def write_batch(df, batch_id, target):
    if not beating:
        beating.append(threading.Thread(target=beat, args=(target,), daemon={daemon}))
        beating[0].start()
    write(df, batch_id, target)
"""
LIVES = "UPDATE ledger SET batch = batch WHERE false"
AFTERWARDS = "INSERT INTO events SELECT * FROM events WHERE (SELECT count(*) FROM ledger) = 3 LIMIT 1"
"""Once the last batch of three is there."""

SLOW = "request:before[service=postgres, batch=1]#1 -> delay(100ms)"
"""Any fault at a request: then those of the thread are reported, too."""


def beats(directory: Path, statement: str = LIVES, daemon: bool = False) -> Path:
    """A sink whose thread has the database do this twice a second."""
    sink = directory / "beats.py"
    correct = find_sink("postgres_ledger").read_text().replace("def write_batch(", "def write(")
    sink.write_text(correct + BEATS.format(statement=statement, daemon=daemon))
    return sink


@pytest.mark.long
def test_a_driver_that_a_thread_keeps_alive_is_ended_once_its_query_has_committed_all_input(
    trial: Run, tmp_path: Path
) -> None:
    result = trial(beats(tmp_path), SLOW, deadline=5.0)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    (note,) = result.verdict.notes
    assert note.startswith("a driver had to be ended: its query had ended with all input committed")
    assert [event["incarnation"] for event in result.journal if event["event"] == "driver.started"] == [1]


@pytest.mark.long
def test_what_such_a_driver_writes_until_it_is_ended_is_read(trial: Run, tmp_path: Path) -> None:
    result = trial(beats(tmp_path, AFTERWARDS), deadline=5.0)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["duplicated"], described(result)
    assert result.verdict.outcome == "fail"


@pytest.mark.long
def test_a_driver_whose_query_an_error_has_ended_is_started_again(trial: Run, tmp_path: Path) -> None:
    result = trial(beats(tmp_path), "request:before[service=postgres, kind=INSERT, batch=1]#1 -> drop", deadline=5.0)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert [fault.swallowed for fault in result.verdict.faults] == [False]
    assert [event["event"] for event in result.journal if event["event"] in ("driver.hung", "driver.stayed")] == [
        "driver.hung",
        "driver.stayed",
    ]


@pytest.mark.long
def test_a_job_that_does_not_end_by_itself_is_asked_to_stop_whatever_a_thread_does(trial: Run, tmp_path: Path) -> None:
    result = trial(beats(tmp_path, daemon=True), SLOW, trigger="processingTime=500 milliseconds")
    assert (result.verdict.outcome, list(result.verdict.notes)) == ("pass", []), described(result)
