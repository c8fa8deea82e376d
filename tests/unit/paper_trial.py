"""Trials on paper: evidence made by hand, with the journal that a real trial would have left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pyarrow as pa
from onceproof.assertions import (
    Evidence,
    Expectation,
    FaultRecord,
    Guarantee,
    JobInput,
    Open,
    Reading,
    Settlement,
    Verdict,
    Workload,
    judge,
    planned,
    truth,
)
from onceproof.faults import parse
from onceproof.harness.trial.fault_records import fault_record

WORKLOAD = Workload(seed=3, partitions=3, batches=5, rows=30)
PASSTHROUGH = Expectation("SELECT * FROM input")
QUERY = "q"


@cache
def given() -> JobInput:
    return planned(WORKLOAD)


def stored_input() -> pa.Table:
    return given().input


@cache
def ground_truth(expectation: Expectation = PASSTHROUGH) -> pa.Table:
    return truth(expectation, given())


@cache
def acknowledgements() -> pa.Table:
    return WORKLOAD.planned_acks()


def ids_of(batch: int, committed: bool = True) -> list[int]:
    """Ids of the records of a batch, in the order of writing."""
    bounds = WORKLOAD.batch_bounds()[batch]
    return [
        ack["id"]
        for ack in acknowledgements().to_pylist()
        if ack["committed"] == committed and bounds[ack["partition"]][0] <= ack["offset"] < bounds[ack["partition"]][1]
    ]


def rows_with(ids: Iterable[int]) -> pa.Table:
    """The true rows of these ids, as often as each is named."""
    by_id = {row["id"]: row for row in ground_truth().to_pylist()}
    return pa.Table.from_pylist([by_id[one] for one in ids], schema=ground_truth().schema)


def everything_and(ids: Iterable[int]) -> pa.Table:
    return pa.concat_tables([ground_truth(), rows_with(ids)])


def everything_but(ids: Iterable[int]) -> pa.Table:
    without = set(ids)
    return rows_with(row["id"] for row in ground_truth().to_pylist() if row["id"] not in without)


def unknown_rows(rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Rows of one's own, further columns null."""
    return pa.Table.from_pylist(list(rows), schema=ground_truth().schema)


def changed(ids: Iterable[int], **values: Any) -> pa.Table:
    """Everything, but the rows of these ids have other values."""
    wanted = set(ids)
    rows = [row | (values if row["id"] in wanted else {}) for row in ground_truth().to_pylist()]
    return pa.Table.from_pylist(rows, schema=ground_truth().schema)


def offsets_digest(batch: int, content: str = "same") -> str:
    """The digest of offsets/N with this content."""
    return hashlib.sha256(f"{content}-{batch}".encode()).hexdigest()


def byte_equal(batch: int) -> str:
    """What a verdict says of offsets/N that a replay found as they were."""
    return f"offsets/{batch} byte-equal ({offsets_digest(batch)[:12]})"


@dataclass
class Paper:
    """Writes a journal line by line. Run r2 is made by process ``local:2``, and so on."""

    journal: list[dict[str, Any]] = field(default_factory=list)

    def add(self, event: str, **fields: Any) -> Paper:
        self.journal.append({"t": float(len(self.journal)), "event": event, **fields})
        return self

    def point(self, phase: str, edge: str | None, run: int, batch: int | None = None, **fields: Any) -> Paper:
        self.add("point", **report(phase, edge, run, batch, **fields))
        return self

    def start(self, run: int = 1) -> Paper:
        self.add("driver.started", incarnation=run, process=f"local:{run}")
        return self.point("query.start", "before", run)

    def planned(self, run: int, batch: int) -> Paper:
        return self.point("batch.offsets", "before", run, batch).point("batch.offsets", "after", run, batch)

    def hand_over(self, run: int, batch: int, offsets: str | None = "same") -> Paper:
        fields = {"offsets": offsets_digest(batch, offsets)} if offsets else {}
        return self.point("sink.write", "before", run, batch, **fields)

    def task(self, run: int, batch: int, attempt: int = 0, process: str | None = None, edge: str = "before") -> Paper:
        return self.point("task.commit", edge, run, batch, **task_of(attempt, process or f"local:{run}"))

    def finish(self, run: int, batch: int) -> Paper:
        return self.point("sink.write", "after", run, batch).point("batch.commit", "after", run, batch)

    def batches(self, run: int, *numbers: int) -> Paper:
        for number in numbers:
            self.hand_over(run, number).finish(run, number)
        return self

    def reached(self, fault: int = 0, **point: Any) -> Paper:
        return self.add("fault.reached", fault=fault, process=point.get("process"), point=point or None)

    def reached_last(self, fault: int = 0) -> Paper:
        last = {name: value for name, value in self.journal[-1].items() if name not in ("t", "event")}
        return self.reached(fault, **last)

    def fired(
        self, action: str = "kill(driver)", fault: int = 0, confirmed: bool = True, process: str = "local:1"
    ) -> Paper:
        number = sum(event["event"] == "fault.fired" and event["fault"] == fault for event in self.journal)
        self.add("fault.fired", fault=fault, number=number, action=action, process=process)
        return self.confirmed(action, fault, process) if confirmed else self

    def confirmed(self, action: str = "kill(driver)", fault: int = 0, process: str = "local:1") -> Paper:
        fired = [event for event in self.journal if event["event"] == "fault.fired" and event["fault"] == fault]
        number = next((event["number"] for event in reversed(fired) if event["action"] == action), 0)
        return self.add("fault.confirmed", fault=fault, number=number, action=action, process=process, detail="dead")

    def killed_here(self, action: str = "kill(driver)", fault: int = 0) -> Paper:
        """The fault is reached at the last report, and fires."""
        return self.reached_last(fault).fired(action, fault)

    def cut(self, target: str = "driver", peer: str | None = "broker2", process: str = "driver:1") -> Paper:
        return self.add("network.cut", target=target, process=process, peer=peer, detail="nothing passes")

    def healed(self, target: str = "driver", peer: str | None = "broker2", process: str = "driver:1") -> Paper:
        return self.add("network.healed", target=target, process=process, peer=peer, detail="it passes again")

    def exited(self, incarnation: int = 1, code: int = 0, planned: bool = False, error: str | None = None) -> Paper:
        return self.add("driver.exited", incarnation=incarnation, code=code, planned=planned, error=error)


def report(phase: str, edge: str | None, run: int, batch: int | None = None, **fields: Any) -> dict[str, Any]:
    known = {"phase": phase, "edge": edge, "run": f"r{run}", "query": QUERY, "process": f"local:{run}", "batch": batch}
    return {name: value for name, value in (known | fields).items() if value is not None}


def task_of(attempt: int, process: str) -> dict[str, Any]:
    return {"role": "executor", "partition": 0, "stage": 1, "attempt": attempt, "task": attempt, "process": process}


def healthy() -> Paper:
    return Paper().start().batches(1, 0, 1, 2, 3, 4).exited()


def killed_in_batch_1(phase: str = "sink.commit", edge: str | None = "after") -> Paper:
    """kill(driver) while batch 1 is with the sink; the restarted driver replays it and goes on."""
    paper = Paper().start().batches(1, 0).hand_over(1, 1).point(phase, edge, 1, 1).killed_here()
    return paper.exited(1, -9, planned=True).start(2).batches(2, 1, 2, 3, 4).exited(2)


PARTITION = "partition(driver, peer=broker2, for=20s)"


def cut_off_in_batch_1(confirmed: bool = True) -> Paper:
    """The driver is cut off from a broker while batch 1 is with the sink."""
    paper = Paper().start().batches(1, 0).hand_over(1, 1).reached_last().fired(PARTITION, confirmed=False).cut()
    return paper.confirmed(PARTITION) if confirmed else paper


@cache
def fault(text: str = "sink.commit:after[batch=1] -> kill(driver)") -> FaultRecord:
    """A fault as the harness hands it over."""
    [parsed] = parse(text).faults
    return fault_record(parsed)


LANDED = fault()


def evidence(
    rows: pa.Table | None = None,
    paper: Paper | None = None,
    *faults: FaultRecord,
    claim: str = "exactly-once",
    readings: Sequence[Reading] | None = None,
    input_committed: bool = True,
    unmet: Sequence[str] = (),
    hanging: Sequence[Open] = (),
    stuck: str | None = None,
    expectation: Expectation = PASSTHROUGH,
) -> Evidence:
    """A trial whose last two readings both saw ``rows`` (all that is true, if not given)."""
    seen = ground_truth(expectation) if rows is None else rows
    return Evidence(
        claim=Guarantee(claim),
        workload=WORKLOAD,
        expectation=expectation,
        given=given(),
        truth=ground_truth(expectation),
        acks=acknowledgements(),
        batches=WORKLOAD.batch_bounds(),
        journal=(paper or healthy()).journal,
        readings=[Reading(seen), Reading(seen)] if readings is None else readings,
        settlement=Settlement(input_committed, tuple(unmet), tuple(hanging)),
        faults=faults,
        stuck=stuck,
    )


def verdict(*arguments: Any, **named: Any) -> Verdict:
    return judge(evidence(*arguments, **named))
