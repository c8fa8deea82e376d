"""What faults do to the checkpoint of a trial's query while the query stands still."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..environments.base import EffectError
from . import checkpoint

Record = Callable[[str, Mapping[str, Any]], None]

MANIFEST = "_spark_metadata"
"""The directory of the manifest of Spark's file sink (FileStreamSink.metadataDir)."""

ROLLED_BACK = ("state", "commits", "offsets")
"""The parts of a checkpoint that have a file for each batch. The offset log comes last: while it is there, no driver
takes a batch for a new one."""


@dataclass(frozen=True)
class CheckpointChanges:
    """Implements :class:`onceproof.faults.capabilities.Checkpoint`: returns what was changed once it is, and records
    it (``checkpoint.changed``). Raises EffectError where there is nothing to change, or it cannot be changed.

    ``output`` is the target's directory, if it has one: a manifest is looked for there.
    """

    place: checkpoint.Place
    record: Record
    output: Path | None = None

    @property
    def _directory(self) -> Path:
        return self.place.directory

    def remove(self, part: str) -> str:
        if part == "manifest":
            found = sorted(self.output.rglob(MANIFEST)) if self.output else []
            return self._changed("removed", part, found, _remove, self.output)
        if part == "checkpoint":
            found = sorted(self._directory.glob("*"))
            return self._changed("removed", "checkpoint", found, _remove)
        return self._changed("removed", part, checkpoint.newest(self._directory, part), _remove)

    def truncate(self, part: str) -> str:
        return self._changed("truncated", part, checkpoint.newest(self._directory, part), _truncate)

    def corrupt(self, part: str) -> str:
        return self._changed("corrupted", part, checkpoint.newest(self._directory, part), _corrupt)

    def roll_back(self, part: str, batch: int) -> str:
        if batch not in checkpoint.committed(self._directory):
            known = checkpoint.committed(self._directory)
            committed = f"batches {known[0]} to {known[-1]} are" if known else "no batch is"
            raise EffectError(f"the {part} cannot be taken back to batch {batch}: {committed} committed")
        parts = ROLLED_BACK if part == "checkpoint" else (part,)
        newer = [path for one in parts for path in checkpoint.newer(self._directory, one, batch)]
        return self._changed("removed", f"{part} after batch {batch}", newer, _remove)

    def copy(self) -> str:
        old = self._directory
        new = old.with_name(f"{old.name}-copy")
        if not old.is_dir():
            raise EffectError("there is no checkpoint to copy")
        try:
            for source, place in ((old, new), (checkpoint.before(old), checkpoint.before(new))):
                if source.is_dir():
                    shutil.copytree(source, place)
        except OSError as error:
            raise EffectError(f"{old} was not copied: {error}") from error
        self.place.directory = new
        self.record("checkpoint.changed", {"done": "copied", "files": []})
        return f"copied the checkpoint to {new}"

    def _changed(
        self, done: str, what: str, paths: Sequence[Path], change: Callable[[Path], None], base: Path | None = None
    ) -> str:
        if not paths:
            raise EffectError(f"no file of the {what} is there: nothing is {done}")
        try:
            for path in paths:
                self._keep(path)
                change(path)
        except OSError as error:
            raise EffectError(f"{error.filename}: not {done} ({error.strerror})") from error
        files = [str(path.relative_to(base or self._directory)) for path in paths]
        self.record("checkpoint.changed", {"done": done, "files": files})
        return f"{done} {_named(files)} of the {'target' if base else 'checkpoint'}"

    def _keep(self, path: Path) -> None:
        """What a batch was planned with is known of no other place."""
        if path.parent == self._directory / "offsets":
            kept = checkpoint.before(self._directory) / "offsets"
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, kept / path.name)


def _named(files: Sequence[str]) -> str:
    return ", ".join(files) if len(files) <= 4 else f"{len(files)} files ({', '.join(files[:3])} ...)"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
    _forget_checksum(path)


def _truncate(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    _forget_checksum(path)


def _corrupt(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2].ljust(len(data), b"\0"))
    _forget_checksum(path)


def _forget_checksum(path: Path) -> None:
    """Hadoop's checksum of a file, if there is one: storage that tears a file keeps none of what the file was to be."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
