"""Iceberg 1.12.0 on a Spark of its own: its streaming sink keeps what it claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from onceproof.assertions import Workload
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.releases import with_release
from onceproof.harness.session import EnvironmentOptions, Request, Session
from onceproof.harness.sinks import find_sink
from trials import PROTOCOL

SINK = find_sink("iceberg_table")


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    with Session(with_release(EnvironmentOptions(runs=tmp_path / "runs"), SINK)) as session:
        yield session


@pytest.mark.timeout(3600)
def test_icebergs_streaming_sink_is_exactly_once(session: Session, tmp_path: Path) -> None:
    request = Request(str(SINK), workload=Workload(batches=3, rows=96), deadline=180)
    certificate = certify(session, request, tmp_path / "sweep", Wanted(points=PROTOCOL, batch=1))
    assert (certificate.verdict, certificate.guarantee) == ("pass", "exactly-once"), certificate.summary
    assert certificate.environment["spark"].startswith("4.1.")
    assert any(cell.step == "task.commit:after" and cell.status == "pass" for cell in certificate.scope.cells)
