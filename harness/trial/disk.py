"""What a loss of power takes from a disk: changes of files that were not synced (fsync(2)).

The model is POSIX's, for what Python processes of the job change below the watched directories:

- What was written to a file is there after fsync of the file; until then it has what it had at its last one. A new
  file is there after fsync of the file itself. What is written to one that was only ever opened with O_SYNC or O_DSYNC
  is there; descriptors of both kinds of one file are not told apart, and count as ordinary ones.
- A rename, a link or a removal is there after fsync of its directory, of a rename the new one. A new directory is there
  at once: an empty one is no data.
- sync(2) and syncfs(2) are all of these.
- It may be there before: file systems that journal names, and content when they like, leave a file of the new name
  that is empty (ext4 and XFS, "zero-length files").

What a JVM writes is left alone: Spark's file systems do not sync local files, and in production they are replicated.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Report = Mapping[str, Any]

Inode = int


@dataclass(frozen=True)
class _Pending:
    """A change of a directory that was not synced yet, and what it takes to undo it."""

    directory: Path
    text: str
    undo: Callable[[], None]


@dataclass
class Disk:
    """Follows the changes of files of one trial, below ``directory``; what was removed stays in its folder ``kept``.

    Told of each report while its process is stopped.
    """

    directory: Path
    kept: Path
    _synced: dict[Inode, bytes | None] = field(default_factory=dict)
    _synchronous: set[Inode] = field(default_factory=set)
    _plain: set[Inode] = field(default_factory=set)
    _pending: list[_Pending] = field(default_factory=list)
    _replaced: dict[str, Path] = field(default_factory=dict)
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, point: Report) -> None:
        """A report of any phase; those that are of no change by Python count for nothing."""
        if point.get("phase") != "file" or point.get("role") != "python":
            return
        path = self.directory / str(point["path"])
        with self._lock, suppress(FileNotFoundError):  # another task has removed it meanwhile
            if point.get("edge") == "before":
                self._before(str(point["op"]), path, str(point.get("thread")))
            else:
                self._after(str(point["op"]), path, point)

    def lose_power(self, *, names_kept: bool = False) -> str:
        """Undo what was not synced, when none of the job's processes runs any more; returns what that was. With
        ``names_kept`` the names of files are as they were left, and only what was written to them is undone."""
        with self._lock:
            undone = [] if names_kept else self._pending
            for pending in reversed(undone):
                pending.undo()
            lost = [pending.text for pending in undone]
            self._pending.clear()
            lost += [text for inode, path in self._inodes() if (text := self._reset(inode, path, names_kept))]
            self._synced = {inode: content for inode, content in self._contents().items() if inode in self._synced}
        return f"lost {', '.join(lost)}" if lost else "lost nothing: all was synced"

    @contextmanager
    def being_read(self) -> Iterator[None]:
        """No process of the job runs meanwhile. What a reader changes is no change of the job's, and stays: whoever
        opens a database first after a crash recovers it."""
        before = self._contents()
        yield
        with self._lock:
            after = self._contents()
            changed = {inode: content for inode, content in after.items() if before.get(inode) != content}
            kept = {inode: content for inode, content in self._synced.items() if inode in after or inode not in before}
            self._synced = kept | {inode: content for inode, content in changed.items() if inode in kept}

    def _before(self, op: str, path: Path, thread: str) -> None:
        """Keep what the change is going to remove. What the thread's last one would have removed, had it been done, is
        of no interest any more."""
        self._replaced.pop(thread, None)
        if op in ("rename", "delete") and (path.is_symlink() or path.is_file()):
            self._number += 1
            kept = self.kept / str(self._number)
            self.kept.mkdir(exist_ok=True)
            os.link(path, kept, follow_symlinks=False)
            self._replaced[thread] = kept
        elif op in ("create", "open", "truncate") and path.is_file():
            self._end_synchronous(path)
            self._synced.setdefault(path.stat().st_ino, path.read_bytes())

    def _after(self, op: str, path: Path, point: Report) -> None:
        kept = self._replaced.pop(str(point.get("thread")), None)
        if op == "sync":
            self._sync_all() if point.get("everywhere") else self._sync(path)
        elif op in ("create", "open"):
            self._open(path.stat().st_ino, synchronous=bool(point.get("synchronous")))
        elif op == "rename":
            source = self.directory / str(point["source"])
            self._add(path, f"rename of {source.name} to {path.name}", lambda: _move_back(path, source, kept))
        elif op == "link":
            self._add(path, f"link {path.name}", lambda: path.unlink(missing_ok=True))
        elif op == "delete" and kept is not None:
            self._add(path, f"removal of {path.name}", lambda: _put_back(kept, path))

    def _add(self, path: Path, text: str, undo: Callable[[], None]) -> None:
        self._pending.append(_Pending(path.parent, text, undo))

    def _open(self, inode: Inode, *, synchronous: bool) -> None:
        self._synced.setdefault(inode, None)
        if not synchronous:
            self._plain.add(inode)
        elif inode not in self._plain:
            self._synchronous.add(inode)

    def _end_synchronous(self, path: Path) -> None:
        """It is opened anew, perhaps in another way: what was written until now is there."""
        inode = path.stat().st_ino
        if inode in self._synchronous:
            self._synchronous.discard(inode)
            self._synced[inode] = path.read_bytes()

    def _sync_all(self) -> None:
        self._pending.clear()
        for inode, path in self._inodes():
            if inode in self._synced:
                with suppress(FileNotFoundError):  # somebody else has removed it meanwhile
                    self._synced[inode] = path.read_bytes()

    def _sync(self, path: Path) -> None:
        if path.is_dir():
            synced = path.resolve()
            self._pending = [pending for pending in self._pending if pending.directory.resolve() != synced]
        else:
            self._synced[path.stat().st_ino] = path.read_bytes()

    def _reset(self, inode: Inode, path: Path, name_kept: bool) -> str:
        """Give a file the content that it had when it was synced; returns what it lost."""
        if inode not in self._synced or inode in self._synchronous:
            return ""
        synced = self._synced[inode]
        if synced is None and not name_kept:
            path.unlink()
            return f"file {path.name}"
        synced = synced or b""
        if path.read_bytes() == synced:
            return ""
        path.write_bytes(synced)
        return f"what was written to {path.name}"

    def _inodes(self) -> list[tuple[Inode, Path]]:
        """Each file once for each of its names."""
        found = []
        for path in sorted(self.directory.rglob("*")):
            if self.kept not in path.parents and path.is_file() and not path.is_symlink():
                with suppress(FileNotFoundError):
                    found.append((path.stat().st_ino, path))
        return found

    def _contents(self) -> dict[Inode, bytes | None]:
        return {inode: path.read_bytes() for inode, path in self._inodes()}


def _move_back(path: Path, source: Path, replaced: Path | None) -> None:
    if os.path.lexists(path):
        os.replace(path, source)
    if replaced is not None:
        _put_back(replaced, path)


def _put_back(kept: Path, path: Path) -> None:
    if not os.path.lexists(path):
        os.link(kept, path, follow_symlinks=False)
