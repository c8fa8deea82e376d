"""Notes of a verdict: what was seen and should be known, though it breaks nothing that the sink claims."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from .checkers.torn import torn_batches
from .journal import beginnings
from .model import Evidence, Glimpse
from .successors import kept_out, refused, went_on_early
from .traces import Struck, Traces

SAFE = 0.5
"""So much of a transaction's timeout may pass until a recovery has committed it."""


def notes(evidence: Evidence) -> list[str]:
    """One sentence each."""
    found = (_torn, _failed, _hidden, _slow, _timed_out, _cut_anew, _kept_out, _refused, _early, _stayed)
    return [note for notes_of in found for note in notes_of(evidence)]


def _torn(evidence: Evidence) -> list[str]:
    if evidence.atomic:
        return []
    return [f"{torn}: the sink does not claim otherwise (ATOMIC)" for torn in torn_batches(evidence)]


def _failed(evidence: Evidence) -> list[str]:
    failed = [glimpse for glimpse in evidence.glimpses if glimpse.error is not None]
    if not failed:
        return []
    return [f"{len(failed)} readings while the job was under way failed; the last one: {failed[-1].error}"]


def _hidden(evidence: Evidence) -> list[str]:
    """Rows that lie in the target and that the sink's read does not give. A key is a right way to hide them."""
    read = [reading.rows.num_rows for reading in evidence.readings if reading.rows is not None]
    lying = sum(evidence.raw.values())
    if not read or lying <= read[-1]:
        return []
    where = ", ".join(f"{place} {rows}" for place, rows in evidence.raw.items() if rows)
    return [f"read() hides {lying - read[-1]} of {lying} rows (in the target lie: {where})"]


def _slow(evidence: Evidence) -> list[str]:
    """Transactions that a dead driver left, and that were nearer to their timeout than the recovery can be sure of."""
    timeouts = {
        transaction.timeout
        for glimpse in evidence.glimpses
        for transaction in glimpse.opened
        if transaction.timeout and transaction.age
        if (waited := _until_committed(glimpse, evidence)) is not None
        if transaction.age + waited > SAFE * transaction.timeout
    }
    return [
        f"a transaction was open for more than half of its timeout ({seconds:g} s) until the recovered job had "
        "committed its batch: if it takes longer, the service aborts what the sink may have decided to commit"
        for seconds in sorted(timeouts)
    ]


def _timed_out(evidence: Evidence) -> list[str]:
    """Transactions that nobody ended, for which readers have to wait after a crash."""
    timeouts = {one.timeout for one in evidence.settlement.timed_out if one.timeout}
    return [
        f"a transaction that no attempt ended held readers up until its timeout ({seconds:g} s) was over"
        for seconds in sorted(timeouts)
    ]


def _until_committed(glimpse: Glimpse, evidence: Evidence) -> float | None:
    """Seconds from a reading until the engine recorded the batch as done that had been handed over by then."""
    events = evidence.journal[glimpse.event_index :]
    for event in events[1:]:
        if _commits(event, glimpse.handed_over):
            return float(event["t"]) - float(events[0]["t"])
    return None


def _commits(event: Mapping[str, Any], batch: int | None) -> bool:
    point = (event.get("phase"), event.get("edge"), event.get("batch"))
    return event["event"] == "point" and point == ("batch.commit", "after", batch)


def _cut_anew(evidence: Evidence) -> list[str]:
    """Batches that were run again with other input, which only asynchronous progress tracking reports."""
    return [
        f"batch {batch} was run again with other boundaries: its input began at {', then at '.join(found)}"
        for batch, begins in beginnings(evidence.journal).items()
        if len(found := [_partitions(begin) for begin in begins]) > 1
    ]


def _kept_out(evidence: Evidence) -> list[str]:
    """Sinks that let one driver in at a time."""
    return [
        f"the sink let no other driver in while one stood still for {one:g} s, until that went on: what it does in a "
        "longer pause is not known"
        for one in _longest(kept_out, evidence)
    ]


def _refused(evidence: Evidence) -> list[str]:
    """Sinks that do not even let it wait."""
    return [
        "the sink refused the driver that was to take the place of one that stood still, which then went on: two at a "
        "time were not seen"
        for _ in _longest(refused, evidence)[:1]
    ]


def _early(evidence: Evidence) -> list[str]:
    """Pauses that were over before the point for which the paused driver was to wait."""
    return [
        f"a driver that stood still went on after {one:g} s, before the other one had got as far as the plan says, "
        "which waited for it or took longer: what the two do in a longer pause is not known"
        for one in _longest(went_on_early, evidence)
    ]


def _longest(stood_still: Callable[[Struck], bool], evidence: Evidence) -> list[float]:
    """The limits, in seconds, of the pauses of which this holds."""
    traces = (Traces(number, fault, evidence) for number, fault in enumerate(evidence.faults))
    fired = [Struck(one, action) for one in traces if one.fired for action in one.effective]
    return sorted({float(struck.action.arguments["longest"]) for struck in fired if stood_still(struck)})


def _stayed(evidence: Evidence) -> list[str]:
    """A driver that had nothing left to do did not end by itself."""
    stayed = [event for event in evidence.journal if event["event"] == "driver.stayed"]
    return [
        f"a driver had to be ended: its query had ended with all input committed, and {event['seconds']:g} s later "
        "(--deadline) its process had not (does it have a thread that is no daemon?)"
        for event in stayed[:1]
    ]


def _partitions(offsets: str) -> str:
    """``0:694, 1:694`` of the JSON of Spark's KafkaSourceOffset."""
    found = [f"{number}:{offset}" for topic in json.loads(offsets).values() for number, offset in topic.items()]
    return "offsets " + ", ".join(found) if found else "the start"
