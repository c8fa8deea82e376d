"""A job that gives other rows when a batch is run again is told apart from a sink that keeps them badly."""

from __future__ import annotations

from pathlib import Path

import pytest
from onceproof.harness.certification.repeats import determinism_of
from onceproof.harness.cli.run import looked_into
from onceproof.harness.jobs import find_job
from onceproof.harness.request import Request
from onceproof.harness.session import Session
from trials import SMALL, described

NAMED = 'main(lambda rows: rows.withColumn("event", expr("uuid()")).withColumn("dice", rand()))'

BY_EVENT = """
import psycopg
from psycopg.rows import dict_row

GUARANTEE = "exactly-once"
SERVICES = ("postgres",)


def prepare(target):
    with psycopg.connect(target.postgres) as connection:
        connection.execute("CREATE TABLE events (event uuid PRIMARY KEY, id bigint, key text, value double precision, "
                           "event_time timestamptz, payload text)")


def write_batch(df, batch_id, target):
    names = ["event", *target.columns]
    rows = [[row[name] for name in names] for row in df.collect()]
    with psycopg.connect(target.postgres) as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO events ({', '.join(names)}) VALUES ({', '.join(['%s'] * len(names))}) "
                           "ON CONFLICT (event) DO UPDATE SET value = excluded.value", rows)


def read(target):
    with psycopg.connect(target.postgres, row_factory=dict_row) as connection:
        return connection.execute("SELECT * FROM events").fetchall()
"""


@pytest.fixture
def named(tmp_path: Path) -> Path:
    """A job that gives each event a name by chance."""
    text = find_job("passthrough").path.read_text()
    file = tmp_path / "named.py"
    wrong = text.replace("    main()\n", f"    {NAMED}\n").replace("import col,", "import col, expr, rand,")
    assert "rand()" in wrong
    file.write_text(wrong)
    file.with_suffix(".sql").write_text("SELECT * FROM input")
    return file


@pytest.mark.long
def test_names_given_by_chance_are_told_as_the_jobs_fault(session: Session, tmp_path: Path, named: Path) -> None:
    sink = tmp_path / "by_event.py"
    sink.write_text(BY_EVENT)
    plan = "batch.commit:before[batch=1] -> kill(driver)"
    request = Request(str(sink), plan, job=str(named), workload=SMALL, directory=tmp_path / "run")
    result = looked_into(session, request, session.trial(request))
    assert [anomaly.kind for anomaly in result.verdict.anomalies] == ["duplicated"], described(result)
    assert result.determinism is not None
    (batch,) = result.determinism.batches
    assert (batch.batch, len(set(batch.digests)), batch.columns) == (1, 2, ["event", "dice"])


@pytest.mark.long
def test_a_job_with_state_gives_the_same_rows_again(session: Session, tmp_path: Path) -> None:
    request = Request("postgres_upsert", job="wordcount", workload=SMALL)
    found = determinism_of(session, request, tmp_path, [0, 1])
    assert found is not None
    assert found.deterministic, found
    assert [batch.batch for batch in found.batches] == [0, 1]
