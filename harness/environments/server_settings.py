"""What servers have in common on this machine and in an image: storage and settings of brokers, options of PostgreSQL.

Standard library only and without relative imports: a copy of this file lies next to role.py in the image.
"""

from __future__ import annotations

import base64
import re
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path


def copy_storage(formatted: Path, data: Path, node: int) -> None:
    """Copy the formatted storage of one node to ``data`` for another, which spares it the JVM that formats."""
    shutil.copytree(formatted, data)
    meta = data / "meta.properties"
    text = re.sub(r"(?m)^node\.id=.*$", f"node.id={node}", meta.read_text(encoding="utf-8"))
    meta.write_text(re.sub(r"(?m)^directory\.id=.*$", f"directory.id={random_id()}", text), encoding="utf-8")


def random_id() -> str:
    """A Uuid as Kafka writes it (org.apache.kafka.common.Uuid): 16 bytes, URL-safe base64, no dash in front."""
    return base64.urlsafe_b64encode(b"\x01" + secrets.token_bytes(15)).rstrip(b"=").decode()


def replication(brokers: int) -> dict[str, int]:
    """The settings that follow from the number of brokers: a copy on each, and all but one of them in sync."""
    in_sync = max(1, brokers - 1)
    return {
        "default.replication.factor": brokers,
        "min.insync.replicas": in_sync,
        "offsets.topic.replication.factor": brokers,
        "transaction.state.log.replication.factor": brokers,
        "transaction.state.log.min.isr": in_sync,
        "share.coordinator.state.topic.replication.factor": brokers,
        "share.coordinator.state.topic.min.isr": in_sync,
    }


def properties(common: Path, settings: dict[str, object]) -> str:
    """The text of a ``server.properties``: what brokers have in common, and this one's own."""
    return common.read_text(encoding="utf-8") + "".join(f"{name}={value}\n" for name, value in settings.items())


def postgres_options(common: Path, own: Sequence[str]) -> list[str]:
    """The words behind ``postgres -D DATA``: each ``NAME=VALUE`` of this server's own and of the common file."""
    lines = common.read_text(encoding="utf-8").splitlines()
    return [word for line in (*own, *lines) if not line.startswith("#") for word in ("-c", line)]
