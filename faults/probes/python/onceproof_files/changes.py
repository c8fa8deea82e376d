"""What a system call does to a file, and how it is done in the caller's place."""

from __future__ import annotations

import os

from .filter import FLAGS, WRITING

TYPE_CHECKING = False  # the program starts quicker without the module typing
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .kernel import Call

    Perform = Callable[[], int | None]

SYNCING = os.O_SYNC | os.O_DSYNC
AT_SYMLINK_FOLLOW = 0x400
AT_REMOVEDIR = 0x200


class Location:
    """A path as a call gives it: ``reach`` leads to it from any process, ``path`` is what it is called."""

    def __init__(self, call: Call, index: int, directory: int | None = None) -> None:
        given = call.text(index)
        if given.startswith("/"):
            self.reach = self.path = given
        else:
            base = call.base(directory)
            self.reach, self.path = f"{base}/{given}", os.path.join(os.readlink(base), given)
        self.own = not given or given.startswith(("/proc/", "/dev/"))
        """It means something else in another process."""

    @property
    def exists(self) -> bool:
        return os.path.lexists(self.reach)


class Opening:
    """Opening a file, whose descriptor is the caller's."""

    def __init__(self, reach: str, flags: int, mode: int) -> None:
        self._reach, self._mode = reach, mode
        self._flags = flags
        self.on_exec = os.O_CLOEXEC if flags & os.O_CLOEXEC else 0

    def __call__(self) -> int:
        return os.open(self._reach, self._flags, self._mode)


class Change:
    """What a call does to a file: the operation, the file's path, for a rename or link also where it comes from.

    ``perform`` does it in the caller's place; None: only the caller can. ``traits`` of the report: ``everywhere``, a
    sync of all files; ``synchronous``, a file that is opened so that each write is synced.
    """

    def __init__(
        self, op: str, path: str, perform: Perform | None, source: str = "", traits: Sequence[str] = ()
    ) -> None:
        self.op, self.path, self.perform, self.source, self.traits = op, path, perform, source, traits


def change_of(call: Call) -> Change | None:
    """None for a call that changes no file, also because it cannot succeed: a directory is there already, what is to be
    removed is not. Raises OSError where the caller has ended."""
    name, number = call.name, call.number
    if name in ("open", "openat", "openat2", "creat"):
        return _opened(call)
    if name in ("rename", "renameat", "renameat2"):
        old, new = _two(call, name == "rename")
        if not old.exists:
            return None
        plain = name != "renameat2" or number(4) == 0
        return _change("rename", new, lambda: os.rename(old.reach, new.reach), old, plain)
    if name in ("link", "linkat"):
        old, new = _two(call, name == "link")
        if new.exists or not old.exists:
            return None
        follow = name == "linkat" and bool(number(4) & AT_SYMLINK_FOLLOW)
        plain = name == "link" or not number(4) & ~AT_SYMLINK_FOLLOW
        return _change("link", new, lambda: os.link(old.reach, new.reach, follow_symlinks=follow), old, plain)
    if name in ("symlink", "symlinkat"):
        text = call.text(0)
        new = Location(call, 1) if name == "symlink" else Location(call, 2, 1)
        if new.exists:
            return None
        return _change("link", new, lambda: os.symlink(text, new.reach))
    if name in ("unlink", "rmdir", "unlinkat"):
        gone = Location(call, 1, 0) if name == "unlinkat" else Location(call, 0)
        if not gone.exists:
            return None
        directory = name == "rmdir" or (name == "unlinkat" and bool(number(2) & AT_REMOVEDIR))
        return _change("delete", gone, lambda: os.rmdir(gone.reach) if directory else os.unlink(gone.reach))
    if name in ("mkdir", "mkdirat"):
        made, mode = (Location(call, 0), 1) if name == "mkdir" else (Location(call, 1, 0), 2)
        if made.exists:
            return None
        bits = call.arguments[mode] & 0o7777 & ~call.umask
        return _change("mkdir", made, lambda: os.mkdir(made.reach, bits))
    if name == "truncate":
        cut = Location(call, 0)
        return _change("truncate", cut, lambda: os.truncate(cut.reach, call.arguments[1]))
    if name in ("ftruncate", "fsync", "fdatasync"):
        return _of_descriptor(call)
    if name in ("sync", "syncfs"):
        file = f"/proc/{call.thread}/fd/{call.number(0)}" if name == "syncfs" else ""
        return Change("sync", file and os.path.realpath(file, strict=True), os.sync, traits=["everywhere"])  # all disks
    return None


def _change(op: str, place: Location, perform: Perform, source: Location | None = None, plain: bool = True) -> Change:
    """``plain`` False: the call asks for something that only its caller can do."""
    own = place.own or (source is not None and source.own)
    return Change(op, place.path, perform if plain and not own else None, source.path if source else "")


def _two(call: Call, plain: bool) -> tuple[Location, Location]:
    return (Location(call, 0), Location(call, 1)) if plain else (Location(call, 1, 0), Location(call, 3, 2))


def _opened(call: Call) -> Change | None:
    """``create``: a file is made, or made empty; ``open``: one that exists is opened to be written."""
    at = Location(call, 1, 0) if call.name in ("openat", "openat2") else Location(call, 0)
    flags, mode = _flags_and_mode(call)
    if not flags & WRITING:
        return None
    exists = at.exists
    if not exists and not flags & os.O_CREAT:
        return None
    if flags & getattr(os, "O_TMPFILE", 0) == getattr(os, "O_TMPFILE", -1) or os.path.isdir(at.reach):
        return None  # it has no name
    op = "open" if exists and not flags & os.O_TRUNC else "create"
    perform = None if at.own else Opening(at.reach, flags, mode & ~call.umask)
    return Change(op, at.path, perform, traits=["synchronous"] if flags & SYNCING else [])


def _flags_and_mode(call: Call) -> tuple[int, int]:
    if call.name == "openat2":  # struct open_how
        flags, mode = call.words(2, 2)
        return flags, mode & 0o7777
    if call.name == "creat":
        return os.O_CREAT | os.O_WRONLY | os.O_TRUNC, call.arguments[1] & 0o7777
    place = FLAGS[call.name]
    return call.number(place), call.arguments[place + 1] & 0o7777


def _of_descriptor(call: Call) -> Change:
    reach = f"/proc/{call.thread}/fd/{call.number(0)}"
    path = os.readlink(reach)
    if call.name == "ftruncate":
        return Change("truncate", path, lambda: os.truncate(reach, call.arguments[1]))

    def sync() -> None:
        file = os.open(reach, os.O_RDONLY)
        try:
            os.fsync(file)
        finally:
            os.close(file)

    return Change("sync", path, sync)
