"""The probe for changes of files: it runs a program, and stops each of its system calls that changes one.

    python -I -S onceproof_files PROGRAM ARGUMENT ...           # of this interpreter
    python -I -S onceproof_files --run COMMAND ARGUMENT ...
    python -I -S onceproof_files --check

All processes that the program starts are watched with it, whatever they are written in: the JVM, Python workers, native
libraries. The kernel hands over each call of theirs that may change a file (seccomp_unotify(2), Linux 5.9), and the
caller waits. A call on one of the watched directories is reported, carried out here in the caller's place, and reported
again before the caller learns of its result. Every other call goes on at once, and reading is not seen at all.

It stands alone: standard library only, CPython 3.9 to 3.14, Linux on x86_64 and aarch64. Its settings are environment
variables: those of sitecustomize.py, next to it, and ONCEPROOF_FILES, a JSON object: ``roots`` maps names of
directories to their paths, ``left_out`` are patterns of names below them (``checkpoint/offsets/*``) that are not
reported.

Three processes: the first is the one that was started, and ends as the program does. Its child answers the kernel; it
is an ancestor of all that is watched, so that it may read their memory where only ancestors may
(kernel.yama.ptrace_scope), and ends with the last of them. The third is the program. If one of the first two is killed,
so is the program: Spark's worker ends an executor by the process that it has started.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import threading
from contextlib import suppress

from .files import Files
from .filter import watched
from .kernel import Kernel
from .names import Names

HERE = os.path.dirname(os.path.abspath(__file__))

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, NoReturn

PARENT_DEATH_SIGNAL, SUBREAPER = 1, 36
"""prctl(2): PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER."""


def sibling() -> Any:
    """sitecustomize.py, next to this package, which speaks to the injector."""
    path = os.path.join(os.path.dirname(HERE), "sitecustomize.py")
    spec = importlib.util.spec_from_file_location("onceproof_lines", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_program(arguments: Sequence[str], peer: socket.socket) -> NoReturn:
    """Be the program; ``peer`` gets the listener, and says when calls are answered."""
    try:
        socket.send_fds(peer, [b"L"], [watched()])
    except OSError as error:
        peer.sendall(f"E{error.strerror}".encode())
        os._exit(1)
    peer.recv(1)
    peer.close()
    command = list(arguments[1:]) if arguments[0] == "--run" else [sys.executable, *arguments]
    os.execv(command[0], command)
    raise SystemExit(1)


def end_with(parent: int) -> None:
    """From here on this process is killed when its parent ends, which may have happened already."""
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def answer_calls(peer: socket.socket, variables: Mapping[str, str]) -> None:
    """Be the one that answers, until the last process that is watched has ended."""
    text, files, _, _ = socket.recv_fds(peer, 1024, 1)
    if not files:
        sys.exit(f"onceproof_files: changes of files cannot be stopped here: {os.fsdecode(text[1:]) or 'no listener'}")
    settings = json.loads(variables["ONCEPROOF_FILES"])
    injector = sibling().injector_of(variables, "files")
    os.umask(0)
    apart = "ONCEPROOF_DRIVER" not in variables
    serving = Files(Kernel(files[0]), Names(settings["roots"], settings["left_out"]), injector, apart)
    peer.sendall(b"G")
    peer.close()
    serving.serve(files[0])


def end_as(status: int) -> NoReturn:
    """End by the same exit code or signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def main() -> None:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        be_parent(writing)
    os.close(writing)
    with os.fdopen(reading, encoding="ascii") as told:
        program_id = int(told.readline() or 0)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda number, _: os.kill(program_id, number))
        status = told.readline()
    end_as(int(status)) if status else os._exit(1)


def be_parent(writing: int) -> NoReturn:
    """Start the program, answer its calls, and write its process id and its end to the first process."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    ours, theirs = socket.socketpair()
    own = os.getpid()
    program_id = os.fork()
    if program_id == 0:
        end_with(own)
        os.close(writing)
        ours.close()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        run_program(sys.argv[1:], theirs)
    theirs.close()
    os.write(writing, f"{program_id}\n".encode())
    arguments = (os.dup(writing), os.pidfd_open(program_id))
    threading.Thread(target=kill_with_the_first, args=arguments, daemon=True).start()
    reaping = threading.Thread(target=reap, args=(program_id, writing))
    reaping.start()
    answer_calls(ours, os.environ)
    reaping.join()
    os._exit(0)


def kill_with_the_first(writing: int, program: int) -> None:
    """The first process reads to the program's end: where nobody reads any more and it still runs, it is killed."""
    poll = select.poll()
    poll.register(writing, select.POLLERR)
    poll.poll()
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(program, signal.SIGKILL)


def reap(program_id: int, writing: int) -> None:
    """Every process that ends, and what becomes of the program."""
    while True:
        try:
            ended, status = os.wait()
        except ChildProcessError:
            return
        if ended == program_id:
            os.write(writing, f"{status}\n".encode())
            os.close(writing)


def check() -> None:
    """Whether this system can do it: exit code 0, or one line that says why not."""
    if os.fork() == 0:
        try:
            watched()
        except OSError as error:
            print(error.strerror)
            os._exit(1)
        os._exit(0)
    end_as(os.wait()[1])


if __name__ == "__main__":
    check() if sys.argv[1:] == ["--check"] else main()
