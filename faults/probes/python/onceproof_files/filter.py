"""What the kernel is asked to hand over: system calls that change a file, by their numbers (seccomp(2))."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from typing import Any

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 (linux/audit.h)."""

NUMBERS = {
    "x86_64": {
        "open": 2, "fsync": 74, "fdatasync": 75, "truncate": 76, "ftruncate": 77, "rename": 82, "mkdir": 83,
        "rmdir": 84, "creat": 85, "link": 86, "unlink": 87, "symlink": 88, "sync": 162, "openat": 257, "mkdirat": 258,
        "unlinkat": 263, "renameat": 264, "linkat": 265, "symlinkat": 266, "syncfs": 306, "renameat2": 316,
        "openat2": 437,
    },
    "aarch64": {
        "mkdirat": 34, "unlinkat": 35, "symlinkat": 36, "linkat": 37, "renameat": 38, "truncate": 45, "ftruncate": 46,
        "openat": 56, "sync": 81, "fsync": 82, "fdatasync": 83, "syncfs": 267, "renameat2": 276, "openat2": 437,
    },
}  # fmt: skip
"""System calls that change a file, or open it (asm/unistd.h)."""

FLAGS = {"open": 1, "openat": 2}
"""Which argument has the flags: opening only to read is not handed over."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
X32 = 0x40000000

NO_NEW_PRIVILEGES = 38
"""prctl(2): PR_SET_NO_NEW_PRIVS."""

SECCOMP = {"x86_64": 317, "aarch64": 277}
SET_MODE_FILTER, NEW_LISTENER, WITHOUT_MITIGATIONS = 1, 1 << 3, 1 << 2
"""The last: SECCOMP_FILTER_FLAG_SPEC_ALLOW, without which older kernels slow every watched process down."""
ALLOW, NOTIFY, REFUSE = 0x7FFF0000, 0x7FC00000, 0x00050000 | errno.ENOSYS

IO_URING_SETUP = 425
"""By which a process would have the kernel change files without a call: it is told that there is no such thing, as by
older kernels, and programs then do without."""


def program(machine: str) -> bytes:
    """The filter, a classic BPF program: what is handed over, by the call's number and the flags of an opening."""
    load, equal, at_least, any_bit, result = 0x20, 0x15, 0x35, 0x45, 0x06
    numbers = NUMBERS[machine]
    plain = [number for name, number in numbers.items() if name not in FLAGS]
    flagged = [(numbers[name], argument) for name, argument in FLAGS.items() if name in numbers]
    steps: list[tuple[int, Any, Any, int]] = [
        (load, 0, 0, 4), (equal, 0, "allow", MACHINES[machine]), (load, 0, 0, 0), (at_least, "allow", 0, X32),
    ]  # fmt: skip
    steps += [(equal, "refuse", 0, IO_URING_SETUP), *((equal, "notify", 0, number) for number in plain)]
    for number, argument in flagged:
        steps += [(equal, 0, 2, number), (load, 0, 0, 16 + 8 * argument), (any_bit, "notify", "allow", WRITING)]
    results = {"allow": ALLOW, "notify": NOTIFY, "refuse": REFUSE}
    places = {name: len(steps) + number for number, name in enumerate(results)}
    steps += [(result, 0, 0, value) for value in results.values()]

    def jump(target: Any, place: int) -> int:
        return places[target] - place - 1 if isinstance(target, str) else int(target)

    return b"".join(
        struct.pack("=HBBI", code, jump(true, place), jump(false, place), value)
        for place, (code, true, false, value) in enumerate(steps)
    )


def watched() -> int:
    """From here on the kernel hands over the calls of this process and of all that it starts: the descriptor by which
    they are had. Raises OSError."""
    machine = platform.machine()
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, f"system calls of {machine} are not known")
    libc = ctypes.CDLL(None, use_errno=True)
    code = program(machine)
    text = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    given = Program(len(code) // 8, ctypes.cast(text, ctypes.c_void_p))
    if libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")
    flags = NEW_LISTENER | WITHOUT_MITIGATIONS
    listener = libc.syscall(SECCOMP[machine], SET_MODE_FILTER, flags, ctypes.byref(given))
    if listener < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"seccomp: {os.strerror(number)}")
    return int(listener)
