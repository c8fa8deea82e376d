"""``onceproof sinks``, ``jobs`` and ``phases``: for a terminal, for a pipe, and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from onceproof.harness import jobs
from onceproof.harness.cli import execute, lists
from onceproof.harness.errors import UsageError

COMMANDS = ["sinks", "jobs", "phases", "actions"]
TECHNIQUES = {
    "append", "atomic rename", "idempotent", "ledger", "masked until committed", "two-phase commit", "write-ahead log"
}  # fmt: skip
COUNTS = ["sinks", "--job", "wordcount"]
TOTALS = """-- key: customer, day

SELECT key AS customer,
    CAST(event_time AS DATE) AS day, sum(value) AS total
FROM input GROUP BY ALL
"""
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert execute(words) == 0
    return capsys.readouterr().out.splitlines()


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal of 80 columns."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of jobs with one whose rows have other columns than the input."""
    (tmp_path / "totals.py").write_text('"""Totals of each customer,\nby day."""\n')
    (tmp_path / "totals.sql").write_text(TOTALS)
    monkeypatch.setattr(jobs, "JOBS", tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_gets_one_line_for_each_item_with_the_same_number_of_tabs(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    items = json.loads("".join(printed(capsys, command, "--json")))
    lines = printed(capsys, command)
    assert [line.split("\t")[0] for line in lines] == [item["name"] for item in items]
    assert len({line.count("\t") for line in lines}) == 1
    assert [line.split("\t")[-1] for line in lines] == [item["meaning"] for item in items]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.usefixtures("narrow")
def test_a_terminal_of_80_columns_is_wide_enough_and_no_word_is_cut(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    items = json.loads("".join(printed(capsys, command, "--json")))
    lines = [ESCAPES.sub("", line) for line in printed(capsys, command)]
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert all(f"{item['name']} " in text and item["meaning"] in text for item in items)
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [item["name"] for item in items]


@pytest.mark.usefixtures("narrow")
def test_a_phase_shows_which_process_is_stopped_and_by_what_it_is_selected(capsys: pytest.CaptureFixture[str]) -> None:
    text = " ".join(" ".join(ESCAPES.sub("", line) for line in printed(capsys, "phases")).split())
    assert "txn.prepare edges: after sinks: sinks with Kafka transactions stopped in: broker selectors: transac" in text


def test_each_technique_has_a_correct_sink_and_a_broken_one(capsys: pytest.CaptureFixture[str]) -> None:
    items = json.loads("".join(printed(capsys, "sinks", "--json")))
    broken = {item["technique"] for item in items if item["flaw"]}
    assert broken == {item["technique"] for item in items if not item["flaw"]} == TECHNIQUES


@pytest.mark.usefixtures("narrow")
def test_a_sink_shows_what_it_claims_and_its_flaw_if_it_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [ESCAPES.sub("", line) for line in printed(capsys, "sinks")]
    assert "kafka_append  claims: at-least-once  technique: append" in lines
    assert "postgres_insert  claims: exactly-once  technique: append  flaw: duplicated" in lines


def test_a_job_shows_its_key_its_columns_and_the_sinks_that_hold_its_rows(
    job: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = printed(capsys, "jobs")
    name, key, columns, sinks, meaning = line.split("\t")
    assert (name, key, columns) == ("totals", "customer, day", "customer, day, total")
    assert meaning == "Totals of each customer, by day."
    assert "postgres_upsert" in sinks.split(", ")
    assert "postgres_latest" not in sinks.split(", "), "its rows have a key and other columns"
    (found,) = json.loads("".join(printed(capsys, "jobs", "--json")))
    assert found["columns"] == {"customer": "text", "day": "timestamp", "total": "double"}
    assert found["sql"] == "SELECT key AS customer, ..."
    assert found["key"] == ["customer", "day"]
    assert found["expectation"] == str(job / "totals.sql")


def test_the_reference_job_passes_its_input_on_by_id(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = [line for line in printed(capsys, "jobs") if line.startswith("passthrough\t")]
    assert line.split("\t")[1:3] == ["id", "id, key, value, event_time, payload"]


def test_the_sinks_of_a_job_are_those_that_can_hold_its_rows(capsys: pytest.CaptureFixture[str]) -> None:
    every, fitting = ({line.split("\t")[0] for line in printed(capsys, *words)} for words in (["sinks"], COUNTS))
    assert {"postgres_upsert", "kafka_append"} <= fitting < every
    assert "postgres_insert" in every - fitting, "it has columns of its own"
    assert {"kafka_transactional", "file_manifest"} <= every - fitting, "Spark gives them no updates"


@pytest.mark.parametrize(
    ("job", "sql", "why"),
    [
        ("def (", "SELECT * FROM input", r"job \S+mine\.py, line 1: SyntaxError: "),
        ("", "SELECT key FROM input", r"mine\.sql: the expectation's result has no column 'id'"),
        ("", "SELECT nothing", r"mine\.sql: the expectation is no SQL that DuckDB runs"),
    ],
)
def test_a_job_that_cannot_be_used_is_one_clear_line(tmp_path: Path, job: str, sql: str, why: str) -> None:
    (tmp_path / "mine.py").write_text(job)
    (tmp_path / "mine.sql").write_text(sql)
    with pytest.raises(UsageError, match=why) as error:
        lists.sinks(job=str(tmp_path / "mine.py"))
    assert "\n" not in str(error.value)


def test_a_job_without_a_name_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="--job  "):
        lists.sinks(job="")
