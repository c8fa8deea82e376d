"""The verdict: fail outranks inconclusive outranks pass. docs/verdict.md describes it for users.

A trial *fails* if an anomaly that counts breaks the claim. It is *inconclusive* if it did not show what it set out to
show: a fault did not land, the target did not come to rest, a reading failed. Else it *passes*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from .checkers import find_anomalies
from .guarantees import guarantee_of, satisfies
from .journal import hand_overs, task_attempts
from .model import Anomaly, Evidence, FaultReport, Guarantee, Outcome, Verdict
from .notes import notes
from .relations import places
from .replay import examine
from .rows import same_rows

NEEDS_REST = frozenset({"lost", "stale", "withdrawn", "unreadable"})
"""Anomalies that may yet heal while something of the job is under way: they count only once it has come to rest."""

NEEDS_ENVIRONMENT = NEEDS_REST | {"stuck", "hanging"}
"""Anomalies that the environment may have caused, where a part of it failed by itself."""

MET = frozenset({"duplicated", "phantom", "corrupted"})
"""Anomalies that a reader met, whichever of the two readings had them."""


def judge(evidence: Evidence, only: Collection[int] | None = None) -> Verdict:
    """The verdict on a trial. The same evidence gives the same verdict, at any time and place.

    ``only``: the numbers of the faults that are judged; None: all of the plan.
    """
    observed = _observed(evidence)
    anomalies = _anomalies(evidence, observed)
    faults = [examine(number, evidence) for number in range(len(evidence.faults)) if only is None or number in only]
    unsettled = _unsettled(evidence)
    problems = [problem for _, problem in faults if problem] + _disobeyed(evidence) + unsettled
    problems += _nothing_to_lose(evidence) if only is None else []
    counting = [anomaly for anomaly in anomalies if _counts(anomaly.kind, evidence, unsettled)]
    guarantee = guarantee_of(anomaly.like or anomaly.kind for anomaly in counting)
    outcome = _outcome(guarantee, evidence.claim, problems)
    return Verdict(
        outcome=outcome,
        exactly_once=_outcome(guarantee, Guarantee.EXACTLY_ONCE, problems),
        guarantee=None if outcome is Outcome.INCONCLUSIVE else guarantee,
        claim=evidence.claim,
        reason=_reason(outcome, evidence, counting, problems, [report for report, _ in faults]),
        anomalies=counting,
        faults=[report for report, _ in faults],
        records=_records(evidence, observed),
        attempts=_attempts(evidence),
        notes=notes(evidence),
    )


def _anomalies(evidence: Evidence, observed: pa.Table) -> list[Anomaly]:
    """Those of the last reading, and what a reader met in the one before it."""
    found = {anomaly.kind: anomaly for anomaly in find_anomalies(evidence.truth, observed, evidence)}
    for reading in evidence.readings[-2:-1]:
        if reading.rows is not None and not same_rows(reading.rows, observed):
            earlier = find_anomalies(evidence.truth, reading.rows, evidence)
            met = [anomaly for anomaly in earlier if anomaly.kind in MET]
            found |= {one.kind: one for one in met if one.kind not in found or one.count > found[one.kind].count}
    return [found[kind] for kind in sorted(found)]


def _counts(kind: str, evidence: Evidence, unsettled: Sequence[str]) -> bool:
    if kind in NEEDS_ENVIRONMENT and evidence.broken:
        return False
    if kind == "unreadable":
        return unsettled == _unreadable(evidence)
    return not unsettled or kind not in NEEDS_REST


def _outcome(guarantee: Guarantee, claim: Guarantee, problems: Sequence[str]) -> Outcome:
    if not satisfies(guarantee, claim):
        return Outcome.FAIL
    return Outcome.INCONCLUSIVE if problems else Outcome.PASS


def _observed(evidence: Evidence) -> pa.Table:
    """The last reading that succeeded; no rows if none did."""
    for reading in reversed(evidence.readings):
        if reading.rows is not None:
            return reading.rows
    return evidence.truth.schema.empty_table()


def _unsettled(evidence: Evidence) -> list[str]:
    """Why what was read may not be what readers will see."""
    settlement, reasons = evidence.settlement, []
    if not settlement.input_committed and (evidence.stuck is None or evidence.broken):
        reasons.append("the job has not committed all its input")
    reasons += [f"not settled: {unmet}" for unmet in settlement.unmet]
    reasons += [f"failed by itself: {part}" for part in evidence.broken if part not in settlement.unmet]
    reasons += _unreadable(evidence)
    return reasons


def _nothing_to_lose(evidence: Evidence) -> list[str]:
    """A job of windows that was given one batch and then killed may never have closed any."""
    if evidence.truth.num_rows:
        return []
    return ["of what the job was given it had to hand over no row: nothing could be lost or duplicated"]


def _disobeyed(evidence: Evidence) -> list[str]:
    """What a probe could not do as the plan asked: then something else happened than what was planned."""
    errors = [str(event.get("error")) for event in evidence.journal if event["event"] == "probe.error"]
    return [f"a probe could not do as asked: {error}" for error in dict.fromkeys(errors)]


def _unreadable(evidence: Evidence) -> list[str]:
    errors = [reading.error or "no rows" for reading in evidence.readings if reading.rows is None]
    if errors:
        return [f"a reading failed: {errors[-1]}"]
    if len(evidence.readings) < 2:
        return [f"the target was read {len(evidence.readings)} times: two equal readings are needed"]
    one, other = evidence.readings[-2:]
    if one.rows is not None and other.rows is not None and not same_rows(one.rows, other.rows):
        counts = f"{one.rows.num_rows} and {other.rows.num_rows} rows"
        return [f"the target is not quiescent: its last two readings differ ({counts})"]
    return []


def _reason(
    outcome: Outcome,
    evidence: Evidence,
    counting: Sequence[Anomaly],
    problems: Sequence[str],
    faults: Sequence[FaultReport],
) -> str:
    if outcome is Outcome.INCONCLUSIVE:
        return "; ".join(problems) + _besides(counting)
    if outcome is Outcome.FAIL:
        causes = [cause for anomaly in counting for cause in anomaly.causes[:1]]
        broken = f"{evidence.claim.value} broken: {_listed(counting)}" + (f": {causes[0]}" if causes else "")
        return "; besides, ".join([broken, *problems])
    return f"{_landed(faults)}; {evidence.claim.value} held: {_kept(evidence, counting)}"


def _landed(faults: Sequence[FaultReport]) -> str:
    if not faults:
        return "no fault was planned"
    return "; ".join(
        f"{fault.text} landed"
        + (" and was swallowed by the sink or its client" if fault.swallowed else f": {fault.replay['seen']}")
        for fault in faults
    )


def _kept(evidence: Evidence, counting: Sequence[Anomaly]) -> str:
    rows = evidence.truth.num_rows
    return _listed(counting) if counting else f"each of {rows} rows was read once"


def _besides(counting: Sequence[Anomaly]) -> str:
    return f"; seen all the same: {_listed(counting)}" if counting else ""


def _listed(anomalies: Sequence[Anomaly]) -> str:
    """``72 lost (batch 1), 1 hanging``"""
    return ", ".join(f"{anomaly.count} {anomaly.kind}{_where(anomaly.batches)}" for anomaly in anomalies)


def _where(batches: Sequence[int]) -> str:
    if not batches:
        return ""
    return f" (batch{'es' if len(batches) > 1 else ''} {', '.join(map(str, batches))})"


def _records(evidence: Evidence, observed: pa.Table) -> dict[str, Any]:
    """Counts: rows of the ground truth, rows read, records written, those of aborted transactions, rows by batch."""
    committed = evidence.acks["committed"]
    return {
        "expected": evidence.truth.num_rows,
        "seen": observed.num_rows,
        "written": evidence.acks.num_rows,
        "aborted": evidence.acks.num_rows - (pc.sum(committed).as_py() or 0),
        "batch_sizes": _batch_sizes(evidence),
    }


def _batch_sizes(evidence: Evidence) -> dict[int, int]:
    located = places(evidence)
    visible = located.filter(located["committed"])["batch"]
    counted = {entry["values"]: entry["counts"] for entry in pc.value_counts(visible).to_pylist()}
    return {batch: counted.get(batch, 0) for batch in sorted(evidence.batches)}


def _attempts(evidence: Evidence) -> list[Mapping[str, Any]]:
    """Every hand-over of a batch, and every attempt of a task beyond its first."""
    handed = [
        {
            "batch": one.batch,
            "run": one.run,
            "process": one.process,
            "offsets": one.offsets,
            "written": one.written,
            "committed": one.committed,
        }
        for one in hand_overs(evidence.journal)
    ]
    tasks = [
        {"batch": one.batch, "partition": one.partition, "attempt": one.attempt, "process": one.process}
        for one in task_attempts(evidence.journal)
        if one.attempt > 0
    ]
    return [*handed, *tasks]
