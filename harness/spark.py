"""The installation of Spark behind the job's interpreter."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import Unavailable
from .runtime.answers import answer

QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
"""JVM options that shorten a start: C1 only, the smallest collector, class-data sharing. An archive is bound to the
collector it was made with, so whoever makes one and whoever uses one take these options from here."""

ANSWER_SECONDS = 60.0
"""For what an interpreter says of its pyspark, which takes it a moment."""
FIX = "give --python an interpreter that has pyspark: pip install 'pyspark==4.2.0'"

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
    match _answer(python):
        case None:
            raise NoSpark(f"the job's interpreter {python} has no pyspark", FIX)
        case [str(place), str(version)]:
            package = Path(place)
        case _:
            raise NoSpark(f"the job's interpreter {python} did not answer when asked for pyspark", FIX)
    # pip's pyspark is its own SPARK_HOME; a Spark distribution has the package at python/pyspark.
    home = next((place for place in (package, package.parent.parent) if (place / "jars").is_dir()), None)
    if home is None:
        raise NoSpark(f"pyspark {version} of {python} brings no Spark ({package}/jars is missing)", FIX)
    return SparkInstall(home=home, version=version, python=python)


def _answer(python: str) -> Any:
    """The last line that it prints when asked, as JSON; what is none is the text itself. Raises NoSpark."""
    last = (_said(python).strip().splitlines() or [""])[-1]
    try:
        return json.loads(last)
    except (ValueError, RecursionError):
        return last


def _said(python: str) -> str:
    """What it prints when asked. Raises NoSpark where it fails, or does not end in time with all that it started."""
    try:
        found = answer([python, "-c", _ASK], ANSWER_SECONDS)
    except subprocess.TimeoutExpired:
        late = f"it gave no answer within {ANSWER_SECONDS:g} s"
        raise NoSpark(f"the job's interpreter {python} does not run: {late}", FIX) from None
    except OSError as error:
        raise NoSpark(f"the job's interpreter {python} does not run ({error})", FIX) from error
    if found.code:
        last = (found.complaint.strip().splitlines() or [f"exit code {found.code}"])[-1]
        raise NoSpark(f"the job's interpreter {python} failed when asked for pyspark ({last})", FIX)
    return found.said
