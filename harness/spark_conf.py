"""The configuration that Spark's JVMs are started with, and SPARK_CONF_DIR."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import javaproperties

from .artifacts import Runtime
from .java import Java
from .spark import QUICK_START, SparkInstall

Role = Literal["driver", "executor"]

QUIET = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""The JVM prints its own warnings (an archive that does not fit, for instance) on stdout, which belongs to the job."""

NURSERY = "-Xmn600m"
"""Spark's own default is a heap of 1 GiB, a third of it for new objects: that is five collections of 40 ms a start."""

CONF_NAME = "conf:"
"""Name of the generated configuration directory.

Spark's launcher puts SPARK_CONF_DIR on the class path, and HotSpot refuses a class-data archive when a directory on the
class path is not empty. The launcher splits the value at the path separator (AbstractCommandBuilder.addToClassPath), so
what reaches the class path is ``.../conf``, which does not exist and is ignored; whoever reads the variable as a
directory still finds ``.../conf:/spark-defaults.conf``.
"""


def lean_properties(java: Java, spark: SparkInstall, runtime: Runtime) -> dict[str, str]:
    """Spark properties for a quick start, with the Kafka connector on the class path of driver and executors.

    No UI, two shuffle partitions with a task each, no generated code, C1, SerialGC, a nursery that is not collected
    before the end of most trials, a checkpoint without checksum files, UTC, and the class-data archive that ``onceproof
    setup`` makes.
    """
    jars = os.pathsep.join(str(jar) for jar in runtime.lean_jars(spark.version))
    return base_properties(spark, runtime) | {
        "spark.driver.extraClassPath": jars,
        "spark.executor.extraClassPath": jars,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # Spark 4.1 (SPARK-53941) puts the partitions of a shuffle of a few rows together: one task writes them all, and
        # what goes wrong between two tasks of a batch that is not that small could not be seen.
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        # For a few hundred rows, compiling Java code takes longer than interpreting the plan.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        # Hadoop without its native library starts a process for each look at a file: half of them for checksum files.
        "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
        "spark.driver.extraJavaOptions": " ".join(java_options(java, spark, runtime)),
        "spark.executor.extraJavaOptions": " ".join(java_options(java, spark, runtime)),
    }


def base_properties(spark: SparkInstall, runtime: Runtime) -> dict[str, str]:
    """What every trial needs, lean or not: the connector's jars, UTC, and the whole offset log.

    The jars are given as class path, not as ``spark.jars``: the application class loader has them then, so that a
    class-data archive covers them.
    """
    connector = os.pathsep.join(str(jar) for jar in runtime.connector_jars(spark.version))
    return {
        "spark.driver.extraClassPath": connector,
        "spark.executor.extraClassPath": connector,
        "spark.driver.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.executor.extraJavaOptions": "-Duser.timezone=UTC",
        "spark.sql.session.timeZone": "UTC",
        # The ground truth is computed from the offset log, of which Spark keeps the last hundred batches by default.
        "spark.sql.streaming.minBatchesToRetain": "10000",
    }


def java_options(java: Java, spark: SparkInstall, runtime: Runtime) -> list[str]:
    """Options of a lean driver or executor JVM, quoted for Spark's ``extraJavaOptions``."""
    archive = runtime.spark_archive(java, spark)
    shared = [quoted(f"-XX:SharedArchiveFile={archive}")] if archive else []
    return [*QUICK_START, *shared, *QUIET, NURSERY, "-Duser.timezone=UTC"]


def add_java_options(properties: Mapping[str, str], role: Role, *options: str) -> dict[str, str]:
    """The properties with ``options`` (each one word; quoted here) behind the role's ``extraJavaOptions``."""
    key = f"spark.{role}.extraJavaOptions"
    present = [properties[key]] if properties.get(key) else []
    return dict(properties) | {key: " ".join([*present, *map(quoted, options)])}


def quoted(option: str) -> str:
    """One JVM option as a word of ``extraJavaOptions``, which Spark splits like a shell would (parseOptionString)."""
    if not any(character in option for character in " \t\"'\\"):
        return option
    return '"' + option.replace("\\", "\\\\").replace('"', '\\"') + '"'


def write_conf_dir(
    directory: Path,
    properties: Mapping[str, str],
    log4j: str,
    java: Java | None = None,
    spark: SparkInstall | None = None,
    runtime: Runtime | None = None,
) -> dict[str, str]:
    """Write a configuration below ``directory`` and return the environment variables for ``python job.py``.

    ``log4j`` is the text of a log4j2 properties file; it applies to the driver's JVM and to executors on the same
    machine. Nothing else in ``directory`` is touched; it is made if it is missing, but its parents are not. With
    ``java`` and ``spark`` the variables name them too, so that those of the user's shell do not count; with ``runtime``
    as well, the short-lived JVM that Spark's launcher runs to build the command line starts from its own archive (0.1 s
    each time).
    """
    conf = directory / CONF_NAME
    for each in (directory, conf):  # not parents=True: a state directory that is being removed must not come back
        each.mkdir(exist_ok=True)
    logging = directory / "log4j2.properties"
    logging.write_text(log4j, encoding="utf-8")
    for role in ("driver", "executor"):
        properties = add_java_options(properties, role, f"-Dlog4j2.configurationFile={logging.as_uri()}")
    (conf / "spark-defaults.conf").write_text(defaults_text(properties), encoding="utf-8")
    variables = {
        "SPARK_CONF_DIR": str(conf),
        "SPARK_LAUNCHER_OPTS": " ".join(_launcher_options(java, spark, runtime)),
        "TZ": "UTC",
    }
    if java:
        variables["JAVA_HOME"] = str(java.home)
    if spark:
        variables |= {
            "SPARK_HOME": str(spark.home),
            "PYSPARK_PYTHON": spark.python,
            "PYSPARK_DRIVER_PYTHON": spark.python,
        }
    return variables


def _launcher_options(java: Java | None, spark: SparkInstall | None, runtime: Runtime | None) -> list[str]:
    archive = runtime.launcher_archive(java, spark) if runtime and java and spark else None
    # The shell script spark-class splits this variable at blanks and knows no quotes.
    fits = archive is not None and not any(character.isspace() for character in str(archive))
    return [*QUICK_START, "-Xlog:disable", *([f"-XX:SharedArchiveFile={archive}"] if fits else [])]


def defaults_text(properties: Mapping[str, str]) -> str:
    """The text of a ``spark-defaults.conf``: the format of java.util.Properties, read as UTF-8."""
    return javaproperties.dumps(properties, separator=" ", timestamp=None, sort_keys=True, ensure_ascii=False)
