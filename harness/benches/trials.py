"""A trial that a bench measures."""

from __future__ import annotations

from ..errors import UsageError
from ..request import Request
from ..session import Session
from ..trial.spec import TrialResult


def passed(session: Session, request: Request) -> TrialResult:
    """Raises UsageError where the trial gives no verdict that its figures could stand on."""
    result = session.trial(request)
    if result.verdict.outcome.value != "pass":
        raise UsageError(f"a trial for the bench came to {result.verdict.outcome.value}: see {result.directory}")
    return result
