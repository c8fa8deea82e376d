"""The results of a sweep: one record for each point, appended to a file as soon as it is there.

A record holds all that a certificate says of its point, so that memory does not grow with the trials, and so that a
sweep that was cut short goes on where it stopped (``certify --resume``).
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import BaseModel, Field, TypeAdapter

from ...assertions import Guarantee, GuaranteeName, OutcomeName, Verdict, weakest
from ...documents import CLOSED, DocumentError, parse_document, write_document
from ...faults import format_fault, parse
from ..errors import UsageError

RESULTS = "results.jsonl"
INPUTS = "inputs.json"

SEVERAL = ("several", "several", "several")
"""The cell of a result that several points of one run had together."""


class Judged(BaseModel):
    """What every trial of a sweep is reported with. ``seconds`` of a packed trial are its share of the run's."""

    model_config = CLOSED

    verdict: OutcomeName
    exactly_once: OutcomeName
    guarantee: GuaranteeName | None
    reason: str
    anomalies: dict[str, int]
    notes: list[str] = Field(default=[], description="what should be known though it breaks no claim")
    seconds: float = Field(ge=0)
    run_directory: str

    def place(self, directory: Path) -> Path:
        """Its run directory in that of the sweep, also where this has been moved."""
        return directory / Path(self.run_directory).name


class PointResult(Judged):
    """A point with its verdict."""

    step: str = Field(description="the point, for people")
    plan: str
    tries: int = Field(ge=1, description="trials until the point was reached and its verdict clear")
    cell: tuple[str, str, str] = Field(description="its place in the coverage matrix: step, action, role of the batch")
    batch: int | None = Field(description="the batch at which its faults strike; null for a step that knows none")
    reached: bool
    landed: bool = Field(description="every fault's effect was confirmed")
    without_trial: bool = Field(default=False, description="the trial ended in an error: there is nothing to judge")
    own_error: str | None = Field(default=None, description="that error, if it is the sink's own, before any fault")
    packed: int = Field(ge=1, description="points that shared the run which this verdict is from")


class _Record(BaseModel):
    """A line of the file."""

    model_config = CLOSED

    key: str
    result: PointResult


RECORD = TypeAdapter(_Record)


def judged(verdict: Verdict, seconds: float, directory: Path) -> Judged:
    return Judged(
        verdict=verdict.outcome.value,
        exactly_once=verdict.exactly_once.value,
        guarantee=verdict.guarantee.value if verdict.guarantee else None,
        reason=verdict.reason,
        anomalies={anomaly.kind: anomaly.count for anomaly in verdict.anomalies},
        notes=list(verdict.notes),
        seconds=seconds,
        run_directory=str(directory),
    )


def unexplained(runs: Iterable[PointResult], points: Iterable[PointResult]) -> list[PointResult]:
    """Of the packed runs that were not exactly-once as a whole, those of which no point was not so by itself, and left
    as little."""
    failed = [(point, faults) for point in points if point.exactly_once == "fail" and (faults := _faults(point))]
    of_runs = [(run, _faults(run)) for run in runs]
    return [
        run
        for run, struck in of_runs
        if not any(faults <= struck and _leaves_no_more(point, run) for point, faults in failed)
    ]


def says_more(one: Judged, others: Sequence[Judged]) -> bool:
    """Whether a trial of several faults shows what none of the others does: they have not failed, and it has not passed
    or leaves less than they."""
    if any(other.verdict == "fail" for other in others):
        return False
    left = [Guarantee(other.guarantee) for other in others if other.guarantee]
    weaker = one.guarantee is not None and weakest([*left, Guarantee(one.guarantee)]) is not weakest(left)
    return one.verdict != "pass" or weaker


def _leaves_no_more(point: PointResult, run: PointResult) -> bool:
    left = [Guarantee(one.guarantee) for one in (point, run) if one.guarantee]
    return not left or weakest(left).value == point.guarantee


def _faults(result: PointResult) -> frozenset[str]:
    return frozenset(format_fault(fault) for fault in parse(result.plan).faults)


class Store:
    """The records of a sweep in its run directory, by the digest of their plan and of all that can change the result.

    What was inconclusive when the sweep was resumed is tried again: it said nothing.

    Safe to use from several threads. Raises UsageError if the directory is a sweep's with other inputs, or damaged.
    """

    def __init__(self, directory: Path, inputs: Mapping[str, str]) -> None:
        self._path = directory / RESULTS
        self._inputs = inputs
        self._lock = threading.Lock()
        self._results: dict[str, PointResult] = {}
        try:
            _hold_against(directory / INPUTS, inputs)
            for number, line in enumerate(_whole_lines(self._path), 1):
                record = parse_document(line, RECORD, f"line {number} of {RESULTS}")
                if record.result.verdict != "inconclusive":
                    self._results[record.key] = record.result
        except DocumentError as error:
            raise UsageError(f"--resume {directory}: {error}: begin a new sweep without --resume") from error

    def key(self, plan: str) -> str:
        text = json.dumps([plan, dict(self._inputs)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, plan: str) -> PointResult | None:
        with self._lock:
            return self._results.get(self.key(plan))

    def failed(self) -> list[PointResult]:
        """The points that failed, whether or not the traces still show them."""
        with self._lock:
            return [one for one in self._results.values() if one.verdict == "fail" and one.cell != SEVERAL]

    def of_runs(self) -> list[PointResult]:
        """The packed runs that were not exactly-once as a whole."""
        with self._lock:
            return [result for result in self._results.values() if result.cell == SEVERAL]

    def add(self, result: PointResult) -> None:
        """Kept once this returns, whatever happens to the process then."""
        record = _Record(key=self.key(result.plan), result=result)
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            self._results[record.key] = result
            file.write(record.model_dump_json() + "\n")
            file.flush()
            os.fsync(file.fileno())


def _hold_against(path: Path, inputs: Mapping[str, str]) -> None:
    """Keep what the results depend on; refuse other inputs than those of the results that are there."""
    if not path.exists():
        write_document(path, json.dumps(dict(inputs), indent=2, ensure_ascii=False) + "\n")
        return
    stored = parse_document(_read(path), TypeAdapter(dict[str, str]), INPUTS)
    changed = [name for name in sorted({*stored, *inputs}) if stored.get(name) != inputs.get(name)]
    if changed:
        was, now = stored.get(changed[0], "not there"), inputs.get(changed[0], "not there")
        more = f", and {', '.join(changed[1:])}" if changed[1:] else ""
        raise UsageError(
            f"--resume {path.parent}: {changed[0]} has changed since (it was {was}, it is {now}{more}): "
            "results of the two do not go together; begin a new sweep without --resume"
        )


def _whole_lines(path: Path) -> Sequence[bytes]:
    """The lines that were written to their end; a last one without a line end was cut short, and is removed."""
    data = _read(path)
    whole, _, torn = data.rpartition(b"\n")
    if torn:
        with path.open("r+b") as file:
            file.truncate(len(data) - len(torn))
    return whole.split(b"\n") if whole else []


def _read(path: Path) -> bytes:
    """Nothing where it is not there. Raises DocumentError for what cannot be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise DocumentError(f"{path.name} cannot be read ({error.strerror})") from error
