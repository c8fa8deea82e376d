"""Make harness/artifacts/lock.json again: ``python ci/relock.py``. Needs Maven (mvn) on the PATH.

Maven resolves the broker's class path. The connectors' lists are spelled out here instead: Spark's parent POM names
repositories that need not be reachable, and one pin differs from what the POM asks for (see CONNECTOR_COMMENT).
"""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import tempfile
from pathlib import Path
from urllib.request import urlopen

from onceproof.harness.sinks import find_sink, literals

CENTRAL = "https://repo1.maven.org/maven2"
LOCK = Path(__file__).resolve().parents[1] / "harness" / "artifacts" / "lock.json"

LOG4J = "2.24.3"
BROKER = (
    "org.apache.kafka:kafka_2.13:4.3.1",
    f"org.apache.logging.log4j:log4j-core:{LOG4J}",
    f"org.apache.logging.log4j:log4j-slf4j-impl:{LOG4J}",
)
BROKER_COMMENT = "kafka_2.13 with its run-time dependencies; without log4j-slf4j-impl the broker logs nothing."
BYTEMAN = ("org.jboss.byteman:byteman:4.0.26",)
TOKEN_PROVIDER = "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0"
CONNECTOR_COMMENT = (
    "spark-token-provider-kafka-0-10 is pinned to 4.0.0 for every release of Spark: later ones are not published where "
    "Maven artifacts are commonly mirrored, and the eleven references that the connectors 4.0.0, 4.1.3 and 4.2.0 make "
    "into it are identical. "
)
CONNECTORS = {
    "4.2.0": ("3.9.2", "2.12.1", "The POM asks for commons-pool2 2.13.1; 2.12.1 is the one that was run end to end."),
    "4.1.3": ("3.9.1", "2.12.1", "kafka-clients and commons-pool2 are the ones of the POM."),
    "4.0.0": ("3.9.0", "2.12.0", "kafka-clients and commons-pool2 are the ones of the POM."),
}
DELTA_COMMENT = (
    "Delta Lake's sink for Spark 4.2, with the jars that it needs beyond Spark's own and no more: for the sinks "
    "delta_table, delta_foreach and delta_bare."
)
DELTA, JDBC = (literals(find_sink(sink))["JARS"] for sink in ("delta_table", "jdbc_append"))


def main() -> None:
    groups = {
        "broker": group(BROKER_COMMENT, resolved(BROKER)),
        "byteman": group("The agent that stops a JVM at a phase.", BYTEMAN),
    }
    for spark, (clients, pool, note) in CONNECTORS.items():
        coordinates = (
            f"org.apache.spark:spark-sql-kafka-0-10_2.13:{spark}",
            TOKEN_PROVIDER,
            f"org.apache.kafka:kafka-clients:{clients}",
            f"org.apache.commons:commons-pool2:{pool}",
        )
        groups[f"spark-{spark}"] = group(CONNECTOR_COMMENT + note, coordinates)
    groups["delta"] = group(DELTA_COMMENT, DELTA)
    groups["jdbc"] = group("The JDBC driver of Postgres, for the sink jdbc_append.", JDBC)
    LOCK.write_text(json.dumps({"repository": CENTRAL, "groups": groups}, indent=1) + "\n", encoding="utf-8")


def group(comment: str, coordinates: tuple[str, ...]) -> dict[str, object]:
    return {"comment": comment, "jars": [measured(each) for each in coordinates]}


def measured(coordinates: str) -> dict[str, object]:
    organisation, artifact, version = coordinates.split(":")
    with urlopen(f"{CENTRAL}/{organisation.replace('.', '/')}/{artifact}/{version}/{artifact}-{version}.jar") as answer:
        content = answer.read()
    return {"jar": coordinates, "sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}


def resolved(coordinates: tuple[str, ...]) -> tuple[str, ...]:
    """The run-time class path of these artifacts as Maven computes it, in its order."""
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>".format(
            *each.split(":")
        )
        for each in coordinates
    )
    with tempfile.TemporaryDirectory() as scratch:
        Path(scratch, "pom.xml").write_text(
            "<project><modelVersion>4.0.0</modelVersion><groupId>lock</groupId><artifactId>lock</artifactId>"
            f"<version>1</version><dependencies>{dependencies}</dependencies></project>"
        )
        listing = subprocess.run(
            ["mvn", "-q", "-B", "dependency:list", "-DincludeScope=runtime", "-DoutputFile=list.txt"],
            cwd=scratch,
            check=True,
        )
        assert listing.returncode == 0
        text = Path(scratch, "list.txt").read_text()
    found = re.findall(r"^\s+([\w.-]+):([\w.-]+):jar:([\w.-]+):(?:compile|runtime)", text, re.MULTILINE)
    return tuple(":".join(each) for each in found)


if __name__ == "__main__":
    main()
