"""The logs of services, of which each trial gets what was added in its time."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.environments import host as module
from onceproof.harness.environments.host import Host


@pytest.fixture
def host(tmp_path: Path) -> Host:
    guardian: Any = None
    return Host(guardian, tmp_path)


def test_each_line_is_collected_once(host: Host, tmp_path: Path) -> None:
    log, seen = host.log("broker 1"), []
    for text in ("one\n", "two\nthree\n", ""):
        with log.open("a") as file:
            file.write(text)
        trial = tmp_path / f"trial-{len(seen)}"
        host.collect({log.name: log}, trial)
        seen.append([path.read_text() for path in trial.iterdir()])
    assert seen == [["one\n"], ["two\nthree\n"], []]


def test_two_trials_that_end_at_once_get_each_line_once_between_them(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, both = host.log("broker 1"), threading.Barrier(2)
    added = module.added

    def slow(path: Path, since: int) -> bytes:
        """Waits for the other trial to read as well, which may not be possible."""
        text = added(path, since)
        with suppress(threading.BrokenBarrierError):
            both.wait(0.5)
        return text

    monkeypatch.setattr(module, "added", slow)
    trials = [tmp_path / "trial-1", tmp_path / "trial-2"]
    log.write_text("one\n")
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda trial: host.collect({log.name: log}, trial), trials))
    assert sorted(path.read_text() for trial in trials for path in trial.iterdir()) == ["one\n"]
    monkeypatch.undo()
    with log.open("a") as file:
        file.write("two\n")
    host.collect({log.name: log}, tmp_path / "trial-3")
    assert (tmp_path / "trial-3" / log.name).read_text() == "two\n", "no line is skipped"
