"""Jobs: a PySpark application with its expectation, the SQL that says what it must make of the input."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from ..assertions import Expectation, ExpectationError, Workload, check_expectation
from .errors import SinkError, UsageError
from .sinks import JOBS, Sink

REFERENCE = JOBS / "passthrough.py"

KEY_LINE = re.compile(r"--\s*key:(.*)", re.IGNORECASE)
"""The line of an expectation that names the columns which tell its rows apart."""


@dataclass(frozen=True)
class Job:
    """A job's file, the file of its expectation with the text that it had, and the key of the rows that come out.

    The file takes the same arguments as jobs/passthrough.py.
    """

    path: Path
    expectation_path: Path
    sql: str
    key: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    def expectation(self, sink: Sink | None = None) -> Expectation:
        """What must come out of the job, and what of it ``sink`` keeps."""
        return Expectation(self.sql, self.key, sink.key if sink else None, sink.order if sink else None)


def reference_jobs() -> list[Path]:
    """Jobs that come with onceproof, each with its expectation next to it."""
    return sorted(path for path in JOBS.glob("*.py") if path.with_suffix(".sql").is_file())


def find_job(job: str | None = None, expect: str | None = None) -> Job:
    """The job of ``--job`` (a reference job's name, or a path) and ``--expect``: without the first passthrough, without
    the second the job's .sql file next to it.

    Raises UsageError for a file that does not exist or cannot be read.
    """
    known = {path.stem: path for path in reference_jobs()}
    path = REFERENCE if job is None else known.get(job, Path(job))
    if not path.is_file() or path.suffix != ".py":
        raise UsageError(
            f"--job {job} {_problem(path)}: give the path of a PySpark application (my_job.py) or one of "
            f"{', '.join(known)}"
        )
    default = path.with_suffix(".sql")
    if expect is None and not default.is_file():
        raise UsageError(f"--job {job} has no expectation: give --expect FILE.sql, or put {default.name} next to it")
    file = default if expect is None else Path(expect)
    if not file.is_file():
        raise UsageError(
            f"--expect {expect} {_problem(file)}: give the path of a file with a SELECT over the table input"
        )
    try:
        sql = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expectation {file} cannot be read: {error}") from error
    return Job(path.resolve(), file.resolve(), sql, key_of(sql))


def key_of(sql: str) -> tuple[str, ...]:
    """The columns of the line ``-- key: a, b`` at the head of an expectation; without it, the id.

    >>> key_of("-- key: customer, day\\nSELECT ...")
    ('customer', 'day')
    """
    found = KEY_LINE.match(sql.lstrip())
    named = tuple(name.strip() for name in found[1].split(",") if name.strip()) if found else ()
    return named or ("id",)


def check_job(job: Job, workload: Workload, sink: Sink | None = None) -> pa.Schema:
    """The columns that must come out of a job, as ``sink`` keeps them.

    Raises UsageError for an expectation that gives no ground truth, SinkError for a KEY or ORDER that does not fit it.
    """
    try:
        schema = check_expectation(job.expectation(), workload)
    except ExpectationError as error:
        raise UsageError(f"{job.expectation_path}: {error}") from error
    if sink is None or sink.key is None:
        return schema
    try:
        return check_expectation(job.expectation(sink), workload)
    except ExpectationError as error:
        raise SinkError(f"sink {sink.path.name}: {error}") from error


def _problem(path: Path) -> str:
    if path.is_dir():
        return "is a directory"
    return "is no Python file" if path.is_file() else "does not exist"
