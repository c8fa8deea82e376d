"""``onceproof check`` on a directory that is no run's: what it says is there instead."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest
from onceproof.assertions import save, storage
from onceproof.assertions.storage import EVIDENCE, JOURNAL
from onceproof.harness.certification.certificate import CERTIFICATE, write_certificate
from onceproof.harness.certification.settings import SETTINGS
from onceproof.harness.cli import execute
from onceproof.harness.errors import BROKE, HELD, INCONCLUSIVE, USAGE
from onceproof.harness.trial.record import TRIAL
from paper_trial import evidence
from test_reports import certificate

Refusal = Callable[[Path], str]


@pytest.fixture
def refusal(capsys: pytest.CaptureFixture[str]) -> Refusal:
    """What ``onceproof check`` says of a directory that it refuses."""

    def said(directory: Path) -> str:
        assert execute(["check", str(directory)]) == USAGE
        (line,) = capsys.readouterr().err.splitlines()
        return line.removeprefix("onceproof: ")

    return said


def sweep(directory: Path) -> Path:
    directory.mkdir(parents=True)
    write_certificate(certificate(), directory)
    return directory


def run(directory: Path) -> Path:
    directory.mkdir(parents=True)
    save(evidence(), directory)
    return directory


def test_the_sweeps_that_a_directory_holds_are_named(tmp_path: Path, refusal: Refusal) -> None:
    """As that of ``onceproof demo``, and the one that holds it."""
    one, two = sweep(tmp_path / "runs" / "demo" / "a"), sweep(tmp_path / "runs" / "demo" / "b")
    for directory in (tmp_path / "runs" / "demo", tmp_path / "runs"):
        assert refusal(directory) == f"{directory} is no run directory, but holds 2 sweeps: check {one} or {two}"


def test_of_many_that_a_directory_holds_the_last_are_named(tmp_path: Path, refusal: Refusal) -> None:
    for name in ("1", "2", "3"):
        run(tmp_path / name)
    sweep(tmp_path / "4")
    assert refusal(tmp_path) == (
        f"{tmp_path} is no run directory, but holds 1 sweep and 3 runs: check one, such as {tmp_path}/2, {tmp_path}/3 "
        f"or {tmp_path}/4"
    )


def test_a_sweep_without_a_certificate_is_gone_on_with(tmp_path: Path, refusal: Refusal) -> None:
    run(tmp_path / "001")
    (tmp_path / SETTINGS).write_text("{}")
    assert refusal(tmp_path) == (
        f"{tmp_path} is a sweep's directory without a certificate: 'onceproof certify --resume {tmp_path}' writes one"
    )


def test_what_holds_nothing_is_told_from_what_is_not_there(tmp_path: Path, refusal: Refusal) -> None:
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file") == f"{tmp_path}/file is a file: give the path of a run directory"
    assert refusal(tmp_path / "none") == f"{tmp_path}/none does not exist: give the path of a run directory"
    assert refusal(tmp_path).startswith(f"{tmp_path} is not a run directory: it has no {EVIDENCE}")


@pytest.mark.parametrize("text", ['{"verdict": "pass"}', '{"verdict": "pa'])
def test_a_certificate_of_another_version_or_a_part_of_one_is_written_anew(
    text: str, tmp_path: Path, refusal: Refusal
) -> None:
    directory = sweep(tmp_path / "sweep")
    (directory / CERTIFICATE).write_text(text)
    reason = "another version of onceproof has written it, or it is damaged"
    assert f": {reason}: 'onceproof certify' writes it anew" in refusal(directory)
    (directory / SETTINGS).write_text("{}")
    found = refusal(directory)
    assert found.startswith(f"{directory}/{CERTIFICATE}: ")
    assert found.endswith(f": {reason}: 'onceproof certify --resume {directory}' writes it anew")


@pytest.mark.parametrize("text", ["{}", '{"claim": "exac'])
def test_evidence_of_another_version_or_a_part_of_it_says_so(text: str, tmp_path: Path, refusal: Refusal) -> None:
    directory = run(tmp_path / "run")
    (directory / EVIDENCE).write_text(text)
    found = refusal(directory)
    assert f"{EVIDENCE}: " in found
    assert found.endswith(": another version of onceproof has written it, or it is damaged: run it again")


def test_a_file_that_is_missing_is_no_other_version(tmp_path: Path, refusal: Refusal) -> None:
    directory = run(tmp_path / "run")
    (directory / "truth.parquet").unlink()
    assert refusal(directory) == f"run directory {directory} is damaged: truth.parquet is missing"


DEEP = "[" * 100_000


def test_a_trials_own_document_that_is_nested_too_deeply_changes_no_verdict(tmp_path: Path) -> None:
    directory = run(tmp_path / "run")
    (directory / TRIAL).write_text(DEEP)
    assert execute(["check", str(directory), "--json"]) in (HELD, BROKE, INCONCLUSIVE)


def test_a_journal_that_is_nested_too_deeply_is_no_json(tmp_path: Path) -> None:
    (tmp_path / JOURNAL).write_text(f"{DEEP}\n")
    with pytest.raises(ValueError, match=r"^line 1 of journal\.jsonl is no JSON$"):
        storage._journal(tmp_path / JOURNAL)


def test_evidence_that_may_not_be_read_is_not_called_damaged(
    tmp_path: Path, refusal: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = run(tmp_path / "run")

    def fail(path: Path, *arguments: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(storage, "read_document", fail)
    what = f"{directory}/{EVIDENCE} cannot be read (Permission denied)"
    assert refusal(directory) == f"run directory {directory}: {what}: change its permissions"
