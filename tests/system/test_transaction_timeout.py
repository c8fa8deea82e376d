"""Two-phase commit holds only while a recovery is quicker than the transactions' timeout."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.assertions import Outcome
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink

TIMEOUT = "TRANSACTION_TIMEOUT_MS = 15 * 60 * 1000"
DECIDED = "            require_same_input(decision, offsets)\n"


@pytest.mark.long
def test_what_was_decided_is_lost_where_the_recovery_takes_longer_than_the_timeout(
    session: Session, tmp_path: Path
) -> None:
    text = find_sink("kafka_transactional").read_text()
    assert text.count(TIMEOUT) == text.count(DECIDED) == 1
    sink = tmp_path / "short_timeout.py"
    sink.write_text(text.replace(TIMEOUT, "TRANSACTION_TIMEOUT_MS = 20_000"))
    line = text[: text.index(DECIDED)].count("\n") + 1
    # A broker looks for transactions that have timed out every 10 s.
    plan = f"line[short_timeout.py:{line}][batch=1] -> kill(driver) then restart(driver, after=33s)"
    found = session.trial(Request(str(sink), plan))
    assert found.verdict.outcome is Outcome.FAIL
    assert all(report.replay["seen"] for report in found.verdict.faults)
    [anomaly] = found.verdict.anomalies
    assert (anomaly.kind, anomaly.batches) == ("stuck", [1])
    assert "was decided to be committed, but the coordinator answers" in found.verdict.reason
    assert "CompleteAbort" in found.verdict.reason
