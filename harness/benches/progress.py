"""What Spark itself measured of each batch: StreamingQueryProgress, from the event log.

A query's progress is posted on Spark's listener bus (``StreamingQueryListener.QueryProgressEvent``), and the event log
keeps what passes there: so no code of ours runs in the job.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..request import Request
from ..session import Session
from ..trial.spec import TrialResult
from .trials import passed

PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


@dataclass(frozen=True)
class Batch:
    """A batch with data. Durations in seconds, by the names of ``durationMs``; ``state_commit`` and ``upload`` are the
    mean over the tasks that have state, 0 without any."""

    number: int
    rows: int
    seconds: float
    plan: float
    offsets_log: float
    state_commit: float
    upload: float
    commit_log: float

    @property
    def checkpoint(self) -> float:
        """What the batch spent on planning and on being recoverable."""
        return self.plan + self.offsets_log + self.state_commit + self.commit_log


def batches(session: Session, request: Request) -> list[Batch]:
    """Run a trial without a fault, and give its batches. Raises UsageError if it did not pass."""
    return measured_batches(session, replace(request, plan="", watch=False), passed)


def measured_batches(session: Session, request: Request, run: Callable[[Session, Request], TrialResult]) -> list[Batch]:
    """The batches of the trial that ``run`` runs and does not refuse."""
    with tempfile.TemporaryDirectory(prefix="onceproof-events-") as directory:
        run(session, replace(request, conf={**request.conf, **_logging(directory)}))
        return [batch for file in Path(directory).iterdir() for batch in read_events(file)]


def _logging(directory: str) -> Mapping[str, str]:
    log = {"enabled": "true", "dir": Path(directory).as_uri(), "rolling.enabled": "false", "compress": "false"}
    return {f"spark.eventLog.{name}": value for name, value in log.items()}


def read_events(file: Path) -> Iterator[Batch]:
    """The batches with data of an event log, in their order."""
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            if PROGRESS in line:
                progress = json.loads(line)["progress"]
                if sum(source["numInputRows"] for source in progress["sources"]) > 0:
                    yield _batch(progress)


def _batch(progress: Mapping[str, Any]) -> Batch:
    spent, operators = progress["durationMs"], progress["stateOperators"]
    return Batch(
        number=progress["batchId"],
        rows=sum(source["numInputRows"] for source in progress["sources"]),
        seconds=spent["triggerExecution"] / 1000,
        plan=spent.get("queryPlanning", 0) / 1000,
        offsets_log=spent.get("walCommit", 0) / 1000,
        state_commit=sum(_of_a_task(one, one["commitTimeMs"]) for one in operators),
        upload=sum(_of_a_task(one, one["customMetrics"].get("rocksdbCommitFileSyncLatencyMs", 0)) for one in operators),
        commit_log=spent.get("commitOffsets", 0) / 1000,
    )


def _of_a_task(operator: Mapping[str, Any], milliseconds: float) -> float:
    """Spark adds the times of all tasks up."""
    return milliseconds / 1000 / max(1, int(operator["numStateStoreInstances"]))
