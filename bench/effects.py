"""Sweeps sinks by effects alone, and by lines alone, and prints what each sweep found and after how many trials, as
Markdown: ``make matrix-effects``.

A broken sink's sweeps end at their first failed point. Those of a correct sink that has passed the whole sweep are
parts of it, and are not done again: their points are counted in what ``make matrix`` has kept. What a sink came to is
kept in effects-and-lines.json, with the commit that it was measured at, and docs/effects-and-lines.md has all that is
there; a directory is gone on in, as by ``make matrix``.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.traced import REFERENCE, REPLAY
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.reports._tables import code, table
from rich.console import Console
from sessions import Sessions
from sweeps import HERE, Kept, certified, check_directory, check_names, commit_of, ended, first_failure, missing, sinks

POINTS = ("effects", "lines")
HEAD = ("sink", "swept by", "verdict", "points", "first point that fails", "found", "minutes", "commit")

KEPT = Kept("effects-and-lines")
MATRIX = Kept("matrix")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".onceproof") / "effects")
    parser.add_argument("sinks", nargs="*", help="names; all by default")
    arguments = parser.parse_args()
    check_names(arguments.sinks)
    check_directory(arguments.directory)
    console = Console(stderr=True)
    commit, matrix = commit_of(HERE, KEPT), MATRIX.load()
    with ExitStack() as stack:
        sessions = Sessions(stack, EnvironmentOptions(runs=arguments.directory / "runs"))
        for path, broken in sinks(arguments.sinks):
            rows = parts_of_the_whole(path.stem, matrix)
            for points in POINTS if not rows else ():
                place = arguments.directory / f"{path.stem}-{points}"
                with_traces_of(place, arguments.directory / f"{path.stem}-{POINTS[0]}")
                certificate, made_at = certified(sessions, path, place, Wanted(points=points, fail_fast=broken), commit)
                console.print(f"{path.stem}, {points}: {certificate.summary}", highlight=False)
                rows.append(cells(path.stem, points, certificate, made_at))
            lines = KEPT.load() | {path.stem: rows}
            KEPT.store(lines, page_of(lines))
    print(page_of(KEPT.load()))
    return 0


def with_traces_of(place: Path, other: Path) -> None:
    """Let a sweep that has no traces yet begin with those of another: they are of all kinds of points."""
    for name in (REFERENCE, REPLAY):
        if (other / name).exists() and not (place / name).exists():
            shutil.copytree(other / name, place / name)


def parts_of_the_whole(sink: str, matrix: Mapping[str, Any]) -> list[list[str]]:
    """The rows of a correct sink that has passed the whole sweep, of which both are parts; none of another. A line that
    was kept before points were counted by kind gives one row, with the points of all kinds.
    """
    line = matrix.get(sink, {})
    if line.get("broken", True) or not line["right"]:
        return []
    *_, whole, _, _, _, made_at = line["cells"]
    found = line.get("by_kind")
    points = {kind: f"{found[kind]} of {found[kind]}" for kind in POINTS} if found else {"all": whole}
    return [[code(sink), kind, "pass", count, "", "", "", made_at] for kind, count in points.items()]


def cells(sink: str, points: str, certificate: Certificate, commit: str) -> list[str]:
    return [
        code(sink),
        points,
        certificate.verdict,
        f"{certificate.coverage.run} of {certificate.coverage.points}",
        *first_failure(certificate),
        f"{certificate.seconds / 60:.1f}",
        commit,
    ]


def first_of_all(sink: str, matrix: Mapping[str, Any]) -> list[list[str]]:
    """What the whole sweep of a broken sink found first, or that at some steps; nothing of a sink that ``make matrix``
    has not met."""
    if sink not in matrix or not matrix[sink]["broken"]:
        return []
    line = matrix[sink]
    name, _, verdict, _, counted, *rest = line["cells"]
    by = code(line["points"]) if "points" in line else "all"
    return [[name, by, verdict, line.get("counted", counted), *rest]]


def page_of(lines: Mapping[str, Sequence[Sequence[str]]]) -> str:
    """The page, as Markdown."""
    matrix = MATRIX.load()
    rows = {path.stem: lines.get(path.stem) or first_of_all(path.stem, matrix) for path, _ in sinks(())}
    found = {sink: of_sink for sink, of_sink in rows.items() if of_sink}
    parts = [
        "# Effects and lines",
        "What sweeps by effects alone (`--points effects`) and by lines alone (`--points lines`) come to: `make "
        "matrix-effects`. A broken sink's sweeps end at their first failed point, so that *points* says how many were "
        "needed; its sweep by lines begins with the two traces of the one by effects. Rows without *minutes* are those "
        "of a correct sink, counted in its whole sweep, of which both are parts; *all* is that sweep, where its points "
        "were not counted by kind, and of a broken sink where both have not been swept apart yet: then its first point "
        "that fails says whether a request, a change of a file or a line found it first. A step is one at which alone "
        "the sink was swept, because its flaw lies there; *points* are of those of the whole sweep. What both leave to "
        "other points (steps, servers, slow requests) is in [matrix.md](matrix.md).",
        table(HEAD, [row for name in sorted(found) for row in found[name]]),
        missing(found),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


if __name__ == "__main__":
    ended("effects", main)
