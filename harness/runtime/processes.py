"""Processes by way of /proc: who they are, what they descend from, and their end, confirmed.

Standard library only and without relative imports: the guardian loads this file by its path.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

DEAD = frozenset("ZXx")
STOPPED = frozenset("Tt")
TICKS = os.sysconf("SC_CLK_TCK")
"""Units of processor time in a second (proc(5), utime and stime)."""
POLL = 0.005
"""Seconds between two looks at the process table."""

Effect = Literal["dead", "stopped", "going on"]


class Survivor(Exception):
    """A process did not take a signal's effect in time."""


@dataclass(frozen=True)
class Process:
    """One row of the process table. ``started`` is in clock ticks since the machine's boot: with the pid it names a
    process for good, where the pid alone may be used again. ``used`` is its processor time so far, in seconds;
    ``threads`` are those that have not ended."""

    pid: int
    parent: int
    state: str
    started: int
    name: str
    used: float = field(default=0.0, compare=False)
    threads: int = field(default=1, compare=False)

    @property
    def alive(self) -> bool:
        """A zombie is dead: it runs no instruction any more. Not if that is its first thread alone: of a JVM that was
        killed the others take up to a tenth of a second, and until the last one has ended its connections are open."""
        return self.state not in DEAD or self.threads > 1

    @property
    def identity(self) -> str:
        return f"{self.pid}:{self.started}"

    def __str__(self) -> str:
        return f"{self.name} {self.pid}"


Table = Mapping[int, Process]
Selection = Callable[[Table], Collection[Process]]


def look(pid: int, place: str = "") -> Process | None:
    """The process with this pid, or the thread at a place in /proc, or None. Format of /proc/PID/stat: proc(5)."""
    try:
        with open(f"{place or f'/proc/{pid}'}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    fields = text[text.rindex(")") + 2 :].split()
    used = (int(fields[11]) + int(fields[12])) / TICKS
    return Process(
        pid=pid,
        parent=int(fields[1]),
        state=fields[0],
        started=int(fields[19]),
        name=name,
        used=used,
        threads=int(fields[17]),
    )


def is_stopped(process: Process) -> bool:
    """Whether none of its threads goes on. A first thread that has ended says nothing of the others."""
    if process.state not in DEAD:
        return process.state in STOPPED
    threads = [look(int(entry), f"/proc/{process.pid}/task/{entry}") for entry in _threads(process.pid)]
    return all(thread is None or thread.state in STOPPED | DEAD for thread in threads)


def table() -> dict[int, Process]:
    """All processes that can be seen, zombies included."""
    rows = (look(int(entry)) for entry in os.listdir("/proc") if entry.isdigit())
    return {row.pid: row for row in rows if row is not None}


def identity(pid: int) -> str:
    """``pid:started`` of a process that runs; raises ProcessLookupError."""
    row = look(pid)
    if row is None:
        raise ProcessLookupError(f"there is no process {pid}")
    return row.identity


def lives(name: str) -> bool:
    """Whether the process with this identity still runs."""
    row = look(int(name.partition(":")[0]))
    return row is not None and row.alive and row.identity == name


def environment(pid: int) -> dict[str, str]:
    """The environment that the process was started with; empty where it may not be read, and once it has no memory."""
    text = next(_of_a_thread(pid, "environ"), b"")
    pairs = (entry.partition(b"=") for entry in text.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def has_memory(pid: int) -> bool:
    """Whether any thread still has its memory: a process that ends gives it back before it becomes a zombie.

    From then on it runs none of its program, and its environment reads as empty.
    """
    return any(not text.startswith(b"0 ") for text in _of_a_thread(pid, "statm"))


def _of_a_thread(pid: int, name: str) -> Iterator[bytes]:
    """A file of the process as its threads have it, where it says something: the first one may have ended before the
    others, and its files are empty from then on."""
    for place in _places(pid):
        with contextlib.suppress(OSError), open(f"{place}/{name}", "rb") as file:
            if text := file.read():
                yield text


def _places(pid: int) -> Iterator[str]:
    """In /proc, of the process and, only if asked for more, of each of its threads."""
    yield f"/proc/{pid}"
    yield from (f"/proc/{pid}/task/{thread}" for thread in _threads(pid))


def _threads(pid: int) -> list[str]:
    """Its threads, by their numbers; none of a process that is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def command(pid: int) -> list[str]:
    """The command line; empty for a zombie."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return [os.fsdecode(word) for word in file.read().split(b"\0")[:-1]]
    except OSError:
        return []


def descendants(roots: Collection[int], rows: Table) -> list[Process]:
    """Living processes below the roots, the roots themselves left out."""
    below: set[int] = set()
    edge = set(roots)
    while edge:
        edge = {row.pid for row in rows.values() if row.parent in edge} - below
        below |= edge
    return [rows[pid] for pid in sorted(below - set(roots)) if rows[pid].alive]


def with_descendants(root: Process, rows: Table) -> list[Process]:
    """A process and all below it; nothing once it is dead."""
    own = rows.get(root.pid)
    alive = [own] if own and own.alive and own.identity == root.identity else []
    return alive + descendants([root.pid], rows) if alive else []


def marked(variable: str, value: str, rows: Table) -> list[Process]:
    """Living processes that were started with ``variable=value``."""
    return [row for row in rows.values() if row.alive and environment(row.pid).get(variable) == value]


def freeze(select: Selection, deadline_seconds: float = 3.0) -> list[Process]:
    """SIGSTOP what ``select`` finds, in rounds, until a round finds nothing new and all are stopped.

    A stopped process starts no other: after the last round nothing of the selection can escape.
    """
    frozen: dict[str, Process] = {}
    deadline = time.monotonic() + deadline_seconds
    while True:
        rows = table()
        found = [row for row in select(rows) if row.alive]
        for row in found:
            if row.identity not in frozen:
                frozen[row.identity] = row
                send(row, signal.SIGSTOP)
        moving = [row for row in found if not is_stopped(row)]
        if not moving:
            return list(frozen.values())
        if time.monotonic() > deadline:
            raise Survivor(f"{moving[0]} did not stop within {deadline_seconds:g} s (state {moving[0].state})")
        time.sleep(POLL)


def end(select: Selection, deadline_seconds: float = 3.0) -> list[Process]:
    """Freeze what ``select`` finds, SIGKILL it, and return once every one is confirmed dead."""
    ended = freeze(select, deadline_seconds)
    for row in ended:
        send(row, signal.SIGKILL)
    confirm(ended, "dead", deadline_seconds)
    return ended


def send(process: Process, number: signal.Signals) -> None:
    """Signal a process, unless its pid belongs to another one by now. Whether it took effect: see :func:`confirm`."""
    if lives(process.identity):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process.pid, number)


def confirm(processes: Collection[Process], effect: Effect, deadline_seconds: float = 3.0) -> None:
    """Return once each process shows the effect. The dead show each: one that has ended did go on. Raises Survivor."""
    deadline = time.monotonic() + deadline_seconds
    for process in processes:
        while not _shows(process, effect):
            if time.monotonic() > deadline:
                raise Survivor(f"{process} is not {effect} after {deadline_seconds:g} s")
            time.sleep(POLL)


def _shows(process: Process, effect: Effect) -> bool:
    row = look(process.pid)
    if row is None or row.identity != process.identity or not row.alive:
        return True
    if effect == "going on":
        return not is_stopped(row)
    return effect == "stopped" and is_stopped(row)
