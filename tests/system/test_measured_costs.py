"""Benches run real trials, and print what they have measured."""

from __future__ import annotations

import re

import pytest
from onceproof.harness.benches.overhead import CASES, Case
from onceproof.harness.cli import execute
from onceproof.harness.errors import HELD


def figures(text: str, row: str) -> list[float]:
    """The numbers of the cells behind the one that is ``row``."""
    line = next(line for line in text.splitlines() if line.startswith(f"| `{row}` |"))
    return [float(cell) for cell in line.split("|") if re.fullmatch(r" *[0-9.]+ *", cell)]


@pytest.mark.long
def test_a_sink_is_measured_by_what_spark_says_of_its_batches(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "guarantees", "postgres_append", "--rows", "24"]) == HELD
    throughput, latency = figures(capsys.readouterr().out, "postgres_append")
    assert throughput > 1
    assert 0.01 < latency < 60


@pytest.mark.long
def test_the_parts_of_a_recovery_add_up_and_a_new_driver_loads_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "recovery", "--keys", "300", "--state-store", "rocksdb", "--repeat", "1"]) == HELD
    keys, *parts, total = figures(capsys.readouterr().out, "rocksdb")
    assert keys == 300
    assert sum(parts) == pytest.approx(total, abs=0.1)
    assert parts[4] > 0


@pytest.mark.long
def test_a_checkpoint_is_measured_for_each_interval(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["bench", "checkpoint", "--interval", "0.5", "--state-store", "hdfs"]) == HELD
    interval, rows, plan, offsets, state, _, commit, batch = figures(capsys.readouterr().out, "hdfs")
    assert (interval, rows) == (0.5, 100)
    assert 0 < plan + offsets + state + commit < batch


@pytest.mark.long
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_plan_that_strikes_nowhere_is_armed_in_one_trial_of_a_pair(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", "overhead", "--case", case.name, "--pairs", "1", "--rows", "200"]) == HELD
    assert re.search(rf"^\| {case.name} \| `{case.sink}` \| 1 \| [+-]\d+\.\d% ", capsys.readouterr().out, re.MULTILINE)
