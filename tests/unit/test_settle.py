"""How long quiet is waited for, and what becomes of a trial whose services do not answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Open
from onceproof.faults import parse
from onceproof.harness.environments.base import Addresses
from onceproof.harness.targets import Location, targets
from onceproof.harness.trial.journal import Journal
from onceproof.harness.trial.settle import ABORT_SECONDS, CLIENT_SECONDS, Settler, seconds_left, settle_seconds
from onceproof.harness.trial.targets import Targets


@pytest.mark.parametrize(
    ("plan", "more"),
    [
        ("sink.write:after -> kill(driver)", 0.0),
        ("txn.prepare:after -> kill(broker)", CLIENT_SECONDS),
        ("sink.write:after -> partition(driver, peer=broker1, for=5s)", CLIENT_SECONDS),
    ],
)
def test_clients_that_lost_a_broker_have_the_time_of_their_own_timeout(plan: str, more: float) -> None:
    spec: Any = SimpleNamespace(plan=parse(plan), settle_deadline=15.0)
    assert settle_seconds(spec) == 15.0 + more


NOBODY = "host=127.0.0.1 port=1"
"""A server that refuses each connection."""


@pytest.fixture
def settler(tmp_path: Path) -> Settler:
    spec: Any = SimpleNamespace(plan=parse(""), settle_deadline=0.2, sink=SimpleNamespace(functions={"read"}))
    environment: Any = SimpleNamespace(job_processes=lambda trial: [])
    addresses = Addresses(postgres=NOBODY)
    location = Location("t1", 3, tmp_path, {"harness": addresses, "job": addresses})
    resources: Any = SimpleNamespace(
        name="t1", targets=Targets(location, {"postgres": targets()["postgres"]}), checkpoint=tmp_path / "checkpoint"
    )
    process: Any = None
    processed: Any = SimpleNamespace(all=lambda: False)
    return Settler(spec, environment, resources, process, Journal(tmp_path / "journal.jsonl"), processed)


def test_a_transaction_that_cannot_be_aborted_is_still_reported_as_hanging(settler: Settler) -> None:
    left = settler._aborted(Open("postgres", "gid-1", "prepared", "by postgres"))
    assert (left.kind, left.name, left.state) == ("postgres", "gid-1", "prepared")
    assert left.detail.startswith("by postgres; it could not be aborted: connection failed")
    assert "\n" not in left.detail


def test_a_service_that_does_not_answer_is_not_at_rest_and_throws_no_verdict_away(settler: Settler) -> None:
    settlement = settler.settle(finished=False)
    assert not settlement.input_committed
    assert [unmet for unmet in settlement.unmet if unmet.startswith("a service did not answer: connection")]


def left_open(settler: Settler, *found: list[Open]) -> Settler:
    """The same, where Kafka has these open transactions, one list for each time it is asked; the last stays."""
    answers = list(found)
    kafka = replace(
        targets()["kafka"],
        open=lambda location: answers.pop(0) if len(answers) > 1 else answers[0],
        abort=lambda location, transaction: None,
        unsettled=lambda location: [],
    )
    resources: Any = settler.resources
    resources.targets = Targets(resources.targets.location, {"kafka": kafka})
    settler.spec.settle_deadline = 0.0  # type: ignore[misc]
    return settler


def ongoing(timeout: float | None, age: float | None = 0.0) -> Open:
    return Open("kafka", "t-1", "Ongoing", age=age, timeout=timeout)


def test_a_transaction_that_its_timeout_ends_soon_is_waited_for(settler: Settler) -> None:
    soon = ongoing(60.0, age=30.0)
    settlement = left_open(settler, [soon], [soon], []).settle(finished=False)
    assert (settlement.hanging, settlement.timed_out) == ((), (soon,))


def test_one_that_is_still_there_then_hangs(settler: Settler) -> None:
    left = ongoing(60.0, age=60.0 + ABORT_SECONDS - 0.1)
    settlement = left_open(settler, [left]).settle(finished=False)
    assert (settlement.hanging, settlement.timed_out) == ((left,), ())


def test_the_last_of_several_is_waited_for_and_none_where_one_does_not_end() -> None:
    assert seconds_left([ongoing(60.0, age=50.0), ongoing(10.0, age=1.0)]) == 10.0 + ABORT_SECONDS
    assert seconds_left([ongoing(60.0, age=50.0), ongoing(None)]) == 0.0


@pytest.mark.parametrize("left", [ongoing(900.0), ongoing(None), ongoing(60.0, None), ongoing(60.0, age=76.0)])
def test_one_that_does_not_end_soon_hangs_at_once(settler: Settler, left: Open) -> None:
    assert left_open(settler, [left], []).settle(finished=False).hanging == (left,)
