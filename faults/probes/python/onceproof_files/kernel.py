"""The calls that the kernel hands over, and how they are answered (seccomp_unotify(2))."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import struct
import threading

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

NOTIFICATION = struct.Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, thread, flags; number, architecture, instruction, six arguments."""
RECEIVE, SEND, VALID, ADD_FILE = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
CONTINUE = 1
ANSWER_WITH_FILE = 2

AT_FDCWD = -100


class Call:
    """A system call that waits for its answer, and how its caller's memory and files are read."""

    def __init__(self, notification: Sequence[int], names: Mapping[int, str]) -> None:
        self.id, self.thread, _, number, _, _, *self.arguments = notification
        self.name = names.get(number, "")
        self.key = (self.name, tuple(self.arguments))

    def number(self, index: int) -> int:
        """An argument that is an int in C."""
        return int(ctypes.c_int(self.arguments[index] & 0xFFFFFFFF).value)

    def text(self, index: int) -> str:
        """An argument that is a path. Raises OSError."""
        return os.fsdecode(self._memory(index, 4096).partition(b"\0")[0])

    def words(self, index: int, count: int) -> tuple[int, ...]:
        """So many words of 64 bits to which an argument points. Raises OSError."""
        return struct.unpack(f"={count}Q", self._memory(index, 8 * count))

    def base(self, index: int | None) -> str:
        """Where a relative path begins: the directory that the argument names, else the caller's own."""
        number = AT_FDCWD if index is None else self.number(index)
        return f"/proc/{self.thread}/cwd" if number == AT_FDCWD else f"/proc/{self.thread}/fd/{number}"

    @property
    def umask(self) -> int:
        return int(self._status("Umask") or "022", 8)

    @property
    def process(self) -> int:
        return int(self._status("Tgid"))

    def _memory(self, index: int, size: int) -> bytes:
        """What lies where an argument points to, up to so many bytes. Raises OSError."""
        with open(f"/proc/{self.thread}/mem", "rb", buffering=0) as memory:
            return os.pread(memory.fileno(), size, self.arguments[index])

    def _status(self, name: str) -> str:
        """A field of proc(5)'s status; empty if there is none. Raises OSError."""
        with open(f"/proc/{self.thread}/status", encoding="ascii", errors="replace") as status:
            return next((line.split()[1] for line in status if line.startswith(f"{name}:")), "")


class Stopped:
    """A call that is stopped.

    A signal that its thread gets, such as SIGSTOP, withdraws it, and the thread makes the same call again when it goes
    on: then it has another ``id``, and nothing is done twice.
    """

    def __init__(self, call: Call) -> None:
        self.call = call
        self.again = threading.Condition()
        self.over = False

    def renewed(self, call: Call) -> bool:
        """Whether ``call`` is this one, made again. While an answer is on its way nobody can tell: so the lock."""
        with self.again:
            if self.over or call.key != self.call.key:
                return False
            self.call = call
            self.again.notify_all()
            return True


class Kernel:
    """Answers calls by the listener's descriptor."""

    def __init__(self, listener: int) -> None:
        self._listener = listener

    def receive(self, names: Mapping[int, str]) -> Call | None:
        """The next call; None if it was withdrawn."""
        buffer = bytearray(NOTIFICATION.size)
        try:
            fcntl.ioctl(self._listener, RECEIVE, buffer, True)
        except OSError:
            return None
        return Call(NOTIFICATION.unpack(buffer), names)

    def waits(self, stopped: Stopped) -> bool:
        """Whether the caller still waits for the call; returns when it is known, so not while the process is paused."""
        return self._answer(
            stopped, lambda call: fcntl.ioctl(self._listener, VALID, struct.pack("=Q", call.id)), last=False
        )

    def go_on(self, stopped: Stopped) -> None:
        self._send(stopped, 0, CONTINUE)

    def returns(self, stopped: Stopped, number: int = 0) -> None:
        """The caller gets 0, or this error."""
        self._send(stopped, -number, 0)

    def gives(self, stopped: Stopped, file: int, on_exec: int) -> None:
        """The caller gets a copy of the descriptor."""
        self._answer(
            stopped,
            lambda call: fcntl.ioctl(
                self._listener, ADD_FILE, struct.pack("=QIIII", call.id, ANSWER_WITH_FILE, file, 0, on_exec)
            ),
        )

    def _send(self, stopped: Stopped, error: int, flags: int) -> None:
        self._answer(
            stopped,
            lambda call: fcntl.ioctl(self._listener, SEND, struct.pack("=QqiI", call.id, 0, error, flags)),
        )

    @staticmethod
    def _answer(stopped: Stopped, send: Callable[[Call], Any], last: bool = True) -> bool:
        """Sends it to the call as it is made now; False if the caller has ended. ``last``: nothing else follows."""
        with stopped.again:
            while not stopped.over:
                call = stopped.call
                try:
                    send(call)
                    stopped.over = last
                    return True
                except OSError as error:
                    if error.errno != errno.ENOENT or not os.path.exists(f"/proc/{call.thread}"):
                        stopped.over = True
                    elif stopped.call is call:
                        stopped.again.wait(0.1)  # until the thread goes on, or has ended
        return False
