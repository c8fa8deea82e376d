"""The installation of Spark behind the job's interpreter."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from .errors import Unavailable

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""JVM options that shorten a start: C1 only, the smallest collector, class-data sharing. An archive is bound to the
collector it was made with, so whoever makes one and whoever uses one take these options from here."""

_ASK = """
import sys
sys.path[:] = filter(None, sys.path)
import importlib.util, json, os
spec = importlib.util.find_spec("pyspark")
if spec is None or not spec.submodule_search_locations:
    print(json.dumps(None))
else:
    home = list(spec.submodule_search_locations)[0]
    names = {}
    exec(open(os.path.join(home, "version.py"), encoding="utf-8").read(), names)
    print(json.dumps([home, names["__version__"]]))
"""
"""The empty entry is the current directory, which is none of the interpreter's: a file pyspark.py or json.py there is
the user's own. (Its option -P, which leaves it out, is of Python 3.11.)"""


@dataclass(frozen=True)
class SparkInstall:
    """``home`` is SPARK_HOME (pip's pyspark package directory), ``python`` the interpreter that it belongs to."""

    home: Path
    version: str
    python: str


class NoSpark(Unavailable):
    """The job's interpreter does not exist, does not run, or has no pyspark."""


def spark_of(python: str) -> SparkInstall:
    """Ask an interpreter for its pyspark, without importing it. Raises NoSpark, one line."""
    fix = "give --python an interpreter that has pyspark: pip install 'pyspark==4.2.0'"
    try:
        answer = subprocess.run([python, "-c", _ASK], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSpark(f"the job's interpreter {python} does not run ({error})", fix) from error
    if answer.returncode:
        last = (answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"])[-1]
        raise NoSpark(f"the job's interpreter {python} failed when asked for pyspark ({last})", fix)
    try:
        found = json.loads((answer.stdout.strip().splitlines() or [""])[-1])
    except ValueError as error:
        raise NoSpark(f"the job's interpreter {python} did not answer when asked for pyspark", fix) from error
    if found is None:
        raise NoSpark(f"the job's interpreter {python} has no pyspark", fix)
    package, version = Path(found[0]), found[1]
    # pip's pyspark is its own SPARK_HOME; a Spark distribution has the package at python/pyspark.
    home = next((place for place in (package, package.parent.parent) if (place / "jars").is_dir()), None)
    if home is None:
        raise NoSpark(f"pyspark {version} of {python} brings no Spark ({package}/jars is missing)", fix)
    return SparkInstall(home=home, version=version, python=python)
