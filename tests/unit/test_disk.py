"""What a loss of power takes from a disk, on real files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from onceproof.harness.trial.disk import Disk


class Job:
    """Changes files as a Python process of a job does, which reports each change."""

    def __init__(self, directory: Path, role: str = "python") -> None:
        self.target = directory / "target"
        self.target.mkdir()
        self.disk = Disk(directory, directory / "removed")
        self.role = role

    @contextmanager
    def reported(self, op: str, name: str, source: str = "", **traits: bool) -> Iterator[Path]:
        named = {"source": f"target/{source}"} if source else {}
        point = {"phase": "file", "role": self.role, "thread": "files 1", "op": op, "path": f"target/{name}", **named}
        point |= traits
        self.disk.note({**point, "edge": "before"})
        yield self.target / name
        self.disk.note({**point, "edge": "after"})

    def write(self, name: str, text: str, **traits: bool) -> None:
        op = "open" if (self.target / name).exists() else "create"
        with self.reported(op, name, **traits) as path:
            file = path.open("a")
        with file:
            file.write(text)

    def sync(self, name: str) -> None:
        with self.reported("sync", name):
            pass

    def rename(self, old: str, new: str) -> None:
        with self.reported("rename", new, old) as path:
            os.replace(self.target / old, path)

    def delete(self, name: str) -> None:
        with self.reported("delete", name) as path:
            path.unlink()

    def link(self, old: str, new: str) -> None:
        with self.reported("link", new, old) as path:
            os.link(self.target / old, path)

    @property
    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in sorted(self.target.iterdir())}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return Job(tmp_path)


def test_a_file_that_was_never_synced_is_gone(job: Job) -> None:
    job.write("a", "one")
    assert job.disk.lose_power() == "lost file a"
    assert job.files == {}


def test_a_name_may_be_there_whose_content_is_not(job: Job) -> None:
    job.write("draft", "one")
    job.rename("draft", "final")
    job.write("synced", "two")
    job.sync("synced")
    assert job.disk.lose_power(names_kept=True) == "lost what was written to final"
    assert job.files == {"final": "", "synced": "two"}
    assert job.disk.lose_power() == "lost nothing: all was synced"


def test_a_link_that_took_the_place_of_another_is_taken_back(job: Job) -> None:
    """Versions are directories, and readers follow the link "current"."""
    for version in ("v1", "v2"):
        (job.target / version).mkdir()
        with job.reported("link", f"new-{version}") as path:
            path.symlink_to(version)
        job.rename(f"new-{version}", "current")
        if version == "v1":
            job.sync("")
    assert os.readlink(job.target / "current") == "v2"
    assert job.disk.lose_power() == "lost link new-v2, rename of new-v2 to current"
    assert os.readlink(job.target / "current") == "v1"
    assert not os.path.lexists(job.target / "new-v2")


def test_what_is_behind_a_link_is_a_file_of_its_own(job: Job) -> None:
    job.write("a", "one")
    job.sync("a")
    job.write("a", " two")
    with job.reported("link", "b") as path:
        path.symlink_to("a")
    assert job.disk.lose_power() == "lost link b, what was written to a"
    assert job.files == {"a": "one"}


def test_a_directory_is_synced_by_whatever_name(job: Job) -> None:
    (job.target / "v1").mkdir()
    (job.target / "current").symlink_to("v1")
    job.write("v1/draft", "one")
    job.sync("v1/draft")
    job.rename("v1/draft", "v1/final")
    job.sync("current")
    assert job.disk.lose_power() == "lost nothing: all was synced"


def test_what_a_reader_changes_while_nothing_of_the_job_runs_stays(job: Job) -> None:
    """SQLite: whoever opens the database first puts the log's pages into it, and removes the log."""
    for name in ("db", "log"):
        job.write(name, "old")
        job.sync(name)
    job.write("log", " and new, unsynced")
    with job.disk.being_read():
        (job.target / "log").unlink()
        (job.target / "db").write_text("old and new")
    assert job.disk.lose_power() == "lost nothing: all was synced"
    assert job.files == {"db": "old and new"}


def test_what_nobody_changed_is_still_unsynced_when_it_has_been_read(job: Job) -> None:
    job.write("a", "one")
    with job.disk.being_read():
        pass
    assert job.disk.lose_power() == "lost file a"


def test_a_file_has_what_it_had_when_it_was_synced_last(job: Job) -> None:
    job.write("a", "one")
    job.sync("a")
    job.write("a", "two")
    assert job.disk.lose_power() == "lost what was written to a"
    assert job.files == {"a": "one"}


def test_a_file_that_was_there_before_keeps_what_it_had(job: Job) -> None:
    (job.target / "a").write_text("old")
    job.write("a", "new")
    job.disk.lose_power()
    assert job.files == {"a": "old"}


def test_a_rename_is_undone_until_its_directory_is_synced(job: Job) -> None:
    job.write("draft", "one")
    job.sync("draft")
    job.rename("draft", "final")
    assert job.disk.lose_power() == "lost rename of draft to final"
    assert job.files == {"draft": "one"}
    job.rename("draft", "final")
    job.sync("")
    assert job.disk.lose_power() == "lost nothing: all was synced"
    assert job.files == {"final": "one"}


def test_a_rename_onto_a_file_gives_that_file_back(job: Job) -> None:
    for name, text in (("final", "old"), ("draft", "new")):
        job.write(name, text)
        job.sync(name)
    job.rename("draft", "final")
    job.disk.lose_power()
    assert job.files == {"draft": "new", "final": "old"}


def test_a_rename_that_is_synced_of_a_file_that_is_not_leaves_no_file(job: Job) -> None:
    job.write("draft", "one")
    job.rename("draft", "final")
    job.sync("")
    job.disk.lose_power()
    assert job.files == {}


def test_a_sync_of_everything_is_one_of_files_and_directories(job: Job) -> None:
    job.write("draft", "1")
    job.rename("draft", "final")
    with job.reported("sync", "", everywhere=True):
        pass
    job.write("final", "2")
    job.write("later", "3")
    job.disk.lose_power()
    assert job.files == {"final": "1"}


def test_a_file_that_is_opened_synchronous_has_what_was_written_until_it_is_opened_otherwise(job: Job) -> None:
    job.write("a", "1", synchronous=True)
    job.write("b", "1", synchronous=True)
    job.write("b", "2")
    job.disk.lose_power()
    assert job.files == {"a": "1", "b": "1"}


def test_a_file_that_is_opened_both_ways_counts_as_an_ordinary_one(job: Job) -> None:
    job.write("a", "1")
    job.write("a", "2", synchronous=True)
    job.disk.lose_power()
    assert job.files == {}


def test_what_vanishes_meanwhile_does_not_keep_a_sync_of_everything_from_the_rest(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.write("a", "1")
    job.write("b", "1")
    read = Path.read_bytes

    def vanishing(path: Path) -> bytes:
        if path.name == "a":
            raise FileNotFoundError(path)
        return read(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_bytes", vanishing)
        with job.reported("sync", "", everywhere=True):
            pass
    job.disk.lose_power()
    assert job.files == {"b": "1"}


def test_links_and_removals_are_undone_in_turn(job: Job) -> None:
    job.write("draft", "one")
    job.sync("draft")
    job.link("draft", "final")
    job.delete("draft")
    assert job.disk.lose_power() == "lost link final, removal of draft"
    assert job.files == {"draft": "one"}


def test_a_removal_that_failed_says_nothing_of_the_next_rename_of_its_thread(job: Job) -> None:
    for name in ("kept", "draft"):
        job.write(name, name)
        job.sync(name)
    refused = {"phase": "file", "role": "python", "thread": "files 1", "op": "delete", "path": "target/kept"}
    job.disk.note({**refused, "edge": "before"})  # and no after
    job.rename("draft", "final")
    job.disk.lose_power()
    assert job.files == {"draft": "draft", "kept": "kept"}


def test_what_is_lost_is_lost_once(job: Job) -> None:
    job.write("a", "one")
    job.disk.lose_power()
    job.write("b", "two")
    job.sync("b")
    assert job.disk.lose_power() == "lost nothing: all was synced"
    assert job.files == {"b": "two"}


def test_what_a_jvm_writes_is_left_alone(tmp_path: Path) -> None:
    job = Job(tmp_path, role="driver")
    job.write("part-0.parquet", "rows")
    assert job.disk.lose_power() == "lost nothing: all was synced"
    assert job.files == {"part-0.parquet": "rows"}
