"""A verdict for people."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ...assertions import Outcome, Verdict
from ..trial.recovery import recoveries_in
from ..trial.spec import TrialResult
from .printing import Terminal

COLOURS = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.INCONCLUSIVE: "yellow"}


def coloured(outcome: Outcome) -> str:
    return f"[{COLOURS[outcome]}]{outcome.value}[/]"


def print_trial(result: TrialResult) -> None:
    console = Terminal()
    print_verdict(result.verdict, console)
    if result.determinism is not None:
        console.print(f"note: {escape(result.determinism.sentence)}", soft_wrap=True)
    for warning in result.warnings:
        console.print(f"[yellow]warning[/]: {escape(warning)}", soft_wrap=True)
    for recovery in recoveries_in(result.journal):
        parts = ", ".join(f"{part} {seconds:.1f} s" for part, seconds in recovery.parts.items())
        console.print(f"recovery: {recovery.total:.1f} s until batch {recovery.batch} was committed: {parts}")
    console.print("time: " + ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in result.timings.items()))
    console.print(f"run directory: {result.directory}", soft_wrap=True)


def print_verdict(verdict: Verdict, console: Console | None = None) -> None:
    console = console or Terminal()
    console.print(
        f"verdict: [bold]{coloured(verdict.outcome)}[/] as {verdict.claim.value}"
        + (f", {coloured(verdict.exactly_once)} as exactly-once" if verdict.claim.value != "exactly-once" else "")
    )
    console.print(f"guarantee observed: {verdict.guarantee.value if verdict.guarantee else 'undetermined'}")
    console.print(f"reason: {escape(verdict.reason)}", soft_wrap=True)
    for note in verdict.notes:
        console.print(f"note: {escape(note)}", soft_wrap=True)
    for fault in verdict.faults:
        marks = [
            word
            for word, done in (("reached", fault.reached), ("fired", fault.fired), ("confirmed", fault.confirmed))
            if done
        ]
        console.print(f"fault: {escape(fault.text)}: {', '.join(marks) or 'not reached'}", soft_wrap=True)
        if fault.replay.get("required"):
            console.print(
                f"  evidence: {escape(fault.replay.get('seen') or 'MISSING: ' + str(fault.replay['required']))}",
                soft_wrap=True,
            )
    for anomaly in verdict.anomalies:
        where = f" in batch {', '.join(map(str, anomaly.batches))}" if anomaly.batches else ""
        console.print(f"[red]{anomaly.kind}[/]: {anomaly.count}{where}")
        for cause in anomaly.causes:
            console.print(f"  cause: {escape(cause)}", soft_wrap=True)
        if anomaly.records:
            console.print(_records(anomaly.records))


def _records(records: object) -> Table:
    rows = list(records)  # type: ignore[call-overload]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    table = Table(*columns, title_justify="left")
    for row in rows[:5]:
        table.add_row(*(escape(str(row.get(column, ""))) for column in columns))
    return table
