"""The processes of a session's sinks: borrowed by one trial at a time, and no more kept than are of use."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from onceproof.harness import sink_processes
from onceproof.harness.environments.base import Environment
from onceproof.harness.sink_processes import IDLE, SinkProcesses

alive: list[OnPaper] = []


class OnPaper:
    """A process that counts among those that are alive from its start to its end."""

    def __init__(self, path: Path, *_: Any) -> None:
        self.path = path
        alive.append(self)

    def close(self) -> None:
        alive.remove(self)


@pytest.fixture
def processes(monkeypatch: pytest.MonkeyPatch) -> Iterator[SinkProcesses]:
    monkeypatch.setattr(sink_processes, "SinkProcess", OnPaper)
    alive.clear()
    found = SinkProcesses(30.0)
    yield found
    found.close()
    assert not alive


@contextmanager
def borrowed(processes: SinkProcesses, name: str, logs: Path) -> Iterator[OnPaper]:
    with processes.borrow(Path(name), cast(Environment, None), logs) as process:
        yield cast(OnPaper, process)


def test_the_next_trial_of_a_sink_has_its_process_again(processes: SinkProcesses, tmp_path: Path) -> None:
    with borrowed(processes, "a.py", tmp_path) as first:
        pass
    with borrowed(processes, "a.py", tmp_path) as again, borrowed(processes, "a.py", tmp_path) as another:
        assert again is first
        assert another is not first


def test_those_that_were_needed_last_are_kept(processes: SinkProcesses, tmp_path: Path) -> None:
    names = [f"{number}.py" for number in range(IDLE + 2)]
    for name in names:
        with borrowed(processes, name, tmp_path):
            pass
    assert [process.path.name for process in alive] == names[2:]


def test_one_that_is_given_back_behind_the_end_ends(processes: SinkProcesses, tmp_path: Path) -> None:
    with ExitStack() as stack:
        stack.enter_context(borrowed(processes, "a.py", tmp_path))
        processes.close()
        assert len(alive) == 1
    assert not alive
