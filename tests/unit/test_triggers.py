"""The triggers that jobs take."""

from __future__ import annotations

import pytest
from onceproof.harness.errors import UsageError
from onceproof.harness.triggers import check_trigger, ends_by_itself


@pytest.mark.parametrize(
    ("text", "ends"),
    [("availableNow", True), ("processingTime=500 milliseconds", False), ("processingTime=1 second", False)],
)
def test_a_trigger_is_taken_as_it_is_written(text: str, ends: bool) -> None:
    assert check_trigger(text) == text
    assert ends_by_itself(text) is ends


def test_a_job_that_is_told_of_no_trigger_ends_by_itself() -> None:
    assert ends_by_itself(None)


@pytest.mark.parametrize(
    "text", ["", "once", "processingTime", "processingTime=soon", "availableNow=true", "5 seconds"]
)
def test_any_other_is_one_clear_line(text: str) -> None:
    with pytest.raises(UsageError, match="is none that jobs take: it is availableNow, or processingTime with") as error:
        check_trigger(text)
    assert "\n" not in str(error.value)
