"""A trial's time by stage."""

from __future__ import annotations

from onceproof.harness.trial.timings import stages

EVENTS = [
    {"t": 1.0, "event": "driver.started"},
    {"t": 4.0, "event": "point", "phase": "query.start"},
    {"t": 6.0, "event": "driver.started"},
    {"t": 8.5, "event": "point", "phase": "query.start"},
]


def test_what_is_left_of_the_act_is_the_run() -> None:
    seconds = stages({"arrange": 1.0, "act": 9.0, "settle": 0.5, "judge": 0.1}, EVENTS)
    assert seconds["first driver start"] == 3.0
    assert seconds["recovery start"] == 2.5
    assert seconds["run"] == 3.5
    assert seconds["total"] == 10.6


def test_a_driver_that_never_reached_its_query_counts_as_run() -> None:
    assert stages({"act": 2.0}, EVENTS[:1])["run"] == 2.0
