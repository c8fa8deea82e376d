"""What a plan takes away is given back: links, processes and brokers, at the latest when the job has ended."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.faults.capabilities import Nth
from onceproof.faults.injection import Stopwatch, wall_time
from onceproof.harness.environments.base import EffectError
from onceproof.harness.environments.driver_start import EXECUTOR, in_order
from onceproof.harness.trial.actuator import TrialActuator
from onceproof.harness.trial.network import Cut
from onceproof.harness.trial.source_reading import SourceReading

from onceproof.plans import ActionReference

LONG = 3600.0
"""Seconds after which no test waits for a healing."""


@dataclass
class Machines:
    """An environment of machines on paper. Brokers run as ``kafka-N:1``, executors as ``worker1:7``."""

    cut_off: list[tuple[str, str | None]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    going_on: list[str] = field(default_factory=list)
    away: list[str] = field(default_factory=list)
    broken: str | None = None
    stuck: threading.Event | None = None
    healed: threading.Event = field(default_factory=threading.Event)

    def executors(self, trial: str | None = None) -> list[str]:
        return [one for one in ("worker1:7", "worker2:7") if one not in self.away]

    def kill_process(self, process: str) -> str:
        return self._kill(process)

    def terminate_process(self, process: str) -> str:
        return f"sent SIGTERM to {process}"

    def broker_of(self, process: str) -> int:
        return int(process.split(":")[0].removeprefix("kafka-"))

    def cut(self, process: str, peer: str | None) -> str:
        if self.broken:
            raise EffectError(self.broken)
        self.cut_off.append((process, peer))
        return f"nothing passes between {process} and {peer}"

    def heal(self, process: str, peer: str | None) -> str:
        if self.stuck:
            self.stuck.wait(5)
        if self.broken:
            raise EffectError(self.broken)
        self.cut_off.remove((process, peer))
        self.healed.set()
        return f"{process} reaches {peer} again"

    def pause_process(self, process: str) -> str:
        self.stopped.append(process)
        return "stopped"

    def shield(self, executor: str) -> Callable[[], None]:
        self.stopped.append(f"what ends {executor}")
        return lambda: self.stopped.remove(f"what ends {executor}")

    def resume_process(self, process: str) -> str:
        if self.broken:
            raise EffectError(self.broken)
        self.going_on.append(process)
        if process in self.stopped:
            self.stopped.remove(process)
        return "resumed"

    def start_broker(self, broker: int) -> str:
        if self.cut_off and not self.healed.wait(2):
            raise EffectError("it needs the network")
        return self._start(f"kafka-{broker}:1")

    def kill_broker(self, broker: int) -> str:
        return self._kill(f"kafka-{broker}:1")

    def start_server(self, service: str) -> str:
        return self._start(service)

    def kill_server(self, service: str) -> str:
        return self._kill(service)

    def start_node(self, process: str) -> str:
        return self._start(process)

    def kill_node(self, process: str) -> str:
        return self._kill(process)

    def _start(self, process: str) -> str:
        if self.broken:
            raise EffectError(self.broken)
        self.away.remove(process)
        return "registered"

    def _kill(self, process: str) -> str:
        self.away.append(process)
        return "killed"


@dataclass
class Drivers:
    """A supervisor with one driver on its own machine."""

    process: str = "driver:1"
    ended: bool = False
    delay: float | None = None
    stopwatch: Stopwatch = wall_time

    @property
    def driver(self) -> Drivers:
        return self

    def driver_of(self, process: str | None) -> Drivers:
        return self

    def terminate(self, process: str | None, restart_after: float) -> tuple[Drivers, str]:
        self.delay = restart_after
        return self, "sent SIGTERM"

    def alive(self) -> list[str]:
        return [] if self.ended else [self.process]

    def kill(self) -> str:
        self.ended = True
        return "killed it"

    def pause(self) -> str:
        return "stopped"

    def resume(self) -> str:
        return "resumed"


@dataclass
class Bench:
    machines: Machines = field(default_factory=Machines)
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    grown: threading.Condition = field(default_factory=threading.Condition)
    actuator: Any = None

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        with self.grown:
            self.events.append((event, dict(fields)))
            self.grown.notify_all()

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    def wait_for(self, event: str) -> dict[str, Any]:
        with self.grown:
            assert self.grown.wait_for(lambda: self.named(event), 5), f"no {event} in {self.events}"
        return self.named(event)[0]


def process_of(point: Mapping[str, Any]) -> str | None:
    return point.get("process")


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    environment: Any = bench.machines
    supervisor: Any = Drivers()
    source = SourceReading(bench.record)
    bench.actuator = TrialActuator(environment, bench.record, lambda point: None, process_of, source, supervisor)
    yield bench
    bench.actuator.settle(5)


BROKER = {"phase": "txn.prepare", "process": "kafka-1:1"}
OTHER_BROKER = {"phase": "txn.prepare", "process": "kafka-2:1"}
TASK = {"phase": "task.run", "process": "worker2:7"}
FIRST, SECOND = ActionReference(0, 0), ActionReference(1, 0)


@pytest.mark.parametrize(("fault", "killed"), [(0, "driver:1"), (1, "worker2:7")])
def test_a_driver_that_was_stopped_is_the_one_that_its_fault_kills(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fault: int, killed: str
) -> None:
    """Where an executor reports the point, no driver is named: the newest is the one that took its place."""
    found: list[str | None] = []
    monkeypatch.setattr(Drivers, "kill", lambda self, process, restart_after: found.append(process))
    monkeypatch.setattr(Drivers, "replace", lambda self, incarnation: "stopped", raising=False)
    bench.actuator.pause("driver", TASK, by=ActionReference(0, 0), replace=True)
    bench.actuator.kill("driver", TASK, by=ActionReference(fault, 1))
    assert found == [killed]


@pytest.mark.parametrize(
    ("target", "point", "process"),
    [
        ("driver", {"phase": "sink.write", "process": "driver:9"}, "driver:1"),
        ("driver", TASK, "driver:1"),
        ("driver", {}, "driver:1"),
        ("executor", TASK, "worker2:7"),
        ("executor", {}, "worker1:7"),
        ("broker", BROKER, "kafka-1:1"),
    ],
)
def test_the_machine_of_the_target_is_cut_off(bench: Bench, target: str, point: dict[str, Any], process: str) -> None:
    detail = bench.actuator.cut(target, point, "broker3", LONG)
    assert detail == f"nothing passes between {process} and broker3"
    assert bench.machines.cut_off == [(process, "broker3")]
    fields = {"target": target, "process": process, "peer": "broker3", "detail": detail}
    assert bench.events == [("network.cut", fields)]


def test_it_is_healed_when_its_time_is_over(bench: Bench) -> None:
    bench.actuator.cut("broker", BROKER, None, 0.01)
    assert bench.wait_for("network.healed") == {
        "target": "broker",
        "process": "kafka-1:1",
        "peer": None,
        "detail": "kafka-1:1 reaches None again",
    }
    assert bench.machines.cut_off == []
    assert bench.actuator.settle(5) == []
    assert [name for name, _ in bench.events] == ["network.cut", "network.healed"]


def test_what_is_cut_at_the_end_of_the_job_is_healed_at_once(bench: Bench) -> None:
    bench.actuator.cut("driver", {}, "broker1", LONG)
    bench.actuator.cut("driver", {}, "broker2", LONG)
    assert bench.actuator.settle(5) == []
    assert bench.machines.cut_off == []
    assert sorted(fields["peer"] for fields in bench.named("network.healed")) == ["broker1", "broker2"]


def test_nothing_is_cut_after_the_end_of_the_job(bench: Bench) -> None:
    bench.actuator.restore(5)
    with pytest.raises(EffectError, match="the job has ended"):
        bench.actuator.cut("driver", {}, "broker1", LONG)
    assert bench.machines.cut_off == []


def test_a_killed_broker_is_waited_for_with_the_network_healed(bench: Bench) -> None:
    bench.actuator.cut("driver", {}, None, LONG)
    bench.actuator.kill("broker", BROKER)
    assert bench.actuator.settle(5) == []
    assert [name for name, _ in bench.events] == ["network.cut", "network.healed", "broker.registered"]


def test_a_healing_that_fails_is_a_failure_of_the_environment(bench: Bench) -> None:
    bench.actuator.cut("driver", {}, "broker1", LONG)
    bench.machines.broken = "iptables is gone"
    assert bench.actuator.settle(5) == ["the network of driver from broker1 was not healed: iptables is gone"]
    assert bench.named("environment.failure") == [
        {
            "target": "driver",
            "process": "driver:1",
            "peer": "broker1",
            "part": "network of driver from broker1",
            "detail": "iptables is gone",
        }
    ]
    assert bench.named("network.healed") == []


def test_a_healing_that_does_not_end_is_reported(bench: Bench) -> None:
    bench.machines.stuck = threading.Event()
    bench.actuator.cut("driver", {}, "broker1", LONG)
    assert bench.actuator.settle(0.01) == ["healing of driver from broker1 has not ended"]
    bench.machines.stuck.set()


def test_a_cut_that_fails_leaves_nothing_to_heal(bench: Bench) -> None:
    bench.machines.broken = "it still passes"
    with pytest.raises(EffectError, match="it still passes"):
        bench.actuator.cut("driver", {}, "broker1", LONG)
    bench.machines.broken = None
    assert bench.actuator.settle(5) == []
    assert bench.events == []


@pytest.mark.parametrize(("target", "point", "peer"), [("broker", BROKER, "broker1"), ("executor", TASK, "worker2")])
def test_a_machine_cannot_be_cut_off_from_itself(bench: Bench, target: str, point: dict[str, Any], peer: str) -> None:
    with pytest.raises(EffectError, match=f"{peer} from {peer} is not a partition: .* runs on that machine itself"):
        bench.actuator.cut(target, point, peer, LONG)
    assert bench.machines.cut_off == []


def test_a_link_that_is_cut_already_is_not_cut_again_until_it_is_healed(bench: Bench) -> None:
    bench.machines.stuck = threading.Event()
    bench.actuator.cut("driver", {}, "broker1", 0.0)
    with pytest.raises(EffectError, match="part of another partition, driver from broker1, not healed yet"):
        bench.actuator.cut("driver", {}, None, LONG)
    assert bench.machines.cut_off == [("driver:1", "broker1")]
    bench.machines.stuck.set()
    bench.wait_for("network.healed")
    bench.actuator.cut("driver", {}, None, LONG)
    assert bench.machines.cut_off == [("driver:1", None)]


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (("driver", "broker1"), ("driver", "broker1"), True),
        (("driver", "broker1"), ("driver", "broker2"), False),
        (("broker2", "broker1"), ("broker1", "broker2"), True),
        (("broker2", "broker1"), ("broker1", "broker3"), False),
        (("driver", None), ("driver", "broker1"), True),
        (("broker1", None), ("driver", "broker1"), True),
        (("broker2", None), ("driver", "broker1"), False),
        (("broker2", None), ("driver", None), True),
    ],
)
def test_two_partitions_share_a_link(one: tuple[str, str | None], other: tuple[str, str | None], shared: bool) -> None:
    first, second = (Cut("x", f"{machine}:1", machine, peer) for machine, peer in (one, other))
    assert first.shares_a_link_with(second) is shared
    assert second.shares_a_link_with(first) is shared


def test_without_a_driver_there_is_nothing_to_cut_off(bench: Bench) -> None:
    bench.actuator.supervisor = None
    with pytest.raises(EffectError, match="no driver runs yet"):
        bench.actuator.cut("driver", {}, "broker1", LONG)


def test_a_driver_that_is_told_to_end_has_ended_when_nothing_of_it_runs_any_more(bench: Bench) -> None:
    drivers = bench.actuator.supervisor
    assert bench.actuator.terminate("driver", {}, restart_after=2.0, by=FIRST) == "sent SIGTERM"
    assert drivers.delay == 2.0
    drivers.ended = True
    assert bench.actuator.await_death("driver", 5.0, by=FIRST) == "driver:1 and all on its machine ended"


def test_a_driver_that_does_not_end_when_it_is_told_to_is_killed(bench: Bench) -> None:
    bench.actuator.terminate("driver", {}, by=FIRST)
    assert bench.actuator.await_death("driver", 0.01, by=FIRST) == "driver:1 still ran 0.01 s after SIGTERM: killed it"
    assert bench.actuator.supervisor.ended


@pytest.mark.parametrize(("number", "process"), [(0, "worker1:7"), (1, "worker2:7")])
def test_an_executor_that_is_named_by_its_number_is_struck_wherever_the_thread_is_parked(
    bench: Bench, number: int, process: str
) -> None:
    which, point = Nth(number), {"phase": "sink.commit", "process": "driver:1"}
    bench.actuator.cut("executor", point, None, LONG, which=which)
    assert bench.machines.cut_off == [(process, None)]
    bench.actuator.pause("executor", point, by=FIRST, which=which)
    assert bench.machines.stopped == [process]
    bench.actuator.resume("executor", point, paused_by=FIRST)
    assert bench.actuator.kill("executor", TASK, by=FIRST, which=which) == "killed"
    ended = {"target": "executor", "process": process, "detail": "killed"}
    assert bench.named("process.ended") == [FIRST.as_fields() | ended]


def test_an_executor_that_there_is_not_fails_its_fault(bench: Bench) -> None:
    with pytest.raises(EffectError, match=r"there is no executor\[2\] just then: the job has 2, counted from 0"):
        bench.actuator.kill("executor", TASK, which=Nth(2))
    assert bench.machines.away == []


def test_an_executor_that_is_told_to_end_is_named_once_it_has_ended(bench: Bench) -> None:
    assert bench.actuator.terminate("executor", {}, which=Nth(1), by=FIRST) == "sent SIGTERM to worker2:7"
    assert bench.named("process.ended") == []
    bench.machines.away.append("worker2:7")
    assert bench.actuator.await_death("executor", 5.0, by=FIRST) == "worker2:7 ended"
    assert [event["process"] for event in bench.named("process.ended")] == ["worker2:7"]


def test_an_executor_that_does_not_end_when_it_is_told_to_is_killed(bench: Bench) -> None:
    bench.actuator.terminate("executor", TASK, by=FIRST)
    assert bench.actuator.await_death("executor", 0.01, by=FIRST) == "worker2:7 still ran 0.01 s after SIGTERM: killed"


EXECUTORS = [
    (process, ["java", f"-Donceproof.trial={trial}", EXECUTOR, "--executor-id", number, "--app-id", application])
    for process, trial, number, application in (
        ("w:4", "mine", "10", "app-2024-0002"),
        ("w:3", "mine", "9", "app-2024-0002"),
        ("w:2", "other", "0", "app-2024-0003"),
        ("w:1", "mine", "0", "app-2024-0001"),
    )
]


def test_executors_are_in_the_order_of_their_ids_and_of_the_newest_application_of_the_trial() -> None:
    assert in_order(EXECUTORS, "mine") == ["w:3", "w:4"]
    assert in_order(EXECUTORS, "none") == []
    assert in_order(EXECUTORS) == ["w:1", "w:3", "w:4", "w:2"]


def test_a_broker_cannot_be_told_to_end(bench: Bench) -> None:
    with pytest.raises(EffectError, match="the broker cannot be told to end: only a driver or an executor can"):
        bench.actuator.terminate("broker", BROKER, by=FIRST)
    with pytest.raises(EffectError, match="no driver was told to end"):
        bench.actuator.await_death("driver", 5.0, by=FIRST)


def test_the_journal_names_the_process_that_was_stopped_and_not_the_one_that_reported(bench: Bench) -> None:
    bench.actuator.pause("driver", TASK, by=FIRST)
    bench.actuator.resume("driver", BROKER)
    assert bench.events == [
        ("process.paused", {"target": "driver", "process": "driver:1", "detail": "stopped"}),
        ("process.resumed", {"target": "driver", "process": "driver:1", "detail": "resumed"}),
    ]


@pytest.mark.parametrize("parked", ["worker2:7", "worker2:70"])
def test_an_executor_that_is_given_up_goes_on_for_a_while_before_it_is_told_to_end(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, parked: str
) -> None:
    """70 is the Python of a task of 7."""
    awake = threading.Event()
    monkeypatch.setattr("onceproof.harness.trial.actuator._later", lambda seconds, act: awake.wait(5) and act())
    bench.actuator.executor_of = lambda point: "worker2:7"
    bench.actuator.pause("executor", {**TASK, "process": parked}, by=FIRST, replace=True)
    assert bench.machines.stopped == ["what ends worker2:7", "worker2:7"]
    bench.actuator.resume("executor", TASK, paused_by=FIRST)
    assert bench.machines.going_on[0] == parked
    assert "what ends worker2:7" in bench.machines.stopped
    awake.set()
    assert bench.actuator.settle(5) == []
    assert "worker2:7" in bench.machines.going_on
    assert "what ends worker2:7" not in bench.machines.stopped, "the trial's end waits for it"


def test_each_pause_resumes_the_process_that_it_stopped(bench: Bench) -> None:
    bench.actuator.pause("broker", BROKER, by=FIRST)
    bench.actuator.pause("broker", OTHER_BROKER, by=SECOND)
    bench.actuator.resume("broker", BROKER, paused_by=FIRST)
    assert bench.machines.stopped == ["kafka-2:1"]
    bench.actuator.resume("broker", OTHER_BROKER, paused_by=SECOND)
    assert bench.machines.stopped == []


def test_resume_lets_the_last_one_go_on_that_is_still_stopped(bench: Bench) -> None:
    bench.actuator.pause("broker", BROKER, by=FIRST)
    bench.actuator.pause("broker", OTHER_BROKER, by=SECOND)
    for still_stopped in (["kafka-1:1"], []):
        bench.actuator.resume("broker", OTHER_BROKER)
        assert bench.machines.stopped == still_stopped
    assert [fields["process"] for fields in bench.named("process.resumed")] == ["kafka-2:1", "kafka-1:1"]


def test_a_pause_that_was_ended_before_its_time_resumes_nothing_again(bench: Bench) -> None:
    bench.actuator.pause("broker", BROKER, by=FIRST)
    bench.actuator.resume("broker", OTHER_BROKER)
    assert bench.actuator.resume("broker", BROKER, paused_by=FIRST) == "it had been resumed before"
    assert len(bench.named("process.resumed")) == 1


def test_what_could_not_be_resumed_is_tried_again_at_the_end_of_the_job(bench: Bench) -> None:
    bench.actuator.pause("broker", BROKER, by=FIRST)
    bench.machines.broken = "it does not go on"
    with pytest.raises(EffectError, match="it does not go on"):
        bench.actuator.resume("broker", BROKER, paused_by=FIRST)
    bench.machines.broken = None
    assert bench.actuator.settle(5) == []
    assert bench.machines.stopped == []


def test_what_is_stopped_at_the_end_of_the_job_is_resumed_and_nothing_is_stopped_any_more(bench: Bench) -> None:
    bench.actuator.pause("broker", BROKER, by=FIRST)
    bench.actuator.pause("executor", TASK, by=SECOND)
    assert bench.actuator.settle(5) == []
    assert bench.machines.stopped == []
    with pytest.raises(EffectError, match=r"kafka-1:1 \(broker\) is not stopped: the job has ended"):
        bench.actuator.pause("broker", BROKER, by=FIRST)
    assert bench.machines.stopped == []


@pytest.mark.parametrize(
    ("target", "point", "failures"),
    [("broker", BROKER, ["kafka-1:1 (broker) was not resumed: it does not go on"]), ("executor", TASK, [])],
)
def test_a_broker_that_cannot_be_resumed_is_a_failure_of_the_environment_and_a_dead_executor_is_none(
    bench: Bench, target: str, point: dict[str, Any], failures: list[str]
) -> None:
    bench.actuator.pause(target, point, by=FIRST)
    bench.machines.broken = "it does not go on"
    assert bench.actuator.settle(5) == failures
    assert len(bench.named("environment.failure")) == len(failures)


KILLS = [
    ("broker", BROKER, "broker.registered", {"broker": 1}),
    ("node", TASK, "node.registered", {"node": "worker2"}),
    ("postgres", TASK, "server.back", {"server": "postgres"}),
]


@pytest.mark.parametrize(("target", "point", "event", "fields"), KILLS)
def test_what_was_killed_is_back_when_the_delay_of_its_restart_is_over(
    bench: Bench, target: str, point: dict[str, Any], event: str, fields: dict[str, Any]
) -> None:
    assert bench.actuator.kill(target, point, restart_after=0.01) == "killed"
    assert bench.wait_for(event) == fields | {"detail": "registered"}


@pytest.mark.parametrize(("target", "point", "event", "fields"), KILLS)
def test_what_is_away_at_the_end_of_the_job_is_started_at_once_and_nothing_is_killed_any_more(
    bench: Bench, target: str, point: dict[str, Any], event: str, fields: dict[str, Any]
) -> None:
    bench.actuator.kill(target, point, restart_after=LONG)
    assert len(bench.machines.away) == 1
    assert bench.actuator.settle(5) == []
    assert bench.named(event) == [fields | {"detail": "registered"}]
    with pytest.raises(EffectError, match="is not killed: the job has ended"):
        bench.actuator.kill(target, point)
    assert bench.machines.away == []


def test_a_broker_that_does_not_come_back_is_a_failure_of_the_environment(bench: Bench) -> None:
    bench.actuator.kill("broker", BROKER, restart_after=LONG)
    bench.machines.broken = "its port is taken"
    assert bench.actuator.settle(5) == ["broker 1 did not come back: its port is taken"]
    assert bench.named("environment.failure") == [{"broker": 1, "part": "broker 1", "detail": "its port is taken"}]


def test_a_broker_that_is_away_keeps_no_command_alive(bench: Bench) -> None:
    bench.actuator.kill("broker", BROKER, restart_after=LONG)
    assert [one.name for one in threading.enumerate() if one.name == "restart of broker 1" and one.daemon]


class Roles:
    """Brokers 1 to 3, of which the second is the controller."""

    def find(self, which: str, point: Mapping[str, Any]) -> list[int]:
        return [1, 2, 3] if which == "all" else [2]


def test_a_broker_that_the_plan_names_dies_wherever_the_thread_is_parked(bench: Bench) -> None:
    bench.actuator.brokers = Roles()  # type: ignore[assignment]
    bench.actuator.kill("broker", TASK, restart_after=LONG, which="controller")
    assert bench.machines.away == ["kafka-2:1"]
    assert bench.actuator.settle(5) == []
    assert bench.named("broker.registered") == [{"broker": 2, "detail": "registered"}]


def test_all_brokers_die_and_come_back_as_one(bench: Bench) -> None:
    bench.actuator.brokers = Roles()  # type: ignore[assignment]
    assert bench.actuator.kill("broker", TASK, restart_after=LONG, which="all") == "killed; killed; killed"
    assert sorted(bench.machines.away) == ["kafka-1:1", "kafka-2:1", "kafka-3:1"]
    assert bench.actuator.settle(5) == []
    assert [event["broker"] for event in bench.named("broker.registered")] == ["brokers 1 and 2 and 3"]
