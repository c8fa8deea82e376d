"""Several certificates in one table: a row for each step, a column for each sink."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import HORIZONTALS
from rich.table import Column, Table

from ..certification.certificate import Certificate
from ..certification.results import Judged


def side_by_side(certificates: Sequence[Certificate]) -> Table:
    """At which steps each sink is exactly-once, and where it duplicates or loses."""
    table = Table(
        Column("the driver dies at", no_wrap=True),
        *(Column(one.sink.name, no_wrap=True) for one in certificates),
        box=HORIZONTALS,  # with borders, the longest name is cut at 80 columns
        pad_edge=False,
        title="Exactly-once, step by step",
    )
    columns: list[dict[str, Judged]] = [
        {"no fault": one.reference} | {point.cell[0]: point for point in one.points} for one in certificates
    ]
    for step in dict.fromkeys(step for column in columns for step in column):
        table.add_row(step, *(_cell(column.get(step)) for column in columns))
    table.add_section()
    table.add_row("claimed", *(one.claim for one in certificates))
    table.add_row("observed", *(f"[bold]{one.guarantee or '?'}[/]" for one in certificates))
    return table


def _cell(trial: Judged | None) -> str:
    if trial is None:
        return "[dim]no such step[/]"
    if trial.exactly_once == "pass":
        return "[green]exactly once[/]"
    found = ", ".join(f"{kind} {count}" for kind, count in trial.anomalies.items())
    colour = "red" if trial.exactly_once == "fail" else "yellow"
    return f"[{colour}]{found or trial.exactly_once}[/]"
