"""Delta Lake 4.4.0 by its jars: what is written through it keeps what it claims, a reader of its bare directory does
not."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.assertions import Guarantee, Workload
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from trials import PROTOCOL

WORKLOAD = Workload(batches=4, rows=96)


def request(sink: str, claim: Guarantee | None = None) -> Request:
    return Request(sink, claim=claim, workload=WORKLOAD, deadline=180)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("sink", ["delta_table", "delta_foreach"])
def test_what_is_written_through_delta_is_exactly_once(session: Session, tmp_path: Path, sink: str) -> None:
    certificate = certify(session, request(sink), tmp_path / "sweep", Wanted(points=PROTOCOL))
    assert (certificate.verdict, certificate.guarantee) == ("pass", "exactly-once"), certificate.summary


@pytest.mark.timeout(3600)
def test_a_reader_of_deltas_bare_directory_meets_the_files_of_a_batch_that_died(
    session: Session, tmp_path: Path
) -> None:
    wanted = Wanted(points=PROTOCOL, fail_fast=True)
    asked = request("delta_bare", Guarantee.EXACTLY_ONCE)
    certificate = certify(session, asked, tmp_path / "sweep", wanted)
    assert certificate.reference.verdict == "pass", certificate.reference.reason
    assert certificate.verdict == "fail", certificate.summary
    assert "duplicated" in certificate.anomalies


@pytest.mark.timeout(3600)
def test_a_ledger_elsewhere_does_not_know_what_is_in_the_table(session: Session, tmp_path: Path) -> None:
    wanted = Wanted(points="file:*,request:*", fail_fast=True, batch=1)
    certificate = certify(session, request("delta_with_a_ledger"), tmp_path / "sweep", wanted)
    assert certificate.reference.verdict == "pass", certificate.reference.reason
    failed = [point for point in certificate.points if point.verdict == "fail"]
    assert failed, certificate.summary
    assert all(point.anomalies.keys() == {"duplicated"} for point in failed)
    assert failed[0].plan.startswith(("file:", "request:")), failed[0].plan
    assert failed[0].plan in certificate.summary
