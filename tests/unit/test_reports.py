"""A stored result as text, whichever report is asked for; what is asked for wrongly is one clear line."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from onceproof.assertions import save, verdict_as_json
from onceproof.harness import reports
from onceproof.harness.certification.certificate import CERTIFICATE, Certificate, certificate_as_json, write_certificate
from onceproof.harness.certification.certify import Sweep
from onceproof.harness.cli import execute
from onceproof.harness.console.sweep import SweepReport
from onceproof.harness.console.trial import print_verdict
from onceproof.harness.errors import UsageError
from onceproof.harness.reports import StoredTrial, report_named, written
from onceproof.harness.trial.record import TRIAL
from paper_trial import everything_and, evidence, fault, ids_of, killed_in_batch_1, verdict
from rich.console import Console
from test_results import result

DUPLICATED = verdict(everything_and(ids_of(1)), killed_in_batch_1(), fault())
ANSI = "\x1b["


def certificate(**changes: Any) -> Certificate:
    point = result().model_dump()
    line = {"file": "my_sink.py", "action": "fail", "role": "first", "points": 1}
    cells = [
        {"step": "sink.write:after", "action": "kill(driver)", "role": "second", "status": "pass", "points": 1},
        line | {"step": "line my_sink.py:7", "status": "fail"},
        line | {"step": "line my_sink.py:9", "status": "pass"},
        {"step": "task.run:after", "action": "kill(executor)", "role": "first", "status": "not possible here"}
        | {"points": 1, "reason": "needs --master standalone"},
    ]
    broken = point | {"step": "line my_sink.py:7", "plan": "line[my_sink.py:7] -> fail", "verdict": "fail"}
    found: dict[str, Any] = {
        "verdict": "fail",
        "summary": "fail as exactly-once: 2 points over 5 batches",
        "guarantee": "at-least-once",
        "claim": "exactly-once",
        "sink": {"name": "my_sink", "path": "/sinks/my_sink.py", "guarantee": "exactly-once"},
        "batch": 2,
        "seed": 7,
        "workload": {"seed": 7, "partitions": 3, "batches": 5, "rows": 216, "max_offsets_per_trigger": 900},
        "profile": "quick",
        "coverage": {"points": 2, "run": 2, "landed": 2},
        "scope": {"summary": "2 points", "roles": {"first": 0, "second": 1}, "cells": cells, "unswept": []},
        "anomalies": {"duplicated": 1},
        "notes": ["read() hides 3 of 9 rows"],
        "reference": {name: point[name] for name in ("verdict", "exactly_once", "guarantee", "reason", "anomalies")}
        | {"seconds": 1.0, "run_directory": "/run/reference"},
        "points": [point, broken | {"anomalies": {"duplicated": 24}, "reason": "24 rows | twice"}],
        "seconds": 60.0,
        "environment": {},
        "inputs": {},
        "run_directory": "/run",
    }
    return Certificate.model_validate(found | changes)


@pytest.fixture
def stored(tmp_path: Path) -> StoredTrial:
    return StoredTrial(DUPLICATED, tmp_path)


def test_every_report_writes_both_kinds_of_results(stored: StoredTrial) -> None:
    assert {"json", "markdown", "text"} <= set(reports.reports())
    for name in reports.reports():
        report = report_named(name)
        assert report.meaning
        for kind in (stored, certificate()):
            text = written(report, kind)
            assert text == text.rstrip("\n") != ""
            assert ANSI not in text


def test_the_text_is_what_a_command_prints(stored: StoredTrial, capsys: pytest.CaptureFixture[str]) -> None:
    print_verdict(DUPLICATED, Console(width=120))
    SweepReport(Console(width=120)).summary(certificate())
    report = report_named("text")
    assert written(report, stored) + "\n" + written(report, certificate()) + "\n" == capsys.readouterr().out


def test_a_certificate_says_all_at_80_columns_what_broke_with_its_plan(capsys: pytest.CaptureFixture[str]) -> None:
    SweepReport(Console(width=80)).summary(certificate())
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert "my_sink, batches: first 0, second 1" in lines
    at = lines.index("lines of my_sink.py")
    assert lines[at + 1].split(maxsplit=1) == ["fail", "FAIL first 2"]
    at = lines.index("FAIL line my_sink.py:7: exactly-once, duplicated 24")
    assert lines[at + 1 : at + 3] == ["24 rows | twice", "plan: line[my_sink.py:7] -> fail"]
    assert "\N{HORIZONTAL ELLIPSIS}" not in "".join(lines)


def test_a_part_of_a_sweep_is_announced_by_what_it_adds_and_by_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    report, reference = SweepReport(Console(width=120)), certificate().reference
    for points, runs, stored in ((9, 0, 9), (9, 2, 9), (9, 0, 11), (12, 3, 11)):
        report.announce(Sweep(reference, points, runs, stored, 60.0 * runs))
    assert capsys.readouterr().out.splitlines() == [
        "  reference: pass (1.0 s); 9 points, 9 of them done before",
        "  2 runs follow, about 2.0 min",
        "  3 more points, from the trials until now; 3 runs follow, about 3.0 min",
    ]


def test_the_json_is_the_verdict_with_its_directory_or_the_certificate(stored: StoredTrial) -> None:
    report = report_named("json")
    assert json.loads(written(report, stored)) == json.loads(
        json.dumps(verdict_as_json(DUPLICATED) | {"run_directory": str(stored.directory)})
    )
    assert json.loads(written(report, certificate())) == certificate_as_json(certificate())


def test_markdown_tells_what_broke_and_why(tmp_path: Path) -> None:
    about = {"sink": {"name": "my_sink"}, "seed": 7}
    text = written(report_named("markdown"), StoredTrial(DUPLICATED, tmp_path, about))
    assert text.startswith("# my\\_sink: fail as exactly-once\n")
    assert "\n## duplicated: " in text
    assert "| `sink.commit:after[batch=1] -> kill(driver)` | reached, fired, confirmed |" in text
    assert "\n| seed | 7 |\n" in text
    assert "\n- " in text


def test_markdown_of_a_certificate_has_the_matrix_and_the_points_that_broke() -> None:
    text = written(report_named("markdown"), certificate())
    assert text.startswith("# my\\_sink: fail as exactly-once\n")
    assert "| step | action | first (0) | second (1) | any |" in text
    assert "| `sink.write:after` | `kill(driver)` |  | pass |  |" in text
    assert "| `lines of my_sink.py` | `fail` | **fail** 2 |  |  |" in text
    assert "task.run:after" not in text, "what is not possible here is no row"
    assert "| `line[my_sink.py:7] -> fail` | fail | exactly-once | duplicated 24 | 24 rows \\| twice |" in text
    assert "\n- read() hides 3 of 9 rows" in text


def test_what_no_line_of_is_struck_is_named() -> None:
    plain = certificate()
    scope = plain.scope.model_copy(update={"unswept": ["my_sink.py: retry"], "elsewhere": ["acme"]})
    stored = plain.model_copy(update={"scope": scope})
    text = " ".join(written(report_named("text"), stored).split())
    assert "so not swept by lines: my_sink.py: retry imported from elsewhere" in text
    assert "than the sink's directory, so not swept by lines: acme beyond every sweep" in text
    for entry in ("my_sink.py: retry", "acme"):
        assert f"not swept by lines\n\n- `{entry}`\n" in written(report_named("markdown"), stored)


def test_a_guarantee_that_was_not_found_out_is_undetermined(tmp_path: Path) -> None:
    unknown = StoredTrial(replace(DUPLICATED, guarantee=None), tmp_path)
    for kind in (unknown, certificate(guarantee=None)):
        assert "guarantee observed: undetermined" in written(report_named("text"), kind)
        assert "| guarantee observed | undetermined |" in written(report_named("markdown"), kind)


def test_whatever_a_text_holds_the_rows_of_a_markdown_table_stay_whole(tmp_path: Path) -> None:
    odd = replace(DUPLICATED, notes=["a | b\n| c `d` <script>"])
    text = written(report_named("markdown"), StoredTrial(odd, tmp_path / "a|b`c"))
    assert "- a \\| b \\| c \\`d\\` \\<script>" in text
    assert "a\\|b`c" in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


def test_a_report_that_is_none_is_named_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match=r"^--report 'html' is unknown: it is one of .*json, markdown, text"):
        report_named("html")


@pytest.fixture
def run_directory(tmp_path: Path) -> Path:
    save(evidence(everything_and(ids_of(1)), killed_in_batch_1(), fault()), tmp_path)
    (tmp_path / TRIAL).write_text('{"sink": {"name": "my_sink"}, "verdict": "pass"}')
    return tmp_path


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = execute(["check", *words])
    found = capsys.readouterr()
    return code, found.out, found.err


def test_check_prints_the_report_that_is_asked_for(run_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = checked(capsys, str(run_directory), "--report", "markdown")
    assert (code, err) == (1, "")
    assert out.startswith("# my\\_sink: fail as exactly-once\n")
    assert checked(capsys, str(run_directory), "--json") == checked(capsys, str(run_directory), "--report", "json")
    assert json.loads(checked(capsys, str(run_directory), "--json")[1])["verdict"] == "fail"
    assert checked(capsys, str(run_directory), "--report", "text")[1].startswith("verdict: fail as exactly-once\n")


def test_a_run_directory_without_a_document_of_its_own_is_reported_all_the_same(
    run_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for text in ("{", "[]", "{}"):
        (run_directory / TRIAL).write_text(text)
        assert checked(capsys, str(run_directory), "--report", "markdown")[1].startswith("# fail as exactly-once\n")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--report", "html"), r"--report 'html' is unknown: it is one of .*json, markdown, text"),
        (("--report", "markdown", "--json"), "--json is the same as --report json"),
    ],
)
def test_what_is_asked_for_wrongly_is_one_line(
    run_directory: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], why: str
) -> None:
    code, out, err = checked(capsys, str(run_directory), *words)
    assert (code, out) == (2, "")
    assert re.match(f"onceproof: {why}", err)
    assert err.count("\n") == 1


def test_a_claim_is_not_put_to_a_sweep(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_certificate(certificate(), tmp_path)
    assert (tmp_path / CERTIFICATE).is_file()
    code, out, err = checked(capsys, str(tmp_path), "--claim", "at-least-once")
    assert (code, out) == (2, "")
    assert "check --claim takes a run directory, not that of a sweep" in err
