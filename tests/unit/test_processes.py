"""Processes as /proc has them."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from onceproof.harness.environments.local.driver import let_go
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.waiting import wait_for

FIRST_THREAD_ENDS = """
import ctypes, socket, sys, threading
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
threading.Thread(target=threading.Event().wait).start()
ctypes.CDLL(None).pthread_exit(None)
"""


@contextmanager
def killed(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """At the end of the block, whatever comes."""
    try:
        yield process
    finally:
        process.kill()
        process.wait(20)


def state_of(pid: int) -> str:
    row = processes.look(pid)
    assert row is not None
    return row.state


def test_a_process_lives_until_its_last_thread_has_ended() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with killed(subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS, port])) as process:
            connection, _ = server.accept()
            identity = processes.identity(process.pid)
            wait_for(lambda: state_of(process.pid) == "Z", 20, "the first thread's end")
            assert processes.lives(identity), "its connection is open"
            [ended] = processes.end(lambda rows: [row for row in rows.values() if row.pid == process.pid])
            assert ended.identity == identity
            assert not processes.lives(identity)
            assert connection.recv(1) == b""
            assert process.wait(20) == -signal.SIGKILL
            connection.close()


def test_a_process_that_ends_as_soon_as_it_goes_on_did_go_on() -> None:
    with killed(subprocess.Popen(["sh", "-c", "kill -STOP $$"])) as process:
        wait_for(lambda: state_of(process.pid) == "T", 20, "its stop")
        row = processes.look(process.pid)
        assert row is not None
        assert let_go([row]) == [row]
        assert process.wait(20) == 0
        processes.confirm([row], "going on")


def test_a_process_that_stays_stopped_does_not_go_on() -> None:
    with killed(subprocess.Popen(["sh", "-c", "kill -STOP $$"])) as process:
        wait_for(lambda: state_of(process.pid) == "T", 20, "its stop")
        row = processes.look(process.pid)
        assert row is not None
        with pytest.raises(processes.Survivor, match=r"is not going on after 0\.05 s"):
            processes.confirm([row], "going on", 0.05)
