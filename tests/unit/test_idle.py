"""Batches for which the sink is given nothing to write; the trial is on paper."""

from __future__ import annotations

from pathlib import Path

from onceproof.assertions import Expectation, save
from onceproof.harness.certification.idle import idle
from paper_trial import evidence

LATER = Expectation("SELECT * FROM input WHERE batch > 0")
SENTENCE = (
    "in batch 0 (first) the job has no row to hand over: points there strike its recovery, and nothing that the sink "
    "writes"
)


def test_a_batch_of_which_the_truth_has_no_row_is_named(tmp_path: Path) -> None:
    roles = {"first": 0, "second": 1}
    for expectation, named in ((LATER, [SENTENCE]), (Expectation("SELECT * FROM input"), [])):
        directory = tmp_path / str(len(named))
        directory.mkdir()
        save(evidence(expectation=expectation), directory)
        assert idle(directory, roles) == named


def test_without_a_whole_run_nothing_is_said(tmp_path: Path) -> None:
    assert idle(tmp_path, {"first": 0}) == []
