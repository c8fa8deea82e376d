"""stop(driver): the thread goes on after SIGTERM, and what is required follows from how far the driver got."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.assertions.replay import examine
from onceproof.faults import Injector, PlanError, parse
from paper_trial import Paper, byte_equal, evidence, fault, task_of
from test_injector import Journal, Probe


@dataclass
class Cluster:
    """Machines that note what they are asked for; a driver ends when ``dead`` is set."""

    dead: threading.Event = field(default_factory=threading.Event)
    done: list[tuple[str, str, float]] = field(default_factory=list)
    error: Exception | None = None

    def terminate(
        self, target: str, point: Mapping[str, Any], *, by: object, restart_after: float = 0.0, which: object = None
    ) -> str:
        self.done.append(("terminate", target, restart_after))
        return "sent SIGTERM"

    def await_death(self, target: str, seconds: float, *, by: object) -> str:
        assert self.dead.wait(5)
        if self.error:
            raise self.error
        self.done.append(("dead", target, seconds))
        return "ended"


PLAN = "sink.write:after[batch=1] -> stop(driver)"


def injector_of(plan: str, cluster: Any, journal: Journal) -> Injector:
    return Injector(parse(plan), cluster, journal.record)


def test_the_thread_goes_on_before_the_death_and_the_fault_is_confirmed_by_it() -> None:
    cluster, journal = Cluster(), Journal()
    with injector_of(PLAN, cluster, journal) as injector:
        assert Probe(injector).ask("sink.write", "after", batch=1) == b"G"
        assert cluster.done == [("terminate", "driver", 0.0)]
        assert injector.acting(), "the driver is not started again before its death is confirmed"
        assert journal.named("fault.confirmed") == []
        cluster.dead.set()
        confirmed = journal.wait_for("fault.confirmed")
    assert (confirmed["number"], confirmed["detail"]) == (0, "sent SIGTERM; ended")
    assert cluster.done[1:] == [("dead", "driver", 30.0)]


def test_a_driver_that_does_not_end_fails_the_fault() -> None:
    cluster, journal = Cluster(error=RuntimeError("the driver still runs 30 s after SIGTERM")), Journal()
    cluster.dead.set()
    with injector_of(PLAN, cluster, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        journal.wait_for("fault.failed")
        [status] = injector.status()
    assert (status.confirmed, status.error) == (False, "the driver still runs 30 s after SIGTERM")


def test_its_restart_may_be_delayed_as_that_of_a_kill() -> None:
    cluster, journal = Cluster(), Journal()
    cluster.dead.set()
    with injector_of(f"{PLAN} then restart(driver, after=2s)", cluster, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        journal.wait_for("fault.confirmed", 2)
    assert cluster.done[0] == ("terminate", "driver", 2.0)


def test_nothing_but_a_driver_or_an_executor_can_be_stopped() -> None:
    with pytest.raises(PlanError, match="stop has no target worker"):
        parse("task.run:before -> stop(worker)")


@pytest.mark.parametrize("executor", ["executor", "executor[1]"])
def test_a_stopped_executor_needs_a_higher_attempt_of_what_it_ran_when_it_died(executor: str) -> None:
    text = f"sink.commit:before[batch=1] -> stop({executor})"
    if executor == "executor":
        text = text.replace("sink.commit", "task.run")
    paper = Paper().start().hand_over(1, 1)
    ended, running = task_of(0, "w:7") | {"task": 5}, task_of(0, "w:7") | {"partition": 1, "task": 6}
    for task in (running, ended):
        paper.point("task.run", "before", 1, 1, **task)
    paper.reached_last().fired(f"stop({executor})", confirmed=False, process="local:1")
    paper.point("task.run", "after", 1, 1, **ended)
    paper.add("process.ended", fault=0, number=0, target="executor", process="w:7", detail="dead")
    paper.confirmed(f"stop({executor})")
    assert seen(paper, text) is None
    again = task_of(1, "w:8") | {"partition": 1}
    assert seen(paper.point("task.run", "before", 1, 1, **again), text) == "attempt 1 of task 1 of batch 1 ran in w:8"


def stopped_in_batch_1(phase: str = "sink.write", edge: str = "before") -> Paper:
    """SIGTERM while batch 1 is at this step; the driver's death is not confirmed yet."""
    paper = Paper().start().batches(1, 0).hand_over(1, 1)
    if (phase, edge) != ("sink.write", "before"):
        paper.point(phase, edge, 1, 1)
    return paper.reached_last().fired("stop(driver)", confirmed=False)


def seen(paper: Paper, text: str) -> str | None:
    found: str | None = examine(0, evidence(None, paper, fault(text)))[0].replay["seen"]
    return found


BEFORE = "sink.write:before[batch=1] -> stop(driver)"


def test_a_driver_that_got_no_further_is_replayed() -> None:
    dead = stopped_in_batch_1().confirmed("stop(driver)").start(2)
    assert seen(dead, BEFORE) is None
    assert seen(dead.hand_over(2, 1), BEFORE) == f"run r2 (local:2) handed batch 1 to the sink, {byte_equal(1)}"


def test_a_batch_that_the_dying_driver_finished_does_not_come_again() -> None:
    finished = stopped_in_batch_1().finish(1, 1).confirmed("stop(driver)").start(2)
    assert seen(finished, BEFORE) is None
    assert seen(finished.batches(2, 2), BEFORE) == "run r2 (local:2) went on with batch 2"
    again = stopped_in_batch_1().finish(1, 1).confirmed("stop(driver)").start(2).batches(2, 1, 2)
    assert seen(again, BEFORE) is None


def test_the_batch_in_which_the_dying_driver_ended_is_the_one_that_must_be_replayed() -> None:
    paper = stopped_in_batch_1().finish(1, 1).hand_over(1, 2).confirmed("stop(driver)").start(2)
    assert seen(paper.hand_over(2, 2), BEFORE) == f"run r2 (local:2) handed batch 2 to the sink, {byte_equal(2)}"


def test_reports_after_the_confirmed_death_are_not_of_the_dead_driver() -> None:
    paper = stopped_in_batch_1().confirmed("stop(driver)").finish(1, 1).start(2).batches(2, 2)
    assert seen(paper, BEFORE) is None
