"""After the job's end: wait until nothing can change any more what a reader sees, then read it twice.

A late duplicate must not escape, so a trial never stops at "enough rows".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import psycopg
import pyarrow as pa

from ...assertions import Open, Reading, RowError, Settlement, kafka, postgres, rows_of_json, to_table, truth_schema
from ...faults import action_named
from ..environments.base import Environment
from ..errors import SinkError
from ..sinks import APPLICATION, SinkProcess
from .arrange import Resources, input_committed
from .journal import Journal
from .spec import TrialSpec

APART = 0.3
"""Seconds between the two readings."""

POLL = 0.05

READ = 30.0
"""Seconds to read a topic."""
SESSION_SECONDS = 1.0
"""How long sessions may take to end behind the job's processes before the sink's own process is taken for theirs."""


CLIENT_SECONDS = 60.0
"""default.api.timeout.ms of Kafka's clients: so long may one that lost its broker take to find another."""


def settle_seconds(spec: TrialSpec) -> float:
    """How long quiet is waited for: longer where the plan takes brokers away from their clients."""
    actions = [action for fault in spec.plan.faults for action in fault.actions]
    lost = any(action.target in action_named(action.name).takes_broker_away for action in actions)
    return spec.settle_deadline + (CLIENT_SECONDS if lost else 0.0)


def one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


@dataclass(frozen=True)
class Settler:
    spec: TrialSpec
    environment: Environment
    resources: Resources
    sink_process: SinkProcess
    journal: Journal
    broken: Sequence[str] = ()

    def settle(self, finished: bool) -> Settlement:
        """Wait for quiet until the deadline; abort what is still open then, and say so.

        A job that was given up is not waited for to commit its input.
        """
        begun = time.monotonic()
        end = begun + settle_seconds(self.spec)
        while True:
            unmet, opened = self._look(finished, time.monotonic() - begun)
            if not unmet and not opened:
                break
            if time.monotonic() > end:
                break
            threading.Event().wait(POLL)
        opened = [self._aborted(item) for item in opened]
        settlement = Settlement(self._input_committed(unmet), tuple(unmet) + tuple(self.broken), tuple(opened))
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
        """Two readings some time apart, once the target has had the time that its sink says it needs (SETTLE)."""
        threading.Event().wait(self.spec.sink.settle)
        first = self._reading(1)
        threading.Event().wait(APART)
        return [first, self._reading(2)]

    def raw(self) -> dict[str, int]:
        """Rows as they lie in the trial's database (tables with the key's first column) and, of a sink that reads them
        itself, records of its topic. Raises ObservationError, psycopg.Error."""
        found: dict[str, int] = {}
        if self.resources.database and self.resources.postgres:
            column = self.spec.job.expectation(self.spec.sink).identity[0]
            counted = postgres.count_rows(self.resources.postgres, self.resources.database, column)
            found |= {f"table {name}": rows for name, rows in counted.items()}
        if self.resources.topic and "read" in self.spec.sink.functions:
            records = kafka.read_topic(self.resources.kafka, self.resources.topic, "read_committed", READ)
            found["topic"] = len(records)
        return found

    def _look(self, finished: bool, waited: float) -> tuple[list[str], list[Open]]:
        """What is not quiet yet, and what is open. A service that does not answer may do so later."""
        try:
            sessions = self._sessions()
            unmet = self._unmet(finished) + sessions
            if sessions and unmet == sessions and waited > SESSION_SECONDS:
                # The job is gone: they may be connections that prepare or read keeps open under a name of its own.
                self.sink_process.close()
            return unmet, self._open()
        except (kafka.ObservationError, psycopg.Error) as error:
            return [f"a service did not answer: {one_line(error)}"], []

    def _input_committed(self, unmet: list[str]) -> bool:
        try:
            return input_committed(self.resources)
        except kafka.ObservationError as error:
            unmet.append(f"the source's end is not known: {one_line(error)}")
            return False

    def _unmet(self, finished: bool) -> list[str]:
        unmet = []
        if finished and not input_committed(self.resources):
            unmet.append("the job ended with exit code 0, but its checkpoint has not committed the source's end")
        unmet += [
            f"process {process} of the job still runs"
            for process in self.environment.job_processes(self.resources.name)
        ]
        unmet += [] if self.open_in_kafka() else self.unstable()
        return unmet

    def _sessions(self) -> list[str]:
        """Sessions in the trial's database that are not known to be of the sink's prepare and read."""
        if not self.resources.database or not self.resources.postgres:
            return []
        found = postgres.sessions(self.resources.postgres, self.resources.database, besides=APPLICATION)
        return [f"{session} is still open in the database" for session in found]

    def unstable(self) -> list[str]:
        """The trial's topics whose end a read_committed reader cannot reach, one sentence each."""
        return [
            f"the last stable offset of {topic} is below its end"
            for topic in self.resources.topics
            if not kafka.stable(self.resources.kafka, topic)
        ]

    def _open(self) -> list[Open]:
        return self.open_in_kafka() + self.prepared()

    def prepared(self) -> list[Open]:
        """Prepared transactions of the trial's database."""
        if not (self.resources.database and self.resources.postgres):
            return []
        return postgres.prepared_transactions(self.resources.postgres, self.resources.database)

    def open_in_kafka(self) -> list[Open]:
        """Open transactions that hold records of the trial's topics back."""
        return kafka.open_transactions(self.resources.kafka, self.resources.topics) if self.resources.topics else []

    def _aborted(self, item: Open) -> Open:
        """``item`` once it is aborted; with the reason, if it cannot be."""
        try:
            self._abort(item)
        except (kafka.ObservationError, psycopg.Error) as error:
            detail = f"it could not be aborted: {one_line(error)}"
            return replace(item, detail=f"{item.detail}; {detail}" if item.detail else detail)
        return item

    def _abort(self, item: Open) -> None:
        if item.kind == "kafka":
            kafka.abort_transaction(self.resources.kafka, item)
        elif self.resources.postgres:
            postgres.rollback_prepared(self.resources.postgres, str(self.resources.database), item.name)

    def _reading(self, number: int) -> Reading:
        try:
            reading = Reading(self.rows())
        except (SinkError, RowError, kafka.ObservationError, psycopg.Error) as error:
            reading = Reading(None, one_line(error))
        rows = None if reading.rows is None else reading.rows.num_rows
        fields = {"number": number, "at": "the end", "rows": rows, "error": reading.error}
        self.journal.record("reading", fields)
        return reading

    def rows(self, deadline: float | None = None) -> pa.Table:
        """What a reader sees now. ``deadline`` in seconds, if it is to be shorter than for other calls of the sink.

        Raises SinkError, RowError, ObservationError.
        """
        if "read" in self.spec.sink.functions:
            return to_table(self.sink_process.read(self.resources.targets["harness"], deadline), self._schema)
        assert self.resources.topic is not None
        records = kafka.read_topic(self.resources.kafka, self.resources.topic, "read_committed", deadline or READ)
        return rows_of_json(records, self._schema)

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns that must come out."""
        return truth_schema(self.spec.job.expectation(self.spec.sink))
