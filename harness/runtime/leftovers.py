"""State directories with an owner, and the cleanup of what dead owners left behind.

An orderly end and every death of a harness leave nothing: its guardian sees to that. What is removed here is left only
when the guardian was killed as well.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import Unavailable
from . import processes
from .guardian import MARK, Guardian
from .removal import NotRemoved, remove_tree

PREFIX = "onceproof-"
OWNER = "owner"
NEEDED = 300 * 1024 * 1024
"""Bytes that must be free for the state of an environment."""


def state_directory(guardian: Guardian, name: str | None = None) -> Path:
    """A new directory, ours alone, under the system's temporary directory; it goes when the guardian goes.

    Its path is short: unix sockets in it have 107 bytes (unix(7)). A ``name`` makes it findable and so unique: raises
    FileExistsError if it is there. Raises Unavailable where the directory cannot be made or has too little space.
    """
    with disk_errors():
        if name is None:
            path = Path(tempfile.mkdtemp(prefix=PREFIX))
        else:
            path = named(name)
            path.mkdir(mode=0o700)
        guardian.remove_on_close(path)
        (path / OWNER).write_text(f"{guardian.identity} {pid_namespace()}\n")
    check_space(path)
    return path


def named(name: str) -> Path:
    """Where the state directory of this user's environment ``name`` is, if there is one."""
    return Path(tempfile.gettempdir()) / f"{PREFIX}{os.getuid()}-up-{name}"


def check_space(path: Path) -> None:
    """Raises Unavailable if the file system of ``path`` has less than NEEDED bytes free."""
    free = shutil.disk_usage(path).free
    if free < NEEDED:
        raise Unavailable(
            f"{path} has {free >> 20} MiB free, {NEEDED >> 20} MiB are needed: free some space, or set TMPDIR to a "
            "directory on another disk"
        )


def check_temporary() -> None:
    """Raises Unavailable for a temporary directory of which Kafka's log.dirs and SPARK_LOCAL_DIRS would make several:
    both are lists, and neither knows an escape."""
    directory = tempfile.gettempdir()
    if "," in directory:
        raise Unavailable(
            f"the temporary directory {directory} has a comma in its path, at which Kafka and Spark would divide it",
            "set TMPDIR to a directory without one",
        )


@contextmanager
def disk_errors() -> Iterator[None]:
    """A full disk is the environment's failure, in one line."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        if error.errno == errno.ENOENT:
            raise Unavailable(f"{error.filename} is gone: this environment is closed") from error
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise Unavailable(f"the disk is full{where}: free some space, or set TMPDIR to another disk") from error
        if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
            fix = "set TMPDIR to a directory that can be written"
            raise Unavailable(f"a state directory was refused{where}: {error.strerror}: {fix}") from error
        raise


def remove_leftovers() -> list[str]:
    """End processes whose guardian is dead and remove state directories whose owner is; returns what was done.

    Only what belongs to this user and to this pid namespace is touched: elsewhere the same pid is another process.
    Raises Unavailable if such a process cannot be ended.
    """
    done = []
    for process in _end_orphans():
        done.append(f"ended {process}")
    for path in _ownerless():
        try:
            remove_tree(str(path), deadline_seconds=0)
        except NotRemoved as error:
            done.append(str(error))
        else:
            done.append(f"removed {path}")
    return done


def pid_namespace(pid: int | str = "self") -> str:
    """The namespace in which this process's pid counts; empty where it may not be read."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def _end_orphans() -> list[processes.Process]:
    try:
        return processes.end(_orphans)
    except processes.Survivor as error:
        raise Unavailable(f"what an earlier run left cannot be ended: {error}: end that process by hand") from error


def _orphans(rows: processes.Table) -> list[processes.Process]:
    here = pid_namespace()
    guardians = ((row, processes.environment(row.pid).get(MARK)) for row in rows.values() if row.alive)
    return [row for row, guardian in guardians if guardian and _dead(guardian) and pid_namespace(row.pid) == here]


def _dead(identity: str) -> bool:
    pid, _, started = identity.partition(":")
    return pid.isdigit() and started.isdigit() and not processes.lives(identity)


def _ownerless() -> list[Path]:
    here = pid_namespace()
    found = []
    for path in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        try:
            identity, namespace = (path / OWNER).read_text().split()
            mine = path.stat().st_uid == os.getuid()
        except (OSError, ValueError):
            continue
        if mine and namespace == here and _dead(identity):
            found.append(path)
    return found
