"""Certifies every reference sink and every broken one, and prints what each came to, as Markdown: ``make matrix``.

A broken sink's sweep ends at its first failed point. With a directory that an earlier run was cut short in, finished
sinks are not certified again and the others go on: ``make matrix DIRECTORY=.onceproof/matrix``.

All of it takes hours, so it may be done in parts: what a sink came to is kept in matrix.json, with the commit that it
was measured at, and docs/matrix.md has all that is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.rejudge import stored_certificate
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.cli.lists import constants
from onceproof.harness.errors import UsageError
from onceproof.harness.jobs import REFERENCE, find_job, fits, reference_jobs
from onceproof.harness.reports._tables import code, table
from onceproof.harness.session import EnvironmentOptions, Request
from onceproof.harness.sinks import reference_sinks
from rich.console import Console
from sessions import Sessions

HEAD = ("sink", "claims", "verdict", "observed", "points", "first point that fails", "found", "minutes", "commit")

STANDARD = "standard"

COMMIT = "commit"
"""The file in a sink's directory that has the commit at which the sink was certified."""

KEPT = Path(__file__).resolve().with_name("matrix.json")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "matrix.md"


@dataclass(frozen=True)
class Line:
    """A sink, what it should come to, and what it came to."""

    sink: str
    broken: bool
    certificate: Certificate
    commit: str

    @property
    def right(self) -> bool:
        """A correct sink keeps its claim, a broken one fails, and neither in its reference run."""
        expected = "fail" if self.broken else "pass"
        return self.certificate.verdict == expected and self.certificate.reference.verdict == "pass"

    def cells(self) -> list[str]:
        certificate = self.certificate
        failed = next((point for point in certificate.points if point.verdict == "fail"), None)
        found = ", ".join(f"{kind} {count}" for kind, count in failed.anomalies.items()) if failed else ""
        return [
            code(self.sink),
            certificate.claim,
            certificate.verdict,
            certificate.guarantee or "-",
            f"{certificate.coverage.run} of {certificate.coverage.points}",
            code(failed.plan) if failed else "",
            found,
            f"{certificate.seconds / 60:.1f}",
            self.commit,
        ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".onceproof") / "matrix")
    parser.add_argument("--profile", default=STANDARD, choices=("quick", "standard", "full"))
    parser.add_argument("sinks", nargs="*", help="names; all by default")
    arguments = parser.parse_args()
    check_names(arguments.sinks)
    console = Console(stderr=True)
    commit = commit_of(Path(__file__).parent)
    lines = []
    with ExitStack() as stack:
        sessions = Sessions(stack, EnvironmentOptions(runs=arguments.directory / "runs"))
        for path in reference_sinks():
            if arguments.sinks and path.stem not in arguments.sinks:
                continue
            broken = path.parent.name == "broken"
            certificate = _certified(sessions, path, broken, arguments.directory, arguments.profile, commit)
            line = Line(path.stem, broken, certificate, (arguments.directory / path.stem / COMMIT).read_text())
            if arguments.profile == STANDARD:
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


def check_names(names: Sequence[str]) -> None:
    """Raises UsageError for a name that no sink has."""
    known = {path.stem for path in reference_sinks()}
    if unknown := ", ".join(name for name in names if name not in known):
        raise UsageError(f"there is no reference sink and no broken one called {unknown}: see onceproof sinks")


def keep(line: Line) -> None:
    """Put the line among those that are kept, and write the page of all of them."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    kept[line.sink] = {"broken": line.broken, "right": line.right, "cells": line.cells()}
    KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    PAGE.write_text(page_of(kept), encoding="utf-8")


def page_of(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, as Markdown."""
    names = {path.stem for path in reference_sinks()}
    missing = sorted(names - kept.keys())
    parts = [
        "# The matrix",
        "What `make matrix` came to: every reference sink and every broken one, certified with the profile `standard`. "
        "Each line says at which commit it was measured; the sweep of a broken sink ends at its first failed point.",
    ]
    for broken, title, wrong in ((False, "Correct sinks", "Did not pass"), (True, "Broken sinks", "Not found")):
        lines = {name: kept[name] for name in sorted(kept) if name in names and kept[name]["broken"] is broken}
        mistaken = ", ".join(code(name) for name, line in lines.items() if not line["right"])
        parts += [
            f"## {title}",
            table(HEAD, [line["cells"] for line in lines.values()]),
            f"{wrong}: {mistaken or 'none'}.",
        ]
    if missing:
        parts += [f"Not measured yet: {', '.join(map(code, missing))}."]
    return "\n\n".join(parts) + "\n"


def commit_of(directory: Path) -> str:
    """The checkout's commit, short; with a + if files differ from it, besides those that are written here."""
    described = _git(directory, "describe", "--always", "--exclude=*", "--abbrev=7")
    others = (f":(exclude){KEPT}", f":(exclude){PAGE}")  # in short, :!, a path may not begin with /
    return described + ("+" if _git(directory, "status", "--porcelain", "-uno", "--", ":/", *others) else "")


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _certified(sessions: Sessions, path: Path, broken: bool, directory: Path, profile: str, commit: str) -> Certificate:
    place = (directory / path.stem).resolve()
    place.mkdir(parents=True, exist_ok=True)
    stored = stored_certificate(place)
    if stored is not None and (stored.verdict == "fail" or stored.coverage.run == stored.coverage.points):
        return stored
    (place / COMMIT).write_text(commit)
    wanted = Wanted(profile=profile, fail_fast=broken)  # type: ignore[arg-type]
    return certify(sessions.of(path), Request(str(path), job=_job(path)), place, wanted)


def _job(sink: Path) -> str:
    """The reference job, or the first that gives the rows which the sink holds."""
    jobs = [REFERENCE, *reference_jobs()]
    return next(str(path) for path in jobs if fits(find_job(str(path)), sink, constants(sink)))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except UsageError as error:
        sys.exit(f"matrix: {error}")
