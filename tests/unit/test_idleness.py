"""What counts against a job's deadline, by a clock of its own."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace

import pytest
from onceproof.harness.runtime import processes
from onceproof.harness.trial.idleness import START_SECONDS, Idleness, crowd


@dataclass
class Machine:
    """A clock, and a job that uses ``processors`` of the machine without a word since ``silent_since``."""

    processors: float | None
    crowd: float = 1.0
    now: float = 1000.0
    used: float = 0.0
    silent_since: float = 1000.0

    def __post_init__(self) -> None:
        used = lambda: None if self.processors is None else self.used  # noqa: E731
        self.idleness = Idleness(used, lambda: self.now, lambda: self.crowd)

    def idle_after(self, seconds: float, starting: bool = False) -> float:
        """How long the job has been idle when ``seconds`` more have passed."""
        for _ in range(int(seconds * 10)):
            self.now += 0.1
            self.used += (self.processors or 0.0) * 0.1
            found = self.idleness.seconds(self.now - self.silent_since, starting)
        return found

    def report(self) -> None:
        self.silent_since = self.now


@pytest.mark.parametrize("processors", [0.0, 0.1, 1.0, 4.0, None])
def test_on_a_machine_that_is_free_all_seconds_without_a_report_count(processors: float | None) -> None:
    assert Machine(processors).idle_after(90) == pytest.approx(90, abs=0.2)


@pytest.mark.parametrize("processors", [0.0, 0.1, None])
def test_a_driver_that_waits_or_polls_at_its_start_is_idle_all_the_time(processors: float | None) -> None:
    assert Machine(processors).idle_after(90, starting=True) == pytest.approx(90, abs=2)


@pytest.mark.parametrize(("processors", "crowd"), [(1.0, 1.0), (0.13, 7.5)])
def test_a_driver_that_works_at_its_start_is_not_idle(processors: float, crowd: float) -> None:
    assert Machine(processors, crowd).idle_after(50, starting=True) == pytest.approx(0, abs=2)


def test_a_start_that_works_for_ever_is_idle_once_it_has_used_more_than_any_start() -> None:
    assert Machine(1.0).idle_after(START_SECONDS + 90, starting=True) == pytest.approx(90, abs=2)


@pytest.mark.parametrize("processors", [0.0, 0.13])
def test_seconds_count_as_much_less_as_the_machine_is_busier(processors: float) -> None:
    assert Machine(processors, crowd=7.5).idle_after(90) == pytest.approx(12, abs=0.2)


def test_a_report_begins_a_new_count() -> None:
    machine = Machine(1.0)
    machine.idle_after(50, starting=True)
    machine.report()
    machine.processors = 0.0
    assert machine.idle_after(20) == pytest.approx(20, abs=2)
    machine.report()
    assert machine.idle_after(1) == pytest.approx(1, abs=0.2)


def test_time_that_does_not_count_is_no_credit_for_later() -> None:
    machine = Machine(1.0)
    for _ in range(300):
        machine.now += 1.0
        machine.used += 1.0
        assert machine.idleness.seconds(0.0, True) == 0.0
    machine.report()
    machine.processors = 0.0
    assert machine.idle_after(20) == pytest.approx(20, abs=2)


def test_a_machine_has_at_least_one_thread_for_each_processor() -> None:
    assert crowd() >= 1


def test_the_processor_time_of_a_process_grows_while_it_works() -> None:
    before, end = processes.look(os.getpid()), time.process_time() + 0.1
    while time.process_time() < end:
        pass
    after = processes.look(os.getpid())
    assert before is not None
    assert after is not None
    assert 0.05 < after.used - before.used < 10
    assert replace(after, state=before.state) == before, "it is the same process"
