"""The tables of docs/phases.md, from the catalogue: ``make schemas`` writes them into the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..faults.catalogue import render_catalogue
from .reports._tables import code, table

PAGE = "phases.md"


def tables() -> list[str]:
    """What each phase is; what it is in two-phase commit; and what the protocol requires after a crash there."""
    phases = render_catalogue()
    return [_phases(phases), _two_phase_commit(phases), _after_a_crash(phases)]


def with_tables(page: str) -> str:
    """The page, each of its tables that has the head of one of these in its place. Raises ValueError if one is not
    there."""
    lines = page.splitlines()
    for new in tables():
        head = new.splitlines()[0]
        begin = lines.index(head)
        end = next((at for at in range(begin, len(lines)) if not lines[at].startswith("|")), len(lines))
        lines[begin:end] = new.splitlines()
    return "\n".join(lines) + "\n"


def write_tables(docs: Path) -> None:
    page = docs / PAGE
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")


def _phases(phases: Sequence[Mapping[str, Any]]) -> str:
    head = ("phase", "edges", "what happens there", "who has it", "stopped in", "selectors", "environments")
    return table(
        head,
        [
            (
                code(phase["name"]),
                ", ".join(code(f":{edge}") for edge in phase["edges"]) or "none",
                phase["meaning"],
                phase["sinks"],
                phase["where"],
                ", ".join(map(code, phase["selectors"])),
                ", ".join(phase["environments"]),
            )
            for phase in phases
        ],
    )


def _two_phase_commit(phases: Sequence[Mapping[str, Any]]) -> str:
    rows = [(code(phase["name"]), phase["two_phase_commit"], code(phase["source"])) for phase in phases]
    return table(("phase", "in two-phase commit", "the call behind it"), rows)


def _after_a_crash(phases: Sequence[Mapping[str, Any]]) -> str:
    at: dict[str, list[str]] = {}
    for phase in phases:
        for point, what in _required(phase).items():
            at.setdefault(what, []).append(code(point))
    return table(("after the crash", "at"), [(what, ", ".join(points)) for what, points in at.items()])


def _required(phase: Mapping[str, Any]) -> Mapping[str, str]:
    """By point; a phase whose edges require the same, or that has none, is one by its name alone."""
    by_edge, edges = phase["after_a_crash"], phase["edges"]
    if not edges or (len(edges) > 1 and len({*by_edge.values()}) == 1):
        return {phase["name"]: next(iter(by_edge.values()))}
    return {f"{phase['name']}:{edge}": what for edge, what in by_edge.items()}
