"""The injector, driven with plain sockets."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.faults.injection import Injector
from onceproof.faults.report import Batches, Malformed, Message, Stages, Tasks, read_message, to_point

from onceproof.plans import ActionReference, Point

THREAD = (
    "stream execution thread for [id = 11111111-1111-1111-1111-111111111111, "
    "runId = 22222222-2222-2222-2222-222222222222]"
)


@dataclass
class Journal:
    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    grown: threading.Condition = field(default_factory=threading.Condition)

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        with self.grown:
            self.events.append((event, dict(fields)))
            self.grown.notify_all()

    def names(self) -> list[str]:
        return [event for event, _ in self.events]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        with self.grown:
            assert self.grown.wait_for(lambda: len(self.named(event)) >= count, 5), f"no {event} in {self.names()}"
        return self.named(event)[count - 1]


@dataclass
class Acts:
    """An actuator that notes what it is asked for."""

    done: list[tuple[str, str]] = field(default_factory=list)
    pauses: list[tuple[str, ActionReference | None]] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    error: Exception | None = None
    during_kill: threading.Event | None = None
    killing: threading.Event = field(default_factory=threading.Event)

    def kill(
        self,
        target: str,
        point: Mapping[str, Any],
        *,
        by: object,
        restart_after: float = 0.0,
        which: str | None = None,
    ) -> str:
        self.killing.set()
        if self.during_kill:
            assert self.during_kill.wait(5)
        if self.error:
            raise self.error
        self.done.append(("kill", target))
        self.delays.append(restart_after)
        return f"killed {point.get('process')}"

    def pause(
        self,
        target: str,
        point: Mapping[str, Any],
        *,
        by: ActionReference,
        replace: bool = False,
        which: str | None = None,
    ) -> str:
        self.done.append(("replace" if replace else "pause", target))
        self.pauses.append(("paused", by))
        return "paused"

    def resume(self, target: str, point: Mapping[str, Any], *, paused_by: ActionReference | None = None) -> str:
        self.done.append(("resume", target))
        self.pauses.append(("resumed", paused_by))
        return "resumed"

    def cut(
        self, target: str, point: Mapping[str, Any], peer: str | None, seconds: float, *, which: str | None = None
    ) -> str:
        if self.error:
            raise self.error
        self.done.append(("partition", f"{target} from {peer} for {seconds:g} s"))
        return "nothing passes"


class Probe:
    """A process that reports: a connection and what it was answered."""

    def __init__(self, injector: Injector, token: str | None = None) -> None:
        self.token = injector.token if token is None else token
        self.socket = socket.create_connection((injector.host, injector.port), timeout=5)

    def tell(self, phase: str, edge: str | None = None, **fields: Any) -> None:
        report = {
            "phase": phase,
            "edge": edge,
            "role": "driver",
            "place": "local",
            "pid": 7,
            "thread": THREAD,
            **fields,
        }
        pairs = [f"{name}={value}" for name, value in report.items() if value is not None]
        self.socket.sendall(("\t".join([self.token, *pairs]) + "\n").encode())

    def answer(self) -> bytes:
        return self.socket.recv(4096)

    def ask(self, phase: str, edge: str | None = None, **fields: Any) -> bytes:
        self.tell(phase, edge, **fields)
        return self.answer()

    def parked(self) -> bool:
        """Whether no answer comes in a moment."""
        self.socket.settimeout(0.1)
        try:
            self.socket.recv(1)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(5)
        return False


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def acts() -> Acts:
    return Acts()


@contextmanager
def serving(plan: str, acts: Acts, journal: Journal, **options: Any) -> Iterator[Injector]:
    with Injector(parse(plan), acts, journal.record, **options) as injector:
        yield injector


KILL = "sink.commit:after[batch=1] -> kill(driver)"


def test_a_point_carries_query_run_and_process(journal: Journal, acts: Acts) -> None:
    with serving(KILL, acts, journal) as injector:
        assert Probe(injector).ask("sink.commit", "after", batch=0) == b"G"
    [point] = journal.named("point")
    assert point["query"].startswith("1111")
    assert point["run"].startswith("2222")
    assert (point["process"], point["batch"]) == ("local:7", 0)
    assert not {"pid", "place", "driver"} & point.keys()


def test_the_fault_fires_at_its_point_while_the_thread_is_parked(journal: Journal, acts: Acts) -> None:
    acts.during_kill = threading.Event()
    with serving(KILL, acts, journal) as injector:
        probe = Probe(injector)
        probe.tell("sink.commit", "after", batch=1)
        assert acts.killing.wait(5)
        assert injector.acting()
        assert probe.parked()
        assert Probe(injector).ask("task.run", "before", batch=1) == b"G"
        acts.during_kill.set()
        assert probe.answer() == b"G"
        [status] = injector.status()
    assert (status.reached, status.fired, status.confirmed, status.process) == (True, True, True, "local:7")
    assert status.text == KILL
    assert [name for name in journal.names() if name.startswith("fault")] == [
        "fault.reached",
        "fault.fired",
        "fault.confirmed",
    ]
    confirmed = journal.named("fault.confirmed")[0]
    assert (confirmed["action"], confirmed["detail"]) == ("kill(driver)", "killed local:7")


def test_a_fault_fires_once_and_its_count_goes_on_over_restarts(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:before#3 -> kill(driver)", acts, journal) as injector:
        for pid in (1, 2, 3, 4, 5):
            Probe(injector).ask("sink.write", "before", batch=0, pid=pid)
        assert injector.status()[0].process == "local:3"
    assert acts.done == [("kill", "driver")]


@pytest.mark.parametrize("fields", [{"batch": 2}, {"batch": 10}, {"edge": "before"}, {"batch": None}])
def test_other_points_do_not_match(journal: Journal, acts: Acts, fields: dict[str, Any]) -> None:
    with serving(KILL, acts, journal) as injector:
        report: dict[str, Any] = {"edge": "after", "batch": 1} | fields
        Probe(injector).ask("sink.commit", **report)
        assert not injector.status()[0].reached


def test_a_process_that_is_killed_while_parked_is_normal(journal: Journal, acts: Acts) -> None:
    acts.during_kill = threading.Event()
    with serving(KILL, acts, journal) as injector:
        probe = Probe(injector)
        probe.tell("sink.commit", "after", batch=1)
        assert acts.killing.wait(5)
        probe.socket.close()
        acts.during_kill.set()
        journal.wait_for("fault.confirmed")
    assert injector.errors == []


def test_what_a_driver_reports_while_it_is_killed_is_behind_its_death(journal: Journal, acts: Acts) -> None:
    """Two tasks of one driver reach the point at once: the second one of the plan is that of the next driver."""
    acts.during_kill = threading.Event()
    plan = "task.run:after#1 -> kill(driver); task.run:after#2 -> kill(driver)"
    with serving(plan, acts, journal) as injector:
        first = Probe(injector)
        first.tell("task.run", "after", batch=1, thread=RUNS[0])
        assert acts.killing.wait(5)
        assert Probe(injector).ask("task.run", "after", batch=1, thread=RUNS[0]) == b"G"
        assert not injector.status()[1].reached
        acts.during_kill.set()
        first.answer()
        Probe(injector).ask("task.run", "after", batch=1, thread=RUNS[1])
        assert injector.status()[1].confirmed
    assert acts.done == [("kill", "driver")] * 2


def test_an_action_that_fails_is_recorded_and_ends_the_fault(journal: Journal, acts: Acts) -> None:
    acts.error = OSError("no such process")
    plan = "sink.commit:after -> kill(driver) then delay(1m)"
    with serving(plan, acts, journal) as injector:
        assert Probe(injector).ask("sink.commit", "after", batch=1) == b"G"
        [status] = injector.status()
    assert (status.fired, status.confirmed, status.error) == (True, False, "no such process")
    assert journal.named("fault.failed") == [
        {"fault": 0, "number": 0, "action": "kill(driver)", "error": "no such process"}
    ]


def test_a_hold_parks_from_its_nth_match_until_the_fault_is_done(journal: Journal, acts: Acts) -> None:
    plan = "task.run:after#1 -> kill(driver) with hold(task.run:before#2)"
    with serving(plan, acts, journal) as injector:
        first, second = Probe(injector), Probe(injector)
        assert first.ask("task.run", "before", batch=0, partition=0) == b"G"
        second.tell("task.run", "before", batch=0, partition=1)
        journal.wait_for("hold")
        assert second.parked()
        assert injector.holding() == 1
        assert first.ask("task.run", "after", batch=0, partition=0) == b"G"
        assert second.answer() == b"G"
    assert journal.named("release")[0]["point"]["partition"] == 1
    assert acts.done == [("kill", "driver")]


def test_a_fault_waits_for_the_thread_that_it_is_to_hold(journal: Journal, acts: Acts) -> None:
    plan = "task.run:after#1 -> kill(driver) with hold(task.run:before#2)"
    with serving(plan, acts, journal, hold_wait=60) as injector:
        first, second = Probe(injector), Probe(injector)
        first.ask("task.run", "before", batch=0, partition=0)
        first.tell("task.run", "after", batch=0, partition=0)
        journal.wait_for("fault.reached")
        assert first.parked()
        assert injector.acting(), "the wait is not idle time"
        second.tell("task.run", "before", batch=0, partition=1)
        assert first.answer() == second.answer() == b"G"
    order = [event for event in journal.names() if event in ("fault.reached", "hold", "fault.fired", "release")]
    assert order == ["fault.reached", "hold", "fault.fired", "release"]


def test_a_hold_that_held_no_thread_fails_its_fault_which_then_does_nothing(journal: Journal, acts: Acts) -> None:
    plan = "task.run:after[batch=0]#1 -> kill(driver) with hold(task.run:before[batch=0]#2)"
    with serving(plan, acts, journal, hold_wait=0.01) as injector:
        probe = Probe(injector)
        probe.ask("task.run", "before", batch=0)
        assert probe.ask("task.run", "after", batch=0) == b"G"
        assert probe.ask("task.run", "before", batch=0) == b"G", "what comes too late is not held"
        [status] = injector.status()
    assert (status.reached, status.fired, status.confirmed) == (True, False, False)
    assert status.error == "hold(task.run:before[batch=0]#2) held no thread: none came there within 0.01 s"
    assert journal.named("fault.failed") == [{"fault": 0, "action": "hold", "error": status.error}]
    assert acts.done == []


def test_stages_are_numbered_within_the_batch_of_each_run_as_they_begin(journal: Journal, acts: Acts) -> None:
    plan = "task.commit:before[batch=1, stage=2] -> kill(driver)"
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        for run, batch, stages in (("a", 0, [7, 8]), ("a", 1, [11, 9, 11, 9]), ("b", 1, [4, 11])):
            for stage in stages:
                probe.ask("task.run", "before", thread="Executor", query="q", run=run, batch=batch, stage=stage)
        assert not injector.status()[0].reached
        probe.ask("task.commit", "before", thread="Executor", query="q", run="b", batch=1, stage=4)
        assert not injector.status()[0].reached
        probe.ask("task.commit", "before", thread="Executor", query="q", run="b", batch=1, stage=11)
        assert injector.status()[0].fired
    numbered = [(point["batch"], point["stage_id"], point["stage"]) for point in journal.named("point")[:8]]
    assert numbered == [
        (0, 7, 1), (0, 8, 2), (1, 11, 1), (1, 9, 2), (1, 11, 1), (1, 9, 2), (1, 4, 1), (1, 11, 2),
    ]  # fmt: skip


RUNS = [THREAD.replace("2222", number * 4) for number in "456"]
"""Threads of three runs of one query."""


@pytest.mark.parametrize(("run", "struck"), [(1, 0), (2, 1), (3, 2)])
def test_a_run_is_counted_from_the_start_of_each(journal: Journal, acts: Acts, run: int, struck: int) -> None:
    with serving(f"batch.plan:before[run={run}] -> kill(driver)", acts, journal) as injector:
        for thread in RUNS:
            probe = Probe(injector)
            probe.ask("query.start", "before", thread=thread)
            probe.ask("batch.plan", "before", thread=thread, batch=1)
            probe.ask("batch.plan", "before", thread=thread, batch=2)
    [reached] = journal.named("fault.reached")
    assert reached["point"]["run"] in RUNS[struck], "the journal keeps the run's id"
    assert reached["point"]["batch"] == 1


def test_a_run_that_never_comes_is_not_reached(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:before[run=2] -> kill(driver)", acts, journal) as injector:
        for phase in ("query.start", "sink.write"):
            Probe(injector).ask(phase, "before", thread=RUNS[0], batch=0)
        assert not injector.status()[0].reached
    assert acts.done == []


def test_what_runs_before_a_query_starts_belongs_to_the_run_to_come(journal: Journal, acts: Acts) -> None:
    at: dict[str, Any] = {"role": "python-driver", "thread": "MainThread", "file": "s.py", "line": 4}
    with serving("line[s.py:4][when=start, run=2] -> kill(driver)", acts, journal) as injector:
        for driver, thread in zip("mn", RUNS, strict=False):
            assert not injector.status()[0].reached
            Probe(injector).ask("line", driver=driver, **at)
            Probe(injector).ask("query.start", "before", thread=thread, driver=driver)
        assert injector.status()[0].fired


def test_a_task_of_another_job_group_belongs_to_the_newest_run(journal: Journal, acts: Acts) -> None:
    query = "11111111-1111-1111-1111-111111111111"
    with serving("task.run:before[run=2] -> kill(driver)", acts, journal) as injector:
        for thread in RUNS[:2]:
            assert not injector.status()[0].reached
            Probe(injector).ask("query.start", "before", thread=thread)
            Probe(injector).ask("task.run", "before", thread="Executor", query=query, run="mine", batch=1, stage=1)
        assert injector.status()[0].fired


def test_release_all_frees_what_a_fault_that_never_fires_would_hold_for_ever(journal: Journal, acts: Acts) -> None:
    plan = "task.run:after#9 -> kill(driver) with hold(task.run:before)"
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        probe.tell("task.run", "before", batch=0)
        journal.wait_for("hold")
        injector.release_all()
        assert probe.answer() == b"G"
        assert not injector.status()[0].reached


def test_a_hold_that_is_let_go_for_a_reason_fails_its_fault_which_then_does_not_fire(
    journal: Journal, acts: Acts
) -> None:
    plan = "sink.write:after -> kill(driver) with hold(task.run:before)"
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        probe.tell("task.run", "before", batch=0)
        journal.wait_for("hold")
        injector.release_all("nothing moved")
        assert probe.answer() == b"G"
        assert Probe(injector).ask("sink.write", "after", batch=0) == b"G"
        assert injector.status()[0].error == "nothing moved"
    assert journal.named("fault.failed") == [{"fault": 0, "action": "hold", "error": "nothing moved"}]
    assert acts.done == []


def test_fail_at_a_line_names_class_and_message(journal: Journal, acts: Acts) -> None:
    plan = "line[s.py:4][batch=0] -> fail(error=psycopg.OperationalError)"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "before", batch=0, driver="m")
        answer = Probe(injector).ask("line", role="python-driver", file="s.py", line=4, driver="m")
    assert answer[:1] == b"F"
    assert json.loads(answer[1:]) == {"error": "psycopg.OperationalError", "message": "injected by onceproof"}


def test_what_fails_several_times_in_a_row_fires_once_and_is_repeated(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:before[batch=0]#2 -> fail(times=3)", acts, journal) as injector:
        probe = Probe(injector)
        answers = [probe.ask("sink.write", "before", batch=0, driver="m") for _ in range(5)]
        assert [answer[:1] for answer in answers] == [b"G", b"F", b"F", b"F", b"G"]
        assert injector.status()[0].confirmed
    assert [len(journal.named(f"fault.{event}")) for event in ("reached", "fired", "repeated")] == [1, 1, 2]


LINE: dict[str, Any] = {"role": "python-driver", "thread": "Thread-5", "file": "s.py", "line": 4, "driver": "m"}


@pytest.mark.parametrize(
    ("event", "confirmed", "error"),
    [
        ("probe.raised", True, None),
        ("probe.not_raised", False, "line s.py:4 raised KeyError itself: it has not been executed"),
    ],
)
def test_fail_at_a_line_is_confirmed_by_the_probe_that_raised(
    journal: Journal, acts: Acts, event: str, confirmed: bool, error: str | None
) -> None:
    with serving("line[s.py:4][batch=0] -> fail(after=true)", acts, journal) as injector:
        probe = Probe(injector)
        probe.ask("sink.write", "before", batch=0, driver="m")
        answer = probe.ask("line", **LINE)
        assert json.loads(answer[1:])["after"] is True
        assert (injector.status()[0].fired, injector.status()[0].confirmed) == (True, False)
        for other in ({"pid": 8}, {"line": 5}, {"thread": "Thread-6"}):
            Probe(injector).ask("", event=event, error="KeyError", **LINE | other)
        assert not injector.status()[0].confirmed, "another line raised"
        probe.ask("", event="probe.error", error="about something else", **LINE)
        probe.ask("", event=event, error="KeyError", **LINE)
        [status] = injector.status()
    assert (status.confirmed, status.error) == (confirmed, error)
    assert journal.named(event)[-1] == {
        "role": "python-driver",
        "process": "local:7",
        "error": "KeyError",
        "file": "s.py",
        "line": 4,
    } | ({"phase": ""})
    assert len(journal.named("fault.confirmed")) == confirmed


def confirmed_actions(journal: Journal) -> dict[tuple[int, int], str]:
    return {(one["fault"], one["number"]): one["detail"] for one in journal.named("fault.confirmed")}


RAISED, KEPT = "line s.py:4 raised RuntimeError", "the thread was kept for 0.001 s"


@pytest.mark.parametrize(
    ("plan", "details"),
    [
        ("line[s.py:4][batch=0] -> fail then delay(1ms)", {(0, 0): RAISED, (0, 1): KEPT}),
        ("line[s.py:4][batch=0] -> delay(1ms) then fail", {(0, 0): KEPT, (0, 1): RAISED}),
        ("line[s.py:4][batch=0] -> fail; line[s.py:4][batch=0] -> delay(1ms)", {(0, 0): RAISED, (1, 0): KEPT}),
    ],
)
def test_what_is_done_besides_fail_at_a_line_is_confirmed_apart_from_it(
    journal: Journal, acts: Acts, plan: str, details: dict[tuple[int, int], str]
) -> None:
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        probe.ask("sink.write", "before", batch=0, driver="m")
        assert probe.ask("line", **LINE)[:1] == b"F"
        assert confirmed_actions(journal) == {place: detail for place, detail in details.items() if detail == KEPT}
        assert not injector.status()[0].confirmed, "the line has not raised yet"
        probe.ask("", event="probe.raised", error="RuntimeError", **LINE)
        assert all(status.confirmed for status in injector.status())
    assert confirmed_actions(journal) == details


def test_a_line_that_is_to_raise_cannot_be_told_to_raise_something_else(journal: Journal, acts: Acts) -> None:
    plan = "line[s.py:4][batch=0] -> fail(error=KeyError); line[s.py:4][batch=0] -> fail(error=OSError)"
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        probe.ask("sink.write", "before", batch=0, driver="m")
        assert json.loads(probe.ask("line", **LINE)[1:])["error"] == "KeyError"
        probe.ask("", event="probe.raised", error="KeyError", **LINE)
        first, second = injector.status()
    assert (first.confirmed, second.confirmed) == (True, False)
    assert second.error == "the line is to raise already: it can raise one exception, not two"


def test_fail_in_a_jvm_is_one_byte(journal: Journal, acts: Acts) -> None:
    with serving("sink.commit:before -> fail", acts, journal) as injector:
        assert Probe(injector).ask("sink.commit", "before", batch=0) == b"F"
        assert injector.status()[0].confirmed


def test_a_line_has_the_batch_of_the_last_hand_over_of_its_own_driver(journal: Journal, acts: Acts) -> None:
    with serving("line[s.py:4] -> kill(driver)", acts, journal) as injector:
        probe = Probe(injector)
        line: dict[str, Any] = {"role": "python-driver", "file": "s.py", "line": 4, "thread": "Thread-5"}
        probe.ask("query.start", "before", driver="1")
        assert probe.ask("line", driver="1", **line) == b"G"
        assert [point["phase"] for point in journal.named("point")] == ["query.start"], "between batches it is no point"
        probe.ask("sink.write", "before", batch=3, driver="1")
        probe.ask("line", driver="2", **line)
        assert not injector.status()[0].reached, "another driver has no batch yet"
        probe.ask("line", driver="1", **line)
        assert injector.status()[0].fired
    point = journal.named("point")[-1]
    assert (point["batch"], point["phase"]) == (3, "line")
    assert point["query"].startswith("1111")


def test_a_line_before_the_query_starts_is_meant_only_where_the_plan_says_so(journal: Journal, acts: Acts) -> None:
    plan = "line[s.py:4] -> delay(1ms); line[s.py:4][when=start]#2 -> delay(1ms)"
    with serving(plan, acts, journal) as injector:
        probe = Probe(injector)
        line: dict[str, Any] = {"role": "python-driver", "file": "s.py", "line": 4, "thread": "MainThread"}
        assert [probe.ask("line", driver=driver, **line) for driver in ("1", "2")] == [b"G", b"G"]
        in_batch, at_start = injector.status()
        assert (in_batch.fired, at_start.fired) == (False, True)
        probe.ask("query.start", "before", driver="2")
        probe.ask("sink.write", "before", batch=0, driver="2")
        probe.ask("line", driver="2", **line)
        assert injector.status()[0].fired
    assert [point.get("when") for point in journal.named("point") if point["phase"] == "line"] == [
        "start",
        "start",
        None,
    ]


def test_pause_until_a_point_goes_on_without_it_after_its_longest_time(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after -> pause(driver, longest=10ms) until batch.commit:after[batch=1]"
    with serving(plan, acts, journal) as injector:
        assert Probe(injector).ask("sink.write", "after", batch=1) == b"G"
        journal.wait_for("fault.confirmed")
        assert Probe(injector).ask("batch.commit", "after", batch=1) == b"G"
        assert injector.status()[0].confirmed


def test_the_longest_time_of_a_pause_is_what_the_jobs_stopwatch_counts(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after -> pause(driver, longest=10ms) until batch.commit:after[batch=1]"
    counted, looks = [0.0], threading.Semaphore(0)

    def look() -> float:
        looks.release()
        return counted[0]

    with serving(plan, acts, journal, stopwatch=lambda: look) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        assert all(looks.acquire(timeout=5) for _ in range(3))
        assert acts.done == [("replace", "driver")], "30 ms and more have passed, and none of them counts"
        counted[0] = 1.0
        journal.wait_for("fault.confirmed")
    assert acts.done == [("replace", "driver"), ("resume", "driver")]


@pytest.mark.parametrize(("longest", "given_up"), [("10ms", False), ("1m", True)])
def test_a_pause_that_ends_without_its_point_says_whether_it_was_given_up(
    journal: Journal, acts: Acts, longest: str, given_up: bool
) -> None:
    plan = f"sink.write:after -> pause(driver, longest={longest}) until batch.commit:after[batch=1]"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        if given_up:
            injector.release_all()
        journal.wait_for("fault.confirmed")
    [resumed] = journal.named("resumed")
    assert (resumed["reached"], resumed["given_up"]) == (False, given_up)


def test_a_process_that_goes_on_without_the_point_may_then_report_it_itself(
    journal: Journal, acts: Acts, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = "sink.write:after -> pause(driver, longest=10ms) until batch.commit:after[batch=1]"
    with serving(plan, acts, journal) as injector:
        itself = Probe(injector)

        def resume(*_: object, **more: object) -> str:
            itself.tell("batch.commit", "after", batch=1)
            journal.wait_for("point", 2)
            return "resumed"

        monkeypatch.setattr(acts, "resume", resume)
        Probe(injector).ask("sink.write", "after", batch=1)
        journal.wait_for("fault.confirmed")
        assert itself.answer() == b"G"
    [resumed] = journal.named("resumed")
    assert resumed["reached"] is False, "nobody else has"


def test_pause_until_a_point_resumes_before_the_reporter_goes_on(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after[batch=1] -> pause(driver) until batch.commit:after[batch=1] then delay(1ms)"
    with serving(plan, acts, journal) as injector:
        assert Probe(injector).ask("sink.write", "after", batch=1, pid=1) == b"G"
        assert acts.done == [("replace", "driver")]
        assert not injector.acting(), "to wait for a point is no progress"
        assert Probe(injector).ask("batch.commit", "after", batch=1, pid=2) == b"G"
        assert acts.done == [("replace", "driver"), ("resume", "driver")]
        journal.wait_for("fault.confirmed", 2)
    assert "resumed" in journal.names()


def test_what_is_killed_comes_back_after_the_time_that_the_restart_behind_it_says(journal: Journal, acts: Acts) -> None:
    kills = (f"kill(broker, which=broker{n}) then restart(broker, after={after}s)" for n, after in ((1, 5), (2, 30)))
    with serving(f"sink.write:after[batch=1] -> {' then '.join(kills)}", acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
    assert acts.delays == [5, 30]


def test_a_driver_that_is_killed_behind_its_pause_does_not_go_on_before(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after[batch=1] -> pause(driver) until batch.commit:after[batch=1] then kill(driver)"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1, pid=1)
        Probe(injector).ask("batch.commit", "after", batch=1, pid=2)
        journal.wait_for("fault.confirmed", 2)
    assert acts.done == [("replace", "driver"), ("kill", "driver")]


def test_a_request_of_a_process_that_stands_still_goes_out_when_that_goes_on(journal: Journal, acts: Acts) -> None:
    plan = "request:before[batch=1]#1 -> pause(driver) until batch.commit:after[batch=1]"
    at = {"service": "postgres", "kind": "COMMIT", "driver": "1"}
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "before", batch=1, driver="1")
        asking = Probe(injector)
        asking.tell("request", "before", thread="1", **at)
        journal.wait_for("fault.fired")
        assert asking.parked()
        assert Probe(injector).ask("batch.commit", "after", batch=1, driver="2") == b"G"
        assert asking.answer() == b"G"
    assert acts.done == [("replace", "driver"), ("resume", "driver")]


@pytest.mark.parametrize(
    ("given_up", "why"),
    [
        (True, "was not answered with OOM: its client had given it up, and sees none"),
        (False, "cannot be answered with OOM"),
    ],
)
def test_an_answer_that_no_client_gets_fails_its_fault(journal: Journal, acts: Acts, given_up: bool, why: str) -> None:
    at = {"place": "local", "pid": 7, "driver": "m", "role": "driver", "service": "redis", "thread": "redis 1"}
    point = {**at, "edge": "before", "kind": "SET"}
    with serving("request:before[kind=SET] -> answer(OOM)", acts, journal) as injector:

        def told(**fields: Any) -> bytes | None:
            return injector.receive(Message(injector.token, fields))

        Probe(injector).ask("sink.write", "before", batch=0, driver="m")
        assert told(phase="request", text="SET a b", **point) == b"AOOM"
        told(event="probe.not_answered", error="OOM", given_up=given_up, **point)
        assert not injector.status()[0].confirmed
        assert f"SET {why}" in str(injector.status()[0].error)


def test_a_thread_is_kept_until_another_reports_the_point(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:after[batch=1] -> delay until batch.commit:after[batch=1]", acts, journal) as injector:
        kept = Probe(injector)
        kept.tell("sink.write", "after", batch=1)
        journal.wait_for("fault.fired")
        assert kept.parked()
        assert not injector.acting(), "to wait for a point is no progress"
        assert injector.holding() == 1
        assert Probe(injector).ask("batch.commit", "after", batch=1) == b"G"
        assert kept.answer() == b"G"
        assert injector.status()[0].confirmed
        assert injector.holding() == 0
    assert [event["reached"] for event in journal.named("resumed")] == [True]


@pytest.mark.parametrize("phase", ["request", "lookup"])
def test_what_a_driver_asks_that_is_stopped_goes_out_when_it_goes_on(journal: Journal, acts: Acts, phase: str) -> None:
    at: dict[str, Any] = {"service": "api", "kind": "GET", "role": "driver", "driver": "m"}
    with serving(f"{phase}:before[kind=GET] -> pause(driver) until batch.commit:after", acts, journal) as injector:
        Probe(injector).ask("sink.write", "before", batch=0, driver="m")
        asked = Probe(injector)
        asked.tell(phase, "before", thread="1", **at)
        journal.wait_for("fault.fired")
        assert asked.parked()
        Probe(injector).ask("batch.commit", "after", batch=0, driver="n")
        assert asked.answer() == b"G"


def test_a_late_request_is_answered_before_that_which_it_was_kept_for_goes_on(journal: Journal, acts: Acts) -> None:
    at: dict[str, Any] = {"service": "redis", "kind": "EXEC", "role": "driver", "driver": "m"}
    plan = "request:before[kind=EXEC]#1 -> delay(longest=1m) until request:before[kind=EXEC]#1"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "before", batch=0, driver="m")
        late, next_one = Probe(injector), Probe(injector)
        late.tell("request", "before", thread="1", **at)
        journal.wait_for("fault.fired")
        next_one.tell("request", "before", thread="2", **at)
        assert late.answer() == b"L"
        assert next_one.parked()
        assert late.ask("request", "after", thread="1", **at) == b"G"
        assert next_one.answer() == b"G"


@pytest.mark.parametrize(("death", "answer"), [("kill(driver)", b"G"), ("kill(postgres)", b"L")])
def test_what_a_plan_kills_had_not_sent_the_request_that_is_kept_and_whoever_dies_of_the_wait_had(
    journal: Journal, acts: Acts, death: str, answer: bytes
) -> None:
    plan = (
        "request:before[batch=2]#1 -> delay(longest=1m) until sink.write:before[batch=3];"
        f" batch.commit:after[batch=2] -> {death}"
    )
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "before", batch=2, driver="m")
        kept = Probe(injector)
        kept.tell("request", "before", thread="1", service="redis", kind="SET", role="driver", driver="m")
        journal.wait_for("fault.fired")
        Probe(injector).ask("batch.commit", "after", batch=2, driver="m")
        Probe(injector).tell("sink.write", "before", batch=3, driver="n", thread=RUNS[0])
        assert kept.answer() == answer


def test_a_kept_thread_is_let_go_after_its_longest_time(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after -> delay(longest=10ms) until batch.commit:after[batch=1]"
    with serving(plan, acts, journal) as injector:
        assert Probe(injector).ask("sink.write", "after", batch=1) == b"G"
        assert injector.status()[0].confirmed
    assert [event["reached"] for event in journal.named("resumed")] == [False]


def test_what_follows_a_delay_is_done_while_the_thread_is_still_kept(journal: Journal, acts: Acts) -> None:
    acts.during_kill = threading.Event()
    plan = "sink.write:after[batch=1] -> delay until batch.commit:after[batch=1] then kill(driver)"
    with serving(plan, acts, journal) as injector:
        kept = Probe(injector)
        kept.tell("sink.write", "after", batch=1)
        journal.wait_for("fault.fired")
        Probe(injector).ask("batch.commit", "after", batch=1)
        assert acts.killing.wait(5)
        assert kept.parked()
        acts.during_kill.set()
        assert kept.answer() == b"G"


def test_a_thread_that_is_kept_for_a_point_that_never_comes_is_a_failed_injection(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:after -> delay until batch.commit:after[batch=1]", acts, journal) as injector:
        kept = Probe(injector)
        kept.tell("sink.write", "after", batch=1)
        journal.wait_for("fault.fired")
        injector.release_all("nothing moved")
        assert kept.answer() == b"G"
        assert not injector.status()[0].confirmed


def test_a_pause_whose_point_never_comes_ends_as_a_failed_injection(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after -> pause(driver) until batch.commit:after[batch=1]"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        injector.release_all()
        journal.wait_for("fault.failed")
        assert not injector.status()[0].confirmed
    assert acts.done[-1] == ("resume", "driver")


def test_pause_for_a_time_resumes_by_itself(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:after -> pause(driver, for=10ms)", acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        assert injector.status()[0].confirmed
    assert acts.done == [("pause", "driver"), ("resume", "driver")]


def test_a_pause_ends_what_it_began_itself_and_resume_what_was_stopped_last(journal: Journal, acts: Acts) -> None:
    plan = "sink.write:after -> delay(1ms) then pause(driver, for=1ms); batch.commit:before -> resume(driver)"
    with serving(plan, acts, journal) as injector:
        Probe(injector).ask("sink.write", "after", batch=1)
        Probe(injector).ask("batch.commit", "before", batch=1)
    itself = ActionReference(0, 1)
    assert acts.pauses == [("paused", itself), ("resumed", itself), ("resumed", None)]


def test_a_pause_that_the_end_of_the_trial_cuts_short_resumes_and_fails(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:after -> pause(broker, for=1m)", acts, journal) as injector:
        Probe(injector).tell("sink.write", "after", batch=1)
        journal.wait_for("fault.fired")
    assert journal.wait_for("fault.failed")["error"] == "the trial ended before 60 s were over"
    assert acts.done == [("pause", "broker"), ("resume", "broker")]


@pytest.mark.parametrize(
    ("action", "done"),
    [
        ("partition(driver, peer=broker2, for=1m)", "driver from broker2 for 60 s"),
        ("partition(broker, for=300ms)", "broker from None for 0.3 s"),
    ],
)
def test_a_partition_is_confirmed_before_the_thread_goes_on_and_not_waited_for(
    journal: Journal, acts: Acts, action: str, done: str
) -> None:
    with serving(f"txn.prepare:after -> {action}", acts, journal) as injector:
        assert Probe(injector).ask("txn.prepare", "after", role="broker") == b"G"
        assert acts.done == [("partition", done)]
        assert (injector.status()[0].confirmed, injector.acting()) == (True, False)
    assert journal.named("fault.confirmed")[0]["detail"] == "nothing passes"


def test_a_partition_that_cannot_be_had_fails_its_fault(journal: Journal, acts: Acts) -> None:
    acts.error = RuntimeError("broker1 from broker1 is not a partition")
    with serving("sink.write:after -> partition(driver, for=1s) then kill(driver)", acts, journal) as injector:
        assert Probe(injector).ask("sink.write", "after", batch=1) == b"G"
        [status] = injector.status()
    assert (status.fired, status.confirmed, status.error) == (True, False, "broker1 from broker1 is not a partition")
    assert acts.done == []


def test_a_moment_fires_by_the_clock(journal: Journal, acts: Acts) -> None:
    with serving("at(10ms) -> kill(driver)", acts, journal) as injector:
        assert not injector.status()[0].reached
        injector.start_clock()
        journal.wait_for("fault.confirmed")
    assert acts.done == [("kill", "driver")]


def test_a_worker_is_named_by_place_and_pid(journal: Journal, acts: Acts) -> None:
    with serving(KILL, acts, journal) as injector:
        Probe(injector).ask("task.worker", batch=1, task=4, worker=99, place="node")
    assert journal.named("point")[0]["worker"] == "node:99"


def test_a_wrong_token_is_refused_and_recorded(journal: Journal, acts: Acts) -> None:
    with serving(KILL, acts, journal) as injector:
        assert Probe(injector, token="guess").ask("sink.commit", "after", batch=1) == b""
    assert journal.names() == ["probe.refused"]


def test_a_malformed_report_is_refused_and_recorded(journal: Journal, acts: Acts) -> None:
    with serving(KILL, acts, journal) as injector:
        probe = Probe(injector)
        probe.socket.sendall(f"{injector.token}\tno report\n".encode())
        assert probe.answer() == b""
    assert "malformed" in journal.named("probe.refused")[0]["detail"]


def test_the_observer_adds_fields_and_its_failure_is_no_secret(journal: Journal, acts: Acts) -> None:
    def observe(point: Mapping[str, Any]) -> Mapping[str, Any]:
        if point["batch"] == 1:
            raise OSError("offsets/1 is gone")
        return {"offsets": "abc"}

    with serving(KILL, acts, journal, observe=observe) as injector:
        Probe(injector).ask("sink.write", "before", batch=0)
        assert Probe(injector).ask("sink.write", "before", batch=1) == b"G"
        assert "offsets/1 is gone" in injector.errors[0]
    assert journal.named("point")[0]["offsets"] == "abc"
    assert journal.named("injector.error")


def test_hello_is_recorded_with_role_and_process(journal: Journal, acts: Acts) -> None:
    with serving(KILL, acts, journal) as injector:
        probe = Probe(injector)
        probe.socket.sendall(f"{injector.token}\tevent=probe.hello\trole=python-driver\tplace=x\tpid=5\n".encode())
        assert probe.answer() == b"G"
    assert journal.events == [("probe.hello", {"role": "python-driver", "process": "x:5"})]


def test_closing_ends_parked_connections_without_an_answer(journal: Journal, acts: Acts) -> None:
    with serving("sink.write:before -> delay(1m)", acts, journal) as injector:
        probe = Probe(injector)
        probe.tell("sink.write", "before", batch=0)
        journal.wait_for("fault.fired")
    assert probe.answer() == b"", "end of file: nothing of a dead harness goes on"


def test_transactional_ids_may_be_selected_by_wildcard(journal: Journal, acts: Acts) -> None:
    from onceproof.faults.matching import matches

    selector = Point("txn.prepare", "after", {"transactional_id": "job-*", "result": "commit"})
    point = {"phase": "txn.prepare", "edge": "after", "transactional_id": "job-1-0", "result": "commit"}
    assert matches(selector, point)
    assert not matches(selector, point | {"result": "abort"})


def test_numbers_are_numbers_and_null_is_absent() -> None:
    message = read_message(b"t\tbatch=2\tquery=null\tthread=a=b\n")
    assert message.fields == {"batch": 2, "thread": "a=b"}
    with pytest.raises(Malformed):
        read_message(b"t\tbatch=two\n")
    begun = Batches()
    begun.note("", {"phase": "query.start"})
    assert to_point({"phase": "line", "pid": 1}, begun) is None


def test_what_ends_a_pause_counts_once_the_pause_has_begun(journal: Journal, acts: Acts) -> None:
    """Before that it is another one's point: of several that do the same at the same time, one may be ahead."""
    plan = (
        "request:before[batch=1]#1 -> pause(broker, which=followers) until batch.commit:before[batch=1]; "
        "request:after[batch=1]#1 -> kill(broker, which=leader) then resume(broker)"
    )
    with serving(plan, acts, journal) as injector:
        asked = {"role": "driver", "driver": "a", "service": "kafka", "kind": "Produce"}
        Probe(injector).ask("sink.write", "before", batch=1, role="driver", driver="a")
        Probe(injector).ask("request", "after", **asked)
        assert acts.done == []
        Probe(injector).ask("request", "before", **asked)
        Probe(injector).ask("request", "after", **asked)
        assert [done for done, _ in acts.done] == ["replace", "kill", "resume"]


def test_what_a_worker_or_a_thread_does_is_of_the_task_that_it_works_for() -> None:
    known = Tasks()

    def point(phase: str, **fields: Any) -> dict[str, Any]:
        return to_point({"phase": phase, "place": "a", "pid": 7, **fields}, Batches(), Stages(), known) or {}

    def task_of(found: Mapping[str, Any]) -> tuple[object, ...]:
        return tuple(found.get(name) for name in ("batch", "stage", "partition", "attempt"))

    first = {"batch": 2, "stage": 40, "partition": 1, "attempt": 0, "task": 9}
    assert "tid" not in point("task.run", edge="before", tid="71", **first)
    point("task.worker", worker=8, **first)
    assert task_of(point("file", thread="files 71")) == (2, 1, 1, 0)
    assert task_of(point("file", thread="files 72")) == (None,) * 4
    assert task_of(point("request", thread="redis 1")) == (None,) * 4, "a JVM's connection is of no thread"
    assert task_of(point("request", thread="redis 2", pid=8)) == (2, 1, 1, 0)
    point("task.run", edge="after", **first | {"run": "of another driver, which counts its tasks from 0 as well"})
    assert task_of(point("request", thread="redis 2", pid=8)) == (2, 1, 1, 0)
    point("task.run", edge="after", **first)
    assert task_of(point("file", thread="files 71")) == task_of(point("request", pid=8)) == (None,) * 4


def test_a_request_that_was_delayed_is_passed_on_late_and_any_other_thread_just_goes_on(
    journal: Journal, acts: Acts
) -> None:
    with serving("request:before -> delay(1ms); sink.write:before -> delay(1ms)", acts, journal) as injector:
        asked = {"role": "driver", "driver": "a", "service": "redis", "kind": "SET"}
        assert Probe(injector).ask("sink.write", "before", batch=0, **asked) == b"G"
        assert Probe(injector).ask("request", "before", **asked) == b"L"
