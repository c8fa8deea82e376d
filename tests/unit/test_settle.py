"""How long quiet is waited for, and what becomes of a trial whose services do not answer."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Open
from onceproof.faults import parse
from onceproof.harness.environments.base import Addresses
from onceproof.harness.targets import Location, targets
from onceproof.harness.trial.journal import Journal
from onceproof.harness.trial.settle import CLIENT_SECONDS, Settler, settle_seconds
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
