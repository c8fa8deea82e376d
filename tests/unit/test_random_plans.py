"""Random plans: each is refused with an error that names its place, or carried out."""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from onceproof.faults import UNKNOWN, Plan, PlanError, SinkShape, format_plan, parse, resolve, shape_of
from onceproof.harness.sinks import find_sink
from plans import EVERY_PLAN, likely_plans

SINKS = ("postgres_upsert", "kafka_transactional", "file_manifest", "unknown")
MASTERS = ("local[2,4]", "standalone")


@cache
def shape_named(sink: str) -> SinkShape:
    return UNKNOWN if sink == "unknown" else shape_of(find_sink(sink))


def check(plan: Plan, shape: SinkShape, master: str, network: bool) -> None:
    error, text = refused(plan, shape, master, network), format_plan(plan)
    assert error is None or ("\n" not in error.message and text[error.column - 1 :].startswith(error.offending))


def refused(plan: Plan, shape: SinkShape, master: str, network: bool) -> PlanError | None:
    try:
        resolve(plan, shape, master, network=network)
    except PlanError as error:
        return error
    return None


@pytest.mark.parametrize("text", ['request:before[service="a\\n"] -> drop', 'line["a\\nb.py":3] -> fail'])
def test_a_value_with_a_line_break_is_refused_in_one_line(text: str) -> None:
    error = refused(parse(text), shape_named("postgres_upsert"), "local[2,4]", network=False)
    assert error is not None
    assert "\n" not in error.message
    assert "\\n" in error.message


@pytest.mark.parametrize("sink", SINKS)
@given(plan=EVERY_PLAN)
@settings(max_examples=50)
def test_any_plan_is_refused_at_its_place_or_resolved(sink: str, plan: Plan) -> None:
    for master in MASTERS:
        check(plan, shape_named(sink), master, network=master == "standalone")


@pytest.mark.long
@pytest.mark.parametrize("sink", SINKS)
def test_two_thousand_plans_are_refused_at_their_place_or_resolved(sink: str) -> None:
    @given(EVERY_PLAN | likely_plans(shape_named(sink), 3))
    @settings(max_examples=2000)
    def resolve_or_refuse(plan: Plan) -> None:
        for master in MASTERS:
            check(plan, shape_named(sink), master, network=master == "standalone")

    resolve_or_refuse()
