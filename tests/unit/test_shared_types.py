"""The types that faults, assertions and harness share."""

from __future__ import annotations

import pytest

from onceproof import faults, plans
from onceproof.plans import ActionReference
from onceproof.requirements import Requirement, required_at

PLAN = faults.parse("sink.write:after -> kill(broker) then restart(broker, after=2s); at(3s) -> kill(driver)")


def test_the_language_gives_the_shared_types() -> None:
    assert faults.Plan is plans.Plan
    assert isinstance(PLAN, plans.Plan)


def test_an_event_names_its_action_by_two_numbers() -> None:
    action = ActionReference.of({"event": "fault.fired", "fault": 0, "number": 1, "action": "whatever it says"})
    assert action == ActionReference(0, 1)
    assert action.find(PLAN.faults) == PLAN.faults[0].actions[1]
    assert action.as_fields() == {"fault": 0, "number": 1}


@pytest.mark.parametrize("event", [{}, {"fault": 0}, {"fault": 0, "number": None}, {"fault": "0", "number": "1"}])
def test_an_event_without_numbers_concerns_no_action(event: dict[str, object]) -> None:
    assert ActionReference.of(event) is None


@pytest.mark.parametrize(("fault", "number"), [(2, 0), (0, 2), (-1, 0), (0, -1)])
def test_a_number_beyond_the_plan_means_no_action(fault: int, number: int) -> None:
    assert ActionReference(fault, number).find(PLAN.faults) is None


RULES = (
    Requirement("first", steps=(("sink.write", "before"),), in_batch=True),
    Requirement("second", in_batch=True),
    Requirement("last"),
)


@pytest.mark.parametrize(
    ("step", "batch", "kind"),
    [
        (("sink.write", "before"), 1, "first"),
        (("sink.write", "after"), 0, "second"),
        (("sink.write", "before"), None, "last"),
        (None, None, "last"),
    ],
)
def test_the_first_requirement_that_holds_at_a_step_counts(step: object, batch: int | None, kind: str) -> None:
    found = required_at(RULES, step, batch)  # type: ignore[arg-type]
    assert found is not None
    assert found.kind == kind


def test_at_a_step_that_no_requirement_names_there_is_none() -> None:
    assert required_at(RULES[:1], ("sink.write", "after"), 1) is None
