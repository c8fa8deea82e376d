"""Iceberg 1.12.0 on a Spark of its own: its streaming sink writes over files of a batch that it has committed; of two
drivers that write the same batch by foreachBatch, an overwrite of its partition withstands the late one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from onceproof.assertions import Workload
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.releases import with_release
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink

SINK = find_sink("iceberg_streaming")
BY_BATCH = ("iceberg_overwrite", "iceberg_merge")
WORKLOAD = Workload(batches=3, rows=96)
FIRST_BATCH = "sink.commit:after[batch=0] -> repartition(source, to=7) then kill(driver)"
SECOND_BATCH = FIRST_BATCH.replace("batch=0", "batch=1")

LATE = (
    'file:before[op=create, path="*snap-*.avro", batch=1]#1 -> pause(driver, longest=30s) until '
    "batch.commit:after[batch=1]"
)


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(with_release(EnvironmentOptions(runs=tmp_path / "runs"), SINK)) as session:
        yield session


def request(plan: str = "", sink: Path = SINK) -> Request:
    return Request(str(sink), plan, workload=WORKLOAD, deadline=180)


@pytest.mark.timeout(3600)
def test_the_first_batch_of_a_driver_is_written_over_by_its_replay(session: Session) -> None:
    assert session.trial(request()).verdict.outcome == "pass"
    assert session.trial(request(SECOND_BATCH)).verdict.outcome == "pass", "its replay has other names"
    verdict = session.trial(request(FIRST_BATCH)).verdict
    assert verdict.outcome == "fail", verdict.reason


@pytest.mark.timeout(3600)
def test_a_sweep_finds_it(session: Session, tmp_path: Path) -> None:
    wanted = Wanted(points="batch.commit:before", fail_fast=True)
    certificate = certify(session, request(), tmp_path / "sweep", wanted)
    assert certificate.verdict == "fail", certificate.summary
    assert certificate.environment["spark"].startswith("4.1.")


@pytest.mark.timeout(3600)
def test_of_the_late_commit_of_a_driver_that_was_taken_for_dead(session: Session) -> None:
    overwrite, merge = (session.trial(request(LATE, find_sink(sink))).verdict for sink in BY_BATCH)
    assert overwrite.outcome == "pass", overwrite.reason
    assert merge.outcome == "fail", "a MERGE that inserts only is an append"
    assert "duplicated" in merge.reason
