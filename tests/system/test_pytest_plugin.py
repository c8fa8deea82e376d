"""The pytest plugin as a user meets it: a short test file, run by pytest in a process of its own."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from command import Command, Ended
from trials import long

ROOT = Path(__file__).resolve().parents[2]
PYTEST = (sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-v", "-rA")

TESTS = """
import pytest

@pytest.mark.onceproof(
    sink="kafka_append",
    faults=["batch.commit:after[batch=1]->kill(driver)", "sink.commit:after[batch=1] -> kill(driver)"],
    claim="exactly-once", batches=3, rows=24, job="mine.py", expect="mine.sql",
)
def test_is_exactly_once(onceproof_trial):
    assert onceproof_trial.passed, onceproof_trial.explain()
"""


def ran(onceproof: Command, directory: Path, text: str, *options: str) -> Ended:
    (directory / "test_mine.py").write_text(text)
    (directory / "pytest.ini").write_text("[pytest]\n")
    for suffix in (".py", ".sql"):
        shutil.copy((ROOT / "jobs" / "passthrough").with_suffix(suffix), directory / f"mine{suffix}")
    return onceproof("test_mine.py", *options, command=PYTEST)


@pytest.mark.parametrize(
    ("chosen", "outcome"),
    [long("batch.commit:after", "PASSED"), ("sink.commit:after", "FAILED")],
)
def test_each_fault_is_a_test_named_by_its_plan(onceproof: Command, tmp_path: Path, chosen: str, outcome: str) -> None:
    ended = ran(onceproof, tmp_path, TESTS, "-k", chosen)
    assert ended.code == (outcome == "FAILED"), ended
    assert f"test_is_exactly_once[{chosen}[batch=1] -> kill(driver)] {outcome}" in ended.out
    assert f"1 {outcome.lower()}, 1 deselected" in ended.out
    if outcome == "FAILED":
        assert "fail: exactly-once broken: 24 duplicated (batch 1)" in ended.out
        assert "replay by the restarted driver" in ended.out


WRONG = {
    "a plan": (TESTS.replace("sink.commit:after", "sink.comit:after"), "sink.comit"),
    "an argument": (TESTS.replace("claim=", "clam="), "unknown: clam"),
    "no sink": (TESTS.replace('sink="kafka_append",', ""), "sink=... is needed"),
    "a claim": (TESTS.replace('"exactly-once"', '"twice"'), "twice"),
}
IN_SHORT = ("a plan",)


@pytest.mark.parametrize("case", [case if case in IN_SHORT else long(case) for case in WRONG])
def test_a_wrong_marker_is_an_error_of_the_collection(onceproof: Command, tmp_path: Path, case: str) -> None:
    text, word = WRONG[case]
    ended = ran(onceproof, tmp_path, text)
    assert ended.code in (2, 4), ended
    assert word in ended.out + ended.err
    assert "Traceback" not in ended.out + ended.err
    assert "pytest_plugin.py" not in ended.out + ended.err, "no frames of ours"


@pytest.mark.parametrize("there", ["kafka_append", "mine.py", "mine.sql"])
def test_a_file_that_is_not_there_is_an_error_of_its_tests_set_up(
    onceproof: Command, tmp_path: Path, there: str
) -> None:
    ended = ran(onceproof, tmp_path, TESTS.replace(f'"{there}"', '"no_such.py"'), "-k", "sink.commit", "-W", "error")
    assert ended.code == 1
    assert "ERROR at setup of test_is_exactly_once" in ended.out
    assert "no_such.py does not exist" in ended.out
    assert "pytest_plugin.py" not in ended.out
    assert "During handling of the above exception" not in ended.out


def test_a_suite_may_make_each_warning_an_error(onceproof: Command, tmp_path: Path) -> None:
    ended = ran(onceproof, tmp_path, TESTS, "--collect-only", "-W", "error")
    assert ended.code == 0, ended
    assert "2 tests collected" in ended.out


@pytest.mark.long
def test_the_example_passes(onceproof: Command) -> None:
    example = str(ROOT / "examples" / "test_my_sink.py")
    ended = onceproof(example, "-k", "sink.write and after", f"--rootdir={onceproof.directory}", command=PYTEST)
    assert ended.code == 0, ended
    assert "1 passed, 4 deselected" in ended.out
