"""The lock file: every jar by Maven coordinates, sha256 and size, in groups. Made by ``ci/relock.py``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from .errors import ArtifactError

LOCK_FILE = Path(__file__).with_name("lock.json")
CONNECTOR_GROUP = "spark-"
DEFAULT_SPARK = "4.2.0"


@dataclass(frozen=True)
class Jar:
    """``coordinates`` are group:artifact:version; ``size`` in bytes."""

    coordinates: str
    sha256: str
    size: int

    @property
    def path(self) -> PurePosixPath:
        """Where a Maven repository, and the cache, keeps it.

        >>> str(Jar("org.jboss.byteman:byteman:4.0.26", "", 0).path)
        'org/jboss/byteman/byteman/4.0.26/byteman-4.0.26.jar'
        """
        group, artifact, version = self.coordinates.split(":")
        return PurePosixPath(*group.split("."), artifact, version, f"{artifact}-{version}.jar")


@dataclass(frozen=True)
class Lock:
    """``repository`` is the base URL of the Maven repository that the jars come from."""

    repository: str
    groups: Mapping[str, tuple[Jar, ...]]

    def connector(self, spark_version: str) -> tuple[Jar, ...]:
        """The Kafka connector's jars for one release of Spark. Raises ArtifactError for an unsupported one."""
        group = self.groups.get(CONNECTOR_GROUP + spark_version)
        if group is None:
            supported = ", ".join(self.spark_versions())
            raise ArtifactError(
                f"pyspark {spark_version} is not supported (supported: {supported}): "
                f"pip install 'pyspark=={DEFAULT_SPARK}' in the job's interpreter"
            )
        return group

    def spark_versions(self) -> list[str]:
        names = (name.removeprefix(CONNECTOR_GROUP) for name in self.groups if name.startswith(CONNECTOR_GROUP))
        return sorted(names, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def read_lock(file: Path) -> Lock:
    document = json.loads(file.read_text(encoding="utf-8"))
    groups = {
        name: tuple(Jar(entry["jar"], entry["sha256"], entry["size"]) for entry in group["jars"])
        for name, group in document["groups"].items()
    }
    return Lock(document["repository"], groups)


@cache
def shipped_lock() -> Lock:
    """The lock file that comes with this release."""
    return read_lock(LOCK_FILE)
