"""Losses of power as points, for sinks that say that they are durable."""

from __future__ import annotations

from typing import Any

from onceproof.harness.certification.points import Question
from onceproof.harness.certification.space import space_of

OF_BATCH = {"event": "point", "run": "r", "process": "p", "thread": "1", "batch": 1}
POWER = "kill(driver, unsynced=lost)"


def changed(*changes: str) -> list[dict[str, Any]]:
    """``rename target/a`` each."""
    return [
        {**OF_BATCH, "phase": "file", "edge": edge, "op": change.split()[0], "path": change.split()[1]}
        for change in changes
        for edge in ("before", "after")
    ]


WRITTEN = changed("create target/a.tmp", "fsync target/a.tmp", "rename target/a", "fsync target", "create target/b")
COMMITTED = {**OF_BATCH, "phase": "batch.commit", "edge": "before"}


def texts(trace: list[dict[str, Any]], durable: bool = True) -> list[str]:
    roles = {"first": 0, "middle": 1}
    found = space_of(Question(trace=trace, roles=roles, refusal=lambda plan: None, durable=durable))
    return [point.text for point in found.points if "unsynced=" in point.text]


def test_power_is_lost_behind_a_batch_whose_first_driver_died_where_a_name_was_not_synced() -> None:
    second = [text for text in texts([*WRITTEN, COMMITTED]) if ";" in text]
    assert second == [
        f"file:before[op={op}, path={path}, batch=1]#1 -> kill(driver); batch.commit:after[batch=1] -> {POWER}"
        for op, path in (("fsync", "target"), ("create", '"target/b"'))
    ]


def test_power_is_lost_there_without_the_names_too() -> None:
    emptied = [text for text in texts([*WRITTEN, COMMITTED]) if "emptied" in text]
    assert emptied == [
        f"file:before[op={op}, path={path}, batch=1]#1 -> kill(driver, unsynced=emptied)"
        for op, path in (("fsync", "target"), ("create", '"target/b"'))
    ]


def test_nothing_is_left_to_the_successor_where_no_file_gets_a_name() -> None:
    assert [text for text in texts(changed("create target/a", "fsync target/a")) if ";" in text] == []


def test_a_sink_that_does_not_say_so_loses_no_power() -> None:
    assert texts([*WRITTEN, COMMITTED], durable=False) == []
