"""What faults do to a checkpoint: on real files, in a plan, and as evidence."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from onceproof.assertions.replay import examine
from onceproof.faults import SinkShape
from onceproof.harness.environments.base import EffectError
from onceproof.harness.trial import checkpoint
from onceproof.harness.trial.checkpoint_changes import CheckpointChanges
from paper_trial import Paper, evidence, fault
from test_resolve import refusal

OFFSETS = 'v1\n{{"batchWatermarkMs":7}}\n{{"topic":{{"0":{0}}}}}'
STATE = ("1.delta", "2.delta", "3.delta", "3.snapshot")


class Query:
    """A checkpoint after four batches, of which three are committed, with two stores of one operator."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.events: list[tuple[str, Mapping[str, Any]]] = []
        self.place = checkpoint.Place(directory)
        self.changes = CheckpointChanges(self.place, lambda event, fields: self.events.append((event, fields)))
        for batch in range(4):
            self.write(f"offsets/{batch}", OFFSETS.format(10 * batch))
        for batch in range(3):
            self.write(f"commits/{batch}", 'v1\n{"nextBatchWatermarkMs":0}')
        for partition in (0, 1):
            for version in STATE:
                self.write(f"state/0/{partition}/{version}", f"state {version}")
        self.write("state/0/_metadata/metadata", "{}")
        self.write("metadata", '{"id":"1"}')
        self.write("offsets/.3.crc", "x")

    def write(self, name: str, text: str) -> None:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def names(self) -> set[str]:
        files = (path for path in self.directory.rglob("*") if path.is_file())
        return {str(path.relative_to(self.directory)) for path in files}


@pytest.fixture
def query(tmp_path: Path) -> Query:
    return Query(tmp_path / "checkpoint")


@pytest.mark.parametrize(
    ("part", "gone"),
    [
        ("offsets", {"offsets/3", "offsets/.3.crc"}),
        ("commits", {"commits/2"}),
        ("metadata", {"metadata"}),
        ("state", {f"state/0/{partition}/{version}" for partition in (0, 1) for version in STATE[2:]}),
    ],
)
def test_the_newest_file_of_a_part_is_removed(query: Query, part: str, gone: set[str]) -> None:
    there = query.names()
    query.changes.remove(part)
    assert there - query.names() == gone
    ((event, fields),) = query.events
    assert (event, fields["done"], set(fields["files"])) == (
        "checkpoint.changed",
        "removed",
        {name for name in gone if "crc" not in name},
    )


def test_all_of_a_checkpoint_is_removed_and_its_directory_stays(query: Query) -> None:
    query.changes.remove("checkpoint")
    assert (query.names(), query.directory.is_dir()) == (set(), True)


def test_a_torn_file_has_its_first_half_and_a_corrupt_one_zeros_behind_it(query: Query) -> None:
    whole = OFFSETS.format(30).encode()
    assert "offsets/3" in query.changes.corrupt("offsets")
    damaged = (query.directory / "offsets" / "3").read_bytes()
    assert (len(damaged), damaged[: len(whole) // 2]) == (len(whole), whole[: len(whole) // 2])
    assert set(damaged[len(whole) // 2 :]) == {0}
    query.changes.truncate("offsets")
    assert (query.directory / "offsets" / "3").read_bytes() == whole[: len(whole) // 2]


def test_what_a_batch_was_planned_with_is_known_though_its_file_is_torn(query: Query) -> None:
    batches, watermarks = checkpoint.batches(query.directory), checkpoint.watermarks(query.directory)
    query.changes.truncate("offsets")
    assert checkpoint.batches(query.directory) == batches
    assert checkpoint.watermarks(query.directory) == watermarks
    query.write("offsets/3", OFFSETS.format(35))
    assert checkpoint.batches(query.directory)[3] == {0: (20, 35)}, "planned again"


def test_a_torn_file_that_no_fault_has_torn_is_an_error(query: Query) -> None:
    query.write("offsets/3", "v1\n")
    with pytest.raises(ValueError, match="offsets/3 has 1 lines"):
        checkpoint.batches(query.directory)


def test_a_checkpoint_goes_back_to_where_a_batch_was_committed(query: Query) -> None:
    query.changes.roll_back("checkpoint", 0)
    assert (checkpoint.planned(query.directory), checkpoint.committed(query.directory)) == ([0], [0])
    stores = {name for name in query.names() if name.startswith("state/0/0")}
    assert stores == {"state/0/0/1.delta"}, "version 1 is that of batch 0"
    assert "metadata" in query.names()


def test_the_state_alone_goes_back(query: Query) -> None:
    query.changes.roll_back("state", 1)
    assert checkpoint.planned(query.directory) == [0, 1, 2, 3]
    assert "state/0/1/2.delta" in query.names()
    assert "state/0/1/3.delta" not in query.names()


def test_the_next_driver_gets_the_copy_and_the_one_before_keeps_its_own(query: Query) -> None:
    query.changes.remove("offsets")
    before = query.names()
    assert query.changes.copy() == f"copied the checkpoint to {query.place.directory}"
    assert query.place.directory != query.directory
    assert query.names() == before
    query.changes.remove("commits")
    assert query.names() == before
    assert checkpoint.committed(query.place.directory) == [0, 1]
    assert checkpoint.end_offsets(query.place.directory, 3) == {0: 30}, "as it was before it was removed"


def test_versions_of_rocksdb_are_told_by_their_number(query: Query) -> None:
    for name in ("11.zip", "9_3d1f.changelog", "10_77aa.zip", "SSTs/000012.sst"):
        query.write(f"state/0/0/{name}", "x")
    assert {path.name for path in checkpoint.newest(query.directory, "state")} >= {"11.zip"}
    assert {path.name for path in checkpoint.newer(query.directory, "state", 8)} == {"11.zip", "10_77aa.zip"}


def test_what_is_not_there_cannot_be_changed(query: Query, tmp_path: Path) -> None:
    empty = CheckpointChanges(checkpoint.Place(tmp_path / "empty"), lambda event, fields: None)
    for part in ("offsets", "state", "metadata", "checkpoint"):
        with pytest.raises(EffectError, match=f"no file of the {part} is there: nothing is removed"):
            empty.remove(part)
    with pytest.raises(EffectError, match="to batch 3: batches 0 to 2 are committed"):
        query.changes.roll_back("checkpoint", 3)
    with pytest.raises(EffectError, match="no batch is committed"):
        empty.roll_back("state", 0)
    with pytest.raises(EffectError, match="there is no checkpoint to copy"):
        empty.copy()
    assert query.events == []


def test_the_manifest_of_a_file_sink_is_removed_and_its_files_stay(query: Query, tmp_path: Path) -> None:
    events = tmp_path / "target" / "events"
    (events / "_spark_metadata").mkdir(parents=True)
    for name in ("_spark_metadata/0", "part-0.parquet"):
        (events / name).write_text("x")
    there = query.names()
    changes = CheckpointChanges(query.place, query.changes.record, tmp_path / "target")
    assert changes.remove("manifest") == "removed events/_spark_metadata of the target"
    assert ([path.name for path in events.iterdir()], query.names()) == (["part-0.parquet"], there)
    assert query.events == [("checkpoint.changed", {"done": "removed", "files": ["events/_spark_metadata"]})]
    for nowhere in (changes, query.changes):
        with pytest.raises(EffectError, match="no file of the manifest is there: nothing is removed"):
            nowhere.remove("manifest")


REFUSED = {
    "batch.commit:after -> remove(manifest) then kill(driver)": "needs Spark's file sink: this sink is another one",
    "batch.commit:after -> remove(commits)": "is read by the next driver only: put kill(driver) behind it",
    "batch.commit:after -> kill(driver) then remove(commits)": "put kill(driver) behind it",
    "batch.commit:after -> remove(commits) then stop(driver)": "put kill(driver) behind it",
    "at(3s) -> remove(commits) then kill(driver)": "acts on a stopped thread",
    "task.run:after -> truncate(offsets) then kill(driver)": "where truncate cannot act: driver JVM or Python",
}


@pytest.mark.parametrize("plan", REFUSED)
def test_a_change_that_nobody_would_read_is_refused(plan: str) -> None:
    assert REFUSED[plan] in str(refusal(plan, SinkShape(foreach_batch=True)))


REMOVED = "batch.commit:after[batch=1] -> remove(commits) then kill(driver)"


def struck(changed: bool = True) -> Paper:
    """Batch 1 is committed, its file in the commit log goes, and then the driver."""
    paper = Paper().start().batches(1, 0, 1)
    paper.reached(phase="batch.commit", edge="after", batch=1, run="r1", query="q", process="local:1")
    paper.add("fault.fired", fault=0, number=0, action="remove(commits)", process="local:1")
    if changed:
        paper.add("checkpoint.changed", done="removed", files=["commits/1"])
    paper.add("fault.confirmed", fault=0, number=0, action="remove(commits)", process="local:1", detail="")
    paper.add("fault.fired", fault=0, number=1, action="kill(driver)", process="local:1")
    paper.add("fault.confirmed", fault=0, number=1, action="kill(driver)", process="local:1", detail="")
    return paper.exited(1, -9, planned=True)


def problem(paper: Paper) -> str | None:
    found: str | None = examine(0, evidence(None, paper, fault(REMOVED)))[1]
    return found


def test_the_next_driver_has_to_read_what_was_changed() -> None:
    assert problem(struck()) is not None
    assert problem(struck().start(2)) is None
    assert problem(struck(changed=False).start(2)) is not None


def test_a_driver_that_fails_of_it_has_read_it() -> None:
    paper = struck().add("driver.started", incarnation=2, process="local:2")
    assert problem(paper.exited(2, 1, planned=False)) is None


def test_a_death_after_the_change_requires_no_other_replay() -> None:
    """Without its commit the batch comes again: at this step a kill alone requires that it does not."""
    again = struck().start(2).hand_over(2, 1)
    assert problem(again) is None
    (removal, death) = fault(REMOVED).actions
    assert [one.kind for one in removal.requirements] == [one.kind for one in death.requirements] == ["checkpoint_read"]
