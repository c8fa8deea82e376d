"""The process of a sink's own functions in the trials of a session; the process, the trials and their environment are
made up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.assertions import Guarantee, Workload
from onceproof.faults import Plan
from onceproof.harness import session as module
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.errors import SinkError, UsageError
from onceproof.harness.request import Request, as_set
from onceproof.harness.session import Session
from onceproof.harness.sinks import Sink, shape

SINK = "postgres_upsert"

made: list[SinkProcess] = []


class SinkProcess:
    """Notes what is done with it."""

    def __init__(self, path: Path, environment: object, log: Path, deadline: float) -> None:
        self.path, self.log = path, log
        self.calls: list[str] = []
        made.append(self)

    def __enter__(self) -> SinkProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.calls.append("end")

    def describe(self) -> Sink:
        self.calls.append("describe")
        return Sink(self.path, Guarantee.EXACTLY_ONCE, (), frozenset({"write_batch", "read"}), shape(self.path))


@dataclass(frozen=True)
class Trials:
    """Trials of one session; each calls ``read`` of its process, or raises what it is told to."""

    session: Session
    directory: Path
    patch: pytest.MonkeyPatch

    def run(self, name: str, error: Exception | None = None, *, kept: str = "") -> None:
        def read(spec: object, environment: object, process: SinkProcess, directory: Path, *more: Any) -> None:
            process.calls.append("read")
            if kept:
                (directory / kept).touch()
            if error is not None:
                raise error

        self.patch.setattr(module, "run_trial", read)
        self.session.trial(Request(SINK, directory=self.directory / name))


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Trials]:
    environment = SimpleNamespace(own_host=lambda: "127.0.0.1", provide=lambda services: None, close=lambda: None)
    monkeypatch.setattr(module, "open_environment", lambda options: environment)
    monkeypatch.setattr(module, "SinkProcess", SinkProcess)
    monkeypatch.setattr(module, "write_trial", lambda result: None)
    monkeypatch.setattr(module, "check_job", lambda job, workload, sink: None)
    made.clear()
    with Session(EnvironmentOptions(runs=tmp_path / "runs")) as session:
        yield Trials(session, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (Request("kafka_append", conf={"spark.master": "yarn"}), "spark.master is --master's"),
        (Request("kafka_append", workload=Workload(batches=1000, rows=1000)), "9612000 records: give fewer"),
    ],
    ids=["master", "size"],
)
def test_what_no_trial_can_have_is_refused_however_it_is_asked_for(request_: Request, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        as_set(request_, Plan(()))


def test_each_trial_has_a_process_of_its_own_that_ends_with_it(trials: Trials) -> None:
    trials.run("first")
    trials.run("second")
    assert [process.calls for process in made] == [["describe", "read", "end"], ["read", "end"]]
    assert [process.log.relative_to(trials.directory) for process in made] == [
        Path(f"{name}/logs/sink-{SINK}.log") for name in ("first", "second")
    ]


def test_the_process_of_a_trial_that_fails_ends(trials: Trials) -> None:
    with pytest.raises(SinkError):
        trials.run("first", SinkError(f"sink {SINK}.py failed in read"))
    assert made[0].calls[-1] == "end"


def test_of_a_trial_that_is_refused_no_directory_is_left(trials: Trials) -> None:
    (trials.directory / "there").mkdir()
    for name in ("runs/new", "there"):
        with pytest.raises(SinkError):
            trials.run(name, SinkError("it cannot be imported"))
    assert list(trials.directory.rglob("*")) == [trials.directory / "there"], "what was there before"
    trials.run("there")


def test_of_a_trial_that_breaks_all_is_left_that_it_kept(trials: Trials) -> None:
    with pytest.raises(SinkError):
        trials.run("new", SinkError("it cannot be read"), kept="journal.jsonl")
    assert (trials.directory / "new" / "journal.jsonl").exists()
    with pytest.raises(UsageError, match="is not empty"):
        trials.run("new")
