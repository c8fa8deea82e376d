"""The reference jobs: each gives what its expectation says, also after a crash, and a job with an error does not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from onceproof.harness.jobs import find_job, reference_jobs
from onceproof.harness.state_stores import STATE_STORES
from onceproof.harness.trial.recovery import recoveries_in
from trials import Run, described, landed, line_of, long

WRONG = {
    "deduplicate": ('withWatermark("event_time", "20 seconds").dropDuplicates()', 'where("value > -1000000000")'),
    "enrich": ("values * 2", "values * 3"),
    "join_streams": ("INTERVAL 5 SECONDS AND", "INTERVAL 4 SECONDS AND"),
    "fan_out": ('lit("files")', 'lit("table")'),
    "rising": ("before < last < event.value", "before <= last < event.value"),
    "running_sum": ("sum_up(rows: DataFrame) -> DataFrame:", "sum_up(rows: DataFrame) -> DataFrame:" + """
    rows = rows.where("event_time >= '2026-01-01 00:00:05'")"""),
    "session_window": ('session_window("event_time", "5 seconds")', 'session_window("event_time", "6 seconds")'),
    "sliding_window": ('"20 seconds", "10 seconds"', '"21 seconds", "10 seconds"'),
    "sum_by_item": ('sum("value")', 'sum("id")'),
    "tumbling_window": ('window("event_time", "10 seconds")', 'window("event_time", "9 seconds")'),
    "wordcount": ("word != ''", "length(word) > 1"),
}  # fmt: skip
"""For each job a text and what makes a wrong job of it: a wrong bound, late events dropped, words left out."""

FORGETS = '''

def add_up(batch, batch_id, write, totals={}):
    """Keeps the sums in the driver's memory: a restarted driver begins with none."""
    for row in batch.groupBy("key").agg(count("*").alias("n"), sum("value").alias("v")).collect():
        before = totals.get(row.key, (0, 0.0))
        totals[row.key] = (before[0] + row.n, before[1] + row.v)
    keys = {row.key for row in batch.select("key").distinct().collect()}
    rows = [(key, *totals[key]) for key in sorted(keys)]
    write(batch.sparkSession.createDataFrame(rows, "key string, events bigint, total double"), batch_id)


if __name__ == "__main__":
    import passthrough

    plain = passthrough.attach_sink

    def attach_sink(sink, rows, target):
        def write(batch, batch_id):
            sink.write_batch(batch, batch_id, target)

        return rows.writeStream.foreachBatch(lambda batch, batch_id: add_up(batch, batch_id, write))

    passthrough.attach_sink = attach_sink
    main(lambda rows: rows, "update")
'''


OTHERS = [path.stem for path in reference_jobs() if path.stem != "passthrough"]


@pytest.mark.long
@pytest.mark.parametrize("job", OTHERS)
def test_a_job_gives_what_its_expectation_says_after_a_crash(trial: Run, job: str) -> None:
    sink = "fan_out" if job == "fan_out" else "postgres_ledger"
    result = trial(sink, "sink.write:after[batch=1] -> kill(driver)", job=job)
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)


def test_every_job_but_the_plain_one_has_a_wrong_copy() -> None:
    assert sorted(WRONG) == OTHERS


@pytest.mark.parametrize("job", ["tumbling_window", *map(long, sorted(set(WRONG) - {"tumbling_window"}))])
def test_a_job_with_an_error_is_found(trial: Run, tmp_path: Path, job: str) -> None:
    right, wrong = WRONG[job]
    sink = "fan_out" if job == "fan_out" else "postgres_ledger"  # an upsert would make up for rows that come twice
    result = trial(sink, job=str(copied(job, tmp_path, right, wrong)))
    assert result.verdict.outcome == "fail", described(result)


@pytest.mark.long
def test_a_job_whose_state_is_gone_after_a_crash_is_found(trial: Run, tmp_path: Path) -> None:
    result = trial("postgres_upsert", "batch.commit:after[batch=1] -> kill(driver)", job=forgetful(tmp_path))
    assert result.verdict.outcome == "fail", described(result)


@pytest.mark.long
def test_a_job_that_reads_uncommitted_data_lets_rows_of_aborted_transactions_through(
    trial: Run, tmp_path: Path
) -> None:
    text = find_job("passthrough").path.read_text()
    (tmp_path / "hasty.py").write_text(text.replace('"read_committed"', '"read_uncommitted"'))
    (tmp_path / "hasty.sql").write_text("SELECT * FROM input")
    result = trial("postgres_ledger", job=str(tmp_path / "hasty.py"))
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["phantom"], described(result)
    assert "the job or its reader reads uncommitted data" in result.verdict.anomalies[0].causes[0]


@pytest.mark.long
def test_a_job_that_keeps_its_state_in_memory_is_right_until_it_dies(trial: Run, tmp_path: Path) -> None:
    result = trial("postgres_upsert", job=forgetful(tmp_path))
    assert result.verdict.outcome == "pass", described(result)


@pytest.mark.long
@pytest.mark.parametrize(("sink", "outcome"), [("fan_out", "pass"), ("fan_out_with_one_ledger", "fail")])
def test_a_crash_between_two_places_is_survived_only_if_both_take_the_replay(
    trial: Run, sink: str, outcome: str
) -> None:
    between = f"line[{sink}.py:{line_of(sink, 'write_file([row')}]"
    result = trial(sink, f"{between}[batch=1] -> kill(driver)", job="fan_out")
    assert result.verdict.outcome == outcome, described(result)
    assert landed(result)


SNAPSHOT = 'op=rename, path="checkpoint/state/*.zip"'


@pytest.mark.parametrize(
    ("job", "plan", "conf"),
    [
        long("session_window", "state.commit:after[batch=1] -> kill(driver)", STATE_STORES["rocksdb"]),
        long("join_streams", "state.commit:before[batch=1, store=right-keyToNumValues] -> fail", {}),
        long("tumbling_window", "state.commit:after[batch=1] -> kill(driver)", STATE_STORES["rocksdb-changelog"]),
        long("wordcount", f"file:before[{SNAPSHOT}, batch=1] -> kill(driver)", STATE_STORES["rocksdb"]),
        long("wordcount", f"file:after[{SNAPSHOT}, batch=1] -> fail(error=ENOSPC)", STATE_STORES["rocksdb"]),
    ],
    ids=["RocksDB", "files", "RocksDB with a changelog", "upload of a snapshot", "upload that fails"],
)
def test_a_crash_at_a_commit_of_state_changes_nothing(trial: Run, job: str, plan: str, conf: Mapping[str, str]) -> None:
    result = trial("postgres_upsert", plan, job=job, conf=conf)
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    if "kill(driver)" in plan:
        (recovery,) = recoveries_in(result.journal)
        assert 0 < recovery.load_state < recovery.total, "each task of the new driver has loaded its state"


def forgetful(directory: Path) -> str:
    text = find_job("running_sum").path.read_text()
    return str(copied("running_sum", directory, text[text.index("\n\nif __name__") :], FORGETS))


@pytest.mark.long
@pytest.mark.parametrize("job", ["tumbling_window", "passthrough"])
def test_a_job_that_does_not_end_by_itself_is_stopped_when_its_input_is_done(trial: Run, job: str) -> None:
    plan = "batch.commit:before[batch=1] -> kill(driver)"
    result = trial("postgres_ledger", plan, job=job, trigger="processingTime=500 milliseconds")
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    assert [event["event"] for event in result.journal].count("job.stopping") == 1
    assert result.verdict.records["expected"] == result.verdict.records["seen"]


def copied(job: str, directory: Path, right: str, wrong: str) -> Path:
    """A copy of a reference job with other text in one place, next to all that it imports and to its expectation."""
    found = find_job(job)
    text = found.path.read_text()
    assert right in text
    for file in (found.path.with_name("passthrough.py"), found.expectation_path):
        (directory / file.name).write_text(file.read_text())
    copy = directory / found.path.name
    copy.write_text(text.replace(right, wrong))
    return copy
