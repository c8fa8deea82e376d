"""``onceproof setup``: fetch the jars and make the class-data archives, once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .artifacts import Artifacts
from .artifacts.agent import NotCompiled, make_agent
from .artifacts.archives import TrainingFailed, make_broker_archive, make_launcher_archive, make_spark_archive
from .artifacts.errors import ArtifactError
from .java import Java, find_java
from .spark import SparkInstall, spark_of

Report = Callable[[str], None]


@dataclass(frozen=True)
class SetUp:
    """What is ready. ``warnings`` are one line each: what could not be made costs seconds, not trials."""

    java: Java
    spark: SparkInstall
    cache: Path
    jars: int
    archives: tuple[Path, ...]
    warnings: tuple[str, ...]
    seconds: float


def setup(python: str | None = None, progress: bool = True, report: Report = lambda line: None) -> SetUp:
    """Make everything ready for trials with the job's interpreter ``python`` (ours); quick when nothing is missing.

    ``report`` is told, a line each, before a step that takes longer than a second, and what is ready at the end. Raises
    Unavailable, one line, when Java, pyspark or a jar is not available.
    """
    began = time.monotonic()
    java = find_java()
    spark = spark_of(python or sys.executable)
    artifacts = Artifacts.open(progress=progress)
    jars = artifacts.downloads.paths(
        [jar for name in ("broker", "byteman") for jar in artifacts.lock.groups[name].jars]
        + [*artifacts.lock.connector(spark.version)]
    )
    archives, warnings = _quick(artifacts, java, spark, report, (TrainingFailed, NotCompiled))
    ready = SetUp(java, spark, artifacts.cache, len(jars), archives, warnings, time.monotonic() - began)
    report(
        f"ready: Java {java.version} at {java.home}, Spark {spark.version}, {len(jars)} jars and {len(archives)} "
        f"class-data archives in {ready.cache} ({ready.seconds:.1f} s)"
    )
    return ready


def make_quick(python: str, report: Report) -> None:
    """Make what lets the JVMs of ``python``'s Spark start in half the time, where it is missing (a minute, once).

    ``report`` is told, a line each, what takes time, and what could not be made: trials run without it as well. Raises
    Unavailable, one line, when Java, pyspark or a jar is not available.
    """
    _quick(Artifacts.open(), find_java(), spark_of(python), report, (ArtifactError,))


Step = tuple[str, Path | None, Callable[[], Path]]
"""What is made, where it is if it is there, and how to make it."""


def _quick(
    artifacts: Artifacts, java: Java, spark: SparkInstall, report: Report, bearable: tuple[type[ArtifactError], ...]
) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """The class-data archives and the agent, made where they are missing: the archives, and a warning, which is told as
    well, for each that could not be made by an error that is ``bearable``."""
    archives: list[Step] = [
        (
            "the class-data archive of Spark's launcher (1 s)",
            artifacts.launcher_archive(java, spark),
            partial(make_launcher_archive, artifacts, java, spark),
        ),
        (
            "the class-data archive of the broker (10 s)",
            artifacts.broker_archive(java),
            partial(make_broker_archive, artifacts, java),
        ),
        (
            "the class-data archive of Spark (40 s)",
            artifacts.spark_archive(java, spark),
            partial(make_spark_archive, artifacts, java, spark),
        ),
    ]
    agent = partial(make_agent, artifacts.cache, java, spark, artifacts.byteman())
    found, warnings = _made(archives, report, bearable)
    _, others = _made([("the agent (1 s)", artifacts.named_classes(), agent)], report, bearable)
    warnings += others
    for warning in warnings:
        report(f"warning: {warning}")
    return tuple(found), tuple(warnings)


def _made(
    steps: Sequence[Step], report: Report, bearable: tuple[type[ArtifactError], ...]
) -> tuple[list[Path], list[str]]:
    found: list[Path] = []
    warnings: list[str] = []
    for title, present, make in steps:
        if present is None:
            report(f"making {title}")
        try:
            found.append(present or make())
        except bearable as error:
            warnings.append(str(error))
    return found, warnings
