"""After the job's end: wait until nothing can change any more what a reader sees, then read it twice.

A late duplicate must not escape, so a trial never stops at "enough rows".
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from ...assertions import Open, Reading, RowError, Settlement, to_table, truth_schema
from ...faults import takes_service_away
from ..environments.base import Environment
from ..errors import ObservationError, SinkError, one_line
from ..sink_process import SinkProcess
from .arrange import Resources
from .journal import Journal
from .processed import Processed
from .spec import TrialSpec

APART = 0.3
"""Seconds between the two readings."""

POLL = 0.05

READ = 30.0
"""Seconds for a reading of a sink that leaves it to its target."""

SESSION_SECONDS = 1.0
"""How long sessions may take to end behind the job's processes before the sink's own process is taken for theirs."""

CLIENT_SECONDS = 60.0
"""default.api.timeout.ms of Kafka's clients: so long may one that lost its broker take to find another."""

TRANSACTION_SECONDS = 60.0
"""transaction.timeout.ms of Kafka's producers: a transaction with no longer timeout is left to it."""

ABORT_SECONDS = 15.0
"""So much later it is aborted at the latest: coordinators look for such ones each ten seconds
(transaction.abort.timed.out.transaction.cleanup.interval.ms)."""


def settle_seconds(spec: TrialSpec) -> float:
    """How long quiet is waited for: longer where the plan takes a service away from its clients."""
    return spec.settle_deadline + (CLIENT_SECONDS if takes_service_away(spec.plan) else 0.0)


def seconds_left(opened: Sequence[Open]) -> float:
    """In which the service has aborted all of these; 0 if it is not known to, or takes longer than by default."""
    left = [
        one.timeout - one.age + ABORT_SECONDS
        for one in opened
        if one.age is not None and one.timeout is not None and one.timeout <= TRANSACTION_SECONDS
    ]
    return max(0.0, *left) if len(left) == len(opened) else 0.0


@dataclass(frozen=True)
class Settler:
    spec: TrialSpec
    environment: Environment
    resources: Resources
    sink_process: SinkProcess
    journal: Journal
    processed: Processed
    broken: Sequence[str] = ()

    def settle(self, finished: bool) -> Settlement:
        """Wait for quiet until the deadline; abort what is still open then, and say so.

        A job that was given up is not waited for to commit its input. If nothing but transactions that their service
        aborts soon is left at the deadline, that is waited for.
        """
        begun = time.monotonic()
        end = begun + settle_seconds(self.spec)
        late: Sequence[Open] = ()
        while True:
            unmet, opened = self._look(finished, time.monotonic() - begun)
            if not unmet and not opened:
                break
            if time.monotonic() > end:
                more = 0.0 if unmet or late else seconds_left(opened)
                if not more:
                    break
                late, end = opened, end + more
            threading.Event().wait(POLL)
        names = {item.name for item in opened}
        settlement = Settlement(
            input_committed=self._input_committed(unmet),
            unmet=(*unmet, *self.broken),
            hanging=tuple(map(self._aborted, opened)),
            timed_out=tuple(item for item in late if item.name not in names),
        )
        self.journal.record(
            "settle",
            {
                "input_committed": settlement.input_committed,
                "unmet": list(settlement.unmet),
                "hanging": [f"{item.kind} {item.name} {item.state}" for item in settlement.hanging],
                "timed_out": [f"{item.kind} {item.name}" for item in settlement.timed_out],
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
        """Rows as they lie in the targets, by their place. Raises ObservationError."""
        column = self.spec.job.expectation(self.spec.sink).identity[0]
        return self.resources.targets.raw(column, self._read_by_sink)

    def unsettled(self) -> list[str]:
        """Why readers do not get all that was written, one sentence each. Raises ObservationError."""
        return self.resources.targets.unsettled()

    def open(self, settled: bool) -> list[Open]:
        """Open transactions; see :meth:`.targets.Targets.open`. Raises ObservationError."""
        return self.resources.targets.open(settled)

    def _look(self, finished: bool, waited: float) -> tuple[list[str], list[Open]]:
        """What is not quiet yet, and what is open. A service that does not answer may do so later."""
        try:
            unmet = self._unmet(finished)  # first: what a process does before it ends has to be seen below
            sessions = self.resources.targets.sessions()
            unsettled, opened = self.resources.targets.outstanding()
            unmet += unsettled + sessions
            if sessions and unmet == sessions and waited > SESSION_SECONDS:
                # The job is gone: they may be connections that prepare or read keeps open under a name of its own.
                self.sink_process.close()
            return unmet, opened
        except ObservationError as error:
            return [f"a service did not answer: {one_line(error)}"], []

    def _input_committed(self, unmet: list[str]) -> bool:
        try:
            return self.processed.all()
        except ObservationError as error:
            unmet.append(f"the source's end is not known: {one_line(error)}")
            return False

    def _unmet(self, finished: bool) -> list[str]:
        unmet = []
        if finished and not self.processed.all():
            unmet.append("the job ended with exit code 0, but its checkpoint has not committed the source's end")
        unmet += [
            f"process {process} of the job still runs"
            for process in self.environment.job_processes(self.resources.name)
        ]
        return unmet

    def _aborted(self, item: Open) -> Open:
        """``item`` once it is aborted; with the reason, if it cannot be."""
        try:
            self.resources.targets.abort(item)
        except ObservationError as error:
            detail = f"it could not be aborted: {one_line(error)}"
            return replace(item, detail=f"{item.detail}; {detail}" if item.detail else detail)
        return item

    def _reading(self, number: int) -> Reading:
        try:
            reading = Reading(self.rows())
        except (SinkError, RowError, ObservationError) as error:
            reading = Reading(None, one_line(error))
        rows = None if reading.rows is None else reading.rows.num_rows
        fields = {"number": number, "at": "the end", "rows": rows, "error": reading.error}
        self.journal.record("reading", fields)
        return reading

    def rows(self, deadline: float | None = None) -> pa.Table:
        """What a reader sees now. ``deadline`` in seconds, if it is to be shorter than for other calls of the sink.

        Raises SinkError, RowError, ObservationError.
        """
        if not self._read_by_sink:
            return self.resources.targets.read(self._schema, deadline or READ)
        return to_table(self.sink_process.read(self.resources.namespace("harness"), deadline), self._schema)

    @property
    def _read_by_sink(self) -> bool:
        return "read" in self.spec.sink.functions

    @cached_property
    def _schema(self) -> pa.Schema:
        """The columns that must come out."""
        return truth_schema(self.spec.job.expectation(self.spec.sink))
