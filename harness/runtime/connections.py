"""Who has a connection open: proc(5), /proc/net/tcp and /proc/PID/fd.

Standard library only and without relative imports: a copy of it runs in containers.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import suppress
from pathlib import Path


def owner(own_port: int, port: int, address: str = "") -> int | None:
    """The pid of the process whose socket is bound to its own port, at an address of IPv4 or at any, and connected to
    the other one. None if it has ended, or is another user's.

    The youngest processes are looked at first: those that connect to a service are mostly younger than the service.
    """
    inode = _inode(own_port, port, address)
    if inode is None:
        return None
    pids = sorted((int(entry) for entry in os.listdir("/proc") if entry.isdigit()), reverse=True)
    return next((pid for pid in pids if _has_open(pid, f"socket:[{inode}]")), None)


def _inode(own_port: int, port: int, address: str) -> str | None:
    """Of IPv4, also where it is written as one of IPv6, as a JVM's sockets are. An address is its bytes as numbers of
    the machine, in hexadecimal digits."""
    own = socket.inet_aton(address)[::-1].hex().upper() if address else ""
    row = re.compile(rf"^ *\d+: [0-9A-F]*{own}:{own_port:04X} [0-9A-F]+:{port:04X} (?:\S+ +){{6}}(\d+)", re.MULTILINE)
    for protocol in ("tcp", "tcp6"):
        found = row.search(Path("/proc/net", protocol).read_text(encoding="ascii"))
        if found:
            return found[1]
    return None


def _has_open(pid: int, file: str) -> bool:
    """Nothing is seen of a process that has ended, or is another user's."""
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        return any(_target(entry.path) == file for entry in entries)
    return False


def _target(link: str) -> str:
    with suppress(OSError):
        return os.readlink(link)
    return ""
