"""Everything that is not on PyPI: the jars of the broker, the Kafka connector and Byteman, and class-data archives.

>>> from onceproof.harness.artifacts import Artifacts
>>> artifacts = Artifacts.open(progress=True)       # doctest: +SKIP
>>> artifacts.byteman()                             # doctest: +SKIP
PosixPath('.../.cache/onceproof/jars/org/jboss/byteman/byteman/4.0.26/byteman-4.0.26.jar')

Jars are pinned in ``lock.json``, fetched when they are first asked for, and verified whenever they are asked for.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..java import Java
from ..spark import SparkInstall
from .agent import agent_path
from .download import Downloads
from .errors import CACHE, MIRROR, ArtifactError
from .keys import archive_path, broker_key, launcher_key, spark_key
from .lock import Jar, Lock, shipped_lock

__all__ = ["ArtifactError", "Artifacts", "Jar", "Lock", "Runtime", "default_cache"]


class Runtime(Protocol):
    """What the JVMs of a job are started with, as paths of the machine on which they run."""

    def connector_jars(self, spark_version: str) -> Sequence[Path]:
        """The Kafka connector of Spark ``spark_version`` with what it needs beyond Spark's own jars."""

    def lean_jars(self, spark_version: str) -> Sequence[Path]:
        """What precedes Spark's own jars in a lean JVM: the connector, and Byteman, which loads quicker from there."""

    def byteman(self) -> Path: ...

    def named_classes(self) -> Path | None:
        """The agent for lean JVMs (see :mod:`.agent`), if there is one."""

    def spark_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        """The class-data archive for Spark's JVMs with :meth:`lean_jars` in front, if there is one."""

    def launcher_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        """The class-data archive for the JVM in which Spark's launcher builds a command line, if there is one."""


@dataclass(frozen=True)
class Artifacts:
    """The cache directory, and the jars that ``lock`` names."""

    cache: Path
    lock: Lock
    downloads: Downloads

    @classmethod
    def open(cls, cache: Path | None = None, progress: bool = False) -> Artifacts:
        """Nothing is fetched yet. ``cache`` is by default what :func:`default_cache` says; ``progress`` shows a bar on
        stderr while something is fetched."""
        directory = (cache or default_cache()).absolute()
        lock = shipped_lock()
        base_url = os.environ.get(MIRROR) or lock.repository
        return cls(directory, lock, Downloads(directory / "jars", base_url, progress))

    def broker_classpath(self) -> list[Path]:
        """The jars of a Kafka broker, in class path order. Raises ArtifactError, like all that fetch."""
        return self.downloads.paths(self.lock.groups["broker"].jars)

    def connector_jars(self, spark_version: str) -> list[Path]:
        """The Kafka connector of Spark ``spark_version`` with what it needs beyond Spark's own jars."""
        return self.downloads.paths(self.lock.connector(spark_version))

    def lean_jars(self, spark_version: str) -> list[Path]:
        """What precedes Spark's own jars in a lean JVM: the connector, and Byteman, which loads quicker from there."""
        return [*self.connector_jars(spark_version), self.byteman()]

    def byteman(self) -> Path:
        """The agent's jar."""
        return self.downloads.paths(self.lock.groups["byteman"].jars)[0]

    def by_coordinates(self, coordinates: str) -> Path:
        """Any jar by group:artifact:version; one of the lock file with the hash that it has there."""
        jar = self.lock.pinned(coordinates)
        return self.downloads.paths([jar])[0] if jar else self.downloads.unpinned(coordinates)

    def named_classes(self) -> Path | None:
        """The agent for lean JVMs (see :mod:`.agent`); None if setup has not made it."""
        return _present(agent_path(self.cache))

    def broker_archive(self, java: Java) -> Path | None:
        """The class-data archive for a JVM with exactly :meth:`broker_classpath`; None if setup has not made it."""
        return _used(archive_path(self.cache, "broker", broker_key(java, self.broker_classpath())))

    def spark_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        """The class-data archive for Spark's JVMs with :meth:`lean_jars` in front; None if setup has not made it."""
        return _used(archive_path(self.cache, "spark", spark_key(java, spark, self.lean_jars(spark.version))))

    def launcher_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        """The class-data archive for the JVM in which Spark's launcher builds a driver's command line."""
        return _used(archive_path(self.cache, "launcher", launcher_key(java, spark)))


def default_cache(environ: Mapping[str, str] = os.environ) -> Path:
    """ONCEPROOF_CACHE, else ``onceproof`` below XDG_CACHE_HOME or ~/.cache."""
    if environ.get(CACHE):
        return Path(environ[CACHE])
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "onceproof"


def _present(file: Path) -> Path | None:
    return file if file.is_file() else None


def _used(archive: Path) -> Path | None:
    """The archive if it is there. That it is used is noted, as its time of access: those unused for longest are removed
    first, and a file system notes that a file is mapped once a day (relatime), or never."""
    if _present(archive) is None:
        return None
    with contextlib.suppress(OSError):
        os.utime(archive, ns=(time.time_ns(), archive.stat().st_mtime_ns))
    return archive
