"""The sinks that write to Redis, in trials: those that are right hold, and each broken one shows its flaw."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.sinks import find_sink
from trials import Run, described, flaw_of, landed, line_of

HOLDS = {
    "redis_ledger": "client.transaction(",
    "redis_upsert": "pipeline.hset(",
}
"""Sinks that claim exactly-once, with a line on the way to their write."""


@pytest.mark.long
@pytest.mark.parametrize("sink", HOLDS)
def test_a_replay_changes_nothing(trial: Run, sink: str) -> None:
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
    assert result.warnings == []
    assert result.verdict.notes == []


@pytest.mark.long
@pytest.mark.parametrize("sink", HOLDS)
def test_a_death_before_the_write_changes_nothing(trial: Run, sink: str) -> None:
    result = trial(sink, f"line[{sink}.py:{line_of(sink, HOLDS[sink])}][batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)


@pytest.mark.long
def test_an_appending_sink_keeps_its_claim_and_repeats_a_whole_batch(trial: Run) -> None:
    result = trial("redis_append", "sink.write:after[batch=1] -> kill(driver)")
    assert (result.verdict.outcome, result.verdict.exactly_once) == ("pass", "fail"), described(result)
    (duplicated,) = result.verdict.anomalies
    assert (duplicated.kind, duplicated.count) == ("duplicated", result.verdict.records["batch_sizes"][1])
    assert landed(result)


BROKEN = {
    "redis_ledger_not_atomic": ("line[{here}][batch=1] -> kill(driver)", "pipeline.sadd(LEDGER, batch)"),
    "redis_marker_expires": ("sink.write:after[batch=1] -> kill(driver)", None),
    "redis_seen_before_written": ("line[{here}][batch=1] -> kill(driver)", "client.rpush(ROWS, row)"),
    "redis_generated_keys": ("sink.write:after[batch=1] -> kill(driver)", None),
    "pipelined_with_its_marker": ("request:before[service=redis, kind=HSET, batch=1]#1 -> answer(OOM)", None),
    "redis_staging_left_over": ("line[{here}][batch=1] -> kill(driver)", "client.rename("),
}
"""The fault under which each broken sink breaks, and what stands on the line that it names."""


@pytest.mark.long
@pytest.mark.parametrize("sink", BROKEN)
def test_a_broken_sink_fails_with_the_anomaly_that_its_file_says(trial: Run, sink: str) -> None:
    plan, text = BROKEN[sink]
    here = f"{sink}.py:{line_of(sink, text)}" if text else ""
    result = trial(sink, plan.format(here=here))
    assert result.verdict.outcome == "fail", described(result)
    assert tuple(anomaly.kind for anomaly in result.verdict.anomalies) == flaw_of(sink)


@pytest.mark.long
@pytest.mark.parametrize("sink", BROKEN)
def test_a_broken_sink_is_right_when_nothing_fails(trial: Run, sink: str) -> None:
    assert trial(sink).verdict.outcome == "pass"


_POOLED = """

import contextlib
import functools

@functools.cache
def kept(address):
    return redis.Redis.from_url(address)

@contextlib.contextmanager
def pooled(address):
    yield kept(address)
"""


@pytest.mark.long
def test_a_connection_that_read_keeps_open_is_not_the_jobs(trial: Run, tmp_path: Path) -> None:
    sink = tmp_path / "pooled_ledger.py"
    sink.write_text(find_sink("redis_ledger").read_text().replace("redis.Redis.from_url(", "pooled(") + _POOLED)
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
