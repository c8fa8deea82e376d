"""The guardian: starts every child process of a harness, and ends them all when the harness is gone.

Started by :mod:`.guardian` as a file of its own (``python -I -S guardian_process.py CONTROL HARNESS MARK``),
standard library only. CONTROL is the descriptor of a stream socket to the harness, HARNESS the harness's pid. Lines of
JSON come in (``spawn``, ``signal``, ``on_close``, ``run_on_close``, ``forget``, ``end``) and go out (answers by ``id``;
exits as ``{"exit": pid, "code": code}``).

The harness's death by any signal closes the socket; so does an orderly end. Then every descendant is stopped, killed
and confirmed dead, and what was to be removed is removed, confirmed too. A harness that lives on asks for the first
half alone (``end``), so that its own threads have stopped writing before anything is removed.

The guardian is a subreaper (prctl(2)): a descendant whose parent dies becomes its child, so that none can get away by
forking, by a session of its own or as an orphan.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWUSER = 0x10000000
CLONE_NEWIPC = 0x08000000
IPC_RMID = 0
INNER_USER = 1000
"""The uid that a child sees of itself in a user namespace of its own. Any but 0 will do."""
END_SECONDS = 3.0
PROGRAM_SECONDS = 60.0
"""For a program that is run at the end."""


def _load(name: str) -> Any:
    """A module next to this file, without making its directory importable: names there could hide the library's."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_guardian_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


processes = _load("processes")
removal = _load("removal")
libc = ctypes.CDLL(None, use_errno=True)


class Guardian:
    """The state: children by pid, and what to remove at the end, in order."""

    def __init__(self, control: socket.socket, harness: int) -> None:
        self.control = control
        self.harness = harness
        self.children: set[int] = set()
        self.removals: list[dict[str, str]] = []
        self.programs: list[list[str]] = []
        self.unread = b""

    def serve(self) -> None:
        """Serve requests and report exits until the harness is gone."""
        wake, waker = socket.socketpair()
        for end in (wake, waker):
            end.setblocking(False)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        watched: list[Any] = [self.control, wake]
        with contextlib.suppress(OSError, AttributeError):
            # A fork of the harness may hold the socket open after its death; the pidfd tells the death itself.
            watched.append(os.pidfd_open(self.harness))
        while True:
            readable, _, _ = select.select(watched, [], [])
            if wake in readable:
                with contextlib.suppress(BlockingIOError):
                    wake.recv(4096)
            self.reap()
            if any(isinstance(source, int) for source in readable) or (self.control in readable and not self.receive()):
                signal.set_wakeup_fd(-1)
                return

    def receive(self) -> bool:
        """Handle what has come in; False at the end of the stream."""
        try:
            data = self.control.recv(1 << 16)
        except OSError:
            return False
        *lines, self.unread = (self.unread + data).split(b"\n")
        for line in lines:
            self.handle(json.loads(line))
        return bool(data)

    def handle(self, request: dict[str, Any]) -> None:
        answer: dict[str, Any] = {"id": request["id"]}
        try:
            answer["value"] = getattr(self, "do_" + request["do"])(request)
        except OSError as error:
            answer["error"] = f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
            answer["errno"] = error.errno
        self.send(answer)

    def send(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):
            self.control.sendall(json.dumps(message).encode() + b"\n")

    def reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self.children:
                self.children.discard(pid)
                self.send({"exit": pid, "code": os.waitstatus_to_exitcode(status)})

    def do_spawn(self, request: dict[str, Any]) -> int:
        pid = spawn(request)
        self.children.add(pid)
        return pid

    def do_signal(self, request: dict[str, Any]) -> bool:
        """Signal a child; False if it has ended. Nobody but the guardian reaps it, so the pid is still the child's."""
        if request["pid"] not in self.children:
            return False
        os.kill(request["pid"], request["signal"])
        return True

    def do_on_close(self, request: dict[str, Any]) -> None:
        self.removals.append({"path": request["path"], "kind": request["kind"]})

    def do_run_on_close(self, request: dict[str, Any]) -> None:
        self.programs.append(request["argv"])

    def do_forget(self, request: dict[str, Any]) -> None:
        self.removals = [planned for planned in self.removals if planned["path"] != request["path"]]

    def do_end(self, request: dict[str, Any]) -> None:
        """End every process, and tell the exits before the answer."""
        self.end_processes()

    def end_processes(self) -> None:
        """Gates first: from then on nobody waits for an answer."""
        remove([planned for planned in self.removals if planned["kind"] == "gate"])
        end_descendants(self.reap)

    def end(self) -> None:
        """The processes first, then the directories."""
        self.end_processes()
        for argv in self.programs:
            run(argv)
        remove([planned for planned in self.removals if planned["kind"] == "shared-memory"])
        remove([planned for planned in reversed(self.removals) if planned["kind"] == "tree"])


def spawn(request: dict[str, Any]) -> int:
    """Fork and execute one child; returns its pid. Raises OSError for whatever fails before its first instruction."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            become(request)
        except OSError as error:
            os.write(writing, json.dumps([error.errno, error.strerror, error.filename]).encode())
        finally:
            os._exit(127)
    os.close(writing)
    with open(reading, "rb") as pipe:
        failure = pipe.read()
    if failure:
        os.waitpid(pid, 0)
        number, text, name = json.loads(failure)
        raise OSError(number, text, name)
    return pid


def become(request: dict[str, Any]) -> None:
    """What the forked child does up to its new program."""
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    take_identity(request.get("user"))
    os.chdir(request["cwd"])
    os.execvpe(request["argv"][0], request["argv"], request["env"])


def take_identity(user: str | int | None) -> None:
    """``"namespace"``: a user namespace in which the caller's own uid shows as an ordinary one, with a System V IPC
    namespace, whose segments go with its last process. An int: that uid."""
    if user is None:
        return
    if isinstance(user, int):
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        return
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWIPC) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "a user namespace")
    write("/proc/self/setgroups", "deny")
    write("/proc/self/uid_map", f"{INNER_USER} {uid} 1")
    write("/proc/self/gid_map", f"{INNER_USER} {gid} 1")


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def end_descendants(reap: Callable[[], None]) -> None:
    """Stop, kill and reap every descendant; what cannot be ended within END_SECONDS is left, and said on stderr."""
    deadline = time.monotonic() + END_SECONDS
    own = os.getpid()
    while True:
        try:
            processes.end(lambda rows: processes.descendants([own], rows), max(0.1, deadline - time.monotonic()))
        except processes.Survivor as error:
            print(f"onceproof guardian: {error}", file=sys.stderr, flush=True)
            for process in processes.descendants([own], processes.table()):
                processes.send(process, signal.SIGKILL)
        reap()
        if not processes.descendants([own], processes.table()) or time.monotonic() > deadline:
            return


def run(argv: list[str]) -> None:
    """A program that ends something outside of this machine's process table, such as containers."""
    try:
        subprocess.run(argv, timeout=PROGRAM_SECONDS, stdin=subprocess.DEVNULL, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"onceproof guardian: {error}", file=sys.stderr, flush=True)


def remove(removals: list[dict[str, str]]) -> None:
    for planned in removals:
        path = planned["path"]
        if planned["kind"] == "shared-memory":
            remove_shared_memory(path)
        elif os.path.isdir(path) and not os.path.islink(path):
            remove_tree(path)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)


def remove_tree(path: str) -> None:
    try:
        removal.remove_tree(path)
    except removal.NotRemoved as error:
        print(f"onceproof guardian: {error}", file=sys.stderr, flush=True)


def remove_shared_memory(pid_file: str) -> None:
    """Remove the System V segment that a killed PostgreSQL leaves: line 7 of postmaster.pid is ``key id``
    (LOCK_FILE_LINE_SHMEM_KEY, miscadmin.h)."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        with open(pid_file, encoding="utf-8") as file:
            segment = int(file.read().splitlines()[6].split()[1])
        libc.shmctl(segment, IPC_RMID, None)


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    control.set_inheritable(False)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(errno.ENOSYS, "PR_SET_CHILD_SUBREAPER is not supported")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    guardian = Guardian(control, int(sys.argv[2]))
    guardian.send({"ready": processes.identity(os.getpid())})
    try:
        guardian.serve()
    finally:
        guardian.end()


if __name__ == "__main__":
    main()
