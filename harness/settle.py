"""After the job's end: wait until nothing can change any more what a reader sees, then read it twice.

A late duplicate must not escape, so a trial never stops at "enough rows".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ..assertions import Open, Reading, RowError, Settlement, kafka, postgres, rows_of_json, to_table
from .environments.base import Environment
from .errors import SinkError
from .journal import Journal
from .sinks import SinkProcess
from .site import Site, input_committed
from .spec import TrialSpec

APART = 0.3
"""Seconds between the two readings."""

POLL = 0.05


CLIENT_SECONDS = 60.0
"""default.api.timeout.ms of Kafka's clients: so long may one that lost its broker take to find another."""


def settle_seconds(spec: TrialSpec) -> float:
    """How long quiet is waited for: longer where the plan takes brokers away from their clients."""
    actions = [action for fault in spec.plan.faults for action in fault.actions]
    lost = any(action.target == "broker" or action.name == "partition" for action in actions)
    return spec.settle_deadline + (CLIENT_SECONDS if lost else 0.0)


@dataclass(frozen=True)
class Settler:
    spec: TrialSpec
    environment: Environment
    site: Site
    sink_process: SinkProcess
    journal: Journal
    broken: Sequence[str] = ()

    def settle(self, finished: bool) -> Settlement:
        """Wait for quiet until the deadline; abort what is still open then, and say so.

        A job that was given up is not waited for to commit its input.
        """
        end = time.monotonic() + settle_seconds(self.spec)
        while True:
            unmet = self._unmet(finished)
            opened = self._open()
            if not unmet and not opened:
                break
            if time.monotonic() > end:
                break
            threading.Event().wait(POLL)
        for item in opened:
            self._abort(item)
        settlement = Settlement(input_committed(self.site), tuple(unmet) + tuple(self.broken), tuple(opened))
        self.journal.record(
            "settle",
            {
                "input_committed": settlement.input_committed,
                "unmet": list(settlement.unmet),
                "hanging": [f"{item.kind} {item.name} {item.state}" for item in opened],
            },
        )
        return settlement

    def read(self) -> list[Reading]:
        """Two readings some time apart."""
        first = self._reading(1)
        threading.Event().wait(APART)
        return [first, self._reading(2)]

    def _unmet(self, finished: bool) -> list[str]:
        unmet = []
        if finished and not input_committed(self.site):
            unmet.append("the job ended with exit code 0, but its checkpoint has not committed the source's end")
        unmet += [
            f"process {process} of the job still runs" for process in self.environment.job_processes(self.site.name)
        ]
        if self.site.database and self.site.postgres:
            sessions = postgres.sessions(self.site.postgres, self.site.database)
            unmet += [f"{session} is still open in the database" for session in sessions]
        unmet += [] if self._open_kafka() else self._unstable()
        return unmet

    def _unstable(self) -> list[str]:
        return [
            f"the last stable offset of {topic} is below its end"
            for topic in self.site.topics
            if not kafka.stable(self.site.kafka, topic)
        ]

    def _open(self) -> list[Open]:
        found = self._open_kafka()
        if self.site.database and self.site.postgres:
            found += postgres.prepared_transactions(self.site.postgres, self.site.database)
        return found

    def _open_kafka(self) -> list[Open]:
        return kafka.open_transactions(self.site.kafka, self.site.topics) if self.site.topics else []

    def _abort(self, item: Open) -> None:
        if item.kind == "kafka":
            kafka.abort_transaction(self.site.kafka, item)
        elif self.site.postgres:
            postgres.rollback_prepared(self.site.postgres, str(self.site.database), item.name)

    def _reading(self, number: int) -> Reading:
        try:
            reading = Reading(self._rows())
        except (SinkError, RowError) as error:
            reading = Reading(None, str(error))
        rows = None if reading.rows is None else reading.rows.num_rows
        self.journal.record("reading", {"number": number, "rows": rows, "error": reading.error})
        return reading

    def _rows(self) -> pa.Table:
        if "read" in self.spec.sink.functions:
            return to_table(self.sink_process.read(self.site.targets["harness"]))
        assert self.site.topic is not None
        return rows_of_json(kafka.read_topic(self.site.kafka, self.site.topic, "read_committed"))
