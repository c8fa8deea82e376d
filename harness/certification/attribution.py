"""What a packed run says of each of its plans: judged by what a reader saw around the batch at which the plan struck.

A plan is judged here only if nothing else can have caused what was seen: its own batch is committed, the reading after
that was taken before the next fault struck, nothing outside of the batch had changed since the reading before, and the
batch's rows are the same at the end. Any other plan runs again, alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from ...assertions import Evidence, Glimpse, Outcome, Reading, Verdict, judge, same_rows
from ...assertions.glimpses import truth_until
from ...assertions.sql import equal, select

KINDS_OF_THE_WHOLE_RUN = frozenset({"withdrawn", "torn", "unreadable"})
"""Anomalies that readings in between show: which plan caused them is not told apart here."""


@dataclass(frozen=True)
class Share:
    """The part of a run that belongs to one plan: the numbers of its faults in the run's plan, and its batch."""

    faults: frozenset[int]
    batch: int


@dataclass(frozen=True)
class Attributed:
    """The verdict on one plan of a packed run; ``unclear`` says why there is none."""

    verdict: Verdict | None
    unclear: str = ""


class _Unclear(Exception):
    """Why a plan cannot be judged by a run that it shared."""


def attribute(shares: Sequence[Share], evidence: Evidence, overall: Verdict) -> list[Attributed]:
    """One answer for each plan of a run. ``overall`` is the verdict on the whole run."""
    found = [_attribute(share, evidence, overall) for share in shares]
    if overall.exactly_once is not Outcome.FAIL or _explain(zip(shares, found, strict=True), overall):
        return found
    unclear = Attributed(None, f"the run as a whole shows what none of its plans explains: {overall.reason}")
    return [one if _has_failed(one) else unclear for one in found]


def _explain(found: Iterable[tuple[Share, Attributed]], overall: Verdict) -> bool:
    """Whether all that is not exactly-once of the run lies in the batches of plans of which that is seen."""
    batches = {share.batch for share, one in found if _has_failed(one)}
    return bool(batches) and all(one.batches and {*one.batches} <= batches for one in overall.anomalies)


def _has_failed(one: Attributed) -> bool:
    """As exactly-once, whatever is claimed: a certificate says what guarantee was observed."""
    return one.verdict is not None and one.verdict.exactly_once is Outcome.FAIL


def _attribute(share: Share, evidence: Evidence, overall: Verdict) -> Attributed:
    try:
        _require_rest(evidence, overall)
        before, after = _readings_around(share, evidence)
        verdict = _judged(share, _rows_of(share.batch, before, after, evidence), evidence)
    except _Unclear as reason:
        return Attributed(None, str(reason))
    if verdict.outcome is Outcome.INCONCLUSIVE:
        return Attributed(None, verdict.reason)
    return Attributed(verdict)


def _require_rest(evidence: Evidence, overall: Verdict) -> None:
    if evidence.stuck is not None:
        raise _Unclear(f"the run was stuck: {evidence.stuck}")
    settlement = evidence.settlement
    if settlement.unmet or settlement.hanging or not settlement.input_committed:
        raise _Unclear("the run did not come to rest")
    if not evidence.readings or any(reading.rows is None for reading in evidence.readings):
        raise _Unclear("the target could not be read at the end")
    last = [reading.rows for reading in evidence.readings[-2:] if reading.rows is not None]
    if not same_rows(last[0], last[-1]):
        raise _Unclear("the last two readings differ")
    between = sorted({anomaly.kind for anomaly in overall.anomalies} & KINDS_OF_THE_WHOLE_RUN)
    if between:
        raise _Unclear(f"the run as a whole shows {' and '.join(between)}")


def _readings_around(share: Share, evidence: Evidence) -> tuple[pa.Table, pa.Table]:
    """What was read before the plan's first fault, with the batches before its own committed, and after its last one
    with its own batch committed, before any other fault struck."""
    batch = share.batch
    reached = _events("fault.reached", share.faults, evidence)
    confirmed = _events("fault.confirmed", share.faults, evidence)
    if len(reached) < len(share.faults) or not confirmed:
        raise _Unclear("its fault did not land")
    others = set(range(len(evidence.faults))) - share.faults
    later = [index for index in _events("fault.reached", others, evidence) if index > reached[0]]
    end = min(later, default=len(evidence.journal))
    before = _last(evidence, -1, reached[0], batch - 1)
    after = _last(evidence, max(confirmed), end, batch)
    if after is None and not later:
        after = evidence.readings[-1].rows
    if before is None and batch == 0:
        before = evidence.truth.schema.empty_table()
    if before is None or after is None:
        raise _Unclear(f"the target was not read {'before' if before is None else 'after'} batch {batch} by itself")
    return before, after


def _events(kind: str, faults: Collection[int], evidence: Evidence) -> list[int]:
    """The places in the journal of events of these faults."""
    return [
        index for index, event in enumerate(evidence.journal) if event["event"] == kind and event.get("fault") in faults
    ]


def _last(evidence: Evidence, after: int, before: int, committed: int) -> pa.Table | None:
    """The rows of the last good reading between two places of the journal, with exactly this batch committed last."""
    found = [glimpse for glimpse in evidence.glimpses if after < glimpse.event_index < before and _good(glimpse)]
    return next((glimpse.rows for glimpse in reversed(found) if glimpse.committed == committed), None)


def _good(glimpse: Glimpse) -> bool:
    return glimpse.rows is not None and glimpse.error is None and not glimpse.opened


@dataclass(frozen=True)
class _Rows:
    """Of one batch: what must be there, and what was."""

    truth: pa.Table
    observed: pa.Table


def _rows_of(batch: int, before: pa.Table, after: pa.Table, evidence: Evidence) -> _Rows:
    """The batch's own rows, if the batch changed nothing else and nothing changed them later."""
    key = evidence.expectation.identity
    until = truth_until(evidence, batch)
    truth = _without(until, truth_until(evidence, batch - 1), until.column_names)
    mine = _with(after, truth, key)
    if not same_rows(_without(after, truth, key), _without(before, truth, key)):
        raise _Unclear(f"rows of other batches changed while batch {batch} was written")
    overwritten = _without(evidence.truth, until, until.column_names)
    at_the_end = evidence.readings[-1].rows
    if not same_rows(_without(_with(at_the_end, truth, key), overwritten, key), _without(mine, overwritten, key)):
        raise _Unclear(f"rows of batch {batch} changed after it")
    return _Rows(truth, mine)


def _judged(share: Share, rows: _Rows, evidence: Evidence) -> Verdict:
    own = replace(evidence, truth=rows.truth, readings=[Reading(rows.observed)] * 2, glimpses=(), raw={})
    return judge(own, only=share.faults)


def _with(rows: pa.Table, keys: pa.Table, key: Collection[str]) -> pa.Table:
    """The rows whose key is one of ``keys``."""
    return select(
        f"SELECT r.* FROM r WHERE EXISTS (SELECT 1 FROM k WHERE {equal('r', 'k', list(key))})", r=rows, k=keys
    )


def _without(rows: pa.Table, keys: pa.Table, key: Collection[str]) -> pa.Table:
    """The rows whose key is none of ``keys``."""
    return select(
        f"SELECT r.* FROM r WHERE NOT EXISTS (SELECT 1 FROM k WHERE {equal('r', 'k', list(key))})", r=rows, k=keys
    )
