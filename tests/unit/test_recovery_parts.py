"""What a recovery from a driver's death consists of."""

from __future__ import annotations

from typing import Any

from onceproof.harness.trial.recovery import recoveries_in


def at(t: float, event: str, **fields: Any) -> dict[str, Any]:
    return {"t": t, "event": event, **fields}


def point(t: float, phase: str, edge: str, batch: int | None = 1, **fields: Any) -> dict[str, Any]:
    return at(t, "point", phase=phase, edge=edge, **({} if batch is None else {"batch": batch}), **fields)


def load(t: float, edge: str, task: int) -> dict[str, Any]:
    return point(
        t, "state.load", edge, process="local:2", thread=f"task {task}", task=task, operator=0, store="default"
    )


KILLED = [at(0.0, "driver.started"), at(10.0, "fault.fired", fault=0), at(10.5, "driver.exited")]
STARTED = [
    at(11.0, "driver.started"),
    point(18.0, "query.start", "before", None),
    point(20.0, "sink.write", "before"),
]
TASKS = [point(20.25, "task.run", "before", partition=0), load(21.0, "before", 1), load(21.5, "before", 2)]
LOADED = [load(23.0, "after", 1), load(24.0, "after", 2)]
COMMITTED = [point(25.0, "sink.write", "after"), point(26.0, "batch.commit", "after"), at(27.0, "driver.exited")]


def test_the_parts_follow_each_other_from_the_fault_to_the_commit_of_the_batch() -> None:
    (found,) = recoveries_in([*KILLED, *STARTED, *TASKS, *LOADED, *COMMITTED])
    assert (found.batch, found.total) == (1, 16.0)
    assert list(found.parts.values()) == [0.5, 7.5, 2.0, 0.25, 3.0, 2.75], "loading of two tasks is counted once"
    assert sum(found.parts.values()) == found.total


def test_a_sink_that_skips_the_batch_has_been_reset_when_it_hands_it_back() -> None:
    (found,) = recoveries_in([*KILLED, *STARTED, *COMMITTED])
    assert (found.reset_sink, found.load_state, found.replay) == (5.0, 0.0, 1.0)


def test_a_driver_that_ended_without_a_fault_or_whose_successor_committed_nothing_has_no_recovery() -> None:
    assert recoveries_in([KILLED[0], KILLED[2], *STARTED, *COMMITTED]) == []
    assert recoveries_in([*KILLED, *STARTED, *TASKS]) == []
    assert recoveries_in(KILLED) == []


def test_what_a_paused_driver_still_reports_is_no_part_of_the_recovery() -> None:
    late = [point(10.75, "sink.write", "before", 0), point(10.8, "batch.commit", "after", 0)]
    (found,) = recoveries_in([*KILLED, *late, *STARTED, *TASKS, *LOADED, *COMMITTED])
    assert (found.batch, found.reset_source, found.total) == (1, 2.0, 16.0)


def test_each_death_has_a_recovery_of_its_own() -> None:
    again = [{**event, "t": event["t"] + 100} for event in [*KILLED, *STARTED, *COMMITTED]]
    assert len(recoveries_in([*KILLED, *STARTED, *COMMITTED[:2], *again[1:]])) == 2
