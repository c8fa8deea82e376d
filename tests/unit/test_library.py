"""The library of known failures: each file is whole, names sinks that there are, and is told in the docs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onceproof.faults import KnownFailure, NoSuchFailure, format_plan, known_failure, known_failures, library, parse
from onceproof.harness.certification.points import Question, Space
from onceproof.harness.certification.space import names_plans, select, space_of
from onceproof.harness.cli import execute
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.errors import UsageError
from onceproof.harness.jobs import find_job
from onceproof.harness.request import resolve_plan, with_brokers
from onceproof.harness.sinks import find_sink

from onceproof.documents import DocumentError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "known-failures.md"

FAILURES = known_failures()


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_each_plan_can_be_had_by_both_of_its_sinks(failure: KnownFailure) -> None:
    for sink in (failure.catches.sink, failure.withstands.sink):
        options = with_brokers(EnvironmentOptions(env=failure.only or "local"), failure.plan)
        resolve_plan(failure.plan, find_job(None), find_sink(sink), options)


@pytest.mark.parametrize("failure", [one for one in FAILURES if one.only], ids=lambda failure: failure.name)
def test_what_one_environment_alone_can_carry_out_is_refused_in_the_other(failure: KnownFailure) -> None:
    with pytest.raises(UsageError, match=f"needs --env {failure.only}: in the local environment all machines are one"):
        resolve_plan(failure.plan, find_job(None), find_sink(failure.catches.sink), EnvironmentOptions())
    in_the_driver = EnvironmentOptions(env="docker", master="local[2]")
    with pytest.raises(UsageError, match="needs --master standalone"):
        resolve_plan(failure.plan, find_job(None), find_sink(failure.catches.sink), in_the_driver)


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: failure.name)
def test_each_is_told_in_the_docs(failure: KnownFailure) -> None:
    section = re.split(r"(?m)^## ", PAGE.read_text(encoding="utf-8"))
    (told,) = [part for part in section if part.startswith(f"`{failure.name}`")]
    assert " ".join(failure.story.split()) in " ".join(told.split())
    for word in (failure.title, failure.plan, failure.catches.sink, failure.withstands.sink, *failure.see):
        assert word in told


def test_a_file_of_the_library_is_a_plan_by_itself() -> None:
    text = (library.PLANS / "zombie_driver.plan").read_text(encoding="utf-8")
    assert parse(text) == parse(known_failure("zombie_driver").plan)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(NoSuchFailure, match="did you mean zombie_driver"):
        known_failure("zombi_driver")


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ('# title = "x', "mine.plan: the comment in front of the plan is no TOML"),
        ('# title = "x"', "mine.plan: field story is missing"),
        ('# title = "x"\n# storey = "y"', "mine.plan: field"),
    ],
)
def test_a_broken_header_is_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, words: str
) -> None:
    monkeypatch.setattr(library, "PLANS", tmp_path)
    (tmp_path / "mine.plan").write_text(f"{header}\n\nsink.write:after -> kill(driver)\n")
    with pytest.raises(DocumentError, match=re.escape(words)):
        known_failures()


def test_a_name_that_is_none_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["run", "--sink", "postgres_upsert", "--plan", "zombi_driver"]) == 2
    assert "no known failure is called 'zombi_driver': did you mean zombie_driver" in capsys.readouterr().err
    assert execute(["run", "--sink", "postgres_upsert", "--plan", "no_such.plan"]) == 2
    assert "plan file no_such.plan does not exist" in capsys.readouterr().err


def asked(points: str, refused: str = "") -> Space:
    """The space of a sink with a trace of two steps, of which ``--points`` names some."""
    question = Question(
        trace=[],
        roles={"second": 1, "middle": 2},
        refusal=lambda plan: "needs another sink" if refused and refused in format_plan(plan) else None,
        known_failures=names_plans(points),
    )
    return select(space_of(question), points)


def test_a_sink_is_held_against_the_library_where_that_is_asked_for() -> None:
    points = {point.step: point for point in asked("plans").points}
    assert points.keys() == {f"plan {failure.name}" for failure in FAILURES}
    older = points["plan older_checkpoint"]
    assert (older.role, older.batch, older.alone) == ("middle", 2, True)
    assert older.action == "rollback(checkpoint) then kill(driver)"
    assert older.text == format_plan(parse(known_failure("older_checkpoint").plan))


def test_the_library_is_no_part_of_all() -> None:
    assert not any(point.step.startswith("plan ") for point in asked("all").points)
    assert {point.step for point in asked("all,plans").points} > {point.step for point in asked("plans").points}


def test_a_plan_that_a_sink_cannot_have_is_not_possible_here() -> None:
    space = asked("plans", refused="request:")
    gaps = {gap.step for gap in space.impossible}
    assert gaps == {f"plan {failure.name}" for failure in FAILURES if "request:" in failure.plan}
    assert not gaps & {point.step for point in space.points}
