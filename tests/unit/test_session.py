"""Where the output of a sink's own process is kept; the process, the trial and its environment are made up."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from onceproof.assertions import Guarantee, Workload
from onceproof.faults import Plan
from onceproof.harness import session as module
from onceproof.harness import sink_processes
from onceproof.harness.errors import SinkError, UsageError
from onceproof.harness.session import EnvironmentOptions, Request, Session, as_set
from onceproof.harness.sinks import Sink, shape


class SinkProcess:
    """Says nothing but what it is told to."""

    def __init__(self, path: Path, environment: object, log: Path, deadline: float) -> None:
        self.path, self.log = path, log
        log.touch()

    def close(self) -> None: ...

    def say(self, text: str) -> None:
        with self.log.open("a") as log:
            log.write(text)

    def describe(self) -> Sink:
        return Sink(self.path, Guarantee.EXACTLY_ONCE, (), frozenset({"write_batch", "read"}), shape(self.path))


@dataclass(frozen=True)
class Trials:
    """Trials of one session, in which the sink's process does as it is told."""

    session: Session
    directory: Path
    patch: pytest.MonkeyPatch

    def run(self, name: str, says: Callable[[SinkProcess], None] = lambda process: None) -> None:
        self.patch.setattr(module, "run_trial", lambda spec, environment, process, *more: says(process))
        self.session.trial(Request("postgres_upsert", directory=self.directory / name))

    def kept(self) -> dict[str, str]:
        """What sinks have said, by run directory."""
        return {path.parent.parent.name: path.read_text() for path in self.directory.rglob("sink-postgres_upsert.log")}


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Trials]:
    """The directory of --runs cannot be had: each trial has a directory of its own."""
    environment = SimpleNamespace(own_host=lambda: "127.0.0.1", provide=lambda services: None, close=lambda: None)
    monkeypatch.setattr(module, "open_environment", lambda options: environment)
    monkeypatch.setattr(sink_processes, "SinkProcess", SinkProcess)
    monkeypatch.setattr(module, "write_trial", lambda result: None)
    monkeypatch.setattr(module, "check_job", lambda job, workload, sink: None)
    (tmp_path / "file").touch()
    with Session(EnvironmentOptions(runs=tmp_path / "file")) as session:
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


def test_each_run_directory_has_what_its_sink_said(trials: Trials) -> None:
    trials.run("first", lambda process: process.say("prepare\n"))
    trials.run("second")
    trials.run("third", lambda process: process.say("cleanup\n"))
    trials.session.close()
    assert trials.kept() == {"first": "prepare\ncleanup\n", "third": "cleanup\n"}


def test_what_a_sink_said_is_kept_where_its_trial_fails(trials: Trials) -> None:
    def fails(process: SinkProcess) -> None:
        process.say("no luck\n")
        raise SinkError("sink postgres_upsert.py failed in read")

    trials.run("first")
    with pytest.raises(SinkError):
        trials.run("second", fails)
    assert trials.kept()["second"] == "no luck\n"


def test_of_a_sink_that_says_nothing_no_log_is_left(trials: Trials) -> None:
    trials.run("first")
    assert trials.kept() == {"first": ""}, "it is the process's as long as that lives"
    trials.session.close()
    assert trials.kept() == {}
