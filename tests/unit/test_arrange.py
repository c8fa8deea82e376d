"""What a trial has made of its own is gone when it has ended: the source topic and the target's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.faults import Plan, Rendezvous
from onceproof.harness.environments.base import Addresses
from onceproof.harness.errors import ObservationError
from onceproof.harness.jobs import find_job
from onceproof.harness.targets import kafka
from onceproof.harness.trial import arrange, trial
from onceproof.harness.trial.journal import Journal


class Brokers:
    """Topics on paper, on brokers that may go down."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.copies: list[int | None] = []
        self.down = False

    def create(self, bootstrap: str, topics: dict[str, int], copies: int | None) -> None:
        self._answer(topics)
        self.copies.append(copies)
        self.topics += topics

    def delete(self, bootstrap: str, topics: list[str]) -> None:
        self._answer(topics)
        self.topics = [topic for topic in self.topics if topic not in topics]

    def _answer(self, topics: Any) -> None:
        if self.down:
            raise ObservationError(f"topic {min(topics)[-3:]}: no answer in time")


class Place:
    """An environment of a directory and the brokers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def addresses(self, side: str) -> Addresses:
        return Addresses(kafka="b:1")

    def own_host(self) -> str:
        return "127.0.0.1"

    def client(self, peer: tuple[str, int], port: int) -> None:
        return None

    def shared_directory(self, name: str) -> Path:
        return self.directory


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Brokers:
    brokers = Brokers()
    for module in (arrange, kafka):
        monkeypatch.setattr(module, "create_topics", brokers.create)
        monkeypatch.setattr(module, "delete_topics", brokers.delete)
    monkeypatch.setattr(trial, "write_workload", lambda *_: None)
    return brokers


SINK: Any = SimpleNamespace(services=("kafka",), functions={"write_batch"})


@pytest.fixture
def begun(brokers: Brokers, tmp_path: Path) -> Iterator[trial._Trial]:
    """A trial whose resources are arranged; it ends with its stack."""
    plan = SimpleNamespace(proxied=frozenset())
    workload = SimpleNamespace(partitions=3)
    spec: Any = SimpleNamespace(
        sink=SINK, job=find_job(), plan=Plan(), resolved=plan, workload=workload, keep=False, own_services={}
    )
    environment: Any = Place(tmp_path)
    process: Any = None
    with Journal(tmp_path / "journal.jsonl") as journal, ExitStack() as stack:
        one = trial._Trial(spec, environment, process, tmp_path, Rendezvous(), 0.0, journal, stack)
        one._arrange()
        yield one


def test_a_trial_leaves_no_topic_behind(begun: trial._Trial, brokers: Brokers) -> None:
    assert [topic[-3:] for topic in brokers.topics] == ["_in", "out"]
    begun.stack.close()
    assert brokers.topics == []
    assert begun.warnings == []


def test_topics_that_cannot_be_deleted_are_a_warning(begun: trial._Trial, brokers: Brokers) -> None:
    brokers.down = True
    begun.stack.close()
    assert begun.warnings == [
        "the trial's kafka was not removed: topic out: no answer in time",
        "the trial's source topic was not removed: topic _in: no answer in time",
    ]


@pytest.mark.parametrize("copies", [None, 2])
def test_each_topic_has_as_many_copies_as_the_plan_says(brokers: Brokers, tmp_path: Path, copies: int | None) -> None:
    environment: Any = Place(tmp_path)
    arrange.arrange(SINK, find_job(), 3, environment, copies=copies)
    assert brokers.copies == [copies, copies]


def test_a_trial_whose_target_cannot_be_made_leaves_no_source_behind(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def refused(*_: object) -> None:
        raise ObservationError("no leader in time")

    monkeypatch.setattr(kafka, "create_topics", refused)
    environment: Any = Place(tmp_path)
    with pytest.raises(ObservationError, match="no leader in time"):
        arrange.arrange(SINK, find_job(), 3, environment)
    assert brokers.topics == []
