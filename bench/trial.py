"""The time of a warm trial with one kill of the driver, by stage: ``python bench/trial.py [SINK ...]`` (make bench).

The first trial of a sink warms the environment and is not counted. Figures of one run on one machine: compare ratios.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from onceproof.harness.session import Place, Request, Session
from rich.console import Console
from rich.table import Table

FAULT = "sink.write:after[batch=1] -> kill(driver)"
SINKS = ("kafka_append", "postgres_upsert", "kafka_transactional")
COUNTED = 3


def main(sinks: tuple[str, ...]) -> None:
    console = Console()
    with tempfile.TemporaryDirectory() as runs, Session(Place(runs=Path(runs))) as session:
        measured = {sink: [session.trial(Request(sink, FAULT)) for _ in range(COUNTED + 1)][1:] for sink in sinks}
    table = Table("stage (median, seconds)", *sinks, title=f"{FAULT}, {COUNTED} warm trials each")
    for stage in measured[sinks[0]][0].timings:
        medians = [statistics.median(result.timings[stage] for result in measured[sink]) for sink in sinks]
        table.add_row(stage, *(f"{median:.2f}" for median in medians))
    table.add_row("verdict", *("/".join(result.verdict.outcome.value for result in measured[sink]) for sink in sinks))
    console.print(table)


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or SINKS)
