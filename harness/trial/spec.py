"""What a trial is made of, and what it comes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...assertions import Evidence, Guarantee, Verdict, Workload
from ...faults import Plan, ResolvedPlan
from ..determinism import Determinism
from ..jobs import Job
from ..sinks import Sink


@dataclass(frozen=True)
class TrialSpec:
    """One run of a job: its sink, its input, its plan, the claim to judge it by. Durations are in seconds.

    ``trace`` loads every probe that the sink has, so that the journal lists all points of a run; ``every_line``
    those of the lines of its code only.
    """

    sink: Sink
    job: Job
    plan: Plan
    resolved: ResolvedPlan
    claim: Guarantee
    workload: Workload
    trace: bool = False
    every_line: bool = False
    conf: Mapping[str, str] = field(default_factory=dict)
    jars: Sequence[str] = ()
    deadline: float = 90.0
    """without any progress, after which the job counts as hanging"""
    settle_deadline: float = 15.0
    watch: bool = True
    """whether the target is read while the job is under way, too"""
    trigger: str | None = None
    """as the job's --trigger has it; a query that does not end by itself is stopped once its input is committed"""
    readable: bool = False
    """whether a run without a fault could be read: then a reading that fails after one is the fault's work"""
    keep: bool = False
    """whether the files of target.directory stay in the run directory"""
    own_services: Mapping[str, str] = field(default_factory=dict)
    """HOST:PORT of the user's own, by the names by which the sink finds them in target.proxy"""


@dataclass(frozen=True)
class TrialResult:
    """A verdict with what it was made of. ``timings`` are seconds by stage; ``warnings`` say what went wrong apart
    from the trial, such as the sink's cleanup."""

    spec: TrialSpec
    verdict: Verdict
    timings: Mapping[str, float]
    versions: Mapping[str, str]
    directory: Path
    journal: Sequence[Mapping[str, Any]]
    evidence: Evidence
    warnings: Sequence[str] = ()
    determinism: Determinism | None = None
    """of the job, where it was looked into"""
