"""Certification on the running system: what is swept, how runs are packed, and what a certificate says of itself."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from command import Command, InProcess
from onceproof.assertions import Guarantee, Workload
from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.certify import certify
from onceproof.harness.certification.rejudge import rejudge
from onceproof.harness.certification.results import RESULTS, PointResult
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.request import Request
from onceproof.harness.runtime.waiting import NotYet, wait_for
from onceproof.harness.session import Session
from onceproof.harness.sinks import find_sink
from trials import line_of, long

pytestmark = pytest.mark.timeout(1800)

FOUND = {
    "ledger_by_attempt": ("task.commit:after", "duplicated"),
    "commits_at_close": ("task.row:before", "lost"),
    "ledger_in_a_task": ("task.input:before", "lost"),
    "ledger_without_batch_zero": ("sink.write:after", "duplicated"),
    "rewrites_known_batches": ("line *:{cursor.executemany(INSERT, rows)}", "lost"),
    "takes_silence_for_no": ("request:after,line *", "duplicated"),
    "looks_before_it_locks": ("line *:{fcntl.flock(}", "lost"),
    "pops_before_it_commits": ("line *:{connection.execute(STORE}", "lost"),
    "looks_back_an_hour": ("sink.write:after", "duplicated"),
    "error_taken_for_absent": ("line *:{return connection.execute(KNOWN}", "duplicated"),
    "gives_up_on_conflicts": ("line *:{cursor.execute(RECORD}", "lost"),
    "knows_the_last_batch_only": ("sink.write:before", "duplicated"),
    "stages_in_one_table": ("line *:{with psycopg.connect(target.postgres) as connection, connection}", "lost"),
    "locks_nothing_at_first": ("line *:{cursor.executemany(insert(target), rows)}", "duplicated"),
    "notes_progress_of_the_rest": ("request:after", "duplicated"),
    "archives_after_ten_batches": ("request:after", "duplicated"),
    "archives_every_tenth_batch": ('without a fault,line *:{cursor.execute("TRUNCATE events")}', "duplicated"),
    "goes_on_with_leftovers": ("line *:{connection.execute(END, mine)}", "duplicated"),
    "removes_leftovers_unfenced": ("line *:{connection.execute(END, mine)}", "lost"),
    "halves_on_timeout": ("line *:{cursor.executemany(insert(target), part)}", "duplicated"),
    "commits_apart_when_large": ("without a fault,line *:{cursor.execute(RECORD, batch)}", "duplicated"),
    "commits_when_told_to_stop": ("request:after", "duplicated"),
    "conflict_taken_for_written": ("request:before", "lost"),
    "leaves_it_unsynced": ("file:before", "lost"),
    "renamed_before_it_syncs": ("file:before", "lost"),
    "moved_from_elsewhere": ("file:before", "lost"),
    "puts_back_its_manifest": ("file:before", "lost"),
    "asks_for_one_topic_only": ("request:before", "lost"),
    "commits_what_is_prepared": ("task.run:after", "duplicated"),
    "audits_at_best": ("request:before", "lost"),
    "overwrites_in_place": ("file:before", "lost"),
    "replaces_its_manifest": ("line *:{draft.replace(}", "lost"),
    "queues_over_a_pool": ("line *:{client.sadd(LEDGER, batch)}", "lost"),
    "cleans_up_after_others": ("line *:{cursor.execute(PUBLISH}", "lost"),
    "forgets_older_batches": ("sink.write:before", "duplicated"),
    "empties_the_table_at_first": ('line *:{cursor.execute("TRUNCATE events, ledger")}', "lost"),
    "removes_orphans_at_start": ("line *:{orphans = [}", "unreadable"),
    "keeps_its_transaction": ("line *:{return f}", "lost"),
    "stages_by_batch": ("line *:{cursor.executemany(f}", "duplicated"),
    "keeps_its_buffer": ("request:before", "duplicated"),
    "leaves_chunks_in_its_pool": ("request:before", "duplicated"),
    "files_by_partition": ("batch.commit:before", "duplicated"),
    "leaves_it_to_the_lock": ("request:before", "lost"),
    "ids_without_a_query": ("request:before", "lost"),
    "waits_for_ten_seconds": ("request:before", "lost"),
    "retries_a_lost_answer": ("line *:{write(target, batch, rows)}", "duplicated"),
    "starts_over": ("line *:{connection.commit()}", "duplicated"),
    "notes_progress_apart": ("line *:{cursor.execute(NOTE}", "duplicated"),
    "quarantines_the_third_try": ("task.run:after", "lost"),
    "parks_on_the_last_attempt": ("task.run:before", "lost"),
    "returns_when_told_to_stop": ("sink.write:before", "lost"),
    "lease_without_fence": ("line *:{pipeline.execute()}", "duplicated"),
    "publishes_at_start_in_two_commits": ("line *:{cursor.execute(RECORD)}", "duplicated"),
    "goes_on_without_its_recovery": ("line *:{publish(target, batch_id)}", "lost"),
    "ledger_in_autocommit": ("request:before", "lost"),
    "upserts_in_background": ("request:before", "lost"),
    "sends_again_after_a_timeout": ("request:after", "duplicated"),
    "unlogged_tables": ("batch.commit:after", "lost"),
    "asynchronous_commit": ("request:after", "lost"),
    "published_by_copy": ("file:after", "lost"),
    "marks_before_it_closes": ("file:after", "lost"),
    "renamed_unsynced": ("batch.commit:after", "lost"),
    "orders_batches_as_text": ("batch.commit:before", "duplicated"),
    "commits_each_thousand": ("request:after", "duplicated"),
    "forgets_before_it_cleans": ("line *:{connection.execute(END, batch)}", "duplicated"),
    "last_task_marks_the_batch": ("all tasks but one ended", "lost"),
    "looks_before_it_fences": ("line *:{producer.flush(timeout=50)}", "duplicated"),
    "skips_after_three_failures": ("request:before", "lost"),
    "writes_in_place_behind_a_note": ("file:before", "lost"),
    "short_page_ends_the_batch": ("without a fault", "lost"),
    "clears_by_prefix": ("task.run:after", "lost"),
    "skips_at_a_duplicate": ("task.run:after", "lost"),
    "looks_from_where_it_stopped": ("batch.commit:before", "duplicated"),
    "removes_old_drafts": ("file:before", "lost"),
    "highest_attempt_counts": ("task.run:after", "lost"),
    "mark_goes_back": ("line *:{cursor.executemany(INSERT, rows)}", "lost"),
    "remembers_before_it_links": ("file:before", "lost"),
    "remembers_behind_the_commit": ("request:after", "duplicated"),
    "appends_to_its_draft": ("file:before", "duplicated"),
    "shares_its_draft": ("line *:{os.replace(draft}", "lost"),
    "orders_pieces_as_text": ("request:after", "duplicated"),
    "locks_on_another_connection": ("line *:{with psycopg.connect(target.postgres) as connection, c}", "duplicated"),
    "flushes_the_rest": ("request:before", "lost"),
    "inserts_by_one_statement": ("request:before", "duplicated"),
    "compacts_in_two_commits": ("request:before", "lost"),
    "attempts_share_a_place": ("request:before", "duplicated"),
    "stages_unlogged": ("sink.commit:before", "lost"),
}
"""Broken sinks that a sweep of the driver's death in one batch, once, takes for right: where they are found."""


def named(points: str, sink: str) -> str:
    """``line *:{text}`` with the number of the line that has the text."""
    return re.sub(r"\{(.*)\}", lambda text: str(line_of(sink, f"    {text[1]}")), points)


SMALL = ("--batches", "3", "--rows", "24")


def sweep(session: Session, sink: str, directory: Path, points: str = "all", **more: Any) -> Certificate:
    request = Request(sink, workload=Workload(batches=3, rows=48))
    return certify(session, request, directory, Wanted(points=points, parallel=1, **more))


def failed_with(kind: str, certificate: Certificate) -> Sequence[PointResult]:
    """The failed points of a certificate that fails, each of which has found ``kind``."""
    assert certificate.verdict == "fail", certificate.summary
    failed = [point for point in certificate.points if point.verdict == "fail"]
    assert all(kind in point.anomalies for point in failed), failed
    return failed


OF_ALL_BATCHES = (
    "ledger_without_batch_zero", "orders_batches_as_text", "commits_each_thousand", "locks_nothing_at_first",
    "archives_after_ten_batches", "archives_every_tenth_batch", "orders_pieces_as_text", "clears_by_prefix",
    "empties_the_table_at_first", "commits_apart_when_large", "short_page_ends_the_batch", "remembers_before_it_links",
    "skips_at_a_duplicate",
)  # fmt: skip
IN_SHORT = ("ledger_in_a_task",)


@pytest.mark.parametrize("sink", [sink if sink in IN_SHORT else long(sink) for sink in FOUND])
def test_a_flaw_that_one_crash_of_the_driver_in_one_batch_does_not_show_is_found(
    session: Session, tmp_path: Path, sink: str
) -> None:
    points, kind = FOUND[sink]
    batch = None if sink in OF_ALL_BATCHES else 1
    certificate = sweep(session, sink, tmp_path / "sweep", named(points, sink), fail_fast=True, batch=batch)
    assert certificate.reference.verdict == "pass", certificate.reference.reason
    failed = failed_with(kind, certificate)
    assert failed[0].plan in certificate.summary
    assert rejudge(certificate, tmp_path / "sweep") == certificate


TWO_FAULTS = {
    "reads_between_offsets": (
        "request:before[service=kafka, kind=Produce, batch=1]#2 -> "
        "pause(driver, longest=30s) until request:before[service=kafka, kind=Produce, batch=1]#2; "
        "request:before[service=kafka, kind=Produce, batch=1]#4 -> delay(longest=5s) until sink.write:after[batch=1]"
    ),
    "loses_its_epoch": (
        "request:before[service=postgres, kind=INSERT, batch=0]#2 -> drop; "
        "request:before[service=postgres, kind=INSERT, batch=1]#1 -> "
        "pause(driver, longest=30s) until batch.commit:after[batch=1]"
    ),
}
"""Of a sweep that takes long: a point that unit tests show it to have (test_mixed_writers, test_left_behind)."""


@pytest.mark.long
@pytest.mark.parametrize("sink", TWO_FAULTS)
def test_a_flaw_that_two_faults_show_is_found(session: Session, sink: str) -> None:
    verdict = session.trial(Request(sink, TWO_FAULTS[sink])).verdict
    assert [anomaly.kind for anomaly in verdict.anomalies] == ["duplicated"], verdict.reason
    assert all(fault.fired for fault in verdict.faults)


@pytest.mark.long
def test_what_spark_writes_by_jdbc_is_doubled_behind_a_request_that_is_named(session: Session, tmp_path: Path) -> None:
    request = Request("jdbc_append", claim=Guarantee.EXACTLY_ONCE, workload=Workload(batches=3, rows=48))
    wanted = Wanted(points="request:*", parallel=1, fail_fast=True, batch=1)
    certificate = certify(session, request, tmp_path / "sweep", wanted)
    failed = failed_with("duplicated", certificate)
    assert failed[0].plan.startswith("request:"), failed[0].plan
    assert failed[0].plan in certificate.summary


@pytest.mark.long
def test_rows_of_a_driver_that_shares_its_draft_are_told_to_be_its_doing(session: Session, tmp_path: Path) -> None:
    """Its successor had committed the batch, and stands still in the next one."""
    line = f"line[shares_its_draft.py:{line_of('shares_its_draft', '    os.replace(draft')}]"
    plan = (
        f"{line}[batch=1]#1 -> pause(driver, longest=30s) until {line}[batch=2]#1; "
        f"{line}[batch=2]#1 -> delay(longest=20s) until sink.write:after[batch=1]"
    )
    request = Request("shares_its_draft", plan, workload=Workload(batches=3, rows=48), directory=tmp_path / "run")
    verdict = session.trial(request).verdict
    (lost,) = [anomaly for anomaly in verdict.anomalies if anomaly.kind == "lost"]
    assert lost.batches == [1], verdict.reason
    assert f"{lost.count} of them were there until driver " in lost.causes[0], lost.causes


LIMITS = {
    "quarantines_the_third_try": ({"TRIES = 2": 'TRIES = int("5")'}, "request:before", "lost"),
    "waits_for_ten_seconds": ({"SECONDS = 10.0": "SECONDS = 30.0"}, "request:before", "lost"),
    "gives_up_after_five_tries": (
        {"TRIES = 5": "TRIES = 9", "FIRST_WAIT = 0.5": "FIRST_WAIT = 0.01"},
        "line *:{cursor.execute(RECORD, (query, batch_id))}",
        "lost",
    ),
}
"""Broken sinks with a limit that lies beyond what is tried of every sink: more deaths, more seconds, more tries."""


@pytest.mark.long
@pytest.mark.parametrize("sink", LIMITS)
def test_a_limit_that_the_sinks_code_names_is_gone_beyond(session: Session, tmp_path: Path, sink: str) -> None:
    texts, points, kind = LIMITS[sink]
    code = find_sink(sink).read_text()
    for old, new in texts.items():
        assert f"\n{old}\n" in code
        code = code.replace(f"\n{old}\n", f"\n{new}\n")
    (tmp_path / "mine.py").write_text(code)
    asked = named(points, sink)
    certificate = sweep(session, str(tmp_path / "mine.py"), tmp_path / "sweep", asked, fail_fast=True, batch=1)
    assert failed_with(kind, certificate)


def test_nothing_is_struck_in_a_sink_that_fails_without_a_fault(session: Session, tmp_path: Path) -> None:
    """A user's own sink that forgets the last row of each batch."""
    code = find_sink("postgres_upsert").read_text()
    (tmp_path / "mine.py").write_text(code.replace("df.toArrow().to_pylist()", "df.toArrow().to_pylist()[:-1]"))
    certificate = sweep(session, str(tmp_path / "mine.py"), tmp_path / "sweep", "phases")
    assert certificate.verdict == "fail"
    assert certificate.coverage.run == 0 < certificate.coverage.points
    assert re.search(r"without a fault: exactly-once broken: \d+ lost", certificate.summary), certificate.summary
    assert rejudge(certificate, tmp_path / "sweep").summary == certificate.summary


ONE_FILE = """
import json
from pathlib import Path
GUARANTEE = "exactly-once"
SERVICES = ()
TABLE = Path("PLACE")
def prepare(target):
    TABLE.mkdir(exist_ok=True)
    for file in TABLE.iterdir():
        file.unlink()
def write_batch(df, batch_id, target):
    rows = df.toArrow().to_pylist()
    (TABLE / f"{batch_id}.json").write_text(json.dumps(rows, default=str))
def read(target):
    return [row for file in TABLE.iterdir() for row in json.loads(file.read_text())]
"""


@pytest.mark.long
def test_trials_of_a_sink_that_always_writes_to_the_same_place_run_one_after_the_other(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(ONE_FILE.replace("PLACE", str(tmp_path / "rows")))
    request = Request(str(tmp_path / "mine.py"), workload=Workload(batches=3, rows=48))
    points = "sink.write:after,line *"
    certificate = certify(session, request, tmp_path / "sweep", Wanted(points=points, parallel=3, batch=1))
    assert certificate.verdict == "pass", certificate.summary
    assert any("writes to the same place" in note for note in certificate.notes)


THIN = """
from team import writer
GUARANTEE, SERVICES = "exactly-once", ("postgres",)
prepare, read = writer.prepare, writer.read
def write_batch(df, batch_id, target):
    writer.write(df, batch_id, target)
"""


@pytest.mark.long
def test_the_code_of_a_sink_that_lies_in_modules_of_its_directory_is_swept(session: Session, tmp_path: Path) -> None:
    broken = Path(__file__).resolve().parents[2] / "jobs" / "broken" / "ledger_not_atomic.py"
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "writer.py").write_text(broken.read_text().replace("def write_batch(", "def write("))
    (tmp_path / "thin.py").write_text(THIN)
    points = f"line team/writer.py:{line_of('ledger_not_atomic', 'cursor.execute(RECORD, batch)')}"
    certificate = sweep(session, str(tmp_path / "thin.py"), tmp_path / "sweep", points, fail_fast=True)
    assert certificate.verdict == "fail", certificate.summary
    assert "line[team/writer.py:" in certificate.summary


def outcomes(certificate: Certificate) -> Mapping[str, tuple[str, str | None, Mapping[str, int]]]:
    """What each point came to."""
    return {point.plan: (point.verdict, point.guarantee, point.anomalies) for point in certificate.points}


@pytest.mark.long
def test_packed_runs_and_runs_of_one_point_come_to_the_same(session: Session, tmp_path: Path) -> None:
    points = "sink.commit:after,batch.commit:after"
    packed = sweep(session, "kafka_append", tmp_path / "packed", points, profile="demo")
    alone = sweep(session, "kafka_append", tmp_path / "alone", points, profile="demo", pack=1)
    assert outcomes(packed) == outcomes(alone)
    assert {point.packed for point in alone.points} == {1}
    assert max(point.packed for point in packed.points) > 1, "no point shared a run"
    assert any(point.anomalies for point in packed.points)
    assert rejudge(packed, tmp_path / "packed") == packed


def test_a_sweep_that_was_killed_goes_on_where_it_stopped_and_refuses_another_sink(
    onceproof: Command, in_process: InProcess, tmp_path: Path
) -> None:
    sink = Path(__file__).resolve().parents[2] / "jobs" / "sinks" / "postgres_upsert.py"
    (tmp_path / "mine.py").write_text(sink.read_text())
    asked = ("mine.py", "--points", "sink.write:after", "--pack", "1", "--parallel", "1", "--batch", "1", *SMALL)
    command = onceproof.start("certify", *asked, "--run-directory", "sweep")
    results = tmp_path / "sweep" / RESULTS

    def first() -> bool | NotYet:
        assert command.poll() is None, command.communicate()
        return (results.exists() and results.read_text().count("\n") >= 1) or NotYet("no result")

    wait_for(first, 600, "the first result of the sweep")
    command.kill()
    command.communicate()
    kept = results.read_text()
    ended = onceproof("certify", "--resume", "sweep", "--json")
    assert ended.code == 0, ended
    assert results.read_text().startswith(kept), "what was there stays"
    plans = [json.loads(line)["result"]["plan"] for line in results.read_text().split("\n") if line]
    assert len(plans) == len(set(plans)) == ended.json["coverage"]["run"] == ended.json["coverage"]["points"] == 2
    checked = in_process("check", "sweep", "--json")
    assert checked.json == ended.json
    (tmp_path / "mine.py").write_text(sink.read_text() + "\n# another version\n")
    refused = in_process("certify", "--resume", "sweep")
    assert (refused.code, "sink mine.py has changed since" in refused.err) == (2, True), refused
