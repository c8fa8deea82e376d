"""A Kafka topic of the trial's own, with as many partitions as the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from ...assertions import Open, rows_of_json
from ...faults.protocols import Address
from ..kafka_topics import create_topics, delete_topics, read_topic, stable
from ..kafka_transactions import abort_transaction, open_transactions
from ._declaration import SIDES, Endpoint, Fields, Location, Target

READ = 30.0
"""Seconds to count the records."""


def topic(location: Location) -> str:
    return f"{location.name}_out"


def create(location: Location) -> Fields:
    """``kafka`` and ``topic``: bootstrap servers and the topic's name."""
    create_topics(location.address("kafka"), {topic(location): location.partitions}, location.copies)
    return {side: {"kafka": location.address("kafka", side), "topic": topic(location)} for side in SIDES}


def read(location: Location, schema: pa.Schema, seconds: float) -> pa.Table:
    """The topic's values, which are JSON objects: committed records only."""
    return rows_of_json(read_topic(location.address("kafka"), topic(location), "read_committed", seconds), schema)


def raw(location: Location, column: str) -> Mapping[str, int]:
    """Committed records of the topic."""
    return {"topic": len(read_topic(location.address("kafka"), topic(location), "read_committed", READ))}


def unsettled(location: Location) -> list[str]:
    """Whether a read_committed reader cannot reach the topic's end."""
    if stable(location.address("kafka"), topic(location)):
        return []
    return [f"the last stable offset of {topic(location)} is below its end"]


def opened(location: Location) -> list[Open]:
    """Transactions that hold records of the topic back."""
    return open_transactions(location.address("kafka"), [topic(location)])


def abort(location: Location, transaction: Open) -> None:
    abort_transaction(location.address("kafka"), transaction)


def drop(location: Location) -> None:
    delete_topics(location.address("kafka"), [topic(location)])


def endpoint(bootstrap: str) -> list[Address]:
    servers = [server.strip().rpartition(":") for server in bootstrap.split(",")]
    return [(host, int(port)) for host, _, port in servers]


def moved(bootstrap: str, to: Sequence[Address]) -> str:
    return ",".join(f"{host}:{port}" for host, port in to)


TARGET = Target(
    create=create,
    fields=("kafka", "topic"),
    service="kafka",
    read=read,
    raw=raw,
    unsettled=unsettled,
    open=opened,
    abort=abort,
    drop=drop,
    endpoint=Endpoint(endpoint, moved),
)
