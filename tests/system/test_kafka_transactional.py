"""The two-phase commit of jobs/sinks/kafka_transactional.py, piece by piece against a real broker."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kafka.errors import InvalidTxnStateError, KafkaConnectionError
from onceproof.harness.environments.base import Environment

SINK = Path(__file__).parents[2] / "jobs" / "sinks" / "kafka_transactional.py"
QUERY = "5ee08e0e-3401-4199-8e1a-2095cf30afe7"
INPUT = '{"in":{"0":7,"1":9}}'


@pytest.fixture(scope="module")
def bootstrap(environment: Environment) -> str:
    return str(environment.addresses("harness").kafka)


@pytest.fixture(scope="module")
def sink() -> ModuleType:
    spec = importlib.util.spec_from_file_location(SINK.stem, SINK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[SINK.stem] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def topic(bootstrap: str) -> str:
    name = f"out-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    for created in admin.create_topics([NewTopic(name, 3, 1)]).values():
        created.result(30)
    return name


@pytest.fixture
def writer(sink: ModuleType, bootstrap: str, topic: str, tmp_path: Path) -> Any:
    (tmp_path / "metadata").write_text(json.dumps({"id": QUERY}))
    for batch in (0, 4):
        plan_batch(tmp_path, batch, INPUT)
    return sink.TransactionalWriter(
        {"bootstrap": bootstrap, "topic": topic, "name": topic, "checkpoint": str(tmp_path)}
    )


@pytest.fixture
def coordinators(sink: ModuleType, bootstrap: str) -> Iterator[Any]:
    with sink.Coordinators(bootstrap, deadline=20.0) as opened:
        yield opened


def rows(*names: str) -> Iterator[SimpleNamespace]:
    return iter([SimpleNamespace(key=name, value=name) for name in names])


def plan_batch(checkpoint: Path, batch: int, offsets: str, time: int = 1) -> None:
    """As Spark writes offsets/N: the version, when it was planned, where each source ends."""
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "offsets" / str(batch)).write_text(f'v1\n{{"batchTimestampMs":{time}}}\n{offsets}')


def decision(sink: ModuleType, batch: int, commits: list[Any]) -> Any:
    """The decision for the batch that the checkpoint has planned."""
    return sink.Decision(QUERY, batch, commits, [], hashlib.sha256(INPUT.encode()).hexdigest())


def run_task(sink: ModuleType, writer: Any, task: int, *names: str) -> Any:
    """What write() does once it has found its batch undecided."""
    transactional_id = f"{writer.prefix(QUERY)}{task}"
    return sink.Prepared(sink.write_transaction(writer.bootstrap, writer.topic, transactional_id, rows(*names)))


def visible(bootstrap: str, topic: str, isolation: str = "read_committed") -> list[str]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": uuid4().hex,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    ended: set[int | None] = set()
    found: list[str] = []
    deadline = time.monotonic() + 30
    while len(ended) < 3 and time.monotonic() < deadline:
        message = consumer.poll(1.0)
        if message is not None and message.error():
            ended.add(message.partition())
        elif message is not None:
            found.append((message.value() or b"").decode())
    consumer.close()
    return sorted(found)


def eventually_visible(bootstrap: str, topic: str, expected: list[str]) -> None:
    """EndTxn is answered once it is decided; the markers that open the rows to readers follow."""
    deadline = time.monotonic() + 20
    while (found := visible(bootstrap, topic)) != expected:
        assert time.monotonic() < deadline, f"expected {expected}, last seen {found}"


def test_a_task_leaves_its_transaction_open_and_no_thread_behind(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    before = set(threading.enumerate())
    prepared = run_task(sink, writer, 0, "a", "b")
    assert set(threading.enumerate()) == before
    assert coordinators.state(prepared.transaction) == "Ongoing"
    assert visible(writer.bootstrap, writer.topic) == []
    assert visible(writer.bootstrap, writer.topic, "read_uncommitted") == ["a", "b"]


def test_commit_makes_the_rows_of_all_tasks_visible_and_may_be_repeated(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    messages = [run_task(sink, writer, 0, "a"), run_task(sink, writer, 1, "b"), run_task(sink, writer, 2)]
    writer.commit(messages, 0)
    eventually_visible(writer.bootstrap, writer.topic, ["a", "b"])
    writer.commit([sink.Prepared(None)] * 3, 0)
    eventually_visible(writer.bootstrap, writer.topic, ["a", "b"])
    assert [coordinators.state(message.transaction) for message in messages[:2]] == ["CompleteCommit"] * 2


def test_a_replay_commits_the_recorded_transactions_that_a_crash_left_open(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    prepared = [run_task(sink, writer, task, name).transaction for task, name in enumerate("abc")]
    sink.decide(writer.checkpoint, decision(sink, 4, prepared), 0)
    coordinators.commit(prepared[0])
    writer.commit([sink.Prepared(None), sink.Prepared(None)], 4)
    eventually_visible(writer.bootstrap, writer.topic, ["a", "b", "c"])


def test_a_decided_batch_is_drained_but_neither_fenced_nor_written(
    sink: ModuleType, writer: Any, coordinators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = run_task(sink, writer, 0, "a").transaction
    sink.decide(writer.checkpoint, decision(sink, 4, [prepared]), 0)
    task_in_batch(sink, monkeypatch, batch=4)
    replay = rows("a")
    assert writer.write(replay) == sink.Prepared(None)
    assert list(replay) == []
    assert coordinators.state(prepared) == "Ongoing"


def test_an_undecided_batch_is_written_under_the_ids_of_query_and_task(
    sink: ModuleType, writer: Any, coordinators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run_task(sink, writer, 1, "a").transaction
    task_in_batch(sink, monkeypatch, batch=4)
    second = writer.write(rows("a")).transaction
    assert (second.transactional_id, second.producer_id) == (first.transactional_id, first.producer_id)
    assert second.epoch > first.epoch
    writer.commit([sink.Prepared(second)], 4)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def task_in_batch(sink: ModuleType, monkeypatch: pytest.MonkeyPatch, batch: int) -> None:
    ids = {"sql.streaming.queryId": QUERY, "streaming.sql.batchId": str(batch), "spark.jobGroup.id": "run"}
    context = SimpleNamespace(getLocalProperty=ids.get, partitionId=lambda: 1)
    monkeypatch.setattr(sink, "TaskContext", SimpleNamespace(get=lambda: context))


def test_a_task_without_rows_fences_its_id_and_hands_over_no_transaction(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    earlier = run_task(sink, writer, 0, "a").transaction
    assert run_task(sink, writer, 0) == sink.Prepared(None)
    assert coordinators.state(earlier) == "unknown"
    with pytest.raises(RuntimeError, match="decided to be committed"):
        coordinators.commit(earlier)
    assert visible(writer.bootstrap, writer.topic) == []


def test_a_decided_transaction_that_was_fenced_while_open_stops_the_job(sink: ModuleType, writer: Any) -> None:
    fenced = run_task(sink, writer, 0, "a").transaction
    sink.decide(writer.checkpoint, decision(sink, 0, [fenced]), 0)
    run_task(sink, writer, 0, "b")
    with pytest.raises(RuntimeError, match="Going on would hide that"):
        writer.commit([sink.Prepared(None)], 0)


def test_a_decided_transaction_that_was_aborted_stops_the_job(sink: ModuleType, writer: Any, coordinators: Any) -> None:
    aborted = run_task(sink, writer, 0, "a").transaction
    coordinators.abort(aborted)
    with pytest.raises(RuntimeError, match="InvalidTxnState"):
        coordinators.commit(aborted)


def test_a_refused_commit_counts_if_the_coordinator_shows_that_it_is_complete(
    sink: ModuleType, writer: Any, coordinators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed = run_task(sink, writer, 0, "a").transaction
    coordinators.commit(committed)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])
    monkeypatch.setattr(coordinators, "end", lambda transaction, committed: InvalidTxnStateError)
    coordinators.commit(committed)


def test_a_late_commit_of_the_last_batch_cannot_commit_the_next_one(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    last = run_task(sink, writer, 0, "a").transaction
    coordinators.commit(last)
    current = run_task(sink, writer, 0, "b").transaction
    with pytest.raises(RuntimeError, match="decided to be committed"):
        coordinators.commit(last)
    coordinators.abort(last)
    assert coordinators.state(current) == "Ongoing"
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def test_commit_aborts_what_an_attempt_with_more_tasks_left_open(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    stray = run_task(sink, writer, 7, "stray").transaction
    foreign = sink.write_transaction(writer.bootstrap, writer.topic, f"{writer.topic}-other", rows("foreign"))
    writer.commit([run_task(sink, writer, 0, "a")], 0)
    assert coordinators.state(stray) in {"PrepareAbort", "CompleteAbort"}
    assert coordinators.state(foreign) == "Ongoing"
    coordinators.abort(foreign)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def test_a_transaction_that_was_fenced_before_the_decision_is_never_decided(sink: ModuleType, writer: Any) -> None:
    messages = [run_task(sink, writer, 0, "a"), run_task(sink, writer, 1, "b")]
    run_task(sink, writer, 1, "b")
    with pytest.raises(RuntimeError, match="no longer open"):
        writer.commit(messages, 0)
    assert sink.read_decision(writer.checkpoint, QUERY, 0) is None


def test_a_batch_that_was_planned_anew_after_its_decision_stops_the_job(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    prepared = run_task(sink, writer, 0, "a").transaction
    sink.decide(writer.checkpoint, decision(sink, 4, [prepared]), 0)
    plan_batch(writer.checkpoint, 4, '{"in":{"0":7,"1":10}}')
    with pytest.raises(RuntimeError, match="batch 4 was decided for other source offsets"):
        writer.commit([sink.Prepared(None)], 4)
    assert coordinators.state(prepared) == "Ongoing"
    plan_batch(writer.checkpoint, 4, INPUT, time=2)
    writer.commit([sink.Prepared(None)], 4)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def test_nothing_is_decided_with_too_little_of_a_transactions_timeout_left(
    sink: ModuleType, writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [run_task(sink, writer, 0, "a")]
    now = time.time()
    late = SimpleNamespace(time=lambda: now + 11 * 60, monotonic=time.monotonic, sleep=time.sleep)
    monkeypatch.setattr(sink, "time", late)
    with pytest.raises(RuntimeError, match=r"has 2\d\d s left of its timeout of 900 s, too little for a restart"):
        writer.commit(messages, 0)
    assert sink.read_decision(writer.checkpoint, QUERY, 0) is None
    monkeypatch.setattr(sink, "time", time)
    writer.commit(messages, 0)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def test_a_driver_that_comes_second_follows_the_decision_of_the_first(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    first = run_task(sink, writer, 0, "a").transaction
    second = run_task(sink, writer, 1, "a").transaction
    assert sink.decide(writer.checkpoint, decision(sink, 0, [first]), 0).commits == [first]
    assert sink.decide(writer.checkpoint, decision(sink, 0, [second]), 0).commits == [first]
    writer.commit([sink.Prepared(second)], 0)
    eventually_visible(writer.bootstrap, writer.topic, ["a"])
    assert coordinators.state(second) in {"PrepareAbort", "CompleteAbort"}


def test_abort_ends_what_is_undecided_and_keeps_what_is_decided(
    sink: ModuleType, writer: Any, coordinators: Any
) -> None:
    decided, undecided = run_task(sink, writer, 0, "a"), run_task(sink, writer, 1, "b")
    sink.decide(writer.checkpoint, decision(sink, 0, [decided.transaction]), 0)
    writer.abort([decided, None], 0)
    writer.abort([None, undecided], 1)
    assert coordinators.state(decided.transaction) == "Ongoing"
    assert coordinators.state(undecided.transaction) in {"PrepareAbort", "CompleteAbort"}


def test_a_task_that_fails_ends_its_transaction(sink: ModuleType, writer: Any, coordinators: Any) -> None:
    def failing() -> Iterator[SimpleNamespace]:
        yield from rows("a", "b")
        raise ValueError("a row that cannot be computed")

    before = set(threading.enumerate())
    with pytest.raises(ValueError, match="cannot be computed"):
        sink.write_transaction(writer.bootstrap, writer.topic, f"{writer.prefix(QUERY)}0", failing())
    assert set(threading.enumerate()) == before
    assert coordinators.others_open(writer.prefix(QUERY), []) == []


def test_a_row_that_is_refused_fails_the_task(sink: ModuleType, writer: Any) -> None:
    with pytest.raises(Exception, match=r"(?i)large|size|bytes"):
        run_task(sink, writer, 0, "a", "x" * 2_000_000)
    assert visible(writer.bootstrap, writer.topic) == []


def test_a_lost_answer_to_endtxn_is_asked_for_again(
    sink: ModuleType, writer: Any, coordinators: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepared = run_task(sink, writer, 0, "a").transaction
    send = coordinators.send
    lost: list[Any] = []

    def lossy(request: Any, node: Any = None) -> Any:
        answer = send(request, node)
        if isinstance(request, sink.EndTxnRequest) and not lost:
            lost.append(answer)
            raise KafkaConnectionError("the connection broke after the coordinator had decided")
        return answer

    monkeypatch.setattr(coordinators, "send", lossy)
    coordinators.commit(prepared)
    assert len(lost) == 1
    eventually_visible(writer.bootstrap, writer.topic, ["a"])


def test_a_coordinator_that_never_answers_is_given_up_at_the_deadline(
    sink: ModuleType, bootstrap: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sink.Coordinators(bootstrap, deadline=0.5) as coordinators:
        monkeypatch.setattr(coordinators, "send", silent)
        with pytest.raises(TimeoutError, match=r"no answer within 0\.5 s"):
            coordinators.describe("any")


def silent(request: Any, node: Any = None) -> Any:
    raise KafkaConnectionError("no route")
