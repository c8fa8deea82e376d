"""Every reference job with every sink that holds its rows, by every trigger that it takes, without a fault; then each
job with one exactly-once sink, its steps swept on every state store: ``make matrix-jobs``. Prints two tables, as
Markdown.

With a directory that an earlier run was cut short in, what is there is not run again: ``make matrix-jobs
DIRECTORY=.onceproof/jobs``.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from onceproof.assertions import Workload
from onceproof.harness.certification.certificate import Certificate, stored_certificate
from onceproof.harness.certification.certify import certify, default_parallelism
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.cli.lists import constants
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.errors import UsageError
from onceproof.harness.jobs import find_job, fits, reference_jobs, shape_with
from onceproof.harness.reports._tables import code, table
from onceproof.harness.request import Request
from onceproof.harness.sinks import find_sink, reference_sinks
from onceproof.harness.state_stores import STATE_STORES
from onceproof.harness.trial.document import TrialDocument
from onceproof.harness.trial.record import read_trial
from onceproof.harness.triggers import check_execution
from rich.console import Console
from sessions import Sessions
from sweeps import check_directory, ended

TRIGGERS = (
    "availableNow",
    "processingTime=500 milliseconds",
    "asyncProgress=100 milliseconds",
    "realTime=5 seconds",
    "continuous=1 second",
)
MASTER = "local[3,4]"
"""Real-time mode and continuous processing need a core for each of the source's partitions."""

SWEPT = ("postgres_ledger", "fan_out")
"""The sink of a job's sweep: the first that holds its rows."""

Asked = tuple[str, str, str]
"""A trial: job, sink and trigger."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(".onceproof") / "jobs")
    parser.add_argument("jobs", nargs="*", help="names; all by default")
    arguments = parser.parse_args()
    check_jobs(arguments.jobs)
    check_directory(arguments.directory)
    console = Console(stderr=True)
    jobs = [path.stem for path in reference_jobs() if not arguments.jobs or path.stem in arguments.jobs]
    place = arguments.directory.resolve()
    with ExitStack() as stack:
        sessions = Sessions(stack, EnvironmentOptions(runs=place / "runs", master=MASTER))
        asked = [(job, sink, by) for job in jobs for sink in _sinks(job) for by in TRIGGERS if _runs(job, sink, by)]
        trials = _trials(sessions, asked, place, console)
        sweeps = {(job, store): _sweep(sessions, job, store, place, console) for job in jobs for store in _stores(job)}
    print(table(("job", *map(code, TRIGGERS)), _rows(jobs, trials)) + "\n")
    print(table(("job", "state store", "sink", "verdict", "points", "minutes"), _swept(sweeps)) + "\n")
    wrong = [" ".join(key) for key, trial in trials.items() if trial.verdict != "pass"]
    wrong += [" ".join(key) for key, sweep in sweeps.items() if sweep.verdict != "pass"]
    print(f"did not pass: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


def check_jobs(names: Sequence[str]) -> None:
    """Raises UsageError for a name that no reference job has."""
    known = {path.stem for path in reference_jobs()}
    if unknown := ", ".join(name for name in names if name not in known):
        raise UsageError(f"there is no reference job called {unknown}: see onceproof jobs")


def _sinks(job: str) -> list[str]:
    """The correct sinks that hold a job's rows."""
    found = find_job(job)
    sinks = [path for path in reference_sinks() if path.parent.name == "sinks"]
    return [path.stem for path in sinks if fits(found, path, constants(path))]


def _runs(job: str, sink: str, trigger: str) -> bool:
    """Whether Spark can run this job into this sink by this trigger."""
    try:
        shape = shape_with(find_job(job), find_sink(sink), trigger)
        check_execution(trigger, shape, Workload().partitions, MASTER)
    except UsageError:
        return False
    return True


def _stores(job: str) -> list[str]:
    """All of them for a job that keeps state, else Spark's default, which is not used."""
    sink = next(path for path in reference_sinks() if path.stem in _sinks(job))
    return list(STATE_STORES) if shape_with(find_job(job), sink).stateful else ["hdfs"]


def _trials(sessions: Sessions, asked: list[Asked], directory: Path, console: Console) -> dict[Asked, TrialDocument]:
    """Side by side; an error, or Ctrl-C, ends them once those that run are done: map() cancels the rest."""
    with ThreadPoolExecutor(default_parallelism()) as pool:
        found = pool.map(lambda one: _trial(sessions, *one, directory, console), asked)
        return dict(zip(asked, found, strict=True))


def _trial(sessions: Sessions, job: str, sink: str, trigger: str, directory: Path, console: Console) -> TrialDocument:
    place = directory / "trials" / f"{job}-{sink}-{trigger.partition('=')[0]}"
    if not (place / "trial.json").is_file():
        shutil.rmtree(place, ignore_errors=True)  # cut short
        sessions.of(find_sink(sink)).trial(Request(sink, job=job, trigger=trigger, directory=place))
    document = read_trial(place)
    console.print(f"{job}, {sink}, {trigger}: {document.verdict}", highlight=False)
    return document


def _sweep(sessions: Sessions, job: str, store: str, directory: Path, console: Console) -> Certificate:
    place = directory / "sweeps" / f"{job}-{store}"
    place.mkdir(parents=True, exist_ok=True)
    stored = stored_certificate(place)
    if stored is None or stored.coverage.run < stored.coverage.points:
        sink = next(sink for sink in SWEPT if sink in _sinks(job))
        conf = STATE_STORES[store]  # type: ignore[index]
        stored = certify(
            sessions.of(find_sink(sink)), Request(sink, job=job, conf=conf), place, Wanted(profile="quick")
        )
    console.print(f"{job}, {store}: {stored.summary}", highlight=False)
    return stored


def _rows(jobs: list[str], trials: Mapping[Asked, TrialDocument]) -> list[list[str]]:
    return [[code(job), *(_passed(job, trigger, trials) for trigger in TRIGGERS)] for job in jobs]


def _passed(job: str, trigger: str, trials: Mapping[Asked, TrialDocument]) -> str:
    found = {sink: trial.verdict for (its, sink, by), trial in trials.items() if (its, by) == (job, trigger)}
    wrong = [f"{sink} {verdict}" for sink, verdict in found.items() if verdict != "pass"]
    if not found:
        return ""
    return f"{len(found) - len(wrong)} of {len(found)}" + (f"; {', '.join(wrong)}" if wrong else "")


def _swept(sweeps: Mapping[tuple[str, str], Certificate]) -> list[list[str]]:
    return [
        [
            code(job),
            store,
            code(sweep.sink.name),
            sweep.verdict,
            f"{sweep.coverage.run} of {sweep.coverage.points}",
            f"{sweep.seconds / 60:.1f}",
        ]
        for (job, store), sweep in sweeps.items()
    ]


if __name__ == "__main__":
    ended("matrix-jobs", main)
