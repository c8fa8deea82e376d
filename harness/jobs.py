"""Jobs: a PySpark application with its expectation, the SQL that says what it must make of the input."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa

from ..assertions import Expectation, ExpectationError, Workload, check_expectation, truth_schema
from ..faults import SinkShape, hands_over_updates, keeps_state, refused_names
from ..naming import Named, as_option
from .errors import SinkError, UsageError, no_file
from .proxies.own import check_named
from .sink_declarations import TARGET_KEY
from .sinks import JOBS, NESTED, Sink, at_line, columns_held, run_by_one_release, shape
from .triggers import trigger_of

REFERENCE = JOBS / "passthrough.py"

One = TypeVar("One")

HEAD_LINE = re.compile(r"--\s*(key|unique):(.*)", re.IGNORECASE)
"""A line at the head of an expectation that names columns: those of the key, those that tell its rows apart."""

TYPE_NAMES = {pa.int64(): "bigint", pa.float64(): "double", pa.timestamp("us"): "timestamp", pa.string(): "text"}
"""The types of a truth's columns, as sinks and documents call them."""


@dataclass(frozen=True)
class Job:
    """A job's file, and the file of its expectation with the text that it had.

    The file takes the same arguments as jobs/passthrough.py. ``key``: the columns by which an upsert keeps the newest
    row; ``unique``: those that tell all rows apart that are handed to the sink. They differ where a job hands over
    several versions of a row, as an aggregation in update mode does.
    """

    path: Path
    expectation_path: Path
    sql: str
    key: tuple[str, ...]
    unique: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.path.stem

    def expectation(self, sink: Sink | None = None) -> Expectation:
        """What must come out of the job, and what of it ``sink`` keeps."""
        return Expectation(self.sql, self.unique, self._latest(sink), sink.order if sink else None)

    def _latest(self, sink: Sink | None) -> tuple[str, ...] | None:
        if sink is None or not sink.upsert:
            return sink.key if sink else None
        return None if self.key == self.unique else self.key

    def columns(self) -> dict[str, str]:
        """The columns of the rows that are handed to the sink, in their order, with their types by TYPE_NAMES."""
        return {field.name: TYPE_NAMES[field.type] for field in _schema(self.expectation())}


def reference_jobs() -> list[Path]:
    """Jobs that come with onceproof, each with its expectation next to it."""
    return sorted(path for path in JOBS.glob("*.py") if path.with_suffix(".sql").is_file())


def find_job(
    job: str | None = None, expect: str | None = None, named: Named = as_option, *, next_to: bool = False
) -> Job:
    """The job of ``--job`` (a reference job's name, or a path) and ``--expect``: without the first passthrough, without
    the second the job's .sql file next to it, where it must be for a command without ``--expect`` (``next_to``).

    Raises UsageError for a file that does not exist or cannot be read.
    """
    known = {path.stem: path for path in reference_jobs()}
    path = REFERENCE if job is None else known.get(job, Path(job))
    if not path.is_file() or path.suffix != ".py":
        raise UsageError(
            f"{named('job')} {job} {_problem(path)}: give the path of a PySpark application (my_job.py) or one of "
            f"{', '.join(known)}"
        )
    default = path.with_suffix(".sql")
    if expect is None and not default.is_file():
        given = "" if next_to else f"give {named('expect')} FILE.sql, or "
        mend = f"{given}put {default.name} next to it"
        raise UsageError(f"{named('job')} {job} has no expectation: {mend}")
    file = default if expect is None else Path(expect)
    if not file.is_file():
        raise UsageError(
            f"{named('expect')} {expect} {no_file(file)}: give the path of a file with a SELECT over the table input"
        )
    try:
        sql = file.read_text(encoding="utf-8-sig")  # an editor may have marked its first byte
    except UnicodeDecodeError as error:
        raise UsageError(f"expectation {file} is no UTF-8 text: save it as UTF-8") from error
    except OSError as error:
        raise UsageError(f"expectation {file} cannot be read: {error}") from error
    try:
        key, unique = keys_of(sql)
    except ValueError as error:
        raise UsageError(f"expectation {file}: {error}") from error
    return Job(path.resolve(), file.resolve(), sql, key, unique)


def keys_of(sql: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of the lines ``-- key:`` and ``-- unique:`` at the head of an expectation. Without the first line it
    is the id, without the second one the key. Raises ValueError for one that is empty, or there twice.

    >>> keys_of("-- key: customer, day\\nSELECT ...")
    (('customer', 'day'), ('customer', 'day'))
    >>> keys_of("-- key: word\\n-- unique: word, count\\nSELECT ...")
    (('word',), ('word', 'count'))
    """
    named: dict[str, tuple[str, ...]] = {}
    for line in sql.lstrip().splitlines():
        if not line.startswith("--"):
            break
        if found := HEAD_LINE.match(line):
            word, columns = found[1].lower(), tuple(name.strip() for name in found[2].split(",") if name.strip())
            if word in named or not columns:
                what = "is there twice" if word in named else "names no column"
                raise ValueError(f"the line '-- {word}:' {what}: write one, as in: -- {word}: customer, day")
            named[word] = columns
    key = named.get("key") or ("id",)
    return key, named.get("unique") or key


def shape_with(
    job: Job,
    sink: Path,
    trigger: str | None = None,
    own_services: Collection[str] = (),
    named: Named = as_option,
) -> SinkShape:
    """What static analysis says of a sink with its job, started with this trigger, and beside these services of the
    user's own. Raises SinkError or UsageError for a file that has none, UsageError for a service that is not among
    them."""
    found = shape(sink)
    check_named(sink, own_services, named)
    return replace(with_job(found, job, trigger), own_services=frozenset(own_services))


def with_job(found: SinkShape, job: Job, trigger: str | None = None) -> SinkShape:
    """The shape of a sink that serves a job, started with this trigger. Raises UsageError for a job's file that has
    none."""
    execution = trigger_of(trigger).execution
    return replace(
        found,
        stateful=_read_from(job, keeps_state),
        refused=_read_from(job, lambda file: refused_names(file, execution)),
        execution=execution,
    )


def check_job(job: Job, workload: Workload, sink: Sink | None = None) -> pa.Schema:
    """The columns that must come out of a job, as ``sink`` keeps them.

    Raises UsageError for an expectation that gives no ground truth, SinkError for a KEY or ORDER that does not fit it.
    """
    try:
        schema = check_expectation(job.expectation(), workload)
    except ExpectationError as error:
        raise UsageError(f"{job.expectation_path}: {error}") from error
    if sink is None:
        return schema
    _check_fit(job, sink.path, sink.shape, sink.columns)
    if job.expectation(sink).latest is None:
        return schema
    try:
        return check_expectation(job.expectation(sink), workload)
    except ExpectationError as error:
        raise SinkError(f"sink {sink.path.name}: {error}") from error


def check_fit(job: Job, sink: Path) -> None:
    """Whether a sink can hold the rows of a job that :func:`check_job` has passed, as far as the text of its file says:
    that file has not been run yet. Raises SinkError."""
    _check_fit(job, sink, shape(sink), columns_held(sink))


def fits(job: Job, sink: Path, constants: Mapping[str, Any]) -> bool:
    """Whether a sink with these constants (HOLDS, KEY) can hold the rows of a job, takes its output mode, and wants a
    release of Spark that the job wants, too.

    Raises UsageError for a job or an expectation that cannot be used, SinkError for a sink that cannot be read.
    """
    try:
        columns = job.columns().keys()
    except ExpectationError as error:
        raise UsageError(f"{job.expectation_path}: {error}") from error
    key = constants.get("KEY")
    named = () if key is None or key == TARGET_KEY else key
    if not (_holds(constants.get("HOLDS"), columns) and set(named) <= columns):
        return False
    takes = not _updates(job) or shape(sink).takes_updates
    return takes and _read_from(job, lambda file: run_by_one_release(file, sink))


@cache
def _schema(expectation: Expectation) -> pa.Schema:
    return truth_schema(expectation)


def _check_fit(job: Job, sink: Path, found: SinkShape, held: Sequence[str] | None) -> None:
    """SinkError unless the sink can hold the job's rows, as far as it says which ones it can."""
    names = _schema(job.expectation()).names
    if held is not None and not _holds(held, names):
        raise SinkError(
            f"sink {sink.name} holds rows of {', '.join(held)} (HOLDS), but job {job.name} gives rows of "
            f"{', '.join(names)}: take a sink that uses target.columns, see onceproof sinks --job {job.name}"
        )
    if _updates(job) and not found.takes_updates:
        raise SinkError(
            f"sink {sink.name} is of a kind that Spark gives no updates (a Python data source, a file sink, a "
            f"table of Delta or Iceberg), but job {job.name} hands over updates: take a sink with write_batch, see "
            f"onceproof sinks --job {job.name}"
        )


def _updates(job: Job) -> bool:
    """Whether Spark hands the job's rows over in the output mode update, which some kinds of sinks do not get."""
    return _read_from(job, hands_over_updates)


def _holds(held: Collection[str] | None, columns: Collection[str]) -> bool:
    """Whether a sink that holds rows with these columns (None: with any) holds those of a job."""
    return held is None or set(held) == set(columns)


def _read_from(job: Job, what: Callable[[Path], One]) -> One:
    """What static analysis says of a job's code. Raises UsageError."""
    try:
        return what(job.path)
    except SyntaxError as error:
        raise UsageError(f"job {job.path}{at_line(error)}: SyntaxError: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise UsageError(f"job {job.path} cannot be read: {error}") from error
    except (RecursionError, MemoryError) as error:  # as sinks.shape
        raise UsageError(f"job {job.path}: {NESTED}") from error


def _problem(path: Path) -> str:
    return "is no Python file" if path.is_file() else no_file(path)
