"""The time of a warm trial with one kill of the driver, by stage: ``python bench/trial.py [--env ENV ...] [SINK ...]``.

The first trial of a sink warms the environment and is not counted. With several environments (``make bench
ENVS="local docker"``) each sink runs in all of them, one after the other. Figures of one run on one machine: compare
ratios.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path

from onceproof.harness.environment_options import DEFAULT_MASTER, EnvironmentOptions
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.spec import TrialResult
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sweeps import check_names, ended

FAULT = "sink.write:after[batch=1] -> kill(driver)"
SINKS = ("kafka_append", "postgres_upsert", "kafka_transactional")
COUNTED = 3


def measure(env: str, sinks: Sequence[str]) -> dict[str, list[TrialResult]]:
    """The warm trials of each sink, the column's title being the key."""
    with tempfile.TemporaryDirectory() as runs, Session(EnvironmentOptions(env=env, runs=Path(runs))) as session:
        return {
            f"{sink}, {env}": [session.trial(Request(sink, FAULT)) for _ in range(COUNTED + 1)][1:] for sink in sinks
        }


def table_of(measured: dict[str, list[TrialResult]]) -> Table:
    table = Table("stage (median, seconds)", *measured, title=escape(f"{FAULT}, {COUNTED} warm trials each"))
    first, *_ = measured.values()
    for stage in first[0].timings:
        medians = [statistics.median(result.timings[stage] for result in results) for results in measured.values()]
        table.add_row(stage, *(f"{median:.2f}" for median in medians))
    outcomes = ("/".join(result.verdict.outcome.value for result in results) for results in measured.values())
    table.add_row("verdict", *outcomes)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description="the time of a warm trial, by stage")
    parser.add_argument("--env", action="append", choices=DEFAULT_MASTER, help="may be repeated; local by default")
    parser.add_argument("sinks", nargs="*", default=SINKS)
    chosen = parser.parse_args()
    check_names(chosen.sinks)
    measured = {}
    for env in chosen.env or ["local"]:
        measured |= measure(env, chosen.sinks)
    Console().print(table_of({title: measured[title] for title in sorted(measured)}))
    return 0


if __name__ == "__main__":
    ended("bench", main)
