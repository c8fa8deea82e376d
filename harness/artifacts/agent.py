"""The agent of lean JVMs: Byteman's, shown only the classes that rules name (see NamedClasses.java)."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from ..java import Java
from ..runtime.scratch import scratch_directory
from ..spark import SparkInstall
from .errors import ArtifactError, of_storage

SOURCE = Path(__file__).with_name("NamedClasses.java")
COMPILER = "org.codehaus.commons.compiler.samples.CompilerDemo"
"""Janino's command line (commons-compiler), with javac's options; both jars are among Spark's."""
DEADLINE = 60.0

MANIFEST = """\
Manifest-Version: 1.0
Premain-Class: onceproof.NamedClasses
Can-Redefine-Classes: true
Can-Retransform-Classes: true
"""

NAMED = re.compile(r"^CLASS (\S+)$", re.MULTILINE)
INHERITED = re.compile(r"^INTERFACE |^CLASS \^", re.MULTILINE)
"""Rules that hold for classes which they do not name."""


class NotCompiled(ArtifactError):
    """The agent could not be made: trials run with Byteman's own, their JVMs start more slowly."""


def agent_path(cache: Path) -> Path:
    return cache / "agents" / f"named-classes-{hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]}.jar"


def make_agent(cache: Path, java: Java, spark: SparkInstall, byteman: Path) -> Path:
    """The agent's jar, compiled now if it is not there (1 s). Raises ArtifactError."""
    path = agent_path(cache)
    if path.is_file():
        return path
    with scratch_directory("setup") as classes:
        _compile(java, spark, byteman, classes)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.{os.getpid()}")
            with zipfile.ZipFile(temporary, "w") as jar:
                jar.writestr("META-INF/MANIFEST.MF", MANIFEST)
                for file in sorted(classes.rglob("*.class")):
                    jar.write(file, str(file.relative_to(classes)))
            os.replace(temporary, path)
        except OSError as error:
            raise of_storage(error, path.parent) from error
    return path


def agent_option(byteman: Path, named_classes: Path | None, scripts: Sequence[Path]) -> str:
    """The JVM's option for rule files. ``named_classes`` is used where every rule names its classes.

    Byteman must be on the class path then.
    """
    argument = ",".join(f"script:{script}" for script in scripts)
    texts = [script.read_text(encoding="utf-8") for script in scripts]
    if named_classes is None or any(INHERITED.search(text) for text in texts):
        return f"-javaagent:{byteman}={argument}"
    names = sorted({name for text in texts for name in NAMED.findall(text)})
    return f"-javaagent:{named_classes}={'+'.join(names)};{argument}"


def _compile(java: Java, spark: SparkInstall, byteman: Path, classes: Path) -> None:
    compiler = [str(jar) for name in ("janino", "commons-compiler") for jar in (spark.home / "jars").glob(f"{name}-*")]
    classpath = os.pathsep.join([*compiler, str(byteman)])
    command = [str(java.executable), "-cp", classpath, COMPILER, "-d", str(classes), "-classpath", str(byteman)]
    try:
        ended = subprocess.run(
            [*command, str(SOURCE)], capture_output=True, text=True, timeout=DEADLINE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise NotCompiled(f"setup: Janino did not compile {SOURCE.name} in {DEADLINE:.0f} s") from None
    if not list(classes.rglob("NamedClasses.class")):
        said = (ended.stderr or ended.stdout).strip().splitlines() or ["it printed nothing"]
        raise NotCompiled(f"setup: Janino did not compile {SOURCE.name}: {said[-1]}")
