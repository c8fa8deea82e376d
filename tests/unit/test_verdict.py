"""fail outranks inconclusive outranks pass; nothing passes that proved nothing."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from onceproof.assertions import (
    Evidence,
    Expectation,
    Glimpse,
    Guarantee,
    Open,
    Outcome,
    Reading,
    Verdict,
    guarantee_of,
    judge,
    load,
    satisfies,
    save,
    verdict_as_json,
    weakest,
)
from onceproof.assertions.stored_evidence import VERSION
from paper_trial import (
    LANDED,
    PARTITION,
    Paper,
    byte_equal,
    changed,
    cut_off_in_batch_1,
    everything_and,
    everything_but,
    evidence,
    fault,
    ground_truth,
    healthy,
    ids_of,
    killed_in_batch_1,
    rows_with,
    unknown_rows,
    verdict,
)

from onceproof.documents import file_digest

BATCH_1 = ids_of(1)
TWICE = everything_and(BATCH_1)
LESS = everything_but(BATCH_1)
LEFT = [Open("kafka", "job-0", "Ongoing", "out-1")]
UNFIRED = fault("sink.write:after[batch=999] -> kill(driver)")
EO, ALO, AMO, NONE = Guarantee
PASS, INCONCLUSIVE, FAIL = Outcome


def landed(rows: pa.Table | None = None, claim: str = "exactly-once", **more: Any) -> Verdict:
    return verdict(rows, killed_in_batch_1(), LANDED, claim=claim, **more)


def missed(rows: pa.Table | None = None, claim: str = "exactly-once", **more: Any) -> Verdict:
    """The fault was never reached."""
    return verdict(rows, healthy(), UNFIRED, claim=claim, **more)


# --- pass ---


def test_a_landed_fault_that_changed_nothing_passes_and_says_what_landed() -> None:
    found = landed()
    assert (found.outcome, found.exactly_once, found.guarantee) == (PASS, PASS, EO)
    assert found.reason == (
        "sink.commit:after[batch=1] -> kill(driver) landed: run r2 (local:2) handed batch 1 to the sink, "
        f"{byte_equal(1)}; exactly-once held: each of {len(ground_truth())} rows was read once"
    )


def test_a_job_that_had_nothing_to_hand_over_proves_nothing() -> None:
    """One batch of a job of windows, killed behind its commit: after a restart nothing closes the windows."""
    none = Expectation("SELECT * FROM input WHERE batch > 999")
    found = landed(expectation=none)
    assert (found.outcome, found.guarantee) == (INCONCLUSIVE, None)
    assert "it had to hand over no row: nothing could be lost or duplicated" in found.reason
    assert landed(ground_truth(), expectation=none).outcome is FAIL, "but rows that nobody wrote are there"


def test_a_run_without_a_fault_passes_and_says_so() -> None:
    found = verdict()
    assert (found.outcome, found.guarantee) == (PASS, EO)
    assert found.reason.startswith("no fault was planned; exactly-once held")


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_exactly_once_satisfies_every_claim(claim: str) -> None:
    assert landed(claim=claim).outcome is PASS


def test_at_least_once_is_held_by_duplicates_alone() -> None:
    found = landed(TWICE, "at-least-once")
    assert (found.outcome, found.exactly_once, found.guarantee) == (PASS, FAIL, ALO)
    assert f"at-least-once held: {len(BATCH_1)} duplicated (batch 1)" in found.reason


def test_at_most_once_is_held_by_losses_alone() -> None:
    found = landed(LESS, "at-most-once")
    assert (found.outcome, found.exactly_once, found.guarantee) == (PASS, FAIL, AMO)


# --- fail ---

PHANTOM = pa.concat_tables([ground_truth(), unknown_rows([{"id": -1}])])
CORRUPTED = changed(BATCH_1[:1], value=0.0625)
BOTH = pa.concat_tables([LESS, LESS.slice(0, 1)])


@pytest.mark.parametrize(
    ("rows", "claim", "guarantee"),
    [
        (TWICE, "exactly-once", ALO),
        (TWICE, "at-most-once", ALO),
        (LESS, "exactly-once", AMO),
        (LESS, "at-least-once", AMO),
        (BOTH, "at-least-once", NONE),
        (BOTH, "at-most-once", NONE),
        (PHANTOM, "at-least-once", NONE),
        (PHANTOM, "at-most-once", NONE),
        (CORRUPTED, "at-least-once", NONE),
        (CORRUPTED, "at-most-once", NONE),
        (CORRUPTED, "exactly-once", NONE),
    ],
    ids=[
        "twice-eo",
        "twice-amo",
        "less-eo",
        "less-alo",
        "both-alo",
        "both-amo",
        "ph-alo",
        "ph-amo",
        "c-alo",
        "c-amo",
        "c",
    ],
)
def test_an_anomaly_that_breaks_the_claim_fails(rows: pa.Table, claim: str, guarantee: Guarantee) -> None:
    found = landed(rows, claim)
    assert (found.outcome, found.exactly_once, found.guarantee) == (FAIL, FAIL, guarantee)
    assert found.reason.startswith(f"{claim} broken: ")


def test_a_failure_names_counts_batch_and_cause() -> None:
    assert landed(TWICE).reason == (
        f"exactly-once broken: {len(BATCH_1)} duplicated (batch 1): batch 1 was handed to the sink twice "
        "(driver local:1, then driver local:2 after kill(driver) at sink.commit:after[batch=1]): "
        "replay by the restarted driver"
    )


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_a_hanging_transaction_leaves_no_guarantee(claim: str) -> None:
    found = landed(claim=claim, hanging=LEFT)
    assert (found.outcome, found.guarantee) == (FAIL, NONE)


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_a_stuck_job_fails_every_claim_though_its_input_is_not_committed(claim: str) -> None:
    found = landed(LESS, claim, input_committed=False, stuck="ValueError: no")
    assert (found.outcome, found.guarantee) == (FAIL, NONE)
    assert [anomaly.kind for anomaly in found.anomalies] == ["stuck"]
    assert "ValueError: no" in found.reason


@pytest.mark.parametrize("rows", [TWICE, PHANTOM, CORRUPTED], ids=["duplicated", "phantom", "corrupted"])
def test_what_a_reader_got_wrongly_counts_even_if_the_fault_did_not_land(rows: pa.Table) -> None:
    found = missed(rows)
    assert found.outcome is FAIL
    assert "besides, fault 'sink.write:after[batch=999] -> kill(driver)' was never reached" in found.reason


def test_lost_rows_count_even_if_the_fault_did_not_land_once_all_input_is_committed() -> None:
    assert missed(LESS).outcome is FAIL


def test_a_run_without_a_fault_fails_by_its_own_anomalies() -> None:
    assert verdict(TWICE).outcome is FAIL
    assert verdict(LESS).outcome is FAIL


def test_duplicates_in_the_last_of_two_different_readings_fail() -> None:
    found = landed(readings=[Reading(ground_truth()), Reading(TWICE)])
    assert found.outcome is FAIL


def test_duplicates_count_before_all_input_is_committed() -> None:
    assert landed(TWICE, input_committed=False).outcome is FAIL


# --- inconclusive ---


def test_a_fault_that_is_never_reached_is_inconclusive_and_named() -> None:
    found = missed()
    assert (found.outcome, found.exactly_once, found.guarantee) == (INCONCLUSIVE, INCONCLUSIVE, None)
    assert found.reason == "fault 'sink.write:after[batch=999] -> kill(driver)' was never reached"


@pytest.mark.parametrize(
    ("paper", "reason"),
    [
        (healthy(), "was never reached"),
        (Paper().start().hand_over(1, 1).reached_last(), "was reached, but did not fire"),
        (
            Paper().start().hand_over(1, 1).reached_last().fired(confirmed=False),
            r"was not confirmed \(kill\(driver\)\)",
        ),
        (
            Paper()
            .start()
            .hand_over(1, 1)
            .reached_last()
            .add("fault.failed", fault=0, action="kill(driver)", error="no pid"),
            "could not be carried out: no pid",
        ),
        (
            Paper().start().hand_over(1, 1).killed_here(),
            "the replay evidence of fault .* is missing: required was that",
        ),
    ],
    ids=["reached", "fired", "confirmed", "failed", "replay"],
)
@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_each_way_of_not_landing_is_inconclusive_and_says_which(paper: Paper, reason: str, claim: str) -> None:
    found = verdict(None, paper, LANDED, claim=claim)
    assert (found.outcome, found.guarantee) == (INCONCLUSIVE, None)
    assert re.search(reason, found.reason)


def test_one_of_two_faults_that_did_not_land_is_enough() -> None:
    found = verdict(None, killed_in_batch_1(), LANDED, UNFIRED)
    assert found.outcome is INCONCLUSIVE
    assert "batch=999" in found.reason
    assert "sink.commit" not in found.reason


@pytest.mark.parametrize(
    ("claim", "rows"), [("at-least-once", TWICE), ("at-most-once", LESS)], ids=["duplicates", "losses"]
)
def test_anomalies_that_a_claim_allows_prove_nothing_without_the_fault(claim: str, rows: pa.Table) -> None:
    found = missed(rows, claim)
    assert (found.outcome, found.exactly_once, found.guarantee) == (INCONCLUSIVE, FAIL, None)
    assert "seen all the same" in found.reason


def test_input_that_is_not_committed_is_inconclusive_and_its_missing_rows_do_not_count() -> None:
    found = landed(LESS, input_committed=False)
    assert found.outcome is INCONCLUSIVE
    assert found.reason == "the job has not committed all its input"
    assert found.anomalies == []


@pytest.mark.parametrize("rows", [None, LESS], ids=["all", "less"])
def test_an_unmet_condition_of_rest_is_inconclusive_and_named(rows: pa.Table | None) -> None:
    found = landed(rows, unmet=["process local:9 still runs"])
    assert found.outcome is INCONCLUSIVE
    assert "not settled: process local:9 still runs" in found.reason


@pytest.mark.parametrize("last", [LESS, ground_truth()], ids=["less", "all"])
def test_readings_that_differ_are_inconclusive(last: pa.Table) -> None:
    first = everything_but(BATCH_1[:1])
    found = landed(readings=[Reading(first), Reading(last)])
    assert found.outcome is INCONCLUSIVE
    assert "the target is not quiescent" in found.reason


def test_only_the_last_two_readings_need_to_be_equal() -> None:
    assert landed(readings=[Reading(LESS), Reading(ground_truth()), Reading(ground_truth())]).outcome is PASS


def test_a_probe_that_could_not_do_as_asked_is_inconclusive() -> None:
    paper = killed_in_batch_1().add("probe.error", error="psycopg.NoSuchError could not be raised", process="local:1")
    found = verdict(None, paper, LANDED)
    assert found.outcome is INCONCLUSIVE
    assert found.reason == "a probe could not do as asked: psycopg.NoSuchError could not be raised"


@pytest.mark.parametrize(
    "readings",
    [
        [],
        [Reading(ground_truth())],
        [Reading(ground_truth()), Reading(None, "no such table")],
        [Reading(None, "no such table"), Reading(ground_truth())],
        [Reading(None, "no such table"), Reading(None, "no such table")],
    ],
    ids=["none", "one", "second failed", "first failed", "both failed"],
)
def test_a_reading_that_failed_or_is_missing_is_inconclusive(readings: list[Reading]) -> None:
    found = landed(readings=readings)
    assert found.outcome is INCONCLUSIVE
    assert ("no such table" in found.reason) or ("two equal readings are needed" in found.reason)


# --- a target that cannot be read any more ---

UNREAD = [Reading(None, "sink mine.py failed in read: no such file"), Reading(None, "no such file")]


@pytest.mark.parametrize("claim", ["exactly-once", "at-least-once", "at-most-once"])
def test_a_target_that_a_fault_made_unreadable_leaves_no_guarantee(claim: str) -> None:
    found = unread(claim=claim)
    assert (found.outcome, found.guarantee, [one.kind for one in found.anomalies]) == (FAIL, NONE, ["unreadable"])
    assert "no such file" in found.anomalies[0].causes[0]
    assert "after kill(driver) at sink.commit:after[batch=1]" in found.anomalies[0].causes[0]


def unread(
    readings: list[Reading] = UNREAD, readable: bool = True, claim: str = "exactly-once", **more: Any
) -> Verdict:
    of = evidence(None, killed_in_batch_1(), LANDED, claim=claim, readings=readings)
    return judge(replace(of, readable=readable, **more))


def test_a_reading_with_rows_before_the_fault_shows_that_the_target_could_be_read() -> None:
    reached = next(
        number for number, event in enumerate(killed_in_batch_1().journal) if event["event"] == "fault.fired"
    )
    before = Glimpse(1, reached - 1, 0, 0, rows_with(ids_of(0)))
    assert unread(readable=False, glimpses=[before]).outcome is FAIL
    for proves_nothing in (
        replace(before, event_index=reached + 1),
        replace(before, rows=rows_with([])),
        replace(before, rows=None, error="no such file"),
    ):
        assert unread(readable=False, glimpses=[proves_nothing]).outcome is INCONCLUSIVE


def test_a_target_that_could_never_be_read_or_can_be_read_again_is_no_fault_of_the_sink() -> None:
    assert unread(readable=False).outcome is INCONCLUSIVE
    assert unread([UNREAD[0], Reading(ground_truth())]).outcome is INCONCLUSIVE


def test_a_target_is_not_called_unreadable_without_a_fault_or_before_all_is_at_rest() -> None:
    of = replace(evidence(None, healthy(), readings=UNREAD), readable=True)
    assert judge(of).outcome is INCONCLUSIVE
    assert unread(settlement=replace(of.settlement, unmet=["process local:9 still runs"])).outcome is INCONCLUSIVE
    assert unread(broken=["postgres ended with exit code -9"]).outcome is INCONCLUSIVE


# --- what a reader met in either reading ---


@pytest.mark.parametrize("rows", [TWICE, PHANTOM, CORRUPTED], ids=["duplicated", "phantom", "corrupted"])
def test_what_a_reader_got_wrongly_counts_in_the_first_of_both_readings_too(rows: pa.Table) -> None:
    first, last = (landed(readings=[*pair]) for pair in ((Reading(rows), Reading(ground_truth())), [Reading(rows)] * 2))
    assert first.outcome is FAIL
    assert [(one.kind, one.count) for one in first.anomalies] == [(one.kind, one.count) for one in last.anomalies]


def test_the_worse_of_both_readings_is_reported() -> None:
    for readings in ([TWICE, everything_and(BATCH_1[:2])], [everything_and(BATCH_1[:2]), TWICE]):
        found = landed(readings=[Reading(rows) for rows in readings])
        assert [(one.kind, one.count) for one in found.anomalies] == [("duplicated", len(BATCH_1))]


# --- an environment that fails by itself ---

DIED = ["broker 2 ended with exit code -9"]


@pytest.mark.parametrize(
    "more",
    [
        {"stuck": "TimeoutException", "input_committed": False},
        {"hanging": LEFT},
        {"rows": LESS},
        {"stuck": "no progress for 90 s", "input_committed": False, "rows": LESS},
    ],
    ids=["stuck", "hanging", "lost", "no progress"],
)
def test_what_the_environments_own_death_may_have_caused_is_not_the_sinks(more: dict[str, Any]) -> None:
    of = evidence(more.pop("rows", None), killed_in_batch_1(), LANDED, **more)
    assert judge(of).outcome is FAIL
    found = judge(replace(of, broken=DIED))
    assert (found.outcome, found.guarantee, found.anomalies) == (INCONCLUSIVE, None, [])
    assert "broker 2 ended with exit code -9" in found.reason


def test_rows_that_a_reader_got_twice_count_whatever_died() -> None:
    assert judge(replace(evidence(TWICE, killed_in_batch_1(), LANDED), broken=DIED)).outcome is FAIL


# --- a reader that hides ---


def test_rows_that_the_reader_hides_are_noted_and_break_nothing() -> None:
    rows = len(ground_truth())
    found = judge(replace(evidence(), raw={"table events": rows + 7, "table other": 0}))
    assert found.outcome is PASS
    assert list(found.notes) == [f"read() hides 7 of {rows + 7} rows (in the target lie: table events {rows + 7})"]
    assert verdict_as_json(found)["notes"] == list(found.notes)


@pytest.mark.parametrize("raw", [{}, {"table events": len(ground_truth())}, {"table events": 3}])
def test_a_reader_that_gives_all_rows_or_more_hides_none(raw: dict[str, int]) -> None:
    assert list(judge(replace(evidence(), raw=raw)).notes) == []


def test_a_driver_that_had_to_be_ended_with_nothing_left_to_do_is_noted() -> None:
    paper = Paper().start().batches(1, 0, 1, 2, 3, 4).add("driver.stayed", incarnation=1, seconds=90.0)
    found = verdict(paper=paper.exited(1, -9, planned=True))
    assert found.outcome is PASS
    assert list(found.notes) == [
        "a driver had to be ended: its query had ended with all input committed, and 90 s later (--deadline) its "
        "process had not (does it have a thread that is no daemon?)"
    ]


# --- transactions that a dead driver leaves ---


def left_for(age: float, timeout: float | None, batch: int = 1) -> list[str]:
    """The notes on a transaction that was ``age`` seconds old when the driver was dead. Each event takes a second."""
    paper = killed_in_batch_1()
    index = next(number for number, event in enumerate(paper.journal) if event["event"] == "fault.confirmed")
    assert index + 5 < len(paper.journal)
    opened = Open("kafka", "job-0", "Ongoing", "out-1", age=age, timeout=timeout)
    found = judge(replace(evidence(None, paper, LANDED), glimpses=[Glimpse(1, index, 0, batch, None, (opened,))]))
    assert found.outcome is PASS
    return list(found.notes)


def test_a_transaction_that_came_near_its_timeout_before_the_recovery_committed_it_is_noted() -> None:
    (note,) = left_for(age=8, timeout=20)
    assert note.startswith("a transaction was open for more than half of its timeout (20 s) until the recovered job")


@pytest.mark.parametrize(("age", "timeout", "batch"), [(8, 60, 1), (8, None, 1), (8, 20, 99)])
def test_a_transaction_with_time_left_or_without_a_timeout_is_not(age: int, timeout: int | None, batch: int) -> None:
    assert left_for(age, timeout, batch) == []


def test_a_transaction_that_only_its_timeout_ended_is_noted() -> None:
    opened = Open("kafka", "job-0", "Ongoing", "out-1", age=20, timeout=60)
    trial = evidence(None, killed_in_batch_1(), LANDED)
    found = judge(replace(trial, settlement=replace(trial.settlement, timed_out=[opened])))
    assert found.outcome is PASS
    assert found.notes == ["a transaction that no attempt ended held readers up until its timeout (60 s) was over"]


# --- guarantees ---


@pytest.mark.parametrize(
    ("kinds", "guarantee"),
    [
        ((), EO),
        (("duplicated",), ALO),
        (("lost",), AMO),
        (("duplicated", "lost"), NONE),
        (("phantom",), NONE),
        (("corrupted", "duplicated"), NONE),
        (("hanging",), NONE),
        (("stuck",), NONE),
        (("a kind of the future",), NONE),
    ],
)
def test_the_guarantee_follows_from_the_kinds(kinds: tuple[str, ...], guarantee: Guarantee) -> None:
    assert guarantee_of(kinds) is guarantee


def test_at_least_once_and_at_most_once_are_incomparable() -> None:
    held = {(one, claim) for one in Guarantee for claim in (EO, ALO, AMO) if satisfies(one, claim)}
    assert held == {(EO, EO), (EO, ALO), (EO, AMO), (ALO, ALO), (AMO, AMO)}


def test_the_weakest_of_several_trials_is_what_all_leave() -> None:
    assert weakest([]) is EO
    assert weakest([EO, EO]) is EO
    assert weakest([EO, ALO, ALO]) is ALO
    assert weakest([ALO, AMO]) is NONE
    assert weakest([EO, NONE]) is NONE


# --- what goes along ---


def test_records_and_attempts_are_reported() -> None:
    found = landed(TWICE)
    assert found.records["expected"] == len(ground_truth())
    assert found.records["seen"] == len(TWICE)
    assert found.records["written"] == found.records["expected"] + found.records["aborted"]
    assert found.records["batch_sizes"][1] == len(BATCH_1)
    assert sum(found.records["batch_sizes"].values()) == len(ground_truth())
    assert [(one["batch"], one["run"]) for one in found.attempts] == [
        *((0, "r1"), (1, "r1"), (1, "r2"), (2, "r2"), (3, "r2"), (4, "r2")),
    ]


def test_attempts_of_tasks_beyond_the_first_are_reported() -> None:
    paper = Paper().start().hand_over(1, 1).task(1, 1, 0, "local:7").task(1, 1, 1, "local:8").finish(1, 1)
    assert verdict(None, paper).attempts[-1] == {"batch": 1, "partition": 0, "attempt": 1, "process": "local:8"}


def test_the_verdict_is_one_json_object() -> None:
    aborted = unknown_rows([{"id": ids_of(2, committed=False)[0]}])
    rows = pa.concat_tables([TWICE, aborted, changed(BATCH_1[:1], event_time=None).slice(0, 40)])
    found = json.loads(json.dumps(verdict_as_json(landed(rows, hanging=LEFT))))
    assert {name: found[name] for name in ("verdict", "exactly_once", "guarantee", "claim")} == {
        "verdict": "fail",
        "exactly_once": "fail",
        "guarantee": "none",
        "claim": "exactly-once",
    }
    assert set(found["anomalies"]) == {"duplicated", "phantom", "hanging"} | {
        kind for kind in found["anomalies"] if kind == "corrupted"
    }
    assert found["evidence"]["records"]["batch_sizes"]["1"] == len(BATCH_1)
    [reported] = found["faults"]
    assert {"text", "reached", "fired", "confirmed", "process", "replay", "swallowed", "error"} == set(reported)
    assert set(reported["replay"]) == {"required", "seen"}
    assert {"kind", "count", "records", "batches", "partitions", "causes"} == set(found["anomaly_details"][0])


# --- a trial with a partition ---

CUT = fault(f"sink.write:before[batch=1] -> {PARTITION}")


def through_the_partition() -> Paper:
    return cut_off_in_batch_1().healed().finish(1, 1).batches(1, 2, 3, 4).exited()


def restarted_by_the_partition() -> Paper:
    paper = cut_off_in_batch_1().exited(1, 1, error="TimeoutException: topic out-1").healed()
    return paper.start(2).batches(2, 1, 2, 3, 4).exited(2)


@pytest.mark.parametrize("make", [through_the_partition, restarted_by_the_partition])
def test_a_job_that_comes_through_a_partition_keeps_its_claim(make: Callable[[], Paper]) -> None:
    found = verdict(None, make(), CUT)
    assert (found.outcome, found.guarantee) == (PASS, EO)
    assert "landed: driver:1 was cut off from broker2 and healed" in found.reason


def test_rows_written_twice_through_a_partition_are_reported_with_it() -> None:
    found = verdict(TWICE, restarted_by_the_partition(), CUT)
    assert (found.outcome, found.guarantee) == (FAIL, ALO)
    assert f"after {PARTITION} at sink.write:before[batch=1]" in found.reason


def test_a_partition_that_was_not_healed_or_not_confirmed_proves_nothing() -> None:
    unhealed = cut_off_in_batch_1().finish(1, 1).batches(1, 2, 3, 4).exited()
    unconfirmed = cut_off_in_batch_1(confirmed=False).healed().finish(1, 1).batches(1, 2, 3, 4).exited()
    for paper in (unhealed, unconfirmed):
        assert verdict(None, paper, CUT).outcome is INCONCLUSIVE


def test_a_job_that_a_partition_leaves_stuck_fails() -> None:
    paper = cut_off_in_batch_1().exited(1, 1, error="E: no").healed().start(2).hand_over(2, 1)
    paper.exited(2, 1, error="E: no").add("driver.gave_up", batch=1, error="E: no")
    found = verdict(LESS, paper, CUT, input_committed=False, stuck="E: no")
    assert (found.outcome, [anomaly.kind for anomaly in found.anomalies]) == (FAIL, ["stuck"])
    assert PARTITION in found.anomalies[0].causes[0]


# --- kept and judged again ---

KEPT: list[Callable[[], Evidence]] = [
    lambda: evidence(),
    lambda: evidence(TWICE, killed_in_batch_1(), LANDED, claim="at-least-once"),
    lambda: evidence(LESS, healthy(), UNFIRED, hanging=LEFT, unmet=["x"]),
    lambda: evidence(None, killed_in_batch_1(), LANDED, input_committed=False, stuck="ValueError: nö"),
    lambda: evidence(readings=[Reading(None, "no"), Reading(ground_truth())]),
    lambda: evidence(None, killed_in_batch_1(), fault("at(3s) -> kill(driver) then restart(driver, after=2s)")),
    lambda: evidence(None, through_the_partition(), CUT),
    lambda: replace(evidence(), raw={"table events": 9999}, broken=DIED, readable=True),
]


@pytest.mark.parametrize(
    "make", KEPT, ids=["plain", "landed", "missed", "stuck", "unread", "moment", "partition", "more"]
)
def test_a_run_that_was_kept_is_judged_the_same_again(make: Callable[[], Evidence], tmp_path: Path) -> None:
    save(make(), tmp_path)
    assert judge(load(tmp_path)) == judge(make())
    assert verdict_as_json(judge(load(tmp_path))) == verdict_as_json(judge(make()))


def test_the_trials_own_journal_is_kept_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "journal.jsonl").write_text('{"t": 0.0, "event": "trial.armed"}\n')
    save(evidence(), tmp_path)
    assert load(tmp_path).journal == [{"t": 0.0, "event": "trial.armed"}]


def test_a_directory_that_is_no_run_is_a_clear_error(tmp_path: Path) -> None:
    for directory in (tmp_path, tmp_path / "missing"):
        with pytest.raises(ValueError, match=f"^{directory} is not a run directory: it has no evidence.json"):
            load(directory)


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("evidence.json", b"{", "damaged: .*line 1"),
        ("evidence.json", b'{"version": %d}' % VERSION, "evidence.json: field claim is missing"),
        ("evidence.json", b'{"version": 99}', "field version is 99: this is for version 2"),
        ("evidence.json", b"[]", "damaged"),
        ("evidence.json", b"\xff", "damaged"),
        ("truth.parquet", b"cut", "damaged: truth.parquet is not as it was written"),
        ("truth.parquet", None, "damaged: truth.parquet is missing"),
        ("input.parquet", None, "damaged: input.parquet is missing"),
        ("reading-2.parquet", None, "damaged: reading-2.parquet is missing"),
        ("journal.jsonl", b'{"event": "x"}\n{"eve', "damaged: journal.jsonl is not as it was written"),
        ("journal.jsonl", None, "damaged: journal.jsonl is missing"),
    ],
)
def test_a_damaged_run_is_one_clear_line(name: str, content: bytes | None, why: str, tmp_path: Path) -> None:
    save(evidence(), tmp_path)
    if content is None:
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=why) as error:
        load(tmp_path)
    assert "\n" not in str(error.value)
    assert str(tmp_path) in str(error.value)


def sealed(directory: Path) -> Path:
    """The run directory with the digests of its files as they are now: what is wrong was written so."""
    names = [line.partition("  ")[2] for line in (directory / "SHA256SUMS").read_text().splitlines()]
    (directory / "SHA256SUMS").write_text("".join(f"{file_digest(directory / name)}  {name}\n" for name in names))
    return directory


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("truth.parquet", b"cut", "damaged: .*Parquet"),
        ("journal.jsonl", b'{"event": "x"}\n{"eve', "line 2 of journal.jsonl is no JSON"),
        ("journal.jsonl", b"[]\n", "line 1 of journal.jsonl is no event"),
    ],
)
def test_a_file_that_was_written_so_that_it_cannot_be_read_is_a_damaged_run(
    name: str, content: bytes, why: str, tmp_path: Path
) -> None:
    save(evidence(), tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=why) as error:
        load(sealed(tmp_path))
    assert "\n" not in str(error.value)


def test_a_table_with_other_columns_is_a_damaged_run(tmp_path: Path) -> None:
    save(evidence(), tmp_path)
    (tmp_path / "truth.parquet").write_bytes((tmp_path / "acks.parquet").read_bytes())
    sealed(tmp_path)
    with pytest.raises(ValueError, match=r"truth\.parquet has the columns id, partition, offset, committed"):
        load(tmp_path)


WRITTEN = [
    "evidence.json",
    "truth.parquet",
    "acks.parquet",
    "reading-1.parquet",
    "journal.jsonl",
    "checkpoint/offsets/0",
]


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A run directory with a file of the checkpoint."""
    (tmp_path / "checkpoint" / "offsets").mkdir(parents=True)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text("v1\n{}\n{}")
    save(evidence(), tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_that_was_changed_afterwards_is_a_damaged_run(name: str, kept: Path) -> None:
    load(kept)
    content = (kept / name).read_bytes()
    (kept / name).write_bytes(changed_but_readable(name, content))
    with pytest.raises(ValueError, match=f"damaged: {name} is not as it was written"):
        load(kept)


def changed_but_readable(name: str, content: bytes) -> bytes:
    if not name.endswith(".parquet"):
        return content.replace(b" ", b"  ", 1) if name != "checkpoint/offsets/0" else content + b"\n"
    table = pq.read_table(pa.BufferReader(content))
    sink = pa.BufferOutputStream()
    pq.write_table(table.slice(1), sink)
    return bytes(sink.getvalue())


def test_a_file_that_is_gone_or_came_later_is_a_damaged_run(kept: Path) -> None:
    (kept / "reading-9.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"reading-9\.parquet was not there when the evidence was written"):
        load(kept)
    (kept / "reading-9.parquet").unlink()
    (kept / "checkpoint" / "offsets" / "0").unlink()
    with pytest.raises(ValueError, match="checkpoint/offsets/0 is missing"):
        load(kept)


def test_a_run_without_digests_is_damaged(kept: Path) -> None:
    (kept / "SHA256SUMS").unlink()
    with pytest.raises(ValueError, match="it has no SHA256SUMS"):
        load(kept)


def test_the_digests_are_those_that_sha256sum_checks(kept: Path) -> None:
    found = subprocess.run(["sha256sum", "--check", "SHA256SUMS"], cwd=kept, capture_output=True, text=True)
    assert (found.returncode, found.stdout.count(": OK")) == (0, 8), found


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b"])
def test_a_mark_that_ends_lines_elsewhere_ends_none_in_the_journal(mark: str, tmp_path: Path) -> None:
    paper = healthy().add("driver.leftover", processes=[f"a{mark}b"])
    save(evidence(None, paper), tmp_path)
    assert load(tmp_path).journal == paper.journal


def test_a_fault_comes_back_from_its_run_directory_as_it_was(tmp_path: Path) -> None:
    text = (
        "sink.write:after[batch=1]#2 -> pause(driver) until batch.commit:after[batch=1] then delay(2s) with "
        "hold(task.run:before[partition=1]); at(3s) -> stop(driver) then restart(driver, after=1s)"
    )
    faults = [fault(one) for one in text.split("; ")]
    save(evidence(None, healthy(), *faults), tmp_path)
    assert list(load(tmp_path).faults) == faults


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("truth.parquet", "truth.parquet is not what follows from the expectation and the input"),
        ("input.parquet", "input.parquet is not what follows from the workload and the acknowledgements"),
    ],
)
def test_a_truth_or_an_input_that_does_not_follow_from_the_rest_is_a_damaged_run(
    name: str, why: str, tmp_path: Path
) -> None:
    save(evidence(), tmp_path)
    table = pq.read_table(tmp_path / name)
    pq.write_table(table.slice(1), tmp_path / name)
    with pytest.raises(ValueError, match=why):
        load(sealed(tmp_path))


def test_the_seed_that_is_stored_must_give_the_input_that_is_stored(tmp_path: Path) -> None:
    save(evidence(), tmp_path)
    file = tmp_path / "evidence.json"
    file.write_text(file.read_text().replace('"seed": 3', '"seed": 4'))
    with pytest.raises(ValueError, match=r"input\.parquet is not what follows from the workload"):
        load(sealed(tmp_path))


def test_a_stale_row_leaves_no_guarantee_but_only_once_the_job_has_come_to_rest() -> None:
    latest = Expectation("SELECT * FROM input", latest=("key",))
    right = ground_truth(latest)
    older = next(row for row in ground_truth().to_pylist() if row not in right.to_pylist())
    rows = [row for row in right.to_pylist() if row["key"] != older["key"]]
    seen = pa.Table.from_pylist([older, *rows], schema=right.schema)
    found = verdict(seen, expectation=latest)
    assert (found.outcome, found.guarantee) == (FAIL, "none")
    assert verdict(seen, expectation=latest, unmet=["a process still runs"]).outcome is INCONCLUSIVE


def test_a_run_under_a_key_is_kept_with_it(tmp_path: Path) -> None:
    kept = evidence(expectation=Expectation("SELECT * FROM input", latest=("key",), order="event_time"))
    save(kept, tmp_path)
    assert load(tmp_path).expectation == kept.expectation
    assert judge(load(tmp_path)) == judge(kept)
