"""Delta Lake 4.4.0 by its jars: its streaming sink keeps what it claims, a reader of its bare directory does not."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.assertions import Workload
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.session import Request, Session

HERE = Path(__file__).parent
SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
WORKLOAD = Workload(batches=4, rows=96)


def request(sink: str) -> Request:
    return Request(str(HERE / f"{sink}.py"), workload=WORKLOAD, conf=SETTINGS, deadline=180)


@pytest.mark.timeout(3600)
def test_deltas_streaming_sink_is_exactly_once(session: Session, tmp_path: Path) -> None:
    certificate = certify(session, request("delta_table"), tmp_path / "sweep", Wanted(points="phases"))
    assert (certificate.verdict, certificate.guarantee) == ("pass", "exactly-once"), certificate.summary


@pytest.mark.timeout(3600)
def test_a_reader_of_deltas_bare_directory_meets_the_files_of_a_batch_that_died(
    session: Session, tmp_path: Path
) -> None:
    wanted = Wanted(points="phases", fail_fast=True)
    certificate = certify(session, request("delta_bare_directory"), tmp_path / "sweep", wanted)
    assert certificate.reference.verdict == "pass", certificate.reference.reason
    assert certificate.verdict == "fail", certificate.summary
    assert "duplicated" in certificate.anomalies
