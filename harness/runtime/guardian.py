"""The harness's side of its guardian: the one place where child processes are started and ended.

The guardian is a small process of its own (:mod:`.guardian_process`). It outlives the harness just long enough to end
everything that the harness started. If it is the guardian that dies, the harness ends at once: it would go on without
anybody to clean up behind it.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..errors import UNAVAILABLE, Unavailable
from . import processes
from .removal import NotRemoved, remove_tree

MARK = "ONCEPROOF_GUARDIAN"
"""Environment variable of every child: the identity of its guardian (``pid:started``)."""
ANSWER_SECONDS = 30.0
START_SECONDS = 20.0
CLOSE_SECONDS = 10.0
PROGRAM_SECONDS = 60.0
"""For a program of :meth:`Guardian.run_on_close`; the guardian's own limit is the same."""

Removal = Literal["gate", "shared-memory", "tree"]
User = Literal["namespace"] | int | None


class StartError(Unavailable):
    """A child process could not be started; the reason is the operating system's."""

    def __init__(self, text: str, number: int = 0) -> None:
        super().__init__(text)
        self.errno = number


@dataclass
class _Pending:
    done: threading.Event = field(default_factory=threading.Event)
    answer: Mapping[str, Any] = field(default_factory=dict)


class Child:
    """A process started by a guardian. Its exit code is negative for a signal, as in :mod:`subprocess`."""

    def __init__(self, guardian: Guardian, pid: int) -> None:
        self._guardian = guardian
        self._ended = threading.Event()
        self._code: int | None = None
        self.pid = pid

    def wait(self, timeout: float | None) -> int | None:
        """The exit code, or None if it still runs after ``timeout`` seconds (None: no limit)."""
        self._ended.wait(timeout)
        return self._code

    @property
    def ended(self) -> bool:
        return self._ended.is_set()

    def signal(self, number: signal.Signals) -> bool:
        """Send a signal; False if the process has ended already."""
        return not self.ended and bool(self._guardian.ask("signal", pid=self.pid, signal=int(number)))

    def kill(self) -> int | None:
        """SIGKILL; returns once the process is dead and reaped."""
        self.signal(signal.SIGKILL)
        return self.wait(ANSWER_SECONDS)

    def _note_exit(self, code: int) -> None:
        self._code = code
        self._ended.set()


class Guardian:
    """The connection to a running guardian; all methods may be called from any thread."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket, identity: str) -> None:
        self.identity = identity
        self._process = process
        self._control = control
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._pending: dict[int, _Pending] = {}
        self._children: dict[int, Child] = {}
        self._unclaimed: dict[int, int] = {}
        self._removals: list[Path] = []
        self._programs: list[list[str]] = []
        self._closing = False
        self._reader = threading.Thread(target=self._read, name="guardian", daemon=True)

    @classmethod
    def start(cls, mark: str) -> Guardian:
        """Start a guardian; ``mark`` shows in its command line, for people. Raises Unavailable."""
        ours, theirs = socket.socketpair()
        program = Path(__file__).with_name("guardian_process.py")
        arguments = [sys.executable, "-I", "-S", str(program), str(theirs.fileno()), str(os.getpid()), mark]
        try:
            process = subprocess.Popen(
                arguments, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, cwd="/", start_new_session=True
            )
        except OSError as error:
            ours.close()
            raise Unavailable(f"the guardian process could not be started: {error}") from error
        finally:
            theirs.close()
        guardian = cls(process, ours, _ready(process, ours))
        guardian._reader.start()
        return guardian

    def spawn(self, argv: Sequence[str], env: Mapping[str, str], cwd: Path, log: Path, user: User = None) -> Child:
        """Start a child in a session of its own, its output appended to ``log``.

        ``env`` is its whole environment, but for the mark. ``user``: ``"namespace"`` for an ordinary uid in user
        and IPC namespaces of its own, an int for that uid (as root only). Raises StartError.
        """
        pid = self.ask(
            "spawn", argv=[*argv], env={**env, MARK: self.identity}, cwd=str(cwd), log=str(log), user=user, of=argv[0]
        )
        child = Child(self, pid)
        with self._lock:
            if pid in self._unclaimed:
                child._note_exit(self._unclaimed.pop(pid))
            else:
                self._children[pid] = child
        return child

    def remove_on_close(self, path: Path, kind: Removal = "tree") -> None:
        """Have ``path`` removed when this harness ends, however it ends.

        ``gate``: before the processes are ended. ``tree``: a file or directory, after it, the last named one first.
        ``shared-memory``: the segment that this ``postmaster.pid`` names.
        """
        self._removals.append(path)
        self.ask("on_close", path=str(path), kind=kind)

    def run_on_close(self, argv: Sequence[str]) -> None:
        """Have a program run when this harness ends, however it ends: once the processes are ended."""
        self._programs.append([*argv])
        self.ask("run_on_close", argv=[*argv])

    def forget(self, path: Path) -> None:
        """Take ``path`` from what is removed at the end."""
        self._removals = [removal for removal in self._removals if removal != path]
        self.ask("forget", path=str(path))

    def owns(self, pid: int) -> bool:
        return processes.environment(pid).get(MARK) == self.identity

    def strays(self) -> list[int]:
        """Living processes that came down to the guardian when their parents died, and have cleared the mark."""
        rows, pid = processes.table(), int(self.identity.partition(":")[0])
        with self._lock:
            children = set(self._children)
        orphans = [row.pid for row in rows.values() if row.alive and row.parent == pid and row.pid not in children]
        return [orphan for orphan in orphans if not self.owns(orphan) and processes.has_memory(orphan)]

    def end_processes(self) -> None:
        """End every process that was started here, and start no other; returns when their exits are told.

        To be called before :meth:`close` by whoever has threads that write to what is removed there: without the
        processes that they wait for, they come to their end.
        """
        with self._lock:
            closing, self._closing = self._closing, True
        if not closing:
            with contextlib.suppress(StartError):
                with self._lock:
                    pending = self._send("end", {})
                _answer(pending, "end")

    def close(self) -> None:
        """End every process that was started here, remove what was to be removed, and end the guardian."""
        with self._lock:
            self._closing = True
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(CLOSE_SECONDS + len(self._programs) * PROGRAM_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._clean_up()
        self._remove()
        self._reader.join(CLOSE_SECONDS)
        self._control.close()

    def ask(self, do: str, of: str = "", **arguments: Any) -> Any:
        """One request and its answer. Raises StartError with the operating system's reason."""
        with self._lock:
            if self._closing:
                raise StartError("this environment is closed")
            pending = self._send(do, arguments)
        return _answer(pending, f"{do} {of}")

    def _send(self, do: str, arguments: Mapping[str, Any]) -> _Pending:
        """Raises StartError if the guardian is dead: the reader ends the harness then, and may not have got to it."""
        number, pending = next(self._numbers), _Pending()
        self._pending[number] = pending
        try:
            self._control.sendall(json.dumps({"id": number, "do": do, **arguments}).encode() + b"\n")
        except OSError as error:
            del self._pending[number]
            raise StartError(f"{do}: the guardian process died ({error.strerror})", error.errno or 0) from error
        return pending

    def _read(self) -> None:
        with contextlib.suppress(OSError), self._control.makefile("rb") as lines:
            for line in lines:
                self._handle(json.loads(line))
        for child in list(self._children.values()):
            child._note_exit(-signal.SIGKILL)
        with self._lock:
            for pending in self._pending.values():
                pending.answer = {"error": "the guardian process died"}
                pending.done.set()
        if not self._closing:
            self._end_harness()

    def _handle(self, message: Mapping[str, Any]) -> None:
        with self._lock:
            if "exit" not in message:
                pending = self._pending.pop(message["id"])
                pending.answer = message
                pending.done.set()
            elif message["exit"] in self._children:
                self._children.pop(message["exit"])._note_exit(message["code"])
            else:
                self._unclaimed[message["exit"]] = message["code"]

    def _end_harness(self) -> None:
        self._clean_up()
        print("onceproof: the guardian process died: everything it guarded was ended", file=sys.stderr, flush=True)
        os._exit(UNAVAILABLE)

    def _clean_up(self) -> None:
        """What the guardian would have done."""
        with contextlib.suppress(processes.Survivor):
            processes.end(lambda rows: processes.marked(MARK, self.identity, rows))
        for argv in self._programs:
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(argv, timeout=PROGRAM_SECONDS, stdin=subprocess.DEVNULL)
        self._remove()

    def _remove(self) -> None:
        """Nothing, where the guardian has removed it and nobody brought it back since."""
        for path in reversed(self._removals):
            if path.is_file():
                path.unlink(missing_ok=True)
            try:
                remove_tree(str(path))
            except NotRemoved as error:
                print(f"onceproof: {error}", file=sys.stderr, flush=True)


def _ready(process: subprocess.Popen[bytes], control: socket.socket) -> str:
    """The identity that a guardian tells once it serves. Raises Unavailable, and leaves nothing of it."""
    control.settimeout(START_SECONDS)
    try:
        line = control.makefile("rb", buffering=0).readline()
        if line:
            control.settimeout(None)
            return str(json.loads(line)["ready"])
        problem = f"ended at its start (exit code {process.wait()})"
    except TimeoutError:
        process.kill()
        process.wait()
        problem = f"did not start within {START_SECONDS:g} s: run again when this machine is less busy"
    control.close()
    raise Unavailable(f"the guardian process {problem}")


def _answer(pending: _Pending, what: str) -> Any:
    """Raises StartError with the operating system's reason."""
    if not pending.done.wait(ANSWER_SECONDS):
        raise StartError(f"the guardian process does not answer ({what})")
    if "error" in pending.answer:
        raise StartError(f"{what}: {pending.answer['error']}", pending.answer.get("errno") or 0)
    return pending.answer.get("value")
