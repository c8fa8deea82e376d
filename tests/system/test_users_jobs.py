"""Jobs with an expectation of their own, and sinks that keep one row of each key."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import Command
from onceproof.assertions import Workload, load
from onceproof.harness.jobs import REFERENCE
from onceproof.harness.sinks import find_sink
from trials import Run, described, landed, line_of, long

JOB = REFERENCE.read_text()
FILTERED = JOB.replace('select("row.*")', 'select("row.*").where("value >= 0")')
EXPECTED = "SELECT * FROM input WHERE value >= 0\n"
ALL = "SELECT * FROM input\n"

COUNTS = JOB.replace(
    'select("row.*")',
    'selectExpr("row.id", "CAST(row.value * 8 AS BIGINT) AS eighths", "CAST(-row.id AS STRING) AS negative")',
)
COUNTED = "SELECT id, CAST(value * 8 AS BIGINT) AS eighths, CAST(-id AS VARCHAR) AS negative FROM input\n"

SMALL = Workload(batches=2, rows=24)
FULL = Workload()
"""Keys come back often in it."""
SIZES = ("--batches=2", "--rows=24")

APPENDS = """
import json
from pathlib import Path

GUARANTEE = "exactly-once"
SERVICES = ("directory",)

def write_batch(df, batch_id, target):
    Path(target.directory, f"{batch_id}.json").write_text("\\n".join(df.toJSON().collect()))

def read(target):
    texts = [file.read_text() for file in Path(target.directory).iterdir()]
    return [json.loads(line) for text in texts for line in text.split("\\n") if line]
"""


@pytest.mark.parametrize(
    ("job", "sql", "anomalies"),
    [(FILTERED, ALL, ["lost"]), long(JOB, EXPECTED, ["phantom"]), long(COUNTS, COUNTED, [])],
    ids=["a filter in the job only", "a filter in the expectation only", "other columns"],
)
def test_a_job_of_ones_own_is_judged_by_its_expectation(
    trial: Run, tmp_path: Path, job: str, sql: str, anomalies: list[str]
) -> None:
    paths = written(tmp_path, job, sql)
    result = trial(paths["sink"], job=str(paths["job"]), expect=str(paths["expect"]), workload=SMALL)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == anomalies, described(result)
    assert result.verdict.outcome == ("fail" if anomalies else "pass")


@pytest.mark.long
def test_a_filter_in_job_and_expectation_holds_and_is_judged_the_same_again(onceproof: Command) -> None:
    paths = written(onceproof.directory, FILTERED, EXPECTED)
    ended = onceproof("run", *(f"--{name}={path.name}" for name, path in paths.items()), *SIZES, "--json")
    assert ended.code == 0, ended.err or ended.out
    assert ended.json["job"] == {"name": "copied", "path": str(paths["job"]), "expectation": str(paths["expect"])}
    assert ended.json["evidence"]["records"]["expected"] < sum(
        ended.json["evidence"]["records"]["batch_sizes"].values()
    )
    again = onceproof("check", ended.json["run_directory"], "--json")
    assert (again.code, again.json["reason"]) == (0, ended.json["reason"])


def written(directory: Path, job: str, sql: str) -> dict[str, Path]:
    paths = {"job": directory / "copied.py", "expect": directory / "mine.sql", "sink": directory / "appends.py"}
    for path, text in zip(paths.values(), (job, sql, APPENDS), strict=True):
        path.write_text(text)
    return paths


@pytest.mark.long
def test_an_upsert_by_key_keeps_the_last_arrival_of_each_key(trial: Run) -> None:
    result = trial("postgres_latest", "sink.write:after[batch=1] -> kill(driver)", workload=FULL)
    assert result.verdict.outcome == "pass", described(result)
    assert landed(result)
    assert load(result.directory).expectation.latest == ("key",)
    assert result.verdict.records["expected"] == 96, "the keys of the default workload"


@pytest.mark.long
def test_an_upsert_by_key_with_a_driver_that_wakes_up_late_keeps_the_last_arrival_of_each_key(trial: Run) -> None:
    here = f"line[postgres_latest.py:{line_of('postgres_latest', 'cursor.executemany(')}]"
    result = trial(
        "postgres_latest", f"{here}[batch=1] -> pause(driver) until batch.commit:after[batch=3]", workload=FULL
    )
    assert result.verdict.outcome == "pass", described(result)


@pytest.mark.long
def test_an_upsert_by_key_without_the_batchs_number_lets_a_driver_that_wakes_up_late_put_older_rows_in_place(
    trial: Run, tmp_path: Path
) -> None:
    guard, sink = "WHERE excluded.batch >= latest.batch", tmp_path / "unguarded.py"
    text = find_sink("postgres_latest").read_text()
    assert guard in text
    sink.write_text(text.replace(guard, ""))
    line = line_of("postgres_latest", "cursor.executemany(")
    plan = f"line[unguarded.py:{line}][batch=1] -> pause(driver) until batch.commit:after[batch=3]"
    result = trial(sink, plan, workload=FULL)
    assert result.verdict.outcome == "fail", described(result)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["stale"]


@pytest.mark.long
def test_an_upsert_by_key_that_lets_an_older_event_stand_is_found(trial: Run) -> None:
    here = f"line[upsert_older_wins.py:{line_of('upsert_older_wins', 'cursor.executemany(')}]"
    result = trial("upsert_older_wins", f"{here}[batch=3]#2 -> kill(driver)", workload=FULL)
    assert result.verdict.outcome == "fail", described(result)
    (stale,) = result.verdict.anomalies
    assert (stale.kind, list(stale.batches)) == ("stale", [3])
    assert "another row of their key arrived later" in stale.causes[0]


@pytest.mark.long
def test_an_upsert_by_key_that_lets_an_older_event_stand_is_right_when_nothing_fails(trial: Run) -> None:
    assert trial("upsert_older_wins", workload=FULL).verdict.outcome == "pass"


@pytest.mark.long
def test_the_greatest_by_an_order_is_kept_where_the_sink_says_so(trial: Run, tmp_path: Path) -> None:
    text = find_sink("postgres_latest").read_text()
    text = text.replace('KEY = ("key",)', 'KEY = ("key",)\nORDER = "event_time"\nSETTLE = 0.5')
    right = text.replace("WHERE excluded.batch >= latest.batch", "WHERE excluded.event_time >= latest.event_time")
    right = right.replace("for row in df.toArrow().to_pylist()}", "for row in by_time(df.toArrow().to_pylist())}")
    right += '\n\ndef by_time(rows):\n    return sorted(rows, key=lambda row: row["event_time"])\n'
    for name, sink, outcome in (("greatest.py", right, "pass"), ("last.py", text, "fail")):
        (tmp_path / name).write_text(sink)
        result = trial(tmp_path / name, "sink.write:after[batch=1] -> kill(driver)", workload=FULL)
        assert result.verdict.outcome == outcome, described(result)
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["stale"]
    (settled,) = [event["t"] for event in result.journal if event["event"] == "settle"]
    first = next(event["t"] for event in result.journal if event["event"] == "reading" and event["at"] == "the end")
    assert first - settled >= 0.5, "SETTLE is waited for before the first reading"


SOCKET = Path(__file__).parents[2] / "examples" / "from_a_socket.py"


@pytest.mark.long
def test_a_job_whose_source_is_not_the_topic_holds_while_nothing_dies(trial: Run) -> None:
    result = trial("postgres_ledger", job=str(SOCKET))
    assert result.verdict.outcome == "pass", described(result)


@pytest.mark.long
def test_a_source_that_cannot_be_replayed_loses_what_a_dead_driver_had_read(trial: Run) -> None:
    # Batch 0 is empty: nothing has been sent when it begins.
    result = trial("postgres_ledger", "sink.write:before[batch=1] -> kill(driver)", job=str(SOCKET))
    assert landed(result)
    assert "lost" in {anomaly.kind for anomaly in result.verdict.anomalies}, described(result)
