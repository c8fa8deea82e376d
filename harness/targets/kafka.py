"""A Kafka topic of the trial's own, with as many partitions as the source."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from ...assertions import Open, rows_of_json
from ..kafka_topics import create_topics, read_topic, stable
from ..kafka_transactions import abort_transaction, open_transactions
from ._declaration import SIDES, Fields, Site, Target

READ = 30.0
"""Seconds to count the records."""


def topic(site: Site) -> str:
    return f"{site.name}_out"


def create(site: Site) -> Fields:
    """``kafka`` and ``topic``: bootstrap servers and the topic's name."""
    create_topics(site.address("kafka"), {topic(site): site.partitions})
    return {side: {"kafka": site.address("kafka", side), "topic": topic(site)} for side in SIDES}


def read(site: Site, schema: pa.Schema, seconds: float) -> pa.Table:
    """The topic's values, which are JSON objects: committed records only."""
    return rows_of_json(read_topic(site.address("kafka"), topic(site), "read_committed", seconds), schema)


def raw(site: Site, column: str) -> Mapping[str, int]:
    """Committed records of the topic."""
    return {"topic": len(read_topic(site.address("kafka"), topic(site), "read_committed", READ))}


def unsettled(site: Site) -> list[str]:
    """Whether a read_committed reader cannot reach the topic's end."""
    if stable(site.address("kafka"), topic(site)):
        return []
    return [f"the last stable offset of {topic(site)} is below its end"]


def opened(site: Site) -> list[Open]:
    """Transactions that hold records of the topic back."""
    return open_transactions(site.address("kafka"), [topic(site)])


def abort(site: Site, transaction: Open) -> None:
    abort_transaction(site.address("kafka"), transaction)


TARGET = Target(
    create=create,
    fields=("kafka", "topic"),
    service="kafka",
    read=read,
    raw=raw,
    unsettled=unsettled,
    open=opened,
    abort=abort,
)
