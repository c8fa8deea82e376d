"""What a plan of the library comes to: it catches the one sink and not the other, in whichever environment."""

from __future__ import annotations

from onceproof.faults import KnownFailure
from trials import Run, described, landed


def assert_caught(run: Run, failure: KnownFailure) -> None:
    """Lost rows are withdrawn, too, where a reader came in between: that is a matter of chance."""
    result = run(failure.catches.sink, failure.plan, failure.catches.claim)
    assert result.verdict.outcome == "fail", described(result)
    found, finds = {anomaly.kind for anomaly in result.verdict.anomalies}, {*failure.catches.finds}
    assert finds <= found <= finds | {"withdrawn"}, described(result)


def assert_withstood(run: Run, failure: KnownFailure) -> None:
    result = run(failure.withstands.sink, failure.plan)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
