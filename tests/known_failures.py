"""What a plan of the library comes to: it catches the one sink and not the other, in whichever environment."""

from __future__ import annotations

from onceproof.faults import KnownFailure
from trials import Run, described, landed

RETURNED = ("zombie_driver",)
"""Those of which the verdict says that the driver which had been taken for dead wrote the rows."""


def assert_caught(run: Run, failure: KnownFailure) -> None:
    """Lost rows are withdrawn, too, where a reader came in between: that is a matter of chance."""
    result = run(failure.catches.sink, failure.plan, failure.catches.claim)
    assert result.verdict.outcome == "fail", described(result)
    found, finds = {anomaly.kind for anomaly in result.verdict.anomalies}, {*failure.catches.finds}
    assert finds <= found <= finds | {"withdrawn"}, described(result)
    causes = [cause for anomaly in result.verdict.anomalies for cause in anomaly.causes]
    told = any(", which had been taken for dead, went on" in cause for cause in causes)
    assert told or failure.name not in RETURNED, causes


def assert_withstood(run: Run, failure: KnownFailure) -> None:
    result = run(failure.withstands.sink, failure.plan)
    assert (result.verdict.outcome, result.verdict.guarantee) == ("pass", "exactly-once"), described(result)
    assert landed(result)
