"""Run while the image is built: fetch the pinned jars, make the class-data archives, format the brokers' storage.

``prepare.py DIRECTORY`` leaves in DIRECTORY what roles need, and ``installed.json``, which says where it is.
"""

import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

from onceproof.harness.artifacts import Artifacts
from onceproof.harness.setup_steps import SetUp, setup
from onceproof.harness.spark import QUICK_START


def main(target: Path) -> None:
    python = str(target / "venv/bin/python")
    ready = setup(python=python, progress=False, report=print)
    if ready.warnings:
        sys.exit("the image would be slow: " + "; ".join(ready.warnings))
    artifacts = Artifacts.open()
    format_storage(artifacts, ready, target / "broker")
    (target / "installed.json").write_text(json.dumps(installed(artifacts, ready, python), indent=2) + "\n")


def installed(artifacts: Artifacts, ready: SetUp, python: str) -> dict[str, object]:
    java, spark = ready.java, ready.spark
    return {
        "python": python,
        "python_version": platform.python_version(),
        "java": {"home": str(java.home), "version": java.version, "vendor": java.vendor, "build": java.build},
        "spark": {"home": str(spark.home), "version": spark.version},
        "connector": [str(jar) for jar in artifacts.connector_jars(spark.version)],
        "byteman": str(artifacts.byteman()),
        "named_classes": str(artifacts.named_classes()),
        "broker": [str(jar) for jar in artifacts.broker_classpath()],
        "archives": {
            "broker": str(artifacts.broker_archive(java)),
            "spark": str(artifacts.spark_archive(java, spark)),
            "launcher": str(artifacts.launcher_archive(java, spark)),
        },
        "quick_start": list(QUICK_START),
    }


def format_storage(artifacts: Artifacts, ready: SetUp, directory: Path) -> None:
    """Storage of one node; each broker copies it under its own ids, which saves a JVM at its start."""
    directory.mkdir()
    with tempfile.TemporaryDirectory() as scratch:
        properties = Path(scratch) / "server.properties"
        properties.write_text(
            "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.voters=1@localhost:9093\n"
            "listeners=PLAINTEXT://:9092,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={directory}/data\n"
        )
        classpath = ":".join(map(str, artifacts.broker_classpath()))
        tool = [str(ready.java.executable), "-cp", classpath, "kafka.tools.StorageTool"]
        subprocess.run([*tool, "format", "-t", str(uuid4()), "-c", str(properties)], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
