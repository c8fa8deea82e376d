"""A trial's own topics, database, checkpoint and directory."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg

from ...assertions import kafka, postgres
from ..environments.base import Environment, Side
from ..sinks import Sink
from . import checkpoint


@dataclass(frozen=True)
class Resources:
    """``targets`` holds the ``target`` that the sink's functions get, rendered for each side."""

    name: str
    source: str
    topic: str | None
    database: str | None
    checkpoint: Path
    targets: dict[Side, dict[str, Any]]
    kafka: str
    """Bootstrap servers for the harness."""
    postgres: str | None
    """Connection string of the superuser for the harness, on the maintenance database."""

    @property
    def topics(self) -> list[str]:
        """The target's topics."""
        return [self.topic] if self.topic else []


def input_committed(resources: Resources) -> bool:
    """Whether the job's checkpoint has committed the source up to its end."""
    committed = checkpoint.committed(resources.checkpoint)
    if not committed:
        return False
    return checkpoint.end_offsets(resources.checkpoint, committed[-1]) == kafka.end_offsets(
        resources.kafka, resources.source
    )


def remove(resources: Resources) -> None:
    """Remove the trial's database, with all that still holds it."""
    if resources.database and resources.postgres:
        postgres.drop_database(resources.postgres, resources.database)


def arrange(sink: Sink, partitions: int, environment: Environment) -> Resources:
    """Make what the trial needs, empty; :func:`remove` removes it."""
    name = f"t{secrets.token_hex(5)}"
    harness = environment.addresses("harness")
    assert harness.kafka is not None
    source, topic = f"{name}_in", f"{name}_out" if "kafka" in sink.services else None
    topics = {source: partitions} | ({topic: partitions} if topic else {})
    kafka.create_topics(harness.kafka, topics)
    shared = environment.shared_directory(name)
    place = shared / "checkpoint"
    directory = shared / "target"
    if "directory" in sink.services:
        directory.mkdir()
    database = name if "postgres" in sink.services else None
    if database:
        assert harness.postgres is not None
        postgres.create_database(harness.postgres, database)  # last: what comes before may fail
    return Resources(
        name=name,
        source=source,
        topic=topic,
        database=database,
        checkpoint=place,
        targets={side: _target(environment, side, sink, name, topic, place, directory) for side in ("job", "harness")},
        kafka=harness.kafka,
        postgres=harness.postgres,
    )


def _target(
    environment: Environment, side: Side, sink: Sink, name: str, topic: str | None, place: Path, directory: Path
) -> dict[str, Any]:
    addresses = environment.addresses(side)
    wanted = sink.services
    database = addresses.postgres and psycopg.conninfo.make_conninfo(addresses.postgres, dbname=name)
    return {
        "name": name,
        "kafka": addresses.kafka if "kafka" in wanted else None,
        "topic": topic,
        "postgres": database if "postgres" in wanted else None,
        "redis": addresses.redis if "redis" in wanted else None,
        "directory": str(directory) if "directory" in wanted else None,
        "checkpoint": str(place),
    }
