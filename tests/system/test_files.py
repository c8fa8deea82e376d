"""Changes of files on the running system: where the job stops, and what becomes of one that fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from onceproof.assertions import Workload
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink
from onceproof.harness.trial import act
from onceproof.harness.trial.spec import TrialResult

SMALL = Workload(batches=3, rows=48)


Look = Callable[[Mapping[str, Any], Path], None]


@pytest.fixture
def at_each_point(monkeypatch: pytest.MonkeyPatch) -> Callable[[Look], None]:
    """Calls a function with what is reported, and with the sink's directory, while the process that did so is held."""
    made = act._observer

    def call(look: Look) -> None:
        def observer(resources: Any, *rest: Any) -> Any:
            observe, target = made(resources, *rest), Path(resources.namespace("harness")["directory"])

            def observed(point: Mapping[str, Any]) -> Any:
                look(point, target)
                return observe(point)

            return observed

        monkeypatch.setattr(act, "_observer", observer)

    return call


@pytest.fixture
def looked(at_each_point: Callable[[Look], None]) -> list[tuple[str, str, str, bool]]:
    """Role, operation, edge, and whether the file is there, at each change of a file in batch 0."""
    found: list[tuple[str, str, str, bool]] = []

    def look(point: Mapping[str, Any], target: Path) -> None:
        if point.get("phase") == "file" and point.get("batch") == 0:
            there = (target.parent / point["path"]).exists()
            found.append((str(point["role"]), str(point["op"]), str(point["edge"]), there))

    at_each_point(look)
    return found


def run(session: Session, sink: str, plan: str) -> TrialResult:
    return session.trial(Request(sink, plan=plan, workload=SMALL, watch=False))


def test_a_rename_is_stopped_before_it_is_done_and_after_it(
    session: Session, looked: list[tuple[str, str, str, bool]]
) -> None:
    result = run(session, "file_rename", 'file:before[op=rename, path="target/final/*", batch=1] -> kill(driver)')
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    renames = [(edge, there) for _, op, edge, there in looked if op == "rename"]
    assert set(renames) == {("before", False), ("after", True)}
    assert {role for role, *_ in looked} == {"python"}


@pytest.mark.long
def test_a_file_that_the_jvm_writes_is_stopped_likewise(
    session: Session, looked: list[tuple[str, str, str, bool]]
) -> None:
    """By Spark's file sink, whose tasks write through Hadoop's file system."""
    result = run(
        session, "file_manifest", 'file:after[op=create, path="target/events/part-*", batch=1] -> kill(driver)'
    )
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert ("driver", "create", "before", False) in looked
    assert ("driver", "create", "after", True) in looked


@pytest.mark.long
def test_the_manifest_of_sparks_file_sink_is_stopped_before_its_entry_is_there_and_after(
    session: Session, at_each_point: Callable[[Look], None]
) -> None:
    entries: list[tuple[str, int, bool]] = []

    def look(point: Mapping[str, Any], target: Path) -> None:
        if point.get("phase") == "sink.manifest":
            batch = point["batch"]
            there = any((target / "events" / "_spark_metadata").glob(f"{batch}*"))
            entries.append((str(point["edge"]), batch, there))

    at_each_point(look)
    plan = "sink.manifest:before[batch=1] -> kill(driver); sink.manifest:after[batch=2] -> kill(driver)"
    result = run(session, "file_manifest", plan)
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert {(edge, there) for edge, _, there in entries} == {("before", False), ("after", True)}
    assert {batch for _, batch, _ in entries} == {0, 1, 2}


@pytest.mark.long
def test_a_full_disk_where_a_file_is_synced_reaches_the_engine(session: Session) -> None:
    result = run(session, "file_rename", "file:before[op=sync, batch=1] -> fail(error=ENOSPC)")
    [fault] = result.verdict.faults
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    assert fault.confirmed
    [raised] = [event for event in result.journal if event["event"] == "probe.raised"]
    assert (raised["op"], raised["error"]) == ("sync", "ENOSPC")


@pytest.mark.long
@pytest.mark.parametrize(
    ("sink", "point"),
    [
        ("file_manifest", 'file:before[op=create, path="target/*.parquet", batch=1, partition=1]'),  # the JVM's threads
        (
            "postgres_prepared",  # Python workers
            'request:before[kind="PREPARE TRANSACTION", batch=1, stage=1, partition=1, attempt=0]',
        ),
    ],
)
def test_what_a_task_does_is_chosen_by_the_task(session: Session, sink: str, point: str) -> None:
    result = run(session, sink, f"{point} -> {'fail' if sink == 'file_manifest' else 'drop'}")
    assert result.verdict.outcome.value == "pass", result.verdict.reason
    reported = [event for event in result.journal if event.get("phase") in ("file", "request")]
    tasks = {(one["partition"], one["attempt"]) for one in reported if one.get("batch") == 1 and "partition" in one}
    assert {(0, 0), (1, 0), (2, 0), (1, 1)} <= tasks
    [reached] = [index for index, event in enumerate(result.journal) if event["event"] == "fault.reached"]
    before = [event for event in result.journal[:reached] if event["event"] == "point"]
    assert (before[-1]["partition"], before[-1]["attempt"], before[-1]["stage"]) == (1, 0, 1)


LOSS_OF_POWER = "batch.commit:after[batch=1] -> kill(driver, unsynced=lost)"


def test_a_sink_that_does_not_sync_loses_a_recorded_batch_with_the_power(session: Session) -> None:
    result = run(session, "renamed_unsynced", LOSS_OF_POWER)
    assert result.verdict.outcome.value == "fail", result.verdict.reason
    assert [one.kind for one in result.verdict.anomalies] == ["lost"]
    [confirmed] = [event for event in result.journal if event["event"] == "fault.confirmed"]
    assert "lost rename of" in confirmed["detail"]


@pytest.mark.long
@pytest.mark.parametrize("sink", ["file_rename", "kafka_transactional"])
def test_a_sink_that_syncs_files_and_directories_loses_nothing(session: Session, sink: str) -> None:
    result = run(session, sink, LOSS_OF_POWER)
    assert result.verdict.outcome.value == "pass", result.verdict.reason


RENAMED = "    os.replace(draft, final)\n"
OF_THE_DIRECTORY = "    directory = os.open(final.parent, os.O_RDONLY)\n    {}(directory)\n    os.close(directory)\n"
SYNCFS = "__import__('ctypes').CDLL(None).syncfs"


@pytest.mark.long
@pytest.mark.parametrize(
    ("flag", "after", "outcome"),
    [
        ("0", "    os.sync()\n", "pass"),
        ("0", OF_THE_DIRECTORY.format(SYNCFS), "pass"),
        ("os.O_DSYNC", OF_THE_DIRECTORY.format("os.fsync"), "pass"),
        ("0", OF_THE_DIRECTORY.format("os.fsync"), "fail"),
    ],
    ids=["sync", "syncfs", "O_DSYNC", "only the directory"],
)
def test_files_are_synced_in_other_ways_too(
    session: Session, tmp_path: Path, flag: str, after: str, outcome: str
) -> None:
    code = find_sink("renamed_unsynced").read_text()
    written = '    draft.write_text("".join(rows), encoding="utf-8")\n'
    assert written in code
    assert RENAMED in code
    write = f"    with open(draft, 'w', opener=lambda path, flags: os.open(path, flags | {flag})) as file:\n"
    code = code.replace(written, f"{write}        file.write(''.join(rows))\n").replace(RENAMED, RENAMED + after)
    (tmp_path / "mine.py").write_text(code)
    result = run(session, str(tmp_path / "mine.py"), LOSS_OF_POWER)
    assert result.verdict.outcome.value == outcome, result.verdict.reason


@pytest.mark.long
@pytest.mark.parametrize(("syncs", "outcome"), [(True, "pass"), (False, "fail")], ids=["synced", "not synced"])
def test_the_decision_of_a_two_phase_commit_has_to_outlive_the_power(
    session: Session, tmp_path: Path, syncs: bool, outcome: str
) -> None:
    """One transaction of the batch is committed, because that was decided; what is left of the decision says whether
    the others are."""
    code = find_sink("kafka_transactional").read_text()
    for statement in ("        os.fsync(file.fileno())\n", "        os.fsync(descriptor)\n"):
        assert statement in code
        code = code if syncs else code.replace(statement, "        pass\n")
    (tmp_path / "mine.py").write_text(code)
    plan = "request:after[service=kafka, kind=EndTxn, batch=1]#1 -> kill(driver, unsynced=lost)"
    result = run(session, str(tmp_path / "mine.py"), plan)
    assert result.verdict.outcome.value == outcome, result.verdict.reason
    assert result.verdict.faults[0].confirmed
