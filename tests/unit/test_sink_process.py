"""What becomes of calls to a sink whose process does not answer as it should; the process is on paper."""

from __future__ import annotations

import json
import socket
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from onceproof.harness.environments.base import ProcessSpec
from onceproof.harness.errors import SinkError, SinkHangs
from onceproof.harness.sink_process import SinkProcess


@dataclass
class Host:
    """An environment whose processes connect and then give ``answers`` to calls; silent when there are none left,
    without any they hang up at the first call."""

    answers: list[dict[str, Any]] | None
    started: int = 0
    ended: threading.Event = field(default_factory=threading.Event)
    python: str = "python"

    def own_host(self) -> str:
        return "127.0.0.1"

    def start_process(self, spec: ProcessSpec) -> Host:
        self.started += 1
        _, _, host, port, token = spec.arguments
        threading.Thread(target=self._serve, args=(host, int(port), token), daemon=True).start()
        return self

    def _serve(self, host: str, port: int, token: str) -> None:
        with socket.create_connection((host, port)) as connection, connection.makefile("rw") as stream:
            self._say(stream, token)
            while stream.readline() and self.answers is not None:
                if self.answers:
                    self._say(stream, json.dumps(self.answers.pop(0)))

    @staticmethod
    def _say(stream: Any, line: str) -> None:
        stream.write(f"{line}\n")
        stream.flush()

    def wait(self, timeout: float) -> int | None:
        return 7

    def kill(self) -> None:
        self.ended.set()


def process_of(host: Any, deadline: float = 30.0, log: Path = Path("sink.log")) -> SinkProcess:
    return SinkProcess(Path("mine.py"), host, log, deadline)


def test_a_call_that_is_not_answered_in_time_hangs_and_ends_the_process() -> None:
    host = Host(answers=[{"result": []}])
    with process_of(host) as process:
        assert process.read({}) == []
        with pytest.raises(SinkHangs, match=r"^sink mine.py hangs in read: no answer within 0.05 s"):
            process.read({}, deadline=0.05)
        assert host.ended.is_set()
        assert host.started == 1


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([{"error": "its lock hangs in the database", "line": 4}], "line 4 failed in read: its lock hangs"),
        (None, r"ended its process in read \(exit code 7\)"),
    ],
)
def test_a_call_that_fails_does_not_hang(answers: list[dict[str, Any]] | None, message: str) -> None:
    with process_of(Host(answers)) as process, pytest.raises(SinkError, match=message) as raised:
        process.read({})
    assert not isinstance(raised.value, SinkHangs)


ROWS = {"result": [{"id": 1}]}


def lost(what: str) -> dict[str, Any]:
    return {"error": f"{what} is lost"}


def test_a_read_that_fails_in_a_process_that_ran_before_is_repeated_in_a_new_one() -> None:
    host = Host([ROWS, lost("its connection"), ROWS])
    with process_of(host) as process:
        assert [process.read({}), process.read({})] == [[{"id": 1}]] * 2
        assert host.started == 2


def test_an_error_of_read_that_comes_again_in_a_new_process_remains() -> None:
    host = Host([ROWS, lost("its connection"), lost("its file"), ROWS])
    with process_of(host) as process:
        process.read({})
        with pytest.raises(SinkError, match="its file is lost"):
            process.read({})
        assert host.started == 2


def test_a_new_process_is_not_started_for_the_error_of_another_new_one() -> None:
    host = Host([lost("its file"), ROWS])
    with process_of(host) as process, pytest.raises(SinkError, match="its file is lost"):
        process.read({})
    assert host.started == 1


def test_only_read_is_repeated() -> None:
    host = Host([{"result": None}, lost("its connection"), {"result": None}])
    with process_of(host) as process:
        process.call("prepare", {})
        with pytest.raises(SinkError, match="failed in cleanup: its connection is lost"):
            process.call("cleanup", {})
        assert host.started == 1


@pytest.mark.parametrize(
    ("answers", "message", "stays"),
    [([{"error": "no module", "line": 1}], "failed while it was imported: no module", False), (None, "; see ", True)],
)
def test_the_log_of_a_sink_that_cannot_be_loaded_stays_where_its_error_names_it(
    answers: list[dict[str, Any]] | None, message: str, stays: bool, tmp_path: Path
) -> None:
    sink, log = tmp_path / "mine.py", tmp_path / "sink.log"
    sink.touch()
    log.write_text("Traceback\n")
    with SinkProcess(sink, Host(answers), log, 30.0) as process, pytest.raises(SinkError, match=message):  # type: ignore[arg-type]
        process.describe()
    assert log.exists() == stays


@pytest.mark.parametrize(("said", "where"), [("Traceback\n", r"see /.*/sink\.log"), ("", "it printed nothing")])
def test_an_error_names_a_log_only_where_there_is_one(tmp_path: Path, said: str, where: str) -> None:
    log = tmp_path / "sink.log"
    log.write_text(said)
    with process_of(Host(None), log=log) as process, pytest.raises(SinkError, match=rf"\(exit code 7\); {where}$"):
        process.read({})
    assert log.exists() == bool(said)


@pytest.mark.parametrize("said", ["", "prepared\n"])
def test_of_a_process_that_says_nothing_no_log_is_left(tmp_path: Path, said: str) -> None:
    log = tmp_path / "sink.log"
    log.write_text(said)
    with process_of(Host([ROWS]), log=log) as process:
        process.read({})
    assert log.exists() == bool(said)
