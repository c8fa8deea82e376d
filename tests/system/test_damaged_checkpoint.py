"""A checkpoint that was damaged before a driver died: what the sink makes of what comes again, or that it is stuck."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onceproof.harness.trial.spec import TrialResult
from trials import described, long

LOST = "batch.commit:after[batch=1] -> remove(commits) then kill(driver)"
TORN = "sink.write:after[batch=1] -> truncate(offsets) then kill(driver)"
CORRUPT = "sink.write:after[batch=1] -> corrupt(offsets) then kill(driver)"
OLDER = "batch.commit:after[batch=2] -> rollback(checkpoint, to=0) then kill(driver)"
OLDER_STATE = "batch.commit:after[batch=1] -> rollback(state, to=0) then kill(driver)"
COPIED = "sink.write:before[batch=1] -> copy(checkpoint) then kill(driver)"
WOKEN = f"{COPIED.removesuffix('kill(driver)')}pause(driver, longest=30s) until batch.commit:after[batch=1]"
WOKEN_AT_THE_END = WOKEN.replace("after[batch=1]", "after[batch=2]")
GONE = "batch.commit:after[batch=1] -> remove(checkpoint) then kill(driver)"

COMES_TO = [
    long("kafka_append", "passthrough", LOST, {"duplicated"}),
    ("postgres_upsert", "wordcount", OLDER, set()),
    long("postgres_upsert", "passthrough", TORN, {"stuck"}),
    long("postgres_upsert", "wordcount", OLDER_STATE, {"stuck"}),
    long("postgres_ledger", "wordcount", OLDER_STATE, {"stuck"}),
    long("postgres_upsert", "passthrough", CORRUPT, {"stuck"}),
    long("postgres_upsert", "wordcount", TORN, {"stuck"}),
    long("postgres_upsert", "wordcount", LOST, set()),
    long("postgres_upsert", "passthrough", GONE, set()),
    long("postgres_upsert", "wordcount", COPIED, set()),
    long("kafka_append", "passthrough", WOKEN, {"duplicated"}),
    long("postgres_ledger", "passthrough", WOKEN, set()),
    long("file_manifest", "passthrough", WOKEN, set()),
    long("kafka_transactional", "passthrough", WOKEN_AT_THE_END, {"duplicated"}),  # its decisions lie in the checkpoint
    long("kafka_transactional", "passthrough", LOST, set()),
    long("kafka_transactional", "passthrough", OLDER, {"stuck"}),  # what it decided is no longer the last of its id
    long("kafka_transactional", "passthrough", TORN, {"stuck"}),
]


@pytest.mark.parametrize(("sink", "job", "plan", "anomalies"), COMES_TO)
def test_a_damaged_checkpoint_is_judged_by_what_comes_again(
    trial: Callable[..., TrialResult], sink: str, job: str, plan: str, anomalies: set[str]
) -> None:
    result = trial(sink, plan, "exactly-once", job=job)
    assert {anomaly.kind for anomaly in result.verdict.anomalies} == anomalies, described(result)
    assert result.verdict.outcome == ("fail" if anomalies else "pass"), described(result)
    assert [fault.confirmed for fault in result.verdict.faults] == [True], described(result)
