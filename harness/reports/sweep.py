"""The progress and the table of a sweep, for people."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..certify import Certificate, PointResult, Sweep
from .trial import coloured


class SweepReport:
    """Prints a line for each trial as it ends, and a table at the end. Each line begins with ``name``."""

    def __init__(self, console: Console, name: str = " ") -> None:
        self._console = console
        self._name = escape(name)
        self._total = 0
        self._done = 0

    def start(self, sink: str) -> None:
        self._console.print(f"[bold]{sink}[/]: the reference trace, without a fault", highlight=False)

    def announce(self, sweep: Sweep) -> None:
        self._total = len(sweep.points)
        verdict = sweep.reference.verdict
        self._console.print(
            f"{self._name} reference: {coloured(verdict.outcome)} ({sweep.reference.timings['total']:.1f} s); "
            f"{self._total} trials follow, about {_duration(sweep.expected)}",
            highlight=False,
        )

    def done(self, point: PointResult) -> None:
        self._done += 1
        verdict = point.result.verdict
        found = ", ".join(f"{anomaly.kind} {anomaly.count}" for anomaly in verdict.anomalies)
        self._console.print(
            f"{self._name} {self._done}/{self._total} {escape(point.point.step)}: {coloured(verdict.outcome)}"
            f"{' (' + found + ')' if found else ''} {point.result.timings['total']:.1f} s",
            highlight=False,
        )

    def summary(self, certificate: Certificate, directory: Path) -> None:
        self._console.print(sweep_table(certificate))
        self._console.print(
            f"certificate: {coloured(certificate.outcome)} as {certificate.reference.spec.claim.value}; "
            f"guarantee observed: {certificate.guarantee.value if certificate.guarantee else 'none can be told'}; "
            f"{len(certificate.points)} of {certificate.planned} points in {_duration(certificate.seconds)}",
            highlight=False,
        )
        self._console.print(f"run directory: {directory}", soft_wrap=True, highlight=False)


def sweep_table(certificate: Certificate) -> Table:
    table = Table("point", "verdict", "guarantee", "found", "reason", title=f"{certificate.reference.spec.sink.name}")
    rows = [("no fault", certificate.reference)] + [(point.point.step, point.result) for point in certificate.points]
    for step, result in rows:
        verdict = result.verdict
        found = ", ".join(f"{anomaly.kind} {anomaly.count}" for anomaly in verdict.anomalies)
        guarantee = verdict.guarantee.value if verdict.guarantee else "-"
        table.add_row(escape(step), coloured(verdict.outcome), guarantee, found, escape(verdict.reason))
    return table


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
