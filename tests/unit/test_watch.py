"""When the target is read while the job is under way, and what is kept of it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from onceproof.assertions import Open
from onceproof.faults import parse
from onceproof.harness.errors import SinkError, SinkHangs, Unavailable
from onceproof.harness.trial.journal import Journal
from onceproof.harness.trial.progress import TrialProgress
from onceproof.harness.trial.watch import Watch
from paper_trial import ground_truth, report

LEFT = Open("kafka", "job-0", "Ongoing", "out-1")

BROKERS = "txn.prepare:after -> kill(broker); txn.prepare:after -> pause(broker, for=2s)"


@dataclass
class Target:
    """A target on paper. ``unstable_for``: so often it is asked for its end before the end can be reached."""

    checkpoint: Path
    rows_now: pa.Table = field(default_factory=ground_truth)
    unstable_for: int = 0
    error: str | None = None
    raised: type[Exception] = SinkError
    asked: list[str] = field(default_factory=list)

    @property
    def resources(self) -> SimpleNamespace:
        return SimpleNamespace(checkpoint=self.checkpoint)

    def unsettled(self) -> list[str]:
        self.asked.append("end")
        self.unstable_for -= 1
        return ["the last stable offset of out is below its end"] if self.unstable_for >= 0 else []

    def open(self, settled: bool) -> list[Open]:
        return [] if settled else [LEFT]

    def rows(self, deadline: float) -> pa.Table:
        self.asked.append("rows")
        if self.error:
            raise self.raised(self.error)
        return self.rows_now


@dataclass
class Trial:
    """A trial on paper whose events reach the watch as those of a real one do."""

    target: Target
    journal: Journal
    progress: TrialProgress
    watch: Watch

    def event(self, event: str, **fields: Any) -> None:
        self.journal.record(event, fields)
        self.progress.note(event, fields)
        self.watch.note(event, fields)

    def point(self, phase: str, edge: str | None, run: int = 1, batch: int | None = 1, **fields: Any) -> dict[str, Any]:
        point = report(phase, edge, run, batch, **({"role": "driver"} | fields))
        self.watch.at_point(point)
        self.event("point", **point)
        return point

    def struck(self, action: str = "kill(driver)", **point: Any) -> None:
        self.event("fault.reached", fault=0, point=point)
        self.event("fault.fired", fault=0, action=action)
        self.event("fault.confirmed", fault=0, action=action)

    @property
    def readings(self) -> list[str]:
        return [glimpse.at for glimpse in self.watch.glimpses]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    target: Any = Target(tmp_path / "checkpoint")
    journal, progress = Journal(tmp_path / "journal.jsonl"), TrialProgress(parse(BROKERS))
    return Trial(target, journal, progress, Watch(target, journal, progress))


def committed(trial: Trial, *batches: int) -> None:
    commits = trial.target.checkpoint / "commits"
    commits.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        (commits / str(batch)).write_text("v1\n{}")


def test_the_target_is_read_where_a_batch_has_just_been_committed(trial: Trial, tmp_path: Path) -> None:
    committed(trial, 0, 1)
    trial.event("driver.started", incarnation=1)
    trial.point("sink.write", "before")
    trial.point("batch.commit", "before")
    trial.point("batch.commit", "after")
    (glimpse,) = trial.watch.glimpses
    assert (glimpse.number, glimpse.committed, glimpse.handed_over, glimpse.error) == (1, 1, 1, None)
    assert glimpse.rows is not None
    written = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    assert written[glimpse.event_index] == {
        "t": written[glimpse.event_index]["t"],
        "event": "reading",
        "watch": 1,
        "at": "batch.commit:after[batch=1]",
        "batch": 1,
        "committed": 1,
        "incarnation": 1,
        "rows": ground_truth().num_rows,
        "open": [],
        "error": None,
    }


def test_what_is_committed_during_a_reading_need_not_have_been_read(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    committed(trial, 0)
    rows = trial.target.rows

    def meanwhile(deadline: float) -> pa.Table:
        committed(trial, 1)
        return rows(deadline)

    monkeypatch.setattr(trial.target, "rows", meanwhile)
    trial.watch.after_death()
    (glimpse,) = trial.watch.glimpses
    assert glimpse.committed == 0


def test_a_batch_that_is_in_flight_when_the_driver_dies_is_reported(trial: Trial) -> None:
    committed(trial, 0)
    trial.point("sink.write", "before")
    trial.watch.after_death()
    (glimpse,) = trial.watch.glimpses
    assert (glimpse.at, glimpse.committed, glimpse.handed_over) == ("the driver was dead", 0, 1)


def test_before_any_batch_no_batch_is_reported(trial: Trial) -> None:
    trial.watch.after_death()
    (glimpse,) = trial.watch.glimpses
    assert (glimpse.committed, glimpse.handed_over) == (None, None)


def test_the_target_is_read_where_another_run_passes_the_point_of_a_fault(trial: Trial) -> None:
    trial.struck(**trial.point("sink.write", "after"))
    trial.point("sink.write", "after")
    assert trial.readings == [], "the same run"
    trial.point("sink.write", "after", run=2, batch=2)
    trial.point("sink.write", "before", run=2)
    assert trial.readings == []
    trial.point("sink.write", "after", run=2)
    assert trial.readings == ["the replay's sink.write:after[batch=1]"]
    trial.point("sink.write", "after", run=2)
    assert len(trial.readings) == 1


def test_a_line_that_a_fault_struck_the_third_time_is_read_at_the_first_and_the_third_pass(trial: Trial) -> None:
    line = {"phase": "line", "edge": None, "file": "/jobs/mine.py", "line": 7, "role": "python-driver"}
    points = [trial.point(**line) for _ in range(3)]
    trial.struck(**points[-1])
    seen = []
    for _ in range(4):
        trial.point(**line, run=2)
        seen.append(len(trial.readings))
    assert seen == [1, 1, 2, 2]
    assert trial.readings[0] == "the replay's line[mine.py:7][batch=1]"


def test_a_task_that_is_attempted_again_passes_the_point_in_the_same_run(trial: Trial) -> None:
    trial.struck("fail", **trial.point("task.commit", "before", attempt=0))
    trial.point("task.commit", "before", attempt=1)
    assert trial.readings == ["the replay's task.commit:before[batch=1]"]


def test_a_broker_that_passes_the_point_of_its_fault_again_is_not_kept(trial: Trial) -> None:
    trial.struck(**trial.point("txn.prepare", "after", role="broker"))
    trial.event("broker.registered", broker=1)
    trial.point("txn.prepare", "after", run=2, role="broker")
    assert trial.readings == []


DISTURBED = {
    "a killed broker": ("fault.fired", {"fault": 0, "number": 0}),
    "a paused broker": ("fault.fired", {"fault": 1, "number": 0}),
    "a cut network": ("network.cut", {"process": "broker1:1", "peer": None}),
    "a held thread of a broker": ("hold", {"fault": 0, "point": {"role": "broker"}}),
}
RESTORED = {
    "a killed broker": ("broker.registered", {"broker": 1}),
    "a paused broker": ("fault.confirmed", {"fault": 1, "number": 0}),
    "a cut network": ("network.healed", {"process": "broker1:1", "peer": None}),
    "a held thread of a broker": ("release", {"fault": 0, "point": {"role": "broker"}}),
}


@pytest.mark.parametrize("what", DISTURBED)
def test_nothing_is_read_while_the_plan_disturbs_a_service(trial: Trial, what: str) -> None:
    event, fields = DISTURBED[what]
    trial.event(event, **fields)
    trial.point("batch.commit", "after")
    trial.watch.after_death()
    assert trial.target.asked == []
    event, fields = RESTORED[what]
    trial.event(event, **fields)
    trial.point("batch.commit", "after")
    assert len(trial.readings) == 1


def test_nothing_is_read_while_actions_of_a_fault_are_under_way(trial: Trial) -> None:
    injector: Any = SimpleNamespace(acting=lambda: True)
    trial.progress.injector = injector
    trial.point("batch.commit", "after")
    assert trial.readings == []


def test_the_markers_of_a_committed_batch_are_waited_for(trial: Trial) -> None:
    trial.target.unstable_for = 3
    trial.point("batch.commit", "after")
    assert trial.target.asked == ["end"] * 4 + ["rows"]
    assert trial.watch.glimpses[0].opened == ()


def test_a_transaction_that_stays_open_is_named(trial: Trial) -> None:
    trial.target.unstable_for = 10**9
    trial.watch._patience = 0.1
    trial.point("batch.commit", "after")
    assert trial.watch.glimpses[0].opened == (LEFT,)


def test_nobody_waits_for_a_dead_drivers_transactions(trial: Trial) -> None:
    trial.target.unstable_for = 10**9
    trial.watch.after_death()
    assert trial.target.asked == ["end", "rows"]
    assert trial.watch.glimpses[0].opened == (LEFT,)


def test_a_reading_that_fails_is_kept_with_its_error(trial: Trial) -> None:
    trial.target.error = "sink mine.py failed in read: no such table"
    trial.point("batch.commit", "after")
    trial.point("batch.commit", "after", batch=2)
    assert [(one.rows, one.error) for one in trial.watch.glimpses] == [(None, trial.target.error)] * 2


def test_a_reading_that_fails_of_something_else_does_not_end_the_trial(trial: Trial) -> None:
    trial.target.error, trial.target.raised = "the job's interpreter did not start", Unavailable
    trial.watch.after_death()
    assert [one.error for one in trial.watch.glimpses] == ["the job's interpreter did not start"]


def test_a_sink_that_says_that_something_hangs_is_read_again(trial: Trial) -> None:
    trial.target.error = "sink mine.py failed in read: its lock hangs in the database"
    trial.point("batch.commit", "after")
    trial.point("batch.commit", "after", batch=2)
    assert len(trial.readings) == 2


def test_where_a_reading_hung_none_is_tried_again(trial: Trial) -> None:
    trial.target.error, trial.target.raised = "no answer within 10 s", SinkHangs
    trial.point("batch.commit", "after")
    trial.point("batch.commit", "after", batch=2)
    assert len(trial.readings) == 1
    trial.target.error = None
    trial.watch.after_death()
    assert len(trial.readings) == 2
