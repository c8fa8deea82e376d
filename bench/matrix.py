"""Certifies every reference sink and every broken one, and prints what each came to, as Markdown: ``make matrix``.

A broken sink's sweep ends at its first failed point. With a directory that an earlier run was cut short in, finished
sinks are not certified again and the others go on: ``make matrix DIRECTORY=.onceproof/matrix``.

All of it takes hours, so it may be done in parts: what a sink came to is kept in matrix.json, with the commit that it
was measured at, and docs/matrix.md has all that is there. A broken sink may be swept at some steps only, where its
flaw lies (``--points``): what fails there fails in the whole sweep, and no correct sink can be shown to pass by it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.space import ALL
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.reports._tables import code, table
from rich.console import Console
from sessions import Sessions
from sweeps import (
    HERE,
    Kept,
    by_kind,
    certified,
    check_directory,
    check_names,
    commit_of,
    ended,
    first_failure,
    missing,
    points_of,
    sinks,
)

HEAD = ("sink", "claims", "verdict", "observed", "points", "first point that fails", "found", "minutes", "commit")

STANDARD = "standard"

KEPT = Kept("matrix")


@dataclass(frozen=True)
class Line:
    """A sink, what it should come to, and what it came to at the points that were asked for."""

    sink: str
    broken: bool
    certificate: Certificate
    commit: str
    points: str = ALL

    @property
    def right(self) -> bool:
        """A correct sink keeps its claim, a broken one fails, and neither in its reference run."""
        expected = "fail" if self.broken else "pass"
        return self.certificate.verdict == expected and self.certificate.reference.verdict == "pass"

    def cells(self) -> list[str]:
        certificate = self.certificate
        return [
            code(self.sink),
            certificate.claim,
            certificate.verdict,
            certificate.guarantee or "-",
            self.counted if self.points == ALL else f"{self.counted}, at {code(self.points)}",
            *first_failure(certificate),
            f"{certificate.seconds / 60:.1f}",
            self.commit,
        ]

    def says_more_than(self, kept: Mapping[str, Any] | None) -> bool:
        """Of a sweep at some steps, whether it has found the flaw, and no whole sweep has: that it finds none says
        nothing."""
        return self.points == ALL or (self.right and (kept is None or kept.get("points", ALL) != ALL))

    @property
    def counted(self) -> str:
        """How many points have a verdict, of those that the whole sweep knew by then."""
        coverage = self.certificate.coverage
        return f"{coverage.run} of {coverage.points if self.points == ALL else points_of(self.certificate)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".onceproof") / "matrix")
    parser.add_argument("--profile", default=STANDARD, choices=("quick", "standard", "full"))
    parser.add_argument("--points", default=ALL, help="of broken sinks: the steps to sweep, as certify has them")
    parser.add_argument("sinks", nargs="*", help="names; all by default")
    arguments = parser.parse_args()
    check_names(arguments.sinks)
    check_directory(arguments.directory)
    console = Console(stderr=True)
    commit = commit_of(HERE, KEPT)
    lines = []
    with ExitStack() as stack:
        sessions = Sessions(stack, EnvironmentOptions(runs=arguments.directory / "runs"))
        for path, broken in sinks(arguments.sinks):
            points = arguments.points if broken else ALL
            wanted = Wanted(profile=arguments.profile, points=points, fail_fast=broken)
            found = certified(sessions, path, arguments.directory / path.stem, wanted, commit)
            line = Line(path.stem, broken, *found, points)
            if arguments.profile == STANDARD and line.says_more_than(KEPT.load().get(path.stem)):
                keep(line)
            expected = "as expected" if line.right else "NOT as expected"
            console.print(f"{line.sink} {expected}: {line.certificate.summary}")
            lines.append(line)
    print(table(HEAD, [line.cells() for line in lines]) + "\n")
    false_passes = [line.sink for line in lines if line.broken and not line.right]
    false_alarms = [line.sink for line in lines if not line.broken and not line.right]
    print(f"broken sinks that were not found: {', '.join(false_passes) or 'none'}")
    print(f"correct sinks that did not pass: {', '.join(false_alarms) or 'none'}")
    return 1 if false_passes or false_alarms else 0


def keep(line: Line) -> None:
    """Put the line among those that are kept, and write the page of all of them."""
    kinds = by_kind(line.certificate)
    kept = {"broken": line.broken, "right": line.right, "cells": line.cells(), "by_kind": kinds}
    if line.points != ALL:
        kept |= {"points": line.points, "counted": line.counted}
    lines = KEPT.load() | {line.sink: kept}
    KEPT.store(lines, page_of(lines))


def page_of(lines: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, as Markdown."""
    parts = [
        "# The matrix",
        "What `make matrix` came to: reference sinks and broken ones, certified with the profile `standard`; those "
        "that have no line yet are named at the end. Each line says at which commit it was measured, and holds for the "
        "points that there were then: later commits have more of them (CHANGELOG.md). The sweep of a broken sink ends "
        "at its first failed point; where the line names steps, these alone were swept (`--points`), because the flaw "
        "lies there: the whole sweep has them too, and would have come to them behind others. In lines of commits "
        "before 2026-11-27, the *minutes* of a sweep that was done in several parts are those of its last part alone; "
        "those of c86c1fe were taken with another sweep beside.",
    ]
    for broken, title, wrong in ((False, "Correct sinks", "Did not pass"), (True, "Broken sinks", "Not found")):
        found = {name: line for name, line in sorted(lines.items()) if line["broken"] is broken}
        mistaken = ", ".join(code(name) for name, line in found.items() if not line["right"])
        cells = table(HEAD, [line["cells"] for line in found.values()])
        parts += [f"## {title}", cells, f"{wrong}: {mistaken or 'none'}."]
    return "\n\n".join(filter(None, [*parts, missing(lines)])) + "\n"


if __name__ == "__main__":
    ended("matrix", main)
