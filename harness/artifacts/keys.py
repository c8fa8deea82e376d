"""When a class-data archive fits: HotSpot compares its own build, the collector, and each jar's path, size and time."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path

from ..java import Java
from ..spark import QUICK_START, SparkInstall


def broker_key(java: Java, classpath: Sequence[Path]) -> str:
    return _digest(java, classpath)


def spark_key(java: Java, spark: SparkInstall, connector: Sequence[Path]) -> str:
    return _digest(java, [*connector, *_spark_jars(spark)])


def launcher_key(java: Java, spark: SparkInstall) -> str:
    return _digest(java, _spark_jars(spark))


def _spark_jars(spark: SparkInstall) -> list[Path]:
    return sorted((spark.home / "jars").glob("*.jar"))


def archive_path(cache: Path, name: str, key: str) -> Path:
    return cache / "archives" / f"{name}-{key}.jsa"


def _digest(java: Java, jars: Iterable[Path]) -> str:
    """16 hexadecimal digits."""
    digest = hashlib.sha256("\0".join([str(java.home), java.vendor, java.build, *QUICK_START]).encode())
    for jar in jars:
        status = jar.stat()
        digest.update(f"\0{jar}\0{status.st_size}\0{status.st_mtime_ns}".encode())
    return digest.hexdigest()[:16]
