"""What the commands that sweep many sinks share: the sinks, each with a directory of its own, and what is kept."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from onceproof.harness.certification.certificate import Certificate, stored_certificate
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.kinds import EFFECT_PHASES
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.cli.lists import constants
from onceproof.harness.errors import Unavailable, UsageError
from onceproof.harness.jobs import REFERENCE, find_job, fits, reference_jobs
from onceproof.harness.reports._tables import code
from onceproof.harness.request import Request
from onceproof.harness.run_directories import make_writable
from onceproof.harness.sinks import reference_sinks
from sessions import Sessions

COMMIT = "commit"
"""The file in a sink's directory that has the commit at which the sink was certified."""

POINTS = "points"
"""The file there that has the points that were asked for; a sweep of before there was one has none."""

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"


def sinks(names: Sequence[str]) -> Iterator[tuple[Path, bool]]:
    """The sinks of these names, all without any, each with whether it is a broken one."""
    for path in reference_sinks():
        if not names or path.stem in names:
            yield path, path.parent.name == "broken"


def check_names(names: Sequence[str]) -> None:
    """Raises UsageError for a name that no sink has."""
    known = {path.stem for path in reference_sinks()}
    if unknown := ", ".join(name for name in names if name not in known):
        raise UsageError(f"there is no reference sink and no broken one called {unknown}: see onceproof sinks")


def check_directory(directory: Path) -> None:
    """Make it. Raises UsageError where that cannot be, or it cannot be written, Unavailable where its disk is full."""
    make_writable(directory, "name another with --directory")


def certified(sessions: Sessions, sink: Path, place: Path, wanted: Wanted, commit: str) -> tuple[Certificate, str]:
    """The sink's certificate, and the commit at which it was made: one of an earlier run, if that came to its end."""
    place = place.resolve()
    place.mkdir(parents=True, exist_ok=True)
    found = stored_certificate(place)
    if found is not None:
        _check_asked(found, sink, place, wanted)
    if found is None or found.verdict == "inconclusive":
        (place / COMMIT).write_text(commit)
        (place / POINTS).write_text(wanted.points)
        found = certify(sessions.of(sink), Request(str(sink), job=_job(sink)), place, wanted)
    return found, (place / COMMIT).read_text()


def _check_asked(found: Certificate, sink: Path, place: Path, wanted: Wanted) -> None:
    """Raises UsageError for the certificate of another sweep than what is asked for, or of none of these commands."""
    other = "name another --directory, or remove it"
    if not (place / COMMIT).is_file():
        raise UsageError(f"{place} has a certificate, but no file {COMMIT} that says of which commit it is: {other}")
    points = (place / POINTS).read_text() if (place / POINTS).is_file() else wanted.points
    has = f"{found.sink.name} with --profile {found.profile} --points {points}"
    asked = f"{sink.stem} with --profile {wanted.profile} --points {wanted.points}"
    if has != asked:
        raise UsageError(f"{place} has the certificate of {has}, and not of {asked}: {other}")


def ended(name: str, main: Callable[[], int]) -> NoReturn:
    """Run a command and exit; what is wrong with what it was given is one line."""
    try:
        sys.exit(main())
    except (UsageError, Unavailable) as error:
        sys.exit(f"{name}: {error}")


def first_failure(certificate: Certificate) -> tuple[str, str]:
    """The plan of the first point that failed, as code, and what was found there; twice nothing if none did."""
    failed = next((point for point in certificate.points if point.verdict == "fail"), None)
    if failed is None:
        return "", ""
    return code(failed.plan), ", ".join(f"{kind} {count}" for kind, count in failed.anomalies.items())


def points_of(certificate: Certificate) -> int:
    """How many points the sweep knew when it ended, those included that it was not asked for."""
    return sum(cell.points for cell in certificate.scope.cells)


def by_kind(certificate: Certificate) -> dict[str, int]:
    """How many of its points ``--points effects`` alone would have, and ``--points lines``."""
    steps = [point.cell[0] for point in certificate.points]
    starts = {"effects": tuple(f"{phase}:" for phase in EFFECT_PHASES), "lines": "line "}
    return {kind: sum(step.startswith(start) for step in steps) for kind, start in starts.items()}


@dataclass(frozen=True)
class Kept:
    """What sinks came to, in parts and over several runs: a file for each kind of table, and the page made of it."""

    name: str

    @property
    def path(self) -> Path:
        return HERE / f"{self.name}.json"

    @property
    def page(self) -> Path:
        return DOCS / f"{self.name}.md"

    def load(self) -> dict[str, Any]:
        """By sink, of those that there are still."""
        names = {path.stem for path in reference_sinks()}
        lines = json.loads(self.path.read_text(encoding="utf-8")) if self.path.exists() else {}
        return {name: line for name, line in lines.items() if name in names}

    def store(self, lines: Mapping[str, Any], page: str) -> None:
        text = json.dumps(dict(sorted(lines.items())), indent=1, ensure_ascii=False)
        self.path.write_text(text + "\n", encoding="utf-8")
        self.page.write_text(page, encoding="utf-8")


def missing(lines: Mapping[str, Any]) -> str:
    """The sentence that names the sinks which have no line yet; empty if all have one."""
    names = sorted({path.stem for path in reference_sinks()} - lines.keys())
    return f"Not measured yet: {', '.join(map(code, names))}." if names else ""


def commit_of(directory: Path, *kept: Kept) -> str:
    """The checkout's commit, short; with a + if files differ from it, besides those that are written here."""
    described = _git(directory, "describe", "--always", "--exclude=*", "--abbrev=7")
    written = [path for one in kept for path in (one.path, one.page)]
    others = (f":(exclude){path}" for path in written)  # in short, :!, a path may not begin with /
    return described + ("+" if _git(directory, "status", "--porcelain", "-uno", "--", ":/", *others) else "")


def _git(directory: Path, *arguments: str) -> str:
    command = ["git", "-C", str(directory), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _job(sink: Path) -> str:
    """The reference job, or the first that gives the rows which the sink holds."""
    jobs = [REFERENCE, *reference_jobs()]
    return next(str(path) for path in jobs if fits(find_job(str(path)), sink, constants(sink)))
