"""When Spark runs a batch: the trigger that a job is started with, as its ``--trigger`` has it."""

from __future__ import annotations

import re

from .errors import UsageError

AVAILABLE_NOW = "availableNow"
PROCESSING_TIME = re.compile(r"processingTime=\d+ (milliseconds?|seconds?)")


def check_trigger(text: str) -> str:
    """``text``, if jobs take it. Raises UsageError."""
    if text != AVAILABLE_NOW and not PROCESSING_TIME.fullmatch(text):
        raise UsageError(
            f"--trigger {text!r} is none that jobs take: it is {AVAILABLE_NOW}, or processingTime with an interval, as "
            'in --trigger "processingTime=500 milliseconds"'
        )
    return text


def ends_by_itself(trigger: str | None) -> bool:
    """Whether a query with this trigger ends once it has processed its input; None is the job's own, availableNow."""
    return trigger in (None, AVAILABLE_NOW)
