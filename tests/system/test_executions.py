"""How Spark runs a query besides micro-batches: what each loses is measured, and that no death loses more than that."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from onceproof.assertions import Guarantee, Outcome
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from onceproof.harness.trial.spec import TrialResult

Run = Callable[[str, str], TrialResult]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    options = EnvironmentOptions(master="local[3,4]", runs=tmp_path_factory.mktemp("runs"))
    with Session(options) as session:
        yield lambda trigger, plan: session.trial(Request("kafka_append", plan, trigger=trigger))


@pytest.mark.long
def test_a_replay_under_asynchronous_progress_has_other_boundaries(run: Run) -> None:
    plan = (
        "sink.write:after[batch=1] -> delay(13s); batch.commit:before[batch=2] -> kill(driver); "
        "sink.write:after[batch=3] -> delay(13s)"
    )
    found = run("asyncProgress=12 seconds", plan)
    assert found.verdict.outcome is Outcome.PASS, found.verdict.reason
    assert found.verdict.guarantee is Guarantee.AT_LEAST_ONCE
    [note] = [note for note in found.verdict.notes if "other boundaries" in note]
    assert note.startswith("batch 2 was run again with other boundaries: its input began at offsets")
    [duplicated] = found.verdict.anomalies
    assert duplicated.kind == "duplicated"
    assert duplicated.batches == [2], "the input of batch 1 is in batch 2 now"


@pytest.mark.parametrize(
    ("trigger", "plan"),
    [
        # Its first epoch ends when its tasks begin. While that end is late none of them learns of a third one: all that
        # they read and write by then belongs to the second.
        pytest.param(
            "continuous=1 second",
            "batch.commit:before[batch=0] -> delay(6s); batch.commit:before[batch=1] -> kill(driver)",
            marks=pytest.mark.long,
        ),
        pytest.param("realTime=5 seconds", "batch.offsets:before[batch=0] -> kill(driver)", marks=pytest.mark.long),
    ],
)
def test_rows_that_are_written_as_they_come_are_written_again(run: Run, trigger: str, plan: str) -> None:
    found = run(trigger, plan)
    assert found.verdict.outcome is Outcome.PASS, found.verdict.reason
    assert found.verdict.guarantee is Guarantee.AT_LEAST_ONCE
    assert {anomaly.kind for anomaly in found.verdict.anomalies} == {"duplicated"}
    assert all(report.replay["seen"] for report in found.verdict.faults)
