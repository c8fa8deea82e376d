"""Random plans, carried out: nothing passes with a fault that did not land, nothing hangs, nothing is left behind."""

from __future__ import annotations

import os
from functools import cache

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from onceproof.assertions import Outcome
from onceproof.faults import Plan, SinkShape, action_named, format_plan
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.jobs import find_job, shape_with
from onceproof.harness.request import refusal
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink
from plans import likely_plans
from trials import SMALL, Run

SINKS = ("postgres_upsert", "kafka_transactional", "file_rename", "redis_ledger")
FIRST = int(os.environ.get("ONCEPROOF_RANDOM_PLANS", "0"))
"""Number of the first plan: another one gives another hundred."""


HOLDS_UP = 30.0
"""Seconds in which nothing moves, after which a job goes on without the holds of its plan: many plans hold it up."""


@pytest.mark.long
@pytest.mark.parametrize("number", range(FIRST, FIRST + 100))
def test_a_random_plan_is_judged_by_what_landed(trial: Run, session: Session, number: int) -> None:
    sink = SINKS[number % len(SINKS)]
    plan = random_plan(sink, number)
    result = trial(sink, format_plan(plan), deadline=HOLDS_UP)
    verdict = result.verdict
    print(f"{sink}: {format_plan(plan)}: {verdict.outcome.value}: {verdict.reason}")
    if verdict.outcome is Outcome.PASS:
        assert all(fault.confirmed for fault in verdict.faults)
    if verdict.outcome is Outcome.FAIL:
        assert damages_the_checkpoint(plan)
    assert result.warnings == []
    assert session.environment.job_processes() == []


def damages_the_checkpoint(plan: Plan) -> bool:
    """Whether what a sink may rely on is taken away: no guarantee is for that."""
    return any(action_named(action.name).read_by_the_next for fault in plan.faults for action in fault.actions)


class _Found(Exception):
    """The plan that was looked for."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(format_plan(plan))
        self.plan = plan


def random_plan(sink: str, number: int) -> Plan:
    """The ``number``-th plan that this sink can have here."""
    shape = shape_named(sink)

    @seed(number)
    @given(plan=likely_plans(shape, SMALL.batches))
    @settings(
        max_examples=5000,
        phases=[Phase.generate],
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def look(plan: Plan) -> None:
        if plan.faults and refusal(plan, shape, EnvironmentOptions()) is None:
            raise _Found(plan)

    with pytest.raises(_Found) as found:
        look()
    return found.value.plan


@cache
def shape_named(sink: str) -> SinkShape:
    return shape_with(find_job(None), find_sink(sink))
