"""The progress and the tables of a sweep, for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.box import HORIZONTALS
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table

from ...assertions import Outcome
from ..certification.certificate import Certificate
from ..certification.certify import Sweep
from ..certification.results import PointResult
from ..certification.scope import WORST_FIRST, Cell, Status
from .trial import coloured

NOTES = 10
"""So many notes are printed; the certificate has all of them."""

MARKS = {
    "pass": "[green]pass[/]",
    "fail": "[red]FAIL[/]",
    "inconclusive": "[yellow]inconclusive[/]",
    "not reached": "[yellow]not reached[/]",
    "not tried": "[yellow]not tried[/]",
    "left to chance": "[dim]left to chance[/]",
    "not possible here": "[dim]not possible here[/]",
    "not asked": "[dim]not asked[/]",
}


def _what_follows(sweep: Sweep) -> list[str]:
    return [f"{sweep.runs} runs follow, about {_duration(sweep.expected)}"] if sweep.runs else []


class SweepReport:
    """Prints a line for each point as it is judged, and tables at the end. Each line begins with ``name``."""

    def __init__(self, console: Console, name: str = " ") -> None:
        self._console = console
        self._name = escape(name)
        self._total = 0
        self._done = 0

    def start(self, sink: str) -> None:
        self._console.print(f"[bold]{sink}[/]: the reference trace, without a fault", highlight=False)

    def announce(self, sweep: Sweep) -> None:
        if self._total:
            self._announce_more(sweep)
            return
        self._total, self._done = sweep.points, sweep.stored
        stored = f", {sweep.stored} of them done before" if sweep.stored else ""
        said = "; ".join([f"{self._total} points{stored}", *_what_follows(sweep)])
        self._console.print(
            f"{self._name} reference: {coloured(Outcome(sweep.reference.verdict))} ({sweep.reference.seconds:.1f} s); "
            f"{said}",
            highlight=False,
        )

    def _announce_more(self, sweep: Sweep) -> None:
        more, self._total, self._done = sweep.points - self._total, sweep.points, sweep.stored
        points = f"{'more' if more > 0 else 'fewer'} point{'s' if abs(more) > 1 else ''}"
        said = [f"{abs(more)} {points}, from the trials until now"] if more else []
        said += _what_follows(sweep)
        if said:
            self._console.print(f"{self._name} {'; '.join(said)}", highlight=False)

    def done(self, result: PointResult) -> None:
        self._done += 1
        found = counts(result.anomalies)
        self._console.print(
            f"{self._name} {self._done}/{self._total} {escape(result.step)}: {coloured(Outcome(result.verdict))}"
            f"{' (' + found + ')' if found else ''} {result.seconds:.1f} s",
            highlight=False,
        )

    def summary(self, certificate: Certificate) -> None:
        self._console.print(f"certificate: {escape(certificate.summary)}", highlight=False)
        batches = ", ".join(f"{role} {batch}" for role, batch in certificate.scope.roles.items())
        self._console.print(f"[bold]{escape(certificate.sink.name)}[/], batches: {batches}", highlight=False)
        self._console.print(matrix(certificate))
        wrong = [point for point in certificate.points if point.verdict != "pass" or point.anomalies]
        for line in (line for point in wrong for line in point_lines(point)):
            self._console.print(line, soft_wrap=True, highlight=False)
        for note in certificate.notes[:NOTES]:
            self._console.print(f"note: {escape(note)}", highlight=False)
        if unswept := ", ".join(certificate.scope.unswept):
            self._console.print(
                f"not run on the driver in any start or batch, so not swept by lines: {unswept}", highlight=False
            )
        if elsewhere := ", ".join(certificate.scope.elsewhere):
            self._console.print(
                f"imported from elsewhere than the sink's directory, so not swept by lines: {elsewhere}",
                highlight=False,
            )
        self._console.print("beyond every sweep:", highlight=False)
        for one in certificate.scope.beyond:
            self._console.print(Padding(escape(f"- {one}"), (0, 0, 0, 2)), highlight=False)
        self._console.print(
            f"guarantee observed: {certificate.guarantee or 'undetermined'}; {certificate.coverage.run} of "
            f"{certificate.coverage.points} points in {_duration(certificate.seconds)}",
            highlight=False,
        )
        self._console.print(f"run directory: {certificate.run_directory}", soft_wrap=True, highlight=False)


def matrix(certificate: Certificate) -> Table:
    """Each step with its actions below, and what became of the points in the batch of each role; all lines of a file
    in one row."""
    table = Table(
        Column("step and action", overflow="fold", max_width=38),
        Column("points in the batch of each role"),
        box=HORIZONTALS,
        pad_edge=False,
    )
    actions: dict[str, list[tuple[str, str]]] = {}
    for (step, action), cells in rows_of(certificate).items():
        actions.setdefault(step, []).append((action, _by_status(cells, certificate.scope.columns)))
    for step, rows in actions.items():
        table.add_row(f"[bold]{escape(step)}[/]")
        for action, found in rows:
            table.add_row(Padding(escape(action), (0, 0, 0, 2)), found)
    return table


def _by_status(cells: Mapping[str, Sequence[Cell]], roles: Sequence[str]) -> str:
    """``FAIL first 2; pass second, middle 3``."""
    of: dict[Status, list[str]] = {}
    for role in filter(cells.__contains__, roles):
        count = sum(cell.points for cell in cells[role])
        of.setdefault(worst(cells[role]), []).append(f"{role} {count}" if count > 1 else role)
    return "; ".join(f"{MARKS[status]} {', '.join(of[status])}" for status in WORST_FIRST if status in of)


def rows_of(certificate: Certificate) -> dict[tuple[str, str], dict[str, list[Cell]]]:
    """The cells by step and action, then by role; without those that are not possible here."""
    rows: dict[tuple[str, str], dict[str, list[Cell]]] = {}
    for cell in certificate.scope.cells:
        if cell.status != "not possible here":
            rows.setdefault((_row(cell), cell.action), {}).setdefault(cell.role, []).append(cell)
    return rows


def worst(cells: Sequence[Cell]) -> Status:
    return min((cell.status for cell in cells), key=WORST_FIRST.index)


def point_lines(point: PointResult) -> Iterator[str]:
    """A point that did not simply pass: what was found, why, its plan, and where its run is."""
    found = ", ".join(filter(None, [point.guarantee, counts(point.anomalies)]))
    yield f"{MARKS[point.verdict]} [bold]{escape(point.step)}[/]{f': {escape(found)}' if found else ''}"
    yield f"  {escape(point.reason)}"
    yield f"  plan: {escape(point.plan)}"
    yield f"  run directory: {escape(point.run_directory)}"


def _row(cell: Cell) -> str:
    """``lines of my_sink.py`` for each of them."""
    return f"lines of {cell.file}" if cell.file else cell.step


def counts(anomalies: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in anomalies.items())


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"
