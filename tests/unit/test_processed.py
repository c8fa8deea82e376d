"""How far a query has processed its source, by its checkpoint or by what it reports."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Workload
from onceproof.harness.trial import processed as module
from onceproof.harness.trial.journal import Journal
from onceproof.harness.trial.processed import Processed

WORKLOAD = Workload()
ACKS = WORKLOAD.planned_acks()


def offsets(*ends: int) -> str:
    return json.dumps({"in": {str(number): end for number, end in enumerate(ends)}})


@pytest.fixture
def query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A query of the given kind on a topic of two partitions that ends at 20 and 10."""
    monkeypatch.setattr(module, "end_offsets", lambda servers, topic: {0: 20, 1: 10})
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    resources: Any = SimpleNamespace(checkpoint=tmp_path, kafka="nobody", source="in")
    journal = Journal(tmp_path / "journal.jsonl")
    return lambda execution: Processed(resources, journal, execution, WORKLOAD, lambda: ACKS)


def log(query: Processed, batch: int, *ends: int, metadata: str = "{}") -> None:
    place = query.resources.checkpoint
    (place / "offsets" / str(batch)).write_text(f"v1\n{metadata}\n{offsets(*ends)}")
    (place / "commits" / str(batch)).write_text("v1\n{}")


def begin(query: Processed, batch: int, first: tuple[int, ...], end: tuple[int, ...]) -> None:
    ranges = {"begin": offsets(*first), "end": offsets(*end)}
    query.journal.record("point", {"phase": "batch.input", "batch": batch, **ranges})


def write(query: Processed, batch: int) -> None:
    query.journal.record("point", {"phase": "sink.write", "edge": "after", "batch": batch})


def test_micro_batches_are_through_where_the_topic_ends(query: Any) -> None:
    found = query("micro-batch")
    assert not found.all()
    log(found, 0, 20, 9)
    assert not found.all()
    log(found, 1, 20, 10)
    assert found.all()
    assert found.batches() == {0: {0: (0, 20), 1: (0, 9)}, 1: {0: (20, 20), 1: (9, 10)}}


def test_a_continuous_query_is_through_behind_the_last_row_and_an_epoch_may_log_less(query: Any) -> None:
    found = query("continuous")
    last = found._last_rows
    ends = tuple(last[number] for number in sorted(last))
    log(found, 0, *(end - 1 for end in ends), metadata="")
    assert not found.all()
    log(found, 1, *ends, metadata="")
    assert found.all()
    log(found, 2, *(0 for _ in ends), metadata="")
    assert found.batches()[2] == {number: (end, end) for number, end in enumerate(ends)}


def test_asynchronous_progress_is_told_by_what_each_batch_began_with(query: Any) -> None:
    found = query("async progress")
    begin(found, 0, (), (10, 5))
    write(found, 0)
    begin(found, 1, (10, 5), (20, 10))
    assert not found.all(), "the last batch has begun, and is not written"
    write(found, 1)
    assert found.all()
    assert found.batches() == {0: {0: (0, 10), 1: (0, 5)}, 1: {0: (10, 20), 1: (5, 10)}}


def test_what_another_driver_wrote_says_nothing_of_asynchronous_progress(query: Any) -> None:
    found = query("async progress")
    begin(found, 0, (), (20, 10))
    write(found, 0)
    assert found.all()
    found.journal.record("point", {"phase": "query.start", "edge": "before"})
    assert not found.all(), "nothing is committed: it is replayed"
    log(found, 0, 20, 10)
    assert found.all(), "nothing is left to replay"


def test_input_that_was_planned_again_belongs_to_the_batch_that_had_it_last(query: Any) -> None:
    found = query("async progress")
    begin(found, 0, (), (5, 5))
    begin(found, 1, (5, 5), (10, 5))
    begin(found, 2, (10, 5), (20, 10))
    begin(found, 2, (5, 5), (20, 10))
    assert found.batches() == {0: {0: (0, 5), 1: (0, 5)}, 2: {0: (5, 20), 1: (5, 10)}}


def test_a_job_without_offsets_of_kafka_is_through_when_it_ends(query: Any) -> None:
    found = query("micro-batch")
    assert not found.all(), "no batch is committed"
    log(found, 0, 20, 10)
    (found.resources.checkpoint / "offsets" / "0").write_text("v1\n{}\n2082")
    assert found.all()
    assert found.batches() == {0: {}}
