"""Where a phase of the engine holds a process, the disk says so: what is before it is there, what follows it is not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from onceproof.faults import Plan, parse
from onceproof.faults.injection import Injector
from probed import Journal, Killer
from probed_drivers import BATCHES, Start, starting

Place = Callable[[Path, Mapping[str, Any]], bool]


class Looking(Journal):
    """Notes at each report of these phases whether something is there."""

    def __init__(self, root: Path, places: Mapping[str, Place]) -> None:
        super().__init__()
        self.root, self.places = root, places
        self.found: dict[tuple[str, int], set[bool]] = {}

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "point" and fields["phase"] in self.places:
            at = f"{fields['phase']}:{fields['edge']}"
            there = self.places[fields["phase"]](self.root, fields)
            self.found.setdefault((at, int(fields["batch"])), set()).add(there)
        super().record(event, fields)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with starting(tmp_path) as start:
        yield start


def file(name: str) -> Place:
    """A file whose name has fields of the report."""
    return lambda root, point: (root / name.format(**point)).exists()


def rows(root: Path, point: Mapping[str, Any]) -> bool:
    """Files of more than the batches before, which have two each."""
    return len([*(root / "out").glob("part-*.json")]) > 2 * int(point["batch"])


def rows_of_the_task(root: Path, point: Mapping[str, Any]) -> bool:
    return len([*(root / "out").glob(f"part-{point['partition']:05}-*.json")]) > int(point["batch"])


OF_A_PYTHON_SOURCE = {
    "batch.offsets": file("checkpoint/offsets/{batch}"),
    "task.open": file("written-{batch}-{partition}"),
    "task.commit": file("written-{batch}-{partition}"),
    "sink.commit": file("committed-{batch}"),
    "batch.commit": file("checkpoint/commits/{batch}"),
}


@pytest.mark.long
def test_the_steps_of_a_v2_sink_lie_between_what_they_leave_on_the_disk(start: Start, tmp_path: Path) -> None:
    journal = Looking(tmp_path, OF_A_PYTHON_SOURCE)
    with Injector(Plan(), None, journal.record) as injector:
        start("source", injector, [*OF_A_PYTHON_SOURCE]).finish()
    for batch in range(BATCHES):
        assert {at: found for (at, of), found in journal.found.items() if of == batch} == {
            "batch.offsets:before": {False},
            "batch.offsets:after": {True},
            "task.open:after": {False},
            "task.commit:before": {True},
            "task.commit:after": {True},
            "sink.commit:before": {False},
            "sink.commit:after": {True},
            "batch.commit:before": {False},
            "batch.commit:after": {True},
        }


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "plan", "places", "expected"),
    [
        (
            "source",
            "task.commit:before[batch=1, partition=0] -> fail",
            {"task.abort": file("aborted-{batch}"), "sink.abort": file("aborted-{batch}")},
            ["task.abort:before no", "task.abort:after no", "sink.abort:before no", "sink.abort:after yes"],
        ),
        (
            "files",
            "sink.manifest:before[batch=1] -> fail",
            {"sink.manifest": file("out/_spark_metadata/{batch}"), "sink.abort": rows},
            ["sink.manifest:before no", "sink.abort:before yes", "sink.abort:after no"],
        ),
        (
            "files",
            "task.row:before[batch=1, partition=0, row=5] -> fail",
            {"task.abort": rows_of_the_task},
            ["task.abort:before yes", "task.abort:after no"],
        ),
    ],
    ids=["a Python source", "the file sink's manifest", "a task of the file sink"],
)
def test_an_abort_lies_before_and_behind_what_it_takes_back(
    start: Start, tmp_path: Path, kind: str, plan: str, places: Mapping[str, Place], expected: Sequence[str]
) -> None:
    journal = Looking(tmp_path, places)
    phases = [*places, plan.partition(":")[0]]
    with Injector(parse(plan), Killer(), journal.record) as injector:
        assert start(kind, injector, phases).process.wait(90) == 1
    found = [(at, there) for (at, batch), there in journal.found.items() if batch == 1]
    assert [f"{at} {'yes' if yes else 'no'}" for at, there in found for yes in there] == expected


def version(root: Path, point: Mapping[str, Any]) -> bool:
    """Version N+1 of a partition's state is what batch N leaves (HDFSBackedStateStoreProvider)."""
    return (root / "checkpoint/state/0" / str(point["partition"]) / f"{int(point['batch']) + 1}.delta").exists()


@pytest.mark.long
def test_a_states_commit_lies_between_its_versions(start: Start, tmp_path: Path) -> None:
    journal = Looking(tmp_path, {"state.commit": version})
    with Injector(Plan(), None, journal.record) as injector:
        start("counts", injector, ["state.commit"]).finish()
    for batch in range(BATCHES):
        assert journal.found["state.commit:before", batch] == {False}
        assert journal.found["state.commit:after", batch] == {True}


class Removing(Journal):
    """Removes a file at the first report of a point, while the thread that reports it is parked."""

    def __init__(self, at: Mapping[str, Any], path: Path) -> None:
        super().__init__()
        self.at, self.path = at, path
        self.there: bool | None = None

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        if event == "point" and self.there is None and self.at.items() <= fields.items():
            self.there = self.path.exists()
            self.path.unlink(missing_ok=True)
        super().record(event, fields)


@pytest.mark.long
@pytest.mark.parametrize(("edge", "code"), [("before", 1), ("after", 0)])
def test_a_new_driver_reads_a_partitions_state_between_both_edges_of_its_loading(
    start: Start, tmp_path: Path, edge: str, code: int
) -> None:
    """Version 1, which batch 0 has left, is gone where the new driver's batch 1 loads it, or has loaded it."""
    with Injector(parse("batch.commit:before[batch=1] -> kill(driver)"), Killer(), Journal().record) as injector:
        start("counts", injector, ["batch.commit"]).process.wait(90)
    at = {"phase": "state.load", "edge": edge, "batch": 1, "partition": 0}
    journal = Removing(at, tmp_path / "checkpoint/state/0/0/1.delta")
    with Injector(Plan(), None, journal.record) as injector:
        assert start("counts", injector, ["state.load"]).process.wait(90) == code
    assert journal.there


@pytest.mark.long
def test_a_query_that_starts_has_not_read_its_checkpoint(start: Start, tmp_path: Path) -> None:
    """All was done, and the newest entry of the commit log goes while a second run of the query begins."""
    with Injector(Plan(), None, Journal().record) as injector:
        start("noop", injector).finish()
    journal = Removing({"phase": "query.start", "edge": "before"}, tmp_path / f"checkpoint/commits/{BATCHES - 1}")
    with Injector(Plan(), None, journal.record) as injector:
        start("noop", injector, ["query.start", "batch.commit"]).finish()
    assert journal.there
    again = [(point["batch"], point["edge"]) for point in journal.points("batch.commit")]
    assert again == [(BATCHES - 1, "before"), (BATCHES - 1, "after")]
