"""The lock file: every jar by Maven coordinates, sha256 and size, in groups. Made by ``ci/relock.py``."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, Field, TypeAdapter

from ...documents import CLOSED, DocumentError, read_document
from .errors import ArtifactError

LOCK_FILE = Path(__file__).with_name("lock.json")
CONNECTOR_GROUP = "spark-"
DEFAULT_SPARK = "4.2.0"


COORDINATES = r"^[^:/\s]+:[^:/\s]+:[^:/\s]+$"


def is_coordinates(text: str) -> bool:
    """Whether this names a jar in a Maven repository, not a file."""
    return re.match(COORDINATES, text) is not None


def path_of(coordinates: str) -> PurePosixPath:
    """Where a Maven repository keeps the jar of group:artifact:version."""
    group, artifact, version = coordinates.split(":")
    return PurePosixPath(*group.split("."), artifact, version, f"{artifact}-{version}.jar")


class Jar(BaseModel):
    """``coordinates`` are group:artifact:version; ``size`` in bytes."""

    model_config = CLOSED

    coordinates: str = Field(alias="jar", pattern=COORDINATES)
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(gt=0)

    @property
    def path(self) -> PurePosixPath:
        """Where a Maven repository, and the cache, keeps it.

        >>> str(Jar(jar="org.jboss.byteman:byteman:4.0.26", sha256="0" * 64, size=1).path)
        'org/jboss/byteman/byteman/4.0.26/byteman-4.0.26.jar'
        """
        return path_of(self.coordinates)


class JarGroup(BaseModel):
    """Jars that are used together; ``comment`` says why these versions."""

    model_config = CLOSED

    comment: str
    jars: tuple[Jar, ...]


class Lock(BaseModel):
    """``repository`` is the base URL of the Maven repository that the jars come from."""

    model_config = CLOSED

    repository: str
    groups: dict[str, JarGroup]

    def connector(self, spark_version: str) -> tuple[Jar, ...]:
        """The Kafka connector's jars for one release of Spark. Raises ArtifactError for an unsupported one."""
        group = self.groups.get(CONNECTOR_GROUP + spark_version)
        if group is None:
            supported = ", ".join(self.spark_versions())
            raise ArtifactError(
                f"pyspark {spark_version} is not supported (supported: {supported}): "
                f"pip install 'pyspark=={DEFAULT_SPARK}' in the job's interpreter"
            )
        return group.jars

    def pinned(self, coordinates: str) -> Jar | None:
        """The jar of these coordinates, in whatever group it is."""
        jars = (jar for group in self.groups.values() for jar in group.jars)
        return next((jar for jar in jars if jar.coordinates == coordinates), None)

    def kafka_version(self) -> str:
        """The broker's."""
        names = (jar.coordinates for jar in self.groups["broker"].jars)
        return next(name.rpartition(":")[2] for name in names if name.startswith("org.apache.kafka:kafka_"))

    def spark_versions(self) -> list[str]:
        names = (name.removeprefix(CONNECTOR_GROUP) for name in self.groups if name.startswith(CONNECTOR_GROUP))
        return sorted(names, key=lambda version: [int(part) for part in version.split(".")], reverse=True)


def read_lock(file: Path) -> Lock:
    """Raises ArtifactError, one line with the field and its value, for a file that is no lock file."""
    try:
        return read_document(file, TypeAdapter(Lock))
    except (OSError, DocumentError) as error:
        raise ArtifactError(f"the lock file of the jars cannot be used: {error}") from error


@cache
def shipped_lock() -> Lock:
    """The lock file that comes with this release."""
    return read_lock(LOCK_FILE)
