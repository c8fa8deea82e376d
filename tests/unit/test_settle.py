"""How long quiet is waited for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.harness.settle import CLIENT_SECONDS, settle_seconds


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
