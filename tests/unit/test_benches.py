"""What benches compute of what they have measured, and what they refuse before anything starts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from onceproof.assertions import planned
from onceproof.harness.benches.plot import stacked
from onceproof.harness.benches.recovery import BATCHES, MOST_KEYS, Case, Measured, fits, workload_of
from onceproof.harness.cli import execute
from onceproof.harness.cli.options import MOST_RECORDS
from onceproof.harness.errors import USAGE
from onceproof.harness.trial.recovery import Recovery


def recovery(load_state: float) -> Recovery:
    zero = dict.fromkeys(("detect", "redeploy", "reset_source", "reset_sink", "replay"), 0.0)
    return Recovery(batch=3, load_state=load_state, total=load_state, **zero)


def measured(store: str, keys: int, *seconds: float) -> Measured:
    return Measured(Case(store, keys), [recovery(one) for one in seconds])  # type: ignore[arg-type]


def test_the_line_through_the_loading_times_is_fitted_for_each_state_store() -> None:
    found = fits([measured("hdfs", 1000, 0.5, 0.7), measured("hdfs", 11_000, 1.5, 1.7), measured("rocksdb", 1000, 9.0)])
    ((store, fixed, per_thousand, explained),) = found
    assert (store, round(fixed, 6), round(per_thousand, 6)) == ("hdfs", 0.5, 0.1)
    assert 0.9 < explained < 1


def test_a_case_is_shown_by_its_medians() -> None:
    assert measured("hdfs", 1000, 1.0, 9.0, 2.0).medians()["load_state"] == 2.0


@pytest.mark.parametrize("keys", [1, 1000, 20_000])
def test_the_input_of_a_case_has_as_many_keys_before_its_last_batch_which_has_one_row(keys: int) -> None:
    workload = workload_of(keys)
    batches = planned(workload).input.column("batch").to_pylist()
    assert batches.count(BATCHES - 1) == 1
    assert keys <= len(batches) - 1 < keys + 100


def test_the_largest_state_is_one_that_a_trial_may_have() -> None:
    workload = workload_of(MOST_KEYS)
    assert workload.batches * workload.partitions * workload.window <= MOST_RECORDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--keys", "0"], "--keys 0 is out of range: give 1 to 200000"),
        (["--keys", "1000000"], "--keys 1000000 is out of range: give 1 to 200000"),
        (["--state-store", "redis"], "redis"),
        (["--repeat", "0"], "--repeat"),
        (["--keys", "10", "--plot", "nowhere/at/all"], "nowhere/at"),
    ],
)
def test_a_bench_that_cannot_be_run_is_refused_before_anything_starts(
    words: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["bench", "recovery", *words]) == USAGE
    assert message in capsys.readouterr().err


def test_bars_are_drawn_as_svg_and_png(tmp_path: Path) -> None:
    svg, png = stacked(tmp_path / "plot", "t", ["a", "b"], {"one": [1.0, 2.0], "two": [0.5, 0.0]})
    assert svg.read_text().lstrip().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")
