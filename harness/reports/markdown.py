"""The result as Markdown: for the summary of a CI job, a pull request or a bug report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...assertions import Anomaly, FaultReport
from ..certification.certificate import Certificate
from ..certification.results import PointResult
from ..certification.scope import Cell
from ..console.sweep import counts, rows_of, worst
from ._declaration import Report, StoredTrial
from ._tables import bullets, code, document, table, text

SHOWN = 5
"""So many records of an anomaly are shown; the run directory has more."""


def trial(stored: StoredTrial) -> str:
    verdict, sink = stored.verdict, stored.about.get("sink")
    title = f"{text(sink['name'])}: " if sink else ""
    return document(
        [
            f"# {title}{verdict.outcome.value} as {verdict.claim.value}",
            text(verdict.reason),
            table(("", ""), _trial_facts(stored)),
            _section("Faults", table(("fault", "what became of it", "evidence"), map(_fault, verdict.faults)))
            if verdict.faults
            else "",
            *(part for anomaly in verdict.anomalies for part in _anomaly(anomaly)),
            _section("Notes", bullets(map(text, verdict.notes))) if verdict.notes else "",
        ]
    )


def _trial_facts(stored: StoredTrial) -> Iterator[tuple[str, str]]:
    verdict = stored.verdict
    yield "exactly-once", verdict.exactly_once.value
    yield "guarantee observed", verdict.guarantee.value if verdict.guarantee else "undetermined"
    if "seed" in stored.about:
        yield "seed", text(stored.about["seed"])
    yield "run directory", code(stored.directory)


def _fault(fault: FaultReport) -> tuple[str, str, str]:
    marks = [word for word in ("reached", "fired", "confirmed") if getattr(fault, word)]
    required, seen = fault.replay.get("required"), fault.replay.get("seen")
    missing = f"**missing:** {text(required)}" if required else ""
    return code(fault.text), ", ".join(marks) or "not reached", text(seen) if seen else missing


def _anomaly(anomaly: Anomaly) -> Iterator[str]:
    where = f" in batch {', '.join(map(str, anomaly.batches))}" if anomaly.batches else ""
    yield f"## {text(anomaly.kind)}: {anomaly.count}{where}"
    yield bullets(map(text, anomaly.causes))
    records = anomaly.records[:SHOWN]
    columns = list(dict.fromkeys(column for record in records for column in record))
    if columns:
        rows = [[text(record.get(column, "")) for column in columns] for record in records]
        yield table([text(column) for column in columns], rows)


def certificate(stored: Certificate) -> str:
    wrong = [point for point in stored.points if point.verdict != "pass" or point.anomalies]
    unswept, elsewhere = stored.scope.unswept, stored.scope.elsewhere
    facts = [
        ("guarantee observed", stored.guarantee or "undetermined"),
        ("points", f"{stored.coverage.run} of {stored.coverage.points} run, {stored.coverage.landed} landed"),
        ("seed", str(stored.seed)),
        ("profile", stored.profile),
        ("run directory", code(stored.run_directory)),
    ]
    return document(
        [
            f"# {text(stored.sink.name)}: {stored.verdict} as {stored.claim}",
            text(stored.summary),
            table(("", ""), facts),
            _section("Coverage", _matrix(stored)),
            _section("Points that did not simply pass", table(POINT, map(_point, wrong))) if wrong else "",
            _section("Not run on the driver in any start or batch: not swept by lines", bullets(map(code, unswept)))
            if unswept
            else "",
            _section(
                "Imported from elsewhere than the sink's directory: not swept by lines", bullets(map(code, elsewhere))
            )
            if elsewhere
            else "",
            _section("Beyond every sweep", bullets(map(text, stored.scope.beyond))),
            _section("Notes", bullets(map(text, stored.notes))) if stored.notes else "",
        ]
    )


POINT = ("point", "verdict", "guarantee", "found", "reason")


def _point(point: PointResult) -> tuple[str, ...]:
    found = text(counts(point.anomalies))
    return code(point.plan or point.step), point.verdict, point.guarantee or "-", found, text(point.reason)


def _matrix(stored: Certificate) -> str:
    roles = stored.scope.columns
    numbers = [f"{role} ({stored.scope.roles[role]})" if role in stored.scope.roles else role for role in roles]
    rows = [
        (code(step), code(action), *(_mark(cells.get(role, [])) for role in roles))
        for (step, action), cells in rows_of(stored).items()
    ]
    return table(("step", "action", *numbers), rows)


def _mark(cells: Sequence[Cell]) -> str:
    if not cells:
        return ""
    status, count = worst(cells), sum(cell.points for cell in cells)
    return (f"**{status}**" if status == "fail" else status) + (f" {count}" if count > 1 else "")


def _section(title: str, body: str) -> str:
    return f"## {title}\n\n{body}"


REPORT = Report(meaning="Markdown, for a CI job's summary or a bug report", trial=trial, certificate=certificate)
