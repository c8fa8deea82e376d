"""Several certificates in one table: a row for each step, a column for each sink."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Column, Table

from ...assertions import Outcome, Verdict
from ..certify import Certificate


def side_by_side(certificates: Sequence[Certificate]) -> Table:
    """At which steps each sink is exactly-once, and where it duplicates or loses."""
    table = Table(
        Column("the driver dies at", no_wrap=True),
        *(Column(one.request.sink, no_wrap=True) for one in certificates),
        title="Exactly-once, step by step",
    )
    columns = [
        {"no fault": one.reference.verdict} | {point.point.step: point.result.verdict for point in one.points}
        for one in certificates
    ]
    for step in dict.fromkeys(step for column in columns for step in column):
        table.add_row(step, *(_cell(column.get(step)) for column in columns))
    table.add_section()
    table.add_row("claimed", *(one.reference.spec.claim.value for one in certificates))
    observed = [one.guarantee.value if one.guarantee else "?" for one in certificates]
    table.add_row("observed", *(f"[bold]{guarantee}[/]" for guarantee in observed))
    return table


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "[dim]no such step[/]"
    if verdict.exactly_once is Outcome.PASS:
        return "[green]exactly once[/]"
    found = ", ".join(f"{anomaly.kind} {anomaly.count}" for anomaly in verdict.anomalies)
    colour = "red" if verdict.exactly_once is Outcome.FAIL else "yellow"
    return f"[{colour}]{found or verdict.exactly_once.value}[/]"
