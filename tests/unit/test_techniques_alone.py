"""The parts of the reference sinks' techniques that need no process."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

SINKS = Path(__file__).parents[2] / "jobs" / "sinks"


@pytest.fixture(autouse=True)
def unchanged_imports() -> Iterator[None]:
    before = set(sys.modules)
    yield
    for name in {file.stem for file in SINKS.glob("*.py")} & (set(sys.modules) - before):
        del sys.modules[name]


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, SINKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


# -- file_manifest ----------------------------------------------------------------------------------------------------


@pytest.fixture
def events(tmp_path: Path) -> Path:
    (tmp_path / "events" / "_spark_metadata").mkdir(parents=True)
    return tmp_path / "events"


def file_of(events: Path, number: int) -> str:
    """A file with one row, as the manifest writes its path."""
    path = events / f"part {number}.parquet"
    parquet.write_table(pa.table({"id": [number]}), path)
    return path.as_uri()


def enter(events: Path, name: str, paths: list[str], action: str = "add") -> None:
    lines = [json.dumps({"path": path, "size": 1, "isDir": False, "action": action}) for path in paths]
    (events / "_spark_metadata" / name).write_text("\n".join(["v1", *lines]))


def ids(events: Path) -> list[int]:
    rows = load("file_manifest").read(SimpleNamespace(directory=str(events.parent)))
    return sorted(row["id"] for row in rows)


def test_a_directory_without_a_manifest_has_no_rows(tmp_path: Path) -> None:
    assert load("file_manifest").read(SimpleNamespace(directory=str(tmp_path))) == []


def test_files_that_no_entry_names_do_not_count(events: Path) -> None:
    counts, left = file_of(events, 1), file_of(events, 2)
    enter(events, "0", [counts])
    enter(events, ".1.f00.tmp", [left])
    assert ids(events) == [1]


def test_a_batch_without_files_is_an_entry_with_a_version_only(events: Path) -> None:
    enter(events, "0", [])
    assert ids(events) == []


def test_a_compacted_entry_stands_for_all_before_it(events: Path) -> None:
    files = [file_of(events, number) for number in range(12)]
    for number in range(10):
        name = f"{number}.compact" if number % 3 == 2 else str(number)
        enter(events, name, files[: number + 1] if "compact" in name else [files[number]])
    enter(events, "10", [files[10]])
    assert ids(events) == list(range(11))
    (events / "_spark_metadata" / "0").unlink()  # as Spark does some time after the compaction
    assert ids(events) == list(range(11))


def test_a_manifest_of_another_version_is_refused(events: Path) -> None:
    (events / "_spark_metadata" / "0").write_text("v2\n")
    with pytest.raises(ValueError, match="its version is 'v2'"):
        ids(events)


# -- file_rename ------------------------------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    for stage in load("file_rename").STAGES:
        (tmp_path / stage).mkdir()
    return tmp_path


def test_the_first_decision_on_the_files_of_a_batch_stands(directory: Path) -> None:
    sink = load("file_rename")
    assert sink.read_decision(directory, "query-3") is None
    assert sink.decide(directory, "query-3", {"mine": "final-0"}) == {"mine": "final-0"}
    assert sink.decide(directory, "query-3", {"other": "final-0"}) == {"mine": "final-0"}
    assert sink.read_decision(directory, "query-3") == {"mine": "final-0"}
    assert [file.name for file in (directory / "decided").iterdir()] == ["query-3.json"]


def test_a_rename_that_was_done_is_found_done_and_a_lost_file_stops_the_job(directory: Path) -> None:
    finish = load("file_rename").finish
    pending, final = directory / "pending" / "a", directory / "final" / "b"
    pending.write_text("rows")
    finish(pending, final)
    finish(pending, final)
    assert (pending.exists(), final.read_text()) == (False, "rows")
    final.unlink()
    with pytest.raises(RuntimeError, match="a was decided, and is neither pending nor final"):
        finish(pending, final)


def test_a_row_with_a_line_separator_of_unicode_is_one_line(directory: Path) -> None:
    (directory / "final" / "a.jsonl").write_text('{"id":1,"payload":"\u2028\x85"}\n{"id":2}\n', encoding="utf-8")
    rows = load("file_rename").read(SimpleNamespace(directory=str(directory)))
    assert [row["id"] for row in rows] == [1, 2]


# -- wal_committer ----------------------------------------------------------------------------------------------------


def test_the_first_log_of_a_batch_stands(tmp_path: Path) -> None:
    publish = load("wal_committer").publish
    publish(tmp_path / "log", "first")
    publish(tmp_path / "log", "second")
    assert (tmp_path / "log").read_text() == "first"
    assert [file.name for file in tmp_path.iterdir()] == ["log"], "no draft is left"


# -- postgres_prepared ------------------------------------------------------------------------------------------------


class Rows:
    """Stands in for a connection of which only the prepared transactions are asked."""

    def __init__(self, *gids: str) -> None:
        self.gids = gids

    def execute(self, _statement: str) -> list[tuple[str]]:
        return [(gid,) for gid in self.gids]


def test_what_a_driver_that_has_gone_on_prepares_is_not_rolled_back() -> None:
    connection = Rows("mine:1:0:a", "mine:2:0:b", "mine:10:0:c", "another:1:0:d", "mine:2:1:e")
    assert load("postgres_prepared").prepared(connection, "mine", up_to=2) == ["mine:1:0:a", "mine:2:0:b", "mine:2:1:e"]
