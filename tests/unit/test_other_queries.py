"""A second query beside the trial's: what starts it and ends it, what it must leave behind, and where it is swept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions.replay import examine
from onceproof.faults import SinkShape
from onceproof.harness.certification.one_place import is_cleaned, is_one, may_be_one
from onceproof.harness.certification.points import Question
from onceproof.harness.certification.shared_ids import note_of, of_no_query, shared
from onceproof.harness.certification.space import space_of
from onceproof.harness.environments.base import EffectError
from onceproof.harness.errors import ObservationError, SinkError
from onceproof.harness.trial import other_query
from onceproof.harness.trial.other_query import OtherQueries
from paper_trial import Paper, evidence, fault
from test_resolve import refusal

POINT = {"process": "local:1"}
PLAN = "sink.write:after[batch=1] -> start(query)"


class Bench:
    """A second query whose driver and targets are of paper."""

    process = "local:7"

    def __init__(self, place: Path, code: int | None = None, error: Exception | None = None) -> None:
        self.done: list[str] = []
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.code, self.error, self.checkpoint, self.name = code, error, place, "t1"
        self.targets = SimpleNamespace(kinds=["kafka"], drop=lambda kind: self.done.append(f"drop {kind}"))
        sink: Any = SimpleNamespace(functions={"prepare", "cleanup"})
        start: Any = lambda resources: self  # noqa: E731
        made: Any = lambda: self  # noqa: E731
        record = lambda *event: self.events.append(event)  # noqa: E731
        self.queries = OtherQueries(made, start, sink, self, self.still, record)  # type: ignore[arg-type]

    @contextmanager
    def still(self, process: str | None) -> Iterator[None]:
        self.done.append(f"stop {process}")
        try:
            yield
        finally:
            self.done.append("resume")

    def namespace(self, side: str) -> dict[str, Any]:
        return {"name": self.name}

    def call(self, function: str, target: Mapping[str, Any]) -> None:
        self.done.append(function)
        if self.error:
            raise self.error

    def commit(self, batch: int) -> None:
        for log in ("offsets", "commits"):
            (self.checkpoint / log).mkdir(parents=True, exist_ok=True)
            (self.checkpoint / log / str(batch)).touch()

    def wait(self, seconds: float) -> int | None:
        return self.code

    def alive(self) -> list[str]:
        return [self.process] if self.code is None else []

    def kill(self) -> str:
        self.done.append("kill")
        return ""


def test_it_is_waited_for_until_it_has_committed_a_batch_and_ended_with_the_trial(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.commit(0)
    found = bench.queries.start(POINT)
    assert found == "a second query (local:7) has planned 1 batches, committed 1, and still runs"
    counts = {"planned": 1, "committed": 1}
    assert bench.events == [("query.ran", {"process": "local:7", "name": "t1", **counts, "code": None})]
    assert bench.done == ["stop local:1", "prepare", "resume"]
    bench.queries.end()
    assert bench.done[3:] == ["kill", "cleanup", "drop kafka"]
    with pytest.raises(EffectError, match="the job has ended"):
        bench.queries.start(POINT)


def test_one_that_fails_has_ended(tmp_path: Path) -> None:
    bench = Bench(tmp_path, code=1)
    assert bench.queries.start(POINT).endswith("has planned 0 batches, committed 0, and has ended with code 1")
    bench.queries.end()
    assert "kill" not in bench.done


def test_one_that_is_kept_out_is_not_waited_for_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(other_query, "AWAITED", 0.1)
    assert Bench(tmp_path).queries.start(POINT).endswith("committed 0, and still runs")


@pytest.mark.parametrize("error", [SinkError("no table"), ObservationError("no broker")])
def test_what_is_made_for_one_that_does_not_start_goes_all_the_same(tmp_path: Path, error: Exception) -> None:
    bench = Bench(tmp_path, error=error)
    with pytest.raises(EffectError, match=f"the second query did not start: {error}"):
        bench.queries.start(POINT)
    bench.queries.end()
    assert bench.done == ["stop local:1", "prepare", "resume", "cleanup", "drop kafka"]


def ran(planned: int, committed: int = 0, code: int | None = None) -> Paper:
    paper = Paper().start().batches(1, 0)
    paper.reached(phase="sink.write", edge="after", batch=1, run="r1", query="q", process="local:1")
    paper.add("fault.fired", fault=0, number=0, action="start(query)", process="local:1")
    paper.add("query.ran", process="local:7", name="t1", planned=planned, committed=committed, code=code)
    paper.add("fault.confirmed", fault=0, number=0, action="start(query)", process="local:1", detail="")
    return paper.batches(1, 1)


def test_it_has_to_get_as_far_as_a_batch() -> None:
    assert examine(0, evidence(None, ran(1, 1), fault(PLAN)))[1] is None
    assert examine(0, evidence(None, ran(1, code=1), fault(PLAN)))[1] is None
    assert "and was not waited for any longer" in str(examine(0, evidence(None, ran(1), fault(PLAN)))[1])
    assert "planned 0 batches, committed 0, and ended" in str(
        examine(0, evidence(None, ran(0, code=1), fault(PLAN)))[1]
    )


def test_a_query_without_an_end_has_none_beside_it() -> None:
    shape = SinkShape(kafka_sink=True, execution="continuous")
    assert "start(query) needs a query that runs micro-batches" in str(refusal("query.start -> start(query)", shape))


def request(kind: str, batch: int, transaction: str = "sink-0", **more: Any) -> dict[str, Any]:
    where = {"phase": "request", "edge": "before", "service": "kafka", "kind": kind, "batch": batch, "run": "r"}
    return {"event": "point", **where, "thread": "k 1", "query": "q-1", "transaction": transaction, **more}


@pytest.mark.parametrize(
    ("trace", "wanted"),
    [
        ([request("EndTxn", 2), request("EndTxn", 3)], ["request:before[service=kafka, kind=EndTxn, batch=2]#1"]),
        ([request("Produce", 2)], []),
    ],
)
def test_it_begins_once_where_a_transaction_is_about_to_be_committed(trace: Any, wanted: list[str]) -> None:
    question = Question(trace=trace, replay=trace, roles={"middle": 2, "quiet": 3}, refusal=lambda plan: None)
    found = [point for point in space_of(question).points if point.action == "start(query)"]
    assert [point.text for point in found] == [f"{where} -> start(query)" for where in wanted]
    assert all(point.exclusive for point in found)


def test_ids_that_name_neither_the_target_nor_the_query_may_be_those_of_other_trials() -> None:
    own = [request("EndTxn", 0, "t0123456789-0"), request("EndTxn", 0, "sink-q-1-0"), {"event": "point"}]
    assert of_no_query(own) == set()
    one, another = ([request("InitProducerId", 0, name) for name in ("sink-0", name)] for name in ("x-1", "x-2"))
    assert of_no_query(one) == {"sink-0", "x-1"}
    assert shared(one, another) == ["sink-0"]
    assert shared(one, []) == []


def test_a_certificate_says_why_trials_ran_one_after_the_other() -> None:
    assert note_of([]) == []
    assert "the same transactional ids (a and 1 more)" in note_of(["a", "b"])[0]
    assert "(a)" in note_of(["a"])[0]


def test_trials_share_a_place_where_rows_of_another_one_were_there_before() -> None:
    first, other, empty = ([{"event": "target.found", "rows": rows, "cleaned": False}] for rows in (0, 3, 0))
    cleaned = [{"event": "target.found", "rows": 0, "cleaned": True}]
    assert (is_cleaned(cleaned), is_cleaned(first)) == (True, False)
    assert may_be_one(first)
    assert not may_be_one([{"event": "trial.armed"}])
    assert is_one(first, other)
    assert not is_one(first, empty)
