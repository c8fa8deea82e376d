"""How far a query has processed its source, and in which batches.

The checkpoint says so, for each kind of query in its own way. A micro-batch ends where the topic did when it was
planned. A query whose tasks read without an end is as far as the last row that it got: what lies behind that, the marks
of transactions, it does not see. With asynchronous progress tracking the logs lag behind and leave batches out: there
each batch reports its input when it begins (``batch.input``), in the JSON of Spark's KafkaSourceOffset.

A job whose checkpoint has no offsets of Kafka reads the topic in its own way: it is through when it ends by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa

from ...assertions import Workload, input_table
from ...faults import Execution
from ..kafka_topics import end_offsets
from . import checkpoint
from .arrange import Resources
from .journal import Journal

Ends = dict[int, int]
"""An offset for each partition."""

Batches = dict[int, dict[int, tuple[int, int]]]
"""For each batch the first and the end offset of each partition."""


@dataclass(frozen=True)
class Processed:
    """``execution``: how Spark runs the query. ``acks`` gives the acknowledgements of the whole workload."""

    resources: Resources
    journal: Journal
    execution: Execution
    workload: Workload
    acks: Callable[[], pa.Table]

    def all(self) -> bool:
        """Whether the query is through with its source. Raises ObservationError."""
        if self.execution == "async progress" and self._written() == self._ends():
            return True
        committed = checkpoint.committed(self.resources.checkpoint)
        if not committed:
            return False
        reached = checkpoint.end_offsets(self.resources.checkpoint, committed[-1])
        if self.execution in ("micro-batch", "async progress"):
            return not reached or reached == self._ends()
        return all(reached.get(partition, 0) >= end for partition, end in self._last_rows.items())

    def batches(self) -> Batches:
        """Those that the query has planned: where input was planned again in other batches, as it was last."""
        if self.execution != "async progress":
            return checkpoint.batches(self.resources.checkpoint)
        return {
            batch: {partition: (begin.get(partition, 0), until) for partition, until in end.items()}
            for batch, (begin, end) in sorted(_inputs(self.journal.events("point")).items())
        }

    def _written(self) -> Ends | None:
        """Where the batch ends that the newest driver has last written to the sink."""
        points = self.journal.events("point")
        started = [place for place, event in enumerate(points) if event["phase"] == "query.start"]
        points = points[started[-1] if started else 0 :]
        written = [event["batch"] for event in points if (event["phase"], event.get("edge")) == ("sink.write", "after")]
        inputs = _inputs(points)
        return inputs[written[-1]][1] if written and written[-1] in inputs else None

    def _ends(self) -> Ends:
        return end_offsets(self.resources.kafka, self.resources.source)

    @cached_property
    def _last_rows(self) -> Ends:
        """Behind the last row of each partition that a reader of committed transactions gets."""
        rows = input_table(self.workload, self.acks(), {}).group_by("partition").aggregate([("source_offset", "max")])
        return {row["partition"]: row["source_offset_max"] + 1 for row in rows.to_pylist()}


def _inputs(points: Sequence[Mapping[str, Any]]) -> dict[int, tuple[Ends, Ends]]:
    """Where the input of each batch begins and ends, by its last report; one whose input another batch got later is
    left out."""
    found: dict[int, tuple[Ends, Ends]] = {}
    for event in (event for event in points if event["phase"] == "batch.input"):
        begin = _offsets(event["begin"])
        found = {batch: its for batch, its in found.items() if not _behind(its[1], begin)}
        found[event["batch"]] = begin, _offsets(event["end"])
    return found


def _behind(end: Ends, begin: Ends) -> bool:
    """Whether a batch that ends there has input of another one that begins here."""
    return any(offset > begin.get(partition, 0) for partition, offset in end.items())


def _offsets(text: str) -> Ends:
    """Of the one topic; nothing where a query has not begun to read."""
    return {int(number): offset for topic in json.loads(text).values() for number, offset in topic.items()}
