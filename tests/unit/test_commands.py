"""Commands that run trials, on paper: no trial runs, and what their session does is made up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.harness.certification.certificate import Certificate
from onceproof.harness.certification.wanted import Wanted
from onceproof.harness.cli import certify, demo, execute, run, sessions
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.environments.base import Unavailable
from onceproof.harness.errors import BROKE, UNAVAILABLE, USAGE
from onceproof.harness.request import Request
from onceproof.harness.trial.spec import TrialResult
from paper_trial import everything_and, fault, ids_of, killed_in_batch_1, verdict
from test_reports import certificate

BROKEN = verdict(everything_and(ids_of(1)), killed_in_batch_1(), fault())
WARNING = "onceproof: warning: the environment did not come to an orderly end: Unavailable: broker 1 lives on"
COMMANDS = [("run", "--sink", "kafka_append"), ("certify", "kafka_append"), ("demo",)]


class Session:
    """Finds that the claim broke, and cannot be closed."""

    def __init__(self, options: EnvironmentOptions, at_once: int | None = None) -> None:
        self.options = options

    def trial(self, request: Request) -> SimpleNamespace:
        return SimpleNamespace(
            verdict=BROKEN, warnings=(), timings={}, journal=(), directory=Path("/run"), determinism=None
        )

    def close(self) -> None:
        raise Unavailable("broker 1 lives on")


class Unavailing(Session):
    """Has no environment, and cannot be closed either."""

    def trial(self, request: Request) -> SimpleNamespace:
        raise Unavailable("no Java")


@pytest.fixture
def on_paper(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Commands run in an empty directory, with that session, and sweeps end in a certificate at once."""

    def sweep(*arguments: object, **keywords: object) -> Certificate:
        return certificate()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sessions, "Session", Session)
    monkeypatch.setattr(certify, "run_sweep", sweep)
    monkeypatch.setattr(demo, "certify", sweep)
    return monkeypatch


@pytest.mark.parametrize("words", COMMANDS, ids=[words[0] for words in COMMANDS])
@pytest.mark.usefixtures("on_paper")
def test_a_verdict_stands_though_the_environment_cannot_be_closed(
    words: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(words) == BROKE
    printed = capsys.readouterr()
    assert "run directory: " in printed.out
    assert printed.err.splitlines() == [WARNING]


@pytest.mark.usefixtures("on_paper")
def test_a_sweep_goes_on_with_as_many_trials_side_by_side_as_are_asked_for_now(
    tmp_path: Path, on_paper: pytest.MonkeyPatch
) -> None:
    swept: list[Wanted] = []

    def sweep(session: Session, request: Request, directory: Path, wanted: Wanted, **more: object) -> Certificate:
        swept.append(wanted)
        return certificate()

    on_paper.setattr(certify, "run_sweep", sweep)
    execute(["certify", "kafka_append", "--run-directory", "out", "--profile", "quick", "--parallel", "3"])
    execute(["certify", "--resume", "out"])
    execute(["certify", "--resume", "out", "--parallel", "1", "--fail-fast"])
    assert [(one.profile, one.parallel, one.fail_fast) for one in swept] == [
        ("quick", 3, False),
        ("quick", 3, False),
        ("quick", 1, True),
    ]


@pytest.mark.usefixtures("on_paper")
def test_plans_alone_are_asked_for_by_a_flag_that_goes_with_no_other_points(
    on_paper: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    swept: list[str] = []

    def sweep(session: Session, request: Request, directory: Path, wanted: Wanted, **more: object) -> Certificate:
        swept.append(wanted.points)
        return certificate()

    on_paper.setattr(certify, "run_sweep", sweep)
    execute(["certify", "kafka_append", "--plans"])
    assert swept == ["plans"]
    assert execute(["certify", "kafka_append", "--plans", "--points", "effects"]) == USAGE
    assert "with others, take --points plans,effects" in capsys.readouterr().err


def test_a_sweep_that_is_refused_leaves_no_directory(
    tmp_path: Path, on_paper: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(session: Session, request: Request, directory: Path, *more: object, **others: object) -> Certificate:
        (directory / "inputs.json").touch()
        (directory / "000-reference" / "logs").mkdir(parents=True)
        raise Unavailable("no Java")

    on_paper.setattr(certify, "run_sweep", sweep)
    for options in ((), ("--run-directory", "out")):
        assert execute([*COMMANDS[1], *options]) == UNAVAILABLE
        assert "no Java" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


def test_an_error_of_the_end_does_not_hide_why_there_is_no_verdict(
    on_paper: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    on_paper.setattr(sessions, "Session", Unavailing)
    assert execute(COMMANDS[0]) == UNAVAILABLE
    assert capsys.readouterr().err.splitlines() == [WARNING, "onceproof: no Java"]


def test_a_verdict_stands_though_the_environment_breaks_while_the_job_is_looked_into(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(*arguments: object) -> None:
        raise Unavailable("broker 1 died")

    nothing: Any = None
    monkeypatch.setattr(run, "determinism_of", breaks)
    result = TrialResult(nothing, BROKEN, {}, {}, tmp_path, [], nothing)
    found = run.looked_into(nothing, Request("mine.py", job="wordcount"), result)
    assert found.verdict is BROKEN
    assert list(found.warnings) == ["the job was not looked into: broker 1 died"]
