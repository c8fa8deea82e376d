"""What benches compute of what they have measured, and what they refuse before anything starts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from onceproof.assertions import planned
from onceproof.harness.benches import overhead
from onceproof.harness.benches.guarantees import Measured as Sink
from onceproof.harness.benches.overhead import CASES, Pair
from onceproof.harness.benches.overhead import Measured as Overhead
from onceproof.harness.benches.plot import check_plot, drawn, stacked
from onceproof.harness.benches.progress import PROGRESS, Batch, read_events
from onceproof.harness.benches.recovery import BATCHES, KEYS_OF_A_ROW, MOST_KEYS, Case, Measured, fits, workload_of
from onceproof.harness.cli import bench, execute
from onceproof.harness.errors import USAGE, UsageError
from onceproof.harness.request import MOST_RECORDS
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
    assert keys <= (len(batches) - 1) * KEYS_OF_A_ROW < keys + 100 * KEYS_OF_A_ROW


def test_the_largest_state_is_one_that_a_trial_may_have() -> None:
    workload = workload_of(MOST_KEYS)
    assert workload.batches * workload.partitions * workload.window <= MOST_RECORDS


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["recovery", "--keys", "0"], "--keys 0 is out of range: give 1 to 2000000"),
        (["recovery", "--keys", "3000000"], "--keys 3000000 is out of range: give 1 to 2000000"),
        (["recovery", "--state-store", "redis"], "redis"),
        (["overhead", "--case", "tables"], "--case tables is none of the cases: steps"),
        (["recovery", "--repeat", "0"], "--repeat"),
        (
            ["recovery", "--keys", "10", "--plot", "nowhere/at/all"],
            "there is no directory nowhere/at: make it, or give",
        ),
        (["recovery", "--keys", "10", "--plot", ""], "--plot is empty: leave it out, or give a value"),
        (["recovery", "--keys", "10", "--plot", "."], "--plot . is a directory: give the path of a file, such as rec"),
        (
            ["checkpoint", "--interval", "1", "--plot", "/proc/plot"],
            "--plot: /proc/plot.svg cannot be written (No suc",
        ),
        (["checkpoint", "--interval", "0"], "--interval"),
        (["checkpoint", "--interval", "inf"], '"[inf]" for --interval. Must be <= 86400'),
        (["checkpoint", "--rate", "9" * 400], "for --rate. Must be <= 1000000"),
        (
            ["checkpoint", "--interval", "100", "--rate", "1000"],
            "--interval 100 with --rate 1000 makes batches of 100000",
        ),
        (["guarantees", "no_such_sink"], "no_such_sink"),
        (["guarantees", "--rows", "0"], "--rows"),
    ],
)
def test_a_bench_that_cannot_be_run_is_refused_before_anything_starts(
    words: Sequence[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "opened", lambda options: pytest.fail("a session was opened"))
    assert execute(["bench", *words]) == USAGE
    assert message in capsys.readouterr().err


def test_a_batch_is_what_spark_has_measured_of_it(tmp_path: Path) -> None:
    """The times of a stateful operator are sums over its tasks; batches without data are left out."""
    state = {"commitTimeMs": 260, "numStateStoreInstances": 2, "customMetrics": {"rocksdbCommitFileSyncLatencyMs": 100}}
    spent = {"triggerExecution": 900, "queryPlanning": 60, "walCommit": 70, "commitOffsets": 160, "addBatch": 600}
    progress = {"batchId": 4, "durationMs": spent, "stateOperators": [state], "sources": [{"numInputRows": 7}]}
    idle = {**progress, "sources": [{"numInputRows": 0}]}
    events = [{"Event": "SparkListenerJobEnd"}, *({"Event": PROGRESS, "progress": one} for one in (progress, idle))]
    (tmp_path / "log").write_text("".join(json.dumps(event) + "\n" for event in events))
    (batch,) = read_events(tmp_path / "log")
    assert batch == Batch(4, 7, 0.9, 0.06, 0.07, 0.13, 0.05, 0.16)
    assert round(batch.checkpoint, 6) == 0.42


def test_a_sink_is_measured_by_its_large_batch_and_those_behind_it() -> None:
    def batch(number: int, rows: int, seconds: float) -> Batch:
        return Batch(number, rows, seconds, 0, 0, 0, 0, 0)

    trials = [[batch(1, 10, 9.0), batch(2, 80, 2.0), batch(3, 10, 0.5), batch(4, 20, 0.7), batch(5, 2, 0.3)]] * 2
    measured = Sink("mine", "ledger", "exactly-once", trials)
    assert (measured.throughput, measured.latency) == (40.0, 0.5)


def test_bars_are_drawn_as_svg_and_png(tmp_path: Path) -> None:
    svg, png = stacked(tmp_path / "plot", "t", ["a", "b"], {"one": [1.0, 2.0], "two": [0.5, 0.0]})
    assert svg.read_text().lstrip().startswith("<?xml")
    assert png.read_bytes().startswith(b"\x89PNG")


def test_only_a_format_behind_the_name_of_a_plot_is_left_out() -> None:
    assert [str(file) for file in drawn(Path("docs/recovery.v2"))] == ["docs/recovery.v2.svg", "docs/recovery.v2.png"]
    assert [str(file) for file in drawn(Path("docs/recovery.png"))] == ["docs/recovery.svg", "docs/recovery.png"]


def test_a_plot_that_a_directory_is_in_the_way_of_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plot.png").mkdir()
    with pytest.raises(UsageError, match=r"plot\.png cannot be written \(Is a directory\): give another path"):
        check_plot(tmp_path / "plot")
    assert [file.name for file in tmp_path.iterdir()] == ["plot.png"]


def test_the_cost_of_being_armed_is_the_median_of_pairs_with_the_interval_that_it_lies_in() -> None:
    pairs = [Pair(armed=100 - lost, bare=100) for lost in (9, 1, 3, 2, -5, 4, 2, 3, 2, 30)]
    found = Overhead(CASES[0], pairs)
    assert round(found.median, 3) == 0.025
    assert [round(one, 2) for one in found.interval] == [0.01, 0.09]
    assert Overhead(CASES[0], pairs[:1]).interval == (pairs[0].cost, pairs[0].cost)


def test_what_is_armed_strikes_at_a_batch_that_never_comes() -> None:
    nowhere = {case.name: case.never for case in CASES}
    assert nowhere.pop("steps of brokers") == "[kafka_partition=999]"
    assert set(nowhere.values()) == {f"[batch={10 * overhead.BATCHES}]"}
    assert all(f"{case.never} -> kill(driver)" in case.plan for case in CASES)
