"""Rows that one broker alone has when they are acknowledged: where they are swept, and where a certificate says not."""

from __future__ import annotations

from typing import Any

import pytest
from onceproof.faults import Plan, parse
from onceproof.harness.certification.points import Question, Space
from onceproof.harness.certification.scope import scope_of
from onceproof.harness.certification.space import select, space_of

ROLES = {"first": 0, "middle": 1}

WANTED = (
    "request:before[service=kafka, kind=Produce, topic=t0_out, kafka_partition=2, batch=1]#1 -> "
    "pause(broker, longest=8s, which=followers) until batch.commit:before[batch=1]; "
    "request:after[service=kafka, kind=Produce, topic=t0_out, kafka_partition=2, batch=1]#1 -> "
    "kill(broker, which=leader) then resume(broker)"
)


def produce(acks: int, batch: int = 1, topic: str = "t0_out", **more: Any) -> dict[str, Any]:
    request = {"phase": "request", "edge": "before", "service": "kafka", "kind": "Produce", "run": "r", "thread": "k 1"}
    place = {"topic": topic, "kafka_partition": 2, "acks": acks, "batch": batch}
    return {"event": "point", **request, **place, **more}


def space(*trace: dict[str, Any], refused: str | None = None) -> Space:
    def refusal(plan: Plan) -> str | None:
        return refused if "followers" in str(plan) else None

    return space_of(Question(trace=trace, roles=ROLES, refusal=refusal))


def those(found: Space) -> list[str]:
    return [point.text for point in found.points if "which=followers" in point.text]


def test_the_leader_dies_before_others_have_what_it_acknowledged_once_for_each_topic() -> None:
    found = space(produce(1), produce(1), produce(1, topic="t0_markers", kafka_partition=0))
    assert those(found)[0] == WANTED
    assert len(those(found)) == 2
    assert parse(WANTED).faults


@pytest.mark.parametrize("acks", [0, -1])
def test_rows_that_wait_for_all_or_for_nobody_are_not_swept_so(acks: int) -> None:
    assert those(space(produce(acks))) == []


def test_a_certificate_cannot_pass_where_there_is_one_broker_only() -> None:
    found = space(produce(1), refused="which=followers needs more than one broker: --brokers is 1 here")
    assert not those(found)
    assert not found.whole
    scope = scope_of(found, found, {}, ROLES)
    [cell] = [cell for cell in scope.cells if cell.missing]
    assert (cell.status, cell.action) == ("not tried", "kill(broker, which=leader)")
    assert (
        "not tried: kill(broker, which=leader) (acknowledged by one broker alone (acks=1): which=followers needs more "
        "than one broker: --brokers is 1 here)"
    ) in scope.summary
    assert select(found, "request").whole is False
    assert space(produce(-1)).whole
