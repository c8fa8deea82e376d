"""What an image holds: the runtime of jobs in it, as paths there."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound
from requests.exceptions import RequestException

from ...java import Java
from ...spark import SparkInstall
from ..base import Unavailable
from .engine import OWNER, reason

SECONDS = 60
"""For a look at an image."""
INSTALLED = "/opt/onceproof/installed.json"
NEEDS = (
    "an image for --image needs bash, ip (iproute2), python3 with pyspark 4.0 to 4.2 or SPARK_HOME, and Java 17 or "
    "newer: see docs/environments.md"
)
DESCRIBE = r"""
import importlib.util, json, os, platform, re, shutil, subprocess, sys
spec = importlib.util.find_spec("pyspark")
package = list(spec.submodule_search_locations)[0] if spec else None
home = os.environ.get("SPARK_HOME")
if package is None and home and os.path.isdir(os.path.join(home, "python", "pyspark")):
    package = os.path.join(home, "python", "pyspark")
places = [place for place in (home, package) if place and os.path.isdir(os.path.join(place, "jars"))]
names = {}
if package:
    exec(open(os.path.join(package, "version.py"), encoding="utf-8").read(), names)
candidates = [os.path.join(os.environ.get("JAVA_HOME", ""), "bin", "java"), shutil.which("java") or ""]
java = next((one for one in candidates if os.access(one, os.X_OK)), None)
said = ""
if java:
    ended = subprocess.run([java, "-XshowSettings:properties", "-version"], capture_output=True, text=True)
    said = ended.stdout + ended.stderr
try:
    settings = open(os.path.join(os.environ.get("SPARK_CONF_DIR") or os.path.join(places[0], "conf"),
                                 "spark-defaults.conf"), encoding="utf-8").read()
except (OSError, IndexError):
    settings = ""
print(json.dumps({
    "python": sys.executable, "python_version": platform.python_version(),
    "spark_home": places[0] if places else None, "spark_version": names.get("__version__"),
    "java": dict(re.findall(r"^\s+(java\.[\w.]+) = (.*)$", said, re.M)),
    "settings": settings, "python_path": os.environ.get("PYTHONPATH", ""),
    "missing": [name for name in ("bash", "ip") if shutil.which(name) is None],
}))
"""


Jars = Mapping[str, Sequence[Path]]
"""Jars by what they are for: connector, byteman, broker."""


@dataclass(frozen=True)
class Image:
    """Implements :class:`...artifacts.Runtime` with paths in the image. ``archives`` is empty in a user's own."""

    name: str
    java: Java
    spark: SparkInstall
    python_version: str
    jars: Jars
    archives: Mapping[str, Path] = field(default_factory=dict)
    agent: Path | None = None
    settings: str = ""
    python_path: str = ""

    @property
    def kafka_version(self) -> str:
        """By the name of the broker's jar."""
        names = (re.fullmatch(r"kafka_[\d.]+-(\d[\w.]*)\.jar", jar.name) for jar in self.jars.get("broker", ()))
        return next((match[1] for match in names if match), "unknown")

    def connector_jars(self, spark_version: str) -> Sequence[Path]:
        return self.jars["connector"]

    def lean_jars(self, spark_version: str) -> Sequence[Path]:
        return [*self.jars["connector"], self.byteman()]

    def byteman(self) -> Path:
        return self.jars["byteman"][0]

    def named_classes(self) -> Path | None:
        return self.agent

    def spark_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        return self.archives.get("spark")

    def launcher_archive(self, java: Java, spark: SparkInstall) -> Path | None:
        return self.archives.get("launcher")


def present(client: DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except ImageNotFound:
        return False
    except (DockerException, RequestException) as error:
        raise Unavailable(f"image {name}: {reason(error)}") from error
    return True


def our_image(client: DockerClient, name: str, owner: str) -> Image:
    """An image that was built from the Dockerfile. Raises Unavailable."""
    found = json.loads(_run(client, name, owner, ["cat", INSTALLED], f"it was not built from our Dockerfile: {NEEDS}"))
    java, spark = found["java"], found["spark"]
    return Image(
        name=name,
        java=Java(Path(java["home"]), java["version"], java["vendor"], java["build"]),
        spark=SparkInstall(Path(spark["home"]), spark["version"], found["python"]),
        python_version=found["python_version"],
        jars={
            "connector": [Path(jar) for jar in found["connector"]],
            "broker": [Path(jar) for jar in found["broker"]],
            "byteman": [Path(found["byteman"])],
        },
        archives={kind: Path(path) for kind, path in found["archives"].items()},
        agent=Path(found["named_classes"]),
    )


def users_image(client: DockerClient, name: str, owner: str, jars: Callable[[str], Jars]) -> Image:
    """A Spark image of the user's, looked at from inside; ``jars`` says where its containers will find ours,
    for a version of Spark.

    Raises Unavailable, one line, for one that lacks something.
    """
    found = json.loads(_run(client, name, owner, ["python3", "-c", DESCRIBE], NEEDS).splitlines()[-1])
    lacks = _lacks(found)
    if lacks:
        raise Unavailable(f"image {name} will not do: {lacks}: {NEEDS}")
    properties = found["java"]
    java = Java(
        Path(properties["java.home"]),
        int(properties["java.specification.version"]),
        properties.get("java.vm.vendor", "unknown"),
        properties.get("java.vm.version", ""),
    )
    spark = SparkInstall(Path(found["spark_home"]), found["spark_version"], found["python"])
    settings, path = found["settings"], found["python_path"]
    found_jars = jars(spark.version)
    return Image(name, java, spark, found["python_version"], found_jars, settings=settings, python_path=path)


def _lacks(found: Mapping[str, Any]) -> str | None:
    if found["missing"]:
        return f"it has no {' and no '.join(found['missing'])}"
    if not found["spark_home"] or not found["spark_version"]:
        return "it has no Spark (neither SPARK_HOME nor pyspark of its python3)"
    release = found["java"].get("java.specification.version", "")
    if not release.isdigit() or int(release) < 17:
        return f"its Java is {release or 'missing'}"
    return None


def _run(client: DockerClient, name: str, owner: str, command: list[str], fix: str) -> str:
    """The output of a command in a container of its own, which is removed. Raises Unavailable."""
    entry, *rest = command
    try:
        container = client.containers.create(
            name, rest, entrypoint=entry, user="root", labels={OWNER: owner}, network_mode="none"
        )
        try:
            container.start()
            code = container.wait(timeout=SECONDS)["StatusCode"]
            out, err = (container.logs(stdout=out, stderr=not out).decode(errors="replace") for out in (True, False))
        finally:
            container.remove(force=True)
    except ImageNotFound as error:
        raise Unavailable(f"image {name} is absent: pull or build it first") from error
    except (DockerException, RequestException) as error:
        raise Unavailable(f"image {name} will not do: {reason(error)}: {fix}") from error
    if code:
        said = " ".join(err.split())[-300:]
        raise Unavailable(f"image {name} will not do: {entry} failed in it (exit code {code}: {said}): {fix}")
    return str(out)
