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
from onceproof.harness.sinks import SinkProcess


@dataclass
class Host:
    """An environment with one process, which connects and then gives ``answers`` to calls; silent when there are none
    left, without any it hangs up at the first call."""

    answers: list[dict[str, Any]] | None
    ended: threading.Event = field(default_factory=threading.Event)
    python: str = "python"

    def own_host(self) -> str:
        return "127.0.0.1"

    def start_process(self, spec: ProcessSpec) -> Host:
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


def process_of(host: Any, deadline: float = 30.0) -> SinkProcess:
    return SinkProcess(Path("mine.py"), host, Path("sink.log"), deadline)


def test_a_call_that_is_not_answered_in_time_hangs_and_ends_the_process() -> None:
    host = Host(answers=[{"result": []}])
    with process_of(host) as process:
        assert process.read({}) == []
        with pytest.raises(SinkHangs, match=r"^sink mine.py hangs in read: no answer within 0.05 s"):
            process.read({}, deadline=0.05)
        assert host.ended.is_set()


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
