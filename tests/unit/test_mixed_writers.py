"""Two drivers that write a batch at the same time, as points: where what both ask for lies mixed."""

from __future__ import annotations

from typing import Any

from onceproof.faults import format_plan, parse
from onceproof.harness.certification.points import Question, SweepPoint
from onceproof.harness.certification.space import space_of


def asked(*kinds: str, batch: int = 1) -> list[dict[str, Any]]:
    place = {"phase": "request", "service": "kafka", "batch": batch, "run": "r", "thread": "one", "process": "local:1"}
    return [{"event": "point", "t": 0.0, "edge": "before", "kind": kind, **place} for kind in kinds]


def mixed(trace: list[dict[str, Any]], **more: Any) -> list[SweepPoint]:
    question = Question(trace, {"middle": 1}, lambda plan: None, **more)
    return [one for one in space_of(question).points if "in the midst" in one.detail]


def test_one_stands_still_behind_its_first_request_until_the_other_one_does_and_goes_on_before_it() -> None:
    (found,) = mixed(asked("InitProducerId", "Produce", "Produce", "Produce", "EndTxn"))
    second = "request:before[service=kafka, kind=Produce, batch=1]"
    assert found.text == (
        f"{second}#2 -> pause(driver, longest=30s) until {second}#2; "
        f"{second}#4 -> delay(longest=5s) until sink.write:after[batch=1]"
    )
    assert format_plan(parse(found.text)) == found.text
    assert (found.alone, found.seen_once) == (True, True), "how many requests there are may differ from run to run"


def test_of_a_kind_with_fewer_than_three_requests_in_the_middle_batch_nothing_lies_between() -> None:
    assert mixed([*asked("Produce", "Produce", "EndTxn"), *asked(*["Produce"] * 9, batch=2)]) == []
    assert mixed(asked(*["Produce"] * 9), profile="quick") == []
    assert len(mixed(asked(*["Produce"] * 5, *["Set"] * 4, *["Get"] * 3))) == 2, "those with the most"
