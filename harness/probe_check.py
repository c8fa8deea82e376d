"""Which probes fit a release: ``onceproof doctor --probes`` checks every rule against the classes of its jars.

Byteman drops a rule that does not fit without a word, and then its phase is never reported. Byteman's own TestScript
says beforehand which rules it cannot use.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from packaging.version import Version

from ..faults import PHASES
from ..faults.probes.jvm import every_rule, rules
from ..faults.probes.rule import Side
from .artifacts import Artifacts
from .artifacts.lock import DEFAULT_SPARK
from .doctor import SETUP, Check
from .errors import Unavailable, one_line
from .java import Java, find_java
from .releases import made
from .spark import QUICK_START, SparkInstall, spark_of

CANNOT_BE_USED = re.compile(r'^(?:WARNING|ERROR) : .*?rule "([^"]+)"', re.MULTILINE)
RULE = re.compile("^RULE (.*)$", re.MULTILINE)
SECONDS = 120


def check_probes(python: str) -> list[Check]:
    """One check for each side of each release: the broker's, the Spark of ``python``, and those of other supported
    releases whose interpreters have been made. Raises Unavailable for what is not installed."""
    java, artifacts = find_java(), Artifacts.open()
    present = spark_of(python)
    others = [one for one in map(spark_of, map(str, made())) if one.version != present.version]
    others.sort(key=lambda one: Version(one.version), reverse=True)
    kafka = artifacts.lock.kafka_version()
    found = [_check(f"Kafka {kafka}", "broker", artifacts.broker_classpath(), DEFAULT_SPARK, java, artifacts)]
    for spark in (present, *others):
        found += [_of_spark(spark, side, java, artifacts) for side in SPARK_SIDES]
    absent = set(artifacts.lock.spark_versions()) - {spark.version for spark in (present, *others)}
    return found + [_absent(version) for version in sorted(absent, reverse=True)]


SPARK_SIDES: tuple[Side, ...] = ("driver", "executor")


def _of_spark(spark: SparkInstall, side: Side, java: Java, artifacts: Artifacts) -> Check:
    jars = [spark.home / "jars" / "*", *artifacts.connector_jars(spark.version)]
    return _check(f"Spark {spark.version}", side, jars, spark.version, java, artifacts)


def _check(
    release: str, side: Side, classpath: Sequence[Path], spark_version: str, java: Java, artifacts: Artifacts
) -> Check:
    phase_of = {rule.name: rule.phase for rule in every_rule() if rule.side == side and rule.phase}
    known = set(phase_of.values())
    scripts = {
        rules(
            known,
            side,
            spark_version=spark_version,
            host="127.0.0.1",
            port=1,
            token="none",
            rows=(1,),
            any_sink=any_sink,
        )
        for any_sink in (True, False)
    }
    classes = [artifacts.byteman(), *classpath]
    wrong = set[str]().union(*(unusable(script, classes, java) for script in scripts))
    held = {name for script in scripts for name in RULE.findall(script)}
    there = known - {phase_of.get(name) for name in wrong}
    rules_found = f"do not fit: {', '.join(sorted(wrong))}" if wrong else f"{len(held)} rules fit"
    detail = f"{rules_found}; phases: {', '.join(phase.name for phase in PHASES if phase.name in there)}"
    fix = "plans and sweeps that need them cannot land here: use a supported release" if wrong else ""
    return Check(f"probes of {release}, {side}", not wrong, True, detail, fix)


def unusable(script: str, classpath: Sequence[Path], java: Java) -> set[str]:
    """The names of the rules that Byteman cannot use with these classes. Raises Unavailable if it does not run."""
    with tempfile.TemporaryDirectory(prefix="onceproof-") as directory:
        file = Path(directory) / "rules.btm"
        file.write_text(script, encoding="utf-8")
        places = os.pathsep.join(map(str, classpath))
        command = [str(java.executable), *QUICK_START, "-cp", places, "org.jboss.byteman.check.TestScript", str(file)]
        try:
            said = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True).stdout
        except (OSError, subprocess.SubprocessError) as error:
            raise Unavailable(f"Byteman could not look at the probes: {one_line(error)}", SETUP) from error
    return set(CANNOT_BE_USED.findall(said))


def _absent(version: str) -> Check:
    fix = f'add --every-release, or run a sink that says SPARK = "=={version}", or give --python another interpreter'
    return Check(f"probes of Spark {version}", False, False, "this release is not installed", fix)
