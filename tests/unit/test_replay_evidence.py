"""A fault counts only if the journal shows, after it, the replay that it must cause: the table in docs/verdict.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from onceproof.assertions import FaultReport, Open
from onceproof.assertions.replay import examine
from paper_trial import PARTITION, Paper, byte_equal, cut_off_in_batch_1, evidence, fault, task_of


def report(paper: Paper, text: str, number: int = 0, **more: Any) -> FaultReport:
    plan = [fault(one) for one in text.split("; ")]
    return examine(number, evidence(None, paper, *plan, **more))[0]


def landed(paper: Paper, text: str, **more: Any) -> bool:
    plan = [fault(one) for one in text.split("; ")]
    return examine(0, evidence(None, paper, *plan, **more))[1] is None


def seen(paper: Paper, text: str, **more: Any) -> str | None:
    found: str | None = report(paper, text, **more).replay["seen"]
    return found


def in_batch_1(phase: str, edge: str | None, **point: object) -> Paper:
    """Batch 0 is done, batch 1 is with the sink, and the driver dies at this phase of it."""
    paper = Paper().start().batches(1, 0).planned(1, 1)
    if phase != "batch.offsets":
        paper.hand_over(1, 1)
    if (phase, edge) not in (("batch.offsets", "after"), ("sink.write", "before")):
        paper.point(phase, edge, 1, 1, **point)
    return paper.killed_here().exited(1, -9, planned=True)


KILL = "{} -> kill(driver)"


def written(phase: str, edge: str | None) -> str:
    """A point of batch 1 as a plan has it."""
    row = ", row=5" if phase == "task.row" else ""
    return f"{phase}:{edge}[batch=1{row}]" if edge else f"{phase}[sink.py:3][batch=1]"


# --- kill(driver) ---


def test_query_start_needs_a_new_run_of_the_same_query() -> None:
    text = KILL.format("query.start:before")
    killed = Paper().start().killed_here().exited(1, -9, planned=True)
    assert seen(killed, text) is None
    assert seen(killed.start(2), text) == "run r2 started in local:2"


def test_a_run_of_another_query_is_no_evidence() -> None:
    killed = Paper().start().killed_here().point("query.start", "before", 2, query="other")
    assert seen(killed, KILL.format("query.start:before")) is None


def test_a_report_of_the_dying_process_is_no_new_run() -> None:
    paper = (
        Paper()
        .add("fault.reached", fault=0, process=None, point=None)
        .add("fault.fired", fault=0, number=0, action="kill(driver)")
    )
    paper.start(1).confirmed()
    assert seen(paper, KILL.format("at(3s)")) is None
    assert seen(paper.start(2), KILL.format("at(3s)")) == "run r2 started in local:2"


def test_a_line_before_the_first_query_starts_needs_a_run_of_it() -> None:
    text = "line[sink.py:3][when=start] -> kill(driver)"
    paper = Paper().add("driver.started", incarnation=1, process="local:1")
    paper.reached(phase="line", file="sink.py", line=3, when="start", process="local:1").fired()
    paper.exited(1, -9, planned=True)
    assert seen(paper, text) is None
    assert seen(paper.start(2), text) == "run r2 started in local:2"


def test_a_kill_at_a_moment_before_any_run_began_interrupted_nothing() -> None:
    paper = Paper().add("driver.started", incarnation=1, process="local:1")
    paper.add("fault.reached", fault=0).fired().exited(1, -9, planned=True).start(2).batches(2, 0, 1, 2, 3, 4).exited(2)
    assert seen(paper, KILL.format("at(3s)")) is None


def test_before_the_offset_log_the_new_run_plans_the_batch() -> None:
    text = KILL.format("batch.offsets:before[batch=1]")
    killed = Paper().start().batches(1, 0).point("batch.offsets", "before", 1, 1).killed_here().start(2)
    assert seen(killed, text) is None
    assert seen(killed.planned(2, 1), text) == "run r2 planned batch 1"


def test_after_the_offset_log_the_new_run_hands_the_same_offsets_over() -> None:
    text = KILL.format("batch.offsets:after[batch=1]")
    assert seen(in_batch_1("batch.offsets", "after").start(2), text) is None
    good = in_batch_1("batch.offsets", "after").start(2).hand_over(2, 1)
    assert seen(good, text) == "run r2 (local:2) handed batch 1 to the sink, and did not write offsets/1 again"


def test_after_the_offset_log_a_batch_that_is_planned_again_is_no_replay() -> None:
    text = KILL.format("batch.offsets:after[batch=1]")
    assert seen(in_batch_1("batch.offsets", "after").start(2).planned(2, 1).hand_over(2, 1), text) is None


SECOND = [
    ("sink.write", "before"),
    ("task.run", "before"),
    ("task.run", "after"),
    ("task.row", "before"),
    ("task.commit", "before"),
    ("task.commit", "after"),
    ("sink.commit", "before"),
    ("sink.commit", "after"),
    ("line", None),
    ("sink.write", "after"),
    ("batch.commit", "before"),
]


@pytest.mark.parametrize(("phase", "edge"), SECOND)
def test_within_the_batch_it_is_handed_over_again_with_the_same_offsets(phase: str, edge: str | None) -> None:
    text = KILL.format(written(phase, edge))
    good = in_batch_1(phase, edge).start(2).hand_over(2, 1)
    assert seen(good, text) == f"run r2 (local:2) handed batch 1 to the sink, {byte_equal(1)}"
    assert landed(good, text)


@pytest.mark.parametrize(("phase", "edge"), SECOND)
def test_within_the_batch_nothing_else_is_evidence(phase: str, edge: str | None) -> None:
    text = KILL.format(written(phase, edge))
    assert seen(in_batch_1(phase, edge), text) is None
    assert seen(in_batch_1(phase, edge).start(2), text) is None
    assert seen(in_batch_1(phase, edge).start(2).batches(2, 2, 3), text) is None
    assert seen(in_batch_1(phase, edge).start(2).hand_over(2, 1, "other"), text) is None
    assert seen(in_batch_1(phase, edge).start(2).hand_over(2, 1, None), text) is None
    assert not landed(in_batch_1(phase, edge).start(2).batches(2, 2, 3), text)


def beside_the_commit(*edges: str) -> Paper:
    """Batch 1 is being committed, and a thread of the sink's own reaches a line."""
    paper = Paper().start().batches(1, 0).hand_over(1, 1).point("sink.write", "after", 1, 1)
    for edge in edges:
        paper.point("batch.commit", edge, 1, 1)
    return paper.point("line", None, 1, 1, file="sink.py", line=3).killed_here().exited(1, -9, planned=True).start(2)


def test_a_thread_beside_the_query_may_be_struck_when_its_batch_has_been_committed() -> None:
    text = KILL.format("line[sink.py:3][batch=1]")
    assert seen(beside_the_commit("before", "after").batches(2, 2), text) == "run r2 (local:2) went on with batch 2"
    assert seen(beside_the_commit("before", "after").hand_over(2, 1), text) is None
    assert seen(beside_the_commit("before").batches(2, 2), text) == "run r2 (local:2) went on with batch 2"
    assert seen(beside_the_commit("before").hand_over(2, 1), text) is not None
    assert seen(beside_the_commit("before"), text) is None
    assert seen(beside_the_commit().batches(2, 2), text) is None


def test_what_was_found_instead_is_reported() -> None:
    text = KILL.format("sink.commit:after[batch=1]")
    other = in_batch_1("sink.commit", "after").start(2).hand_over(2, 1, "other")
    problem = examine(0, evidence(None, other, fault(text)))[1]
    assert problem == (
        f"the replay evidence of fault {text!r} is missing: required was that batch 1 is handed over a second time, "
        "offsets/1 byte-equal (run r2 (local:2) handed batch 1 to the sink, but offsets/1 differs or its digest is "
        "unknown)"
    )


def test_after_the_commit_log_the_batch_never_comes_again_and_the_next_does() -> None:
    text = KILL.format("batch.commit:after[batch=1]")
    assert seen(in_batch_1("batch.commit", "after").start(2).batches(2, 2), text) == (
        "run r2 (local:2) went on with batch 2"
    )
    assert seen(in_batch_1("batch.commit", "after"), text) is None
    assert seen(in_batch_1("batch.commit", "after").start(2), text) is None
    assert seen(in_batch_1("batch.commit", "after").start(2).batches(2, 1, 2), text) is None


def test_after_the_last_commit_the_new_run_ends_cleanly() -> None:
    text = KILL.format("batch.commit:after[batch=1]")
    done = in_batch_1("batch.commit", "after").start(2)
    assert seen(done.exited(2, 1, error="E"), text) is None
    assert seen(done.exited(3, 0), text) == "run r2 (local:2) had nothing left to do and ended cleanly"
    done.journal[-1] = {"event": "driver.stayed", "incarnation": 3}
    assert seen(done, text) == "run r2 (local:2) had nothing left to do and ended cleanly", "and it had to be ended"


def test_the_run_after_the_next_may_bring_the_evidence() -> None:
    text = "sink.commit:after[batch=1] -> kill(driver); query.start:before#2 -> kill(driver)"
    paper = in_batch_1("sink.commit", "after").start(2).killed_here(fault=1).exited(2, -9, planned=True)
    paper.start(3).hand_over(3, 1)
    assert seen(paper, text) == f"run r3 (local:3) handed batch 1 to the sink, {byte_equal(1)}"
    assert report(paper, text, number=1).replay["seen"] == "run r3 started in local:3"


def test_each_kill_needs_a_replay_of_its_own() -> None:
    text = "sink.write:after[batch=1] -> kill(driver); sink.write:after[batch=1]#2 -> kill(driver)"
    paper = in_batch_1("sink.write", "after").start(2).hand_over(2, 1).point("sink.write", "after", 2, 1)
    paper.killed_here(fault=1)
    assert report(paper, text, number=0).replay["seen"] is not None
    assert report(paper, text, number=1).replay["seen"] is None
    assert report(paper.start(3).hand_over(3, 1), text, number=1).replay["seen"] is not None


# --- kill(executor), kill(worker) ---

EXECUTOR = "task.commit:before[batch=1, partition=0] -> kill(executor)"


def executor_dead() -> Paper:
    return Paper().start().hand_over(1, 1).task(1, 1, 0, "local:7").killed_here("kill(executor)")


def test_a_dead_executor_needs_a_higher_attempt_of_the_same_task() -> None:
    assert seen(executor_dead().task(1, 1, 1, "local:8"), EXECUTOR) == "attempt 1 of task 0 of batch 1 ran in local:8"


def test_the_same_attempt_or_another_task_is_no_evidence() -> None:
    other = task_of(1, "local:8") | {"partition": 2}
    paper = (
        executor_dead().task(1, 1, 0, "local:7").point("task.commit", "before", 1, 1, **other).task(1, 2, 1, "local:8")
    )
    assert seen(paper, EXECUTOR) is None


def test_a_worker_killed_where_tasks_are_not_repeated_needs_another_run_of_the_batch() -> None:
    text = "task.row:before[batch=1, row=5] -> kill(worker)"
    paper = Paper().start().hand_over(1, 1).point("task.row", "before", 1, 1, **task_of(0, "local:1"))
    paper.killed_here("kill(worker)").exited(1, 1, error="worker died")
    assert seen(paper, text) is None
    assert seen(paper.start(2).hand_over(2, 1), text) == "run r2 (local:2) handed batch 1 over again"


def test_an_executor_killed_at_a_moment_without_a_task_needs_its_death_only() -> None:
    text = "at(3s) -> kill(executor)"
    paper = Paper().start().add("fault.reached", fault=0).fired("kill(executor)", process="local:7")
    assert seen(paper, text) == "local:7 died"
    assert report(paper, text).process == "local:7"


def numbered(process: str, point: str) -> Paper:
    """Two tasks run, each in its executor, and the plan kills that of one."""
    paper = Paper().start().hand_over(1, 1)
    for one, partition in (("w:8", 1), ("w:7", 0)):
        task = task_of(0, one) | {"partition": partition, "task": partition}
        paper.point("task.run", "before", 1, 1, **task)
    if point == "sink.write:before":
        paper.hand_over(1, 1)
    paper.reached_last().fired("kill(executor[1])", confirmed=False)
    paper.add("process.ended", fault=0, number=0, target="executor", process=process, detail="dead")
    return paper.confirmed("kill(executor[1])")


@pytest.mark.parametrize("point", ["task.run:before", "sink.write:before"])
def test_an_executor_killed_by_its_number_needs_a_second_attempt_of_its_own_task(point: str) -> None:
    text = f"{point}[batch=1] -> kill(executor[1])"
    of_the_parked, of_the_dead = (task_of(1, "w:9") | {"partition": partition} for partition in (0, 1))
    paper = numbered("w:8", point).point("task.run", "before", 1, 1, **of_the_parked)
    assert seen(paper, text) is None
    assert seen(paper.point("task.run", "before", 1, 1, **of_the_dead), text) == (
        "attempt 1 of task 1 of batch 1 ran in w:9"
    )
    assert seen(numbered("w:5", point), text) == "w:5 died"


def test_an_executor_killed_at_a_moment_with_a_task_needs_its_second_attempt() -> None:
    text = "at(3s) -> kill(executor)"
    paper = Paper().start().hand_over(1, 1).point("task.run", "before", 1, 1, **task_of(0, "local:7"))
    paper.add("fault.reached", fault=0).fired("kill(executor)", process="local:7")
    assert seen(paper, text) is None
    assert seen(paper.point("task.run", "before", 1, 1, **task_of(1, "local:8")), text) is not None


# --- kill(broker) ---

BROKER = "txn.prepare:after -> kill(broker) then restart(broker, after=2s)"


def broker_dead() -> Paper:
    paper = Paper().start().hand_over(1, 1)
    paper.add("point", phase="txn.prepare", edge="after", role="broker", process="local:4", transactional_id="job-0")
    return paper.killed_here("kill(broker)")


def test_a_dead_broker_registers_again_and_its_transaction_is_complete() -> None:
    back = broker_dead().add("broker.registered", broker=1, detail="epoch 7")
    assert seen(broker_dead(), BROKER) is None
    assert seen(back, BROKER) == "broker 1 registered again, transaction job-0 complete"
    assert landed(back, BROKER)
    moved = broker_dead().add("txn.coordinator", transactional_id="job-0", before=1, broker=3)
    moved.add("broker.registered", broker=1, detail="epoch 7")
    assert seen(moved, BROKER) == "broker 1 registered again, transaction job-0 complete (coordinator now: broker 3)"
    assert seen(back, BROKER, hanging=[Open("kafka", "job-0", "PrepareCommit")]) is None
    assert seen(back, BROKER, hanging=[Open("kafka", "another", "Ongoing")]) is not None


# --- partition ---

CUT = f"sink.write:before[batch=1] -> {PARTITION}"


def test_a_partition_is_cut_and_healed_and_needs_no_replay() -> None:
    healed = cut_off_in_batch_1().healed().finish(1, 1)
    assert seen(healed, CUT) == "driver:1 was cut off from broker2 and healed after 2.0 s"
    assert landed(healed, CUT)
    assert report(healed, CUT).confirmed is True


def test_a_replay_after_a_partition_is_not_forbidden() -> None:
    replayed = (
        cut_off_in_batch_1().exited(1, 1, error="TimeoutException").healed().start(2).batches(2, 1, 2, 3, 4).exited(2)
    )
    assert landed(replayed, CUT)


def test_a_partition_that_was_never_healed_has_not_landed() -> None:
    unhealed = cut_off_in_batch_1().finish(1, 1).batches(1, 2, 3, 4).exited()
    assert seen(unhealed, CUT) is None
    assert examine(0, evidence(None, unhealed, fault(CUT)))[1] == (
        f"the replay evidence of fault {CUT!r} is missing: required was that the driver is cut off from broker2, "
        "and the network between them healed (the network between driver:1 and broker2 was not healed)"
    )


@pytest.mark.parametrize(
    "other", [{"peer": "broker3"}, {"peer": None}, {"process": "worker1:1"}], ids=["peer", "everything", "process"]
)
def test_the_healing_of_another_partition_is_no_evidence(other: dict[str, Any]) -> None:
    assert seen(cut_off_in_batch_1().healed(**other), CUT) is None


def test_a_partition_without_its_cut_in_the_journal_has_not_landed() -> None:
    fired = Paper().start().hand_over(1, 1).cut().healed().reached_last().fired(PARTITION)
    assert seen(fired, CUT) is None, "what comes before the fault is not of it"
    assert seen(fired.cut(peer=None).healed(peer=None), CUT) is None
    assert seen(fired.cut(target="executor").healed(target="executor"), CUT) is None
    assert seen(fired.healed(), CUT) is None
    assert seen(fired.cut().healed(), CUT) is not None


def test_a_partition_counts_only_if_its_cut_was_confirmed() -> None:
    unconfirmed = cut_off_in_batch_1(confirmed=False).healed().finish(1, 1)
    assert report(unconfirmed, CUT).confirmed is False
    assert not landed(unconfirmed, CUT)


def test_a_partition_from_every_other_machine_names_no_peer() -> None:
    text = "at(3s) -> partition(executor, for=20s)"
    paper = Paper().start().add("fault.reached", fault=0).fired("partition(executor, for=20s)", confirmed=False)
    paper.cut("executor", None, "worker1:7").confirmed("partition(executor, for=20s)")
    assert seen(paper, text) is None
    assert seen(paper.healed("executor", "broker1", "worker1:7"), text) is None
    assert seen(paper.healed("executor", None, "worker1:7"), text) == (
        "worker1:7 was cut off from every other machine and healed after 3.0 s"
    )


def test_each_of_several_partitions_is_cut_and_healed() -> None:
    other = PARTITION.replace("broker2", "broker3")
    text = f"{CUT} then {other}"
    paper = cut_off_in_batch_1()
    assert not report(paper.healed(), text).confirmed, "the other one was not confirmed"
    paper.fired(other, confirmed=False).cut(peer="broker3").confirmed(other)
    assert report(paper, text).confirmed
    assert seen(paper, text) is None
    assert seen(paper.healed(peer="broker3"), text) == (
        "driver:1 was cut off from broker2 and healed after 2.0 s, and "
        "driver:1 was cut off from broker3 and healed after 2.0 s"
    )


def test_a_partition_before_which_its_fault_failed_was_not_seen() -> None:
    text = "sink.write:before[batch=1] -> kill(driver) then partition(driver, for=1s)"
    paper = Paper().start().hand_over(1, 1).reached_last().fired("kill(driver)", confirmed=False)
    paper.add("fault.failed", fault=0, action="kill(driver)", error="it lives").start(2).hand_over(2, 1)
    assert seen(paper, text) is None
    assert report(paper, text).error == "it lives"


# --- pause, delay ---


@pytest.mark.parametrize("action", ["pause(driver, for=2s)", "delay(2s)"])
def test_a_paused_process_goes_on(action: str) -> None:
    text = f"sink.write:before[batch=1] -> {action}"
    paper = Paper().start().hand_over(1, 1).reached_last().fired(action)
    assert seen(paper, text) is None
    assert seen(paper.point("sink.write", "after", 1, 1), text) == "local:1 reported sink.write afterwards"


def test_among_many_thousand_reports_of_others_it_is_found_in_no_time() -> None:
    text = "line[s.py:7][batch=1]#1 -> delay(2s)"
    paper = Paper().start().hand_over(1, 1).point("line", None, 1, 1, file="s.py", line=7, role="python-driver")
    paper.reached_last().fired("delay(2s)").start(2)
    for _ in range(20_000):
        paper.point("line", None, 2, 1, file="s.py", line=7, role="python-driver")
    began = time.process_time()
    assert seen(paper, text) is None
    assert seen(paper.point("sink.write", "after", 1, 1), text) == "local:1 reported sink.write afterwards"
    assert time.process_time() - began < 10, "not a look at all of them for each"


KEPT = "delay(longest=2s) until sink.write:before[batch=2]"


def kept_in_batch_1(**more: Any) -> Paper:
    paper = Paper().start().hand_over(1, 1).reached_last().fired(KEPT, confirmed=False)
    return paper.add("resumed", fault=0, process="local:1", **more).confirmed(KEPT)


def test_a_thread_was_kept_if_its_point_was_reported_meanwhile_whatever_became_of_its_process() -> None:
    text = f"sink.write:before[batch=1] -> {KEPT}"
    assert seen(kept_in_batch_1(reached=True), text) == "it was reported while the thread was kept"


def test_a_thread_that_was_let_go_before_goes_on_or_its_driver_fails_of_it() -> None:
    text = f"sink.write:before[batch=1] -> {KEPT}"
    assert seen(kept_in_batch_1(reached=False), text) is None
    assert seen(kept_in_batch_1(reached=False).exited(1, -9, planned=True).start(2).batches(2, 1), text) is None
    went_on = kept_in_batch_1(reached=False).point("sink.write", "after", 1, 1)
    assert seen(went_on, text) == "local:1 reported sink.write afterwards"
    failed = kept_in_batch_1(reached=False).exited(1, 1).start(2).batches(2, 1)
    assert seen(failed, text) == "the driver ended by itself with code 1 meanwhile"


def test_a_driver_that_is_replaced_is_not_the_same_process() -> None:
    text = "sink.write:before[batch=1] -> pause(driver) until batch.commit:after[batch=1]"
    paper = Paper().start().hand_over(1, 1).reached_last().fired("pause(driver) until batch.commit:after[batch=1]")
    assert seen(paper.start(2).batches(2, 1), text) is None


def test_a_replaced_driver_that_ends_by_itself_has_gone_on() -> None:
    text = "batch.commit:before[batch=1] -> pause(driver) until batch.commit:after[batch=1]"
    paper = Paper().start().hand_over(1, 1).point("batch.commit", "before", 1, 1).reached_last()
    paper.fired("pause(driver) until batch.commit:after[batch=1]", confirmed=False)
    paper.start(2).batches(2, 1).confirmed("pause(driver) until batch.commit:after[batch=1]")
    assert seen(paper, text) is None
    assert seen(paper.batches(2, 2, 3, 4).exited(2), text) is None, "the end of another driver says nothing of it"
    ended = "the driver that had been replaced ended by itself with code 1 afterwards"
    assert seen(paper.exited(1, 1, error="CONCURRENT_STREAM_LOG_UPDATE"), text) == ended


def test_a_replaced_driver_that_is_killed_before_it_goes_on_needs_that_the_other_one_had_the_batch() -> None:
    pause = "pause(driver, longest=30s) until batch.commit:after[batch=1]"
    text = f"sink.write:before[batch=1] -> {pause} then kill(driver)"

    def paused() -> Paper:
        return Paper().start().hand_over(1, 1).reached_last().fired(pause, confirmed=False).start(2)

    def killed(paper: Paper) -> Paper:
        paper.add("resumed", fault=0, process="local:1", reached=True, given_up=False)
        return paper.confirmed(pause).fired("kill(driver)").exited(1, -9, planned=True)

    handed_over = "it was handed the batch, and the first one did not go on"
    assert seen(killed(paused().batches(2, 1)), text) == handed_over
    assert seen(killed(paused()).batches(2, 1), text) is None, "it came to the batch behind the first one's death"
    unconfirmed = paused().batches(2, 1).add("resumed", fault=0, process="local:1", reached=True).confirmed(pause)
    assert report(unconfirmed.fired("kill(driver)", confirmed=False), text).confirmed is False


def test_a_paused_driver_may_have_nothing_more_to_report() -> None:
    text = "batch.commit:after[batch=4] -> pause(driver, for=2s)"
    paper = Paper().start().batches(1, 4).reached_last().fired("pause(driver, for=2s)").exited()
    assert seen(paper, text) == "the driver ended cleanly afterwards"


def test_a_paused_driver_whose_query_ended_and_that_had_to_be_ended_has_gone_on() -> None:
    text = "batch.commit:after[batch=4] -> pause(driver, for=2s)"
    paper = Paper().start().batches(1, 4).reached_last().fired("pause(driver, for=2s)")
    paper.add("driver.stayed", incarnation=1, seconds=90.0)
    assert seen(paper.exited(1, -9, planned=True), text) == "the driver's query ended afterwards"


# --- fail ---

FAIL = "line[sink.py:9][batch=1] -> fail(error=psycopg.OperationalError)"


def failed() -> Paper:
    paper = Paper().start().hand_over(1, 1).point("line", None, 1, 1, role="python-driver")
    return paper.reached_last().fired("fail(error=psycopg.OperationalError)")


def test_an_error_that_ends_the_driver_was_seen_by_the_engine() -> None:
    found = report(failed().exited(1, 1, error="OperationalError: injected").start(2).hand_over(2, 1), FAIL)
    assert found.swallowed is False
    assert found.replay["seen"] == "the driver ended with code 1: OperationalError: injected"


def test_an_error_in_a_task_is_seen_by_its_next_attempt() -> None:
    text = "task.row:before[batch=1, row=5] -> fail"
    paper = Paper().start().hand_over(1, 1).task(1, 1, 0).reached_last().fired("fail")
    found = report(paper.task(1, 1, 0).task(1, 1, 1).finish(1, 1), text)
    assert (found.swallowed, found.replay["seen"]) == (False, "attempt 1 of task 0 of batch 1 ran afterwards")


def test_an_error_after_which_the_batch_goes_on_was_swallowed_and_counts_as_landed() -> None:
    found = report(failed().finish(1, 1).batches(1, 2).exited(), FAIL)
    assert found.swallowed is True
    assert landed(failed().finish(1, 1).batches(1, 2).exited(), FAIL)


def test_an_error_that_ends_the_query_was_seen_though_its_driver_stays_and_has_to_be_ended() -> None:
    paper = failed().add("query.ended", process="local:1").add("driver.hung", batch=1, seconds=90.0)
    found = report(paper.exited(1, -9, planned=True).start(2).batches(2, 1), FAIL)
    assert (found.swallowed, found.replay["seen"]) == (False, "the query ended, though its driver did not")
    hung = failed().add("driver.hung", batch=1, seconds=90.0).exited(1, -9, planned=True).start(2).batches(2, 1)
    assert report(hung, FAIL).swallowed is True, "a driver that hangs may not have noticed it"


def test_an_end_of_the_driver_in_a_later_batch_is_not_of_a_swallowed_error() -> None:
    assert report(failed().finish(1, 1).hand_over(1, 2).exited(1, 1, error="another"), FAIL).swallowed is True


def test_a_planned_kill_after_an_error_does_not_tell_that_the_engine_saw_it() -> None:
    text = f"{FAIL}; line[sink.py:11][batch=1] -> kill(driver)"
    paper = failed().point("line", None, 1, 1).killed_here(fault=1).exited(1, -9, planned=True).start(2).hand_over(2, 1)
    assert report(paper, text).swallowed is True


def test_other_actions_say_nothing_of_swallowing() -> None:
    assert report(executor_dead(), EXECUTOR).swallowed is None


# --- the report ---


def test_the_report_tells_what_was_reached_fired_and_confirmed() -> None:
    text = "sink.commit:after[batch=1] -> kill(driver)"
    found = report(in_batch_1("sink.commit", "after").start(2).hand_over(2, 1), text)
    assert (found.text, found.reached, found.fired, found.confirmed) == (text, True, True, True)
    assert (found.process, found.error) == ("local:1", None)
    nothing = report(Paper().start(), text)
    assert (nothing.reached, nothing.fired, nothing.confirmed, nothing.process) == (False, False, False, None)
    assert nothing.replay["seen"] is None


def test_every_action_besides_restart_must_be_confirmed() -> None:
    text = "task.commit:before[batch=1] -> kill(executor) then kill(driver)"
    paper = executor_dead().fired("kill(driver)", confirmed=False).start(2).hand_over(2, 1)
    assert report(paper, text).confirmed is False
    assert report(paper.confirmed("kill(driver)"), text).confirmed is True


def test_the_replays_of_several_actions_are_all_required() -> None:
    text = "task.commit:before[batch=1] -> kill(executor) then kill(driver)"
    paper = executor_dead().fired("kill(driver)").start(2)
    assert seen(paper, text) is None
    assert seen(paper.hand_over(2, 1), text) == (
        "run r2 (local:2) handed batch 1 over again, and run r2 (local:2) handed batch 1 to the sink, " + byte_equal(1)
    )


def test_actions_are_distinguished_by_their_number_and_not_by_their_text() -> None:
    text = "task.commit:before[batch=1] -> kill(executor) then delay(1s) then delay(1s)"
    paper = executor_dead().task(1, 1, 1, "local:8").fired("delay(1s)")
    assert report(paper, text).confirmed is False, "the second delay was not confirmed"
    assert report(paper.fired("delay(1s)"), text).confirmed is True


# --- the very process that was stopped ---


def resumed(paper: Paper, target: str, process: str, action: str) -> Paper:
    """The process was stopped and let go again, as the harness records it."""
    paper.reached_last().fired(action, confirmed=False).add("process.paused", target=target, process=process)
    return paper.add("process.resumed", target=target, process=process).confirmed(action)


def test_a_paused_executor_must_report_itself() -> None:
    text = "task.commit:before[batch=1] -> pause(executor, for=9s)"
    paper = Paper().start().hand_over(1, 1).task(1, 1, 0, "worker1:7")
    resumed(paper, "executor", "worker1:7", "pause(executor, for=9s)")
    paper.task(1, 1, 1, "worker2:8").finish(1, 1)
    assert seen(paper, text) is None, "another executor ran the task again: the paused one may be dead"
    assert seen(paper.exited(1, 0), text) is None, "the driver's end says nothing of an executor"
    assert seen(paper.task(1, 2, 0, "worker1:7"), text) == "worker1:7 reported task.commit afterwards"


def test_a_paused_executor_goes_on_in_the_python_of_the_task_that_was_stopped() -> None:
    text = "request:before[batch=1, attempt=0] -> pause(executor, for=9s)"
    own = {"role": "python-client", "process": "local:9", "partition": 0, "attempt": 0, "task": 4}
    paper = Paper().start().hand_over(1, 1).point("request", "before", 1, 1, **own)
    resumed(paper, "executor", "local:7", "pause(executor, for=9s)")
    paper.point("request", "before", 1, 1, **own | {"task": 5, "attempt": 1})
    assert seen(paper.point("request", "before", 2, 1, **own), text) is None, "other runs number theirs alike"
    assert seen(paper.point("request", "after", 1, 1, **own), text) == "local:9 reported request afterwards"


def test_an_executor_that_reports_is_no_evidence_that_the_paused_driver_goes_on() -> None:
    text = "sink.write:before[batch=1] -> pause(driver, for=2s)"
    paper = Paper().add("driver.started", incarnation=1, process="driver:1")
    paper.point("query.start", "before", 1, process="driver:20").hand_over(1, 1)
    resumed(paper, "driver", "driver:1", "pause(driver, for=2s)").task(1, 1, 0, "worker1:7")
    assert seen(paper, text) is None
    other = {"process": "driver:30", "role": "python-driver"}
    assert seen(paper.point("line", None, 1, 1, **other), text) == "driver:30 reported line afterwards"


def test_a_driver_that_is_paused_at_a_task_is_not_the_executor_that_reported() -> None:
    text = "task.commit:before[batch=1] -> pause(driver, for=2s)"
    paper = Paper().start().hand_over(1, 1).task(1, 1, 0, "worker1:7")
    resumed(paper, "driver", "local:1", "pause(driver, for=2s)").task(1, 1, 0, "worker1:7", "after")
    assert seen(paper, text) is None
    assert seen(paper.finish(1, 1), text) == "local:1 reported sink.write afterwards"


def test_a_paused_worker_goes_on_if_the_task_that_it_serves_ends() -> None:
    text = "task.row:before[batch=1, row=5] -> pause(worker, for=2s)"
    paper = Paper().start().hand_over(1, 1).point("task.row", "before", 1, 1, **task_of(0, "local:1"))
    resumed(paper, "worker", "local:99", "pause(worker, for=2s)")
    assert seen(paper.point("query.start", "before", 1), text) is None
    ended = paper.point("task.run", "after", 1, 1, **task_of(0, "local:1"))
    assert seen(ended, text) == "local:1 reported task.run afterwards"


def test_a_broker_whose_pause_is_ended_elsewhere_must_report_itself() -> None:
    text = "batch.commit:before[batch=1] -> resume(broker)"
    paper = Paper().start().hand_over(1, 1).add("process.paused", target="broker", process="local:4")
    paper.point("batch.commit", "before", 1, 1).reached_last().fired("resume(broker)", confirmed=False)
    paper.add("process.resumed", target="broker", process="local:4").confirmed("resume(broker)").finish(1, 1)
    assert seen(paper, text) is None, "that the driver goes on says nothing of the broker"
    paper.add("point", phase="txn.prepare", edge="after", role="broker", process="local:4")
    assert seen(paper, text) == "local:4 reported txn.prepare afterwards"


def test_a_broker_that_is_stopped_only_when_its_end_is_reached_proves_nothing() -> None:
    """A kill of its leader in the same fault has then come before the followers stood still."""
    text = "batch.commit:before[batch=1] -> resume(broker)"
    paper = Paper().start().hand_over(1, 1).point("batch.commit", "before", 1, 1).reached_last()
    paper.add("process.paused", target="broker", process="local:4").fired("resume(broker)", confirmed=False)
    paper.add("process.resumed", target="broker", process="local:4").confirmed("resume(broker)").finish(1, 1)
    paper.add("process.answers", target="broker", process="local:4", detail="broker 2 registered")
    assert seen(paper, text) is None


class Read(list[Any]):
    """A journal that counts how often it is read."""

    times = 0

    def __iter__(self) -> Any:
        self.times += 1
        return super().__iter__()


def times_read(paper: Paper, text: str, lines: int) -> int:
    """How often the journal is read where so many lines were reported after the fault."""
    for _ in range(lines):
        paper.point("line", None, 1, 1, role="python-worker")
    found = evidence(None, paper, fault(text))
    journal = Read(found.journal)
    examine(0, replace(found, journal=journal))
    return journal.times


@pytest.mark.parametrize(
    ("paper", "text"),
    [(failed, FAIL), (lambda: in_batch_1("line", None), KILL.format(written("line", None)))],
    ids=["fail", "kill"],
)
def test_a_journal_with_many_lines_is_not_read_once_for_each_of_them(paper: Callable[[], Paper], text: str) -> None:
    assert times_read(paper(), text, 10) == times_read(paper(), text, 1000)
