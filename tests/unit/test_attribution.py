"""What a run that several plans shared says of each of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pyarrow as pa
from onceproof.assertions import Evidence, Glimpse, Guarantee, Reading, judge
from onceproof.harness.certification.attribution import Share, attribute
from paper_trial import Paper, evidence, fault, ids_of, rows_with

FIRST, SECOND = "sink.write:after[batch=1] -> kill(driver)", "batch.commit:after[batch=3] -> kill(driver)"
SHARES = [Share(frozenset({0}), 1), Share(frozenset({1}), 3)]
DOUBLED, GONE = ids_of(1)[:5], ids_of(4)[:1]

Readings = Callable[[pa.Table], Sequence[Reading]]


def shared(doubled: Sequence[int] = (), gone: Sequence[int] = (), readings: Readings | None = None) -> Evidence:
    """A run whose driver dies behind batch 1, which leaves some of its rows twice, and behind the commit of batch 3; of
    batch 4, at which no plan strikes, some rows are missing."""
    paper, glimpses = Paper(), list[Glimpse]()

    def rows(last: int) -> list[int]:
        found = [one for batch in range(last + 1) for one in ids_of(batch)]
        return [one for one in [*found, *(doubled if last else ())] if last < 4 or one not in gone]

    def read(batch: int) -> None:
        paper.add("reading", watch=len(glimpses) + 1)
        number, index = len(glimpses) + 1, len(paper.journal) - 1
        glimpses.append(Glimpse(number, index, batch, batch, rows_with(rows(batch)), at="the commit"))

    def written(number: int, batch: int) -> None:
        paper.hand_over(number, batch).point("sink.write", "after", number, batch)
        read(batch)
        paper.point("batch.commit", "after", number, batch)

    paper.start(1)
    written(1, 0)
    paper.hand_over(1, 1).point("sink.write", "after", 1, 1)
    paper.reached_last(0).fired(fault=0).exited(1, -9, planned=True).start(2)
    for batch in (1, 2, 3):
        written(2, batch)
    paper.reached_last(1).fired(fault=1, process="local:2").exited(2, -9, planned=True)
    read(3)
    paper.start(3)
    written(3, 4)
    paper.exited(3)
    end = rows_with(rows(4))
    found = evidence(end, paper, fault(FIRST), fault(SECOND), readings=readings(end) if readings else None)
    return replace(found, glimpses=tuple(glimpses))


def outcomes(found: Evidence) -> list[str]:
    """Of each plan, or why there is none."""
    attributed = attribute(SHARES, found, judge(found))
    return [one.unclear.partition(":")[0] if one.verdict is None else one.verdict.outcome.value for one in attributed]


def test_each_plan_is_judged_by_its_own_batch() -> None:
    assert outcomes(shared()) == ["pass", "pass"]
    assert outcomes(shared(doubled=DOUBLED)) == ["fail", "pass"]


def test_what_lies_in_the_batch_of_no_plan_is_no_plans_alone() -> None:
    whole = "the run as a whole shows what none of its plans explains"
    assert outcomes(shared(gone=GONE)) == [whole, whole]
    assert outcomes(shared(doubled=DOUBLED, gone=GONE)) == ["fail", whole], "the other one has not been cleared of it"


def test_a_run_that_did_not_come_to_rest_says_nothing() -> None:
    earlier = rows_with([one for batch in range(4) for one in ids_of(batch)])
    for pair in (lambda rows: [Reading(earlier), Reading(rows)], lambda rows: [Reading(rows), Reading(earlier)]):
        assert outcomes(shared(readings=pair)) == ["the last two readings differ"] * 2


def test_a_claim_that_allows_duplicates_hides_none_that_lie_in_the_batch_of_no_plan() -> None:
    """A certificate says what guarantee was observed, not only whether the one that is claimed held."""
    weaker = replace(shared(doubled=ids_of(4)[:1]), claim=Guarantee.AT_LEAST_ONCE)
    assert judge(weaker).outcome.value == "pass"
    assert outcomes(weaker) == ["the run as a whole shows what none of its plans explains"] * 2
    explained = replace(shared(doubled=DOUBLED), claim=Guarantee.AT_LEAST_ONCE)
    assert outcomes(explained) == ["pass", "pass"]
