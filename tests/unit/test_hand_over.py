"""A holder gives its services to one user after the other, says why it does not, and ends when it is told to."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import DockerException
from onceproof.harness.environments import holder
from onceproof.harness.environments.docker import remove
from onceproof.harness.environments.holder import Holder, InUse, NamedEnvironment
from onceproof.harness.errors import Unavailable
from onceproof.harness.runtime import guardian_process, processes
from onceproof.harness.runtime.leftovers import named
from onceproof.harness.runtime.waiting import wait_for

Ask = Callable[..., Any]


class Services:
    """Services on paper: their recovery waits for ``may_go_on``, then raises ``error`` if there is one."""

    def __init__(self, state: Path) -> None:
        self.host = SimpleNamespace(state=state)
        self.error: Exception | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def recover(self) -> None:
        self.may_go_on.wait(10)
        if self.error is not None:
            raise self.error

    def versions(self) -> dict[str, str]:
        return {"kafka": "4"}


@pytest.fixture
def services(tmp_path: Path) -> Services:
    return Services(tmp_path)


@pytest.fixture
def held(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holder]:
    monkeypatch.setattr(holder, "IN_USE_SECONDS", 0.1)
    paper: Any = services
    held = Holder("dev", "local", paper, ttl=60)
    listener: Any = SimpleNamespace(accept=threading.Event().wait)
    held._listener = listener
    before = signal.getsignal(signal.SIGTERM)
    yield held
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def connect(held: Holder) -> Iterator[Callable[[], tuple[Connection, Ask]]]:
    """A new connection to the holder, and what asks over it."""
    with ExitStack() as stack:

        def connect() -> tuple[Connection, Ask]:
            ours, theirs = Pipe()
            stack.callback(ours.close)
            threading.Thread(target=held._converse, args=(theirs,), daemon=True).start()

            def ask(method: str, *arguments: object) -> Any:
                return holder._answer("dev", ours, method, *arguments)

            return ours, ask

        yield connect


Connect = Callable[[], tuple[Connection, Ask]]


def leave(connection: Connection, held: Holder) -> None:
    """Returns once the holder has noticed."""
    connection.close()
    wait_for(lambda: held._user is None, 10, "the holder to notice the end of its user")


def test_the_next_user_gets_what_the_last_one_gave_back(connect: Connect, held: Holder) -> None:
    first, ask = connect()
    ask("attach", 11)
    _, ask_again = connect()
    with pytest.raises(InUse, match="dev is in use by process 11: wait for its end, or start another one"):
        ask_again("attach", 12)
    leave(first, held)
    ask_again("attach", 12)
    assert ask_again("versions") == {"kafka": "4"}


def test_a_user_who_comes_while_the_services_are_put_in_order_is_told_so(
    connect: Connect, held: Holder, services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(holder, "HAND_OVER_SECONDS", 0.2)
    services.may_go_on.clear()
    first, ask = connect()
    ask("attach", 11)
    leave(first, held)
    _, ask_again = connect()
    for method, *arguments in (("attach", 12), ("down",)):
        with pytest.raises(InUse, match=r"^environment dev is being put in order after process 11: try again"):
            ask_again(method, *arguments)
    monkeypatch.setattr(holder, "HAND_OVER_SECONDS", 20.0)
    services.may_go_on.set()
    ask_again("attach", 12)


@pytest.mark.parametrize("error", [DockerException("no\nengine"), Unavailable("no engine"), OSError("no engine")])
def test_services_that_cannot_be_put_in_order_end_with_their_holder_and_say_why(
    connect: Connect, held: Holder, services: Services, error: Exception, capsys: pytest.CaptureFixture[str]
) -> None:
    services.error = error
    first, ask = connect()
    ask("attach", 11)
    leave(first, held)
    held.serve()
    why = "environment dev is going down: it was not put in order after process 11: no engine"
    _, ask_again = connect()
    with pytest.raises(Unavailable, match=f"^{why}$"):
        ask_again("attach", 12)
    assert ask_again("down") is None, "whoever wants it down waits for its end"
    assert capsys.readouterr().out == f"{why}\n"


def test_an_environment_whose_time_is_over_is_given_to_nobody(connect: Connect, held: Holder) -> None:
    held._end = 0.0
    held.serve()
    _, ask = connect()
    with pytest.raises(Unavailable, match="dev is going down: its time is over"):
        ask("attach", 12)


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NamedEnvironment]:
    """An environment of which nothing but a state directory is there; its holder is a child that does not end."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen(["sleep", "60"]) as child:
        environment = NamedEnvironment("dev", "local", processes.identity(child.pid), "local[2]", 1, True, "")
        state = named("dev")
        state.mkdir()
        (state / holder.INFO).write_text(json.dumps(asdict(environment)))
        monkeypatch.setattr(holder, "_connect", lambda environment: None)
        monkeypatch.setattr(holder, "_answer", lambda *_: None)
        monkeypatch.setattr(holder, "END_SECONDS", 0.1)
        monkeypatch.setattr(holder, "KILLED_SECONDS", 1.0)
        yield environment
        child.kill()


def test_a_holder_that_does_not_end_is_killed_and_what_is_left_of_it_is_one_line(up: NamedEnvironment) -> None:
    with pytest.raises(Unavailable, match=r"^waited 1 s for .* environment dev; last seen: \S+-dev is there$"):
        holder.down("dev")
    assert not processes.lives(up.process)


def test_an_orderly_end_is_given_the_time_that_the_removal_of_containers_may_take() -> None:
    assert holder.END_SECONDS > 2 * remove.TIMEOUT
    assert holder.KILLED_SECONDS > guardian_process.PROGRAM_SECONDS
