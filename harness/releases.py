"""Interpreters with another release of Spark, for sinks that say which one they need: ``SPARK = ">=4.1,<4.2"``.

Such an interpreter lies in the cache. It has a pyspark of its own in front of everything that ours has, so each
environment that onceproof is installed in has its own.
"""

from __future__ import annotations

import hashlib
import shutil
import site
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from filelock import FileLock
from packaging.specifiers import SpecifierSet

from .artifacts import Artifacts
from .environment_options import EnvironmentOptions
from .errors import SinkError, Unavailable
from .setup_steps import Report, setup
from .sinks import check_release, release_wanted, shape
from .spark import spark_of

COMPLETE = "complete"
"""The file that an interpreter's directory has once nothing is missing there."""


def with_release(options: EnvironmentOptions, sink: Path, report: Report = lambda line: None) -> EnvironmentOptions:
    """The options with an interpreter whose Spark the sink wants; one is made if there is none (minutes, once).

    ``report`` is told, a line each, what takes time. Raises SinkError where ``--python``, the image or the environment
    that is up decides otherwise, Unavailable where the interpreter cannot be made.
    """
    shape(sink)  # a file that cannot be parsed is told from there
    wanted = release_wanted(sink)
    if wanted is None or options.attach is not None or options.env != "local":
        return options  # what these have is only known once they are up: the session looks then
    present = spark_of(options.python).version
    if wanted.contains(present):
        return options
    if options.python != sys.executable:
        check_release(sink, present, "leave --python out, or name one that has it")
    return replace(options, python=str(_interpreter(_newest(sink, wanted), report)))


def made() -> list[Path]:
    """The interpreters with other releases of Spark that there are."""
    places = sorted((Artifacts.open().cache / "spark").glob(f"*-{_ours()}"))
    return [place / "bin" / "python" for place in places if (place / COMPLETE).is_file()]


def make_every(python: str, report: Report = lambda line: None) -> None:
    """Make the interpreters with the supported releases of Spark that ``python`` has not (minutes each, once).

    ``report`` is told, a line each, what takes time. Raises Unavailable for one that cannot be made.
    """
    present = spark_of(python).version
    for version in Artifacts.open().lock.spark_versions():
        if version != present:
            _interpreter(version, report)


def _ours() -> str:
    return hashlib.sha256(sys.prefix.encode()).hexdigest()[:8]


def _newest(sink: Path, wanted: SpecifierSet) -> str:
    supported = Artifacts.open().lock.spark_versions()
    fitting = [version for version in supported if wanted.contains(version)]
    if not fitting:
        raise SinkError(
            f"sink {sink.name} needs Spark {wanted} (SPARK), which none of the supported releases is "
            f'({", ".join(supported)}): write SPARK = ">={supported[-1]}"'
        )
    return fitting[0]


def _interpreter(version: str, report: Report) -> Path:
    place = Artifacts.open().cache / "spark" / f"{version}-{_ours()}"
    python = place / "bin" / "python"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{place}.lock"):
        if not (place / COMPLETE).is_file():
            report(f"making an interpreter with Spark {version} at {place} (minutes)")
            shutil.rmtree(place, ignore_errors=True)
            _run([sys.executable, "-m", "venv", "--without-pip", str(place)], version)
            pip = [sys.executable, "-m", "pip", "--python", str(python)]
            _run([*pip, "install", "--quiet", f"pyspark=={version}"], version)
            for packages in place.glob("lib/python*/site-packages"):
                (packages / "ours.pth").write_text("".join(f"{path}\n" for path in site.getsitepackages()))
            setup(str(python), report=report)
            (place / COMPLETE).touch()
    return python


def _run(command: list[str], version: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.returncode}").splitlines()[-1]
        raise Unavailable(
            f"no interpreter with Spark {version} could be made ({' '.join(command[1:4])}: {said})",
            f"give --python one that has pyspark {version}",
        )
