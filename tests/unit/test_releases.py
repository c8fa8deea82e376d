"""A sink that needs another release of Spark gets an interpreter that has it, or one clear line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from onceproof.harness import releases
from onceproof.harness.environment_options import EnvironmentOptions
from onceproof.harness.errors import SinkError, Unavailable
from onceproof.harness.releases import with_release
from onceproof.harness.sinks import check_release, literals, release_wanted, run_by_one_release
from onceproof.harness.spark import spark_of

PRESENT = spark_of(sys.executable).version
SINK = """
GUARANTEE = "exactly-once"
SERVICES = ()
SPARK = {}

def write_batch(df, batch_id, target): ...
"""


@pytest.fixture
def sink(tmp_path: Path) -> Path:
    return tmp_path / "mine.py"


def wants(sink: Path, value: object) -> Path:
    sink.write_text(SINK.format(value))
    return sink


@pytest.mark.parametrize("value", [f'">={PRESENT}"', "make_session()", "None"])
def test_an_interpreter_that_fits_stays_and_a_constant_of_another_kind_says_nothing(sink: Path, value: str) -> None:
    options = EnvironmentOptions()
    assert with_release(options, wants(sink, value)) is options


def test_what_is_up_or_in_an_image_is_looked_at_when_it_runs(sink: Path) -> None:
    for options in (EnvironmentOptions(attach="dev"), EnvironmentOptions(env="docker")):
        assert with_release(options, wants(sink, '"<1"')) is options
    with pytest.raises(SinkError, match=r"^mine\.py needs Spark <1 \(SPARK\), but Spark 4\.2\.0 would run it: do"):
        check_release(sink, "4.2.0", "do something")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('f">={2 + 2}"', r"SPARK is computed: write the releases as a text"),
        ('"4"', r"SPARK = '4' names no releases: write SPARK = \">=4\.1,<4\.2\""),
        ('"<4"', r"needs Spark <4 \(SPARK\), which none of the supported releases is \(4\.2\.0, .*\): write"),
    ],
)
def test_releases_that_cannot_be_had_are_one_clear_line(sink: Path, value: str, why: str) -> None:
    with pytest.raises(SinkError, match=why) as error:
        with_release(EnvironmentOptions(), wants(sink, value))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("of_the_job", "fits"), [('">=4.2"', False), ('">=4.1"', True), ("None", True)])
def test_a_job_and_a_sink_need_a_release_that_both_want(sink: Path, of_the_job: str, fits: bool) -> None:
    job = wants(sink.with_name("job.py"), of_the_job)
    assert run_by_one_release(wants(sink, '">=4.1,<4.2"'), job) is fits


def test_an_interpreter_that_was_chosen_is_not_replaced(sink: Path, tmp_path: Path) -> None:
    other = tmp_path / "python"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    other.chmod(0o755)
    with pytest.raises(SinkError, match=f"needs Spark <{PRESENT} .*but Spark {PRESENT} would run it: leave --python"):
        with_release(EnvironmentOptions(python=str(other)), wants(sink, f'"<{PRESENT}"'))


def test_an_interpreter_that_cannot_be_made_leaves_nothing_half_done(
    sink: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONCEPROOF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    said: list[str] = []
    with pytest.raises(Unavailable, match=r"^no interpreter with Spark 4\.1\.3 could be made \(.*\): give --python"):
        with_release(EnvironmentOptions(), wants(sink, '"<4.2"'), said.append)
    assert said[0].startswith("making an interpreter with Spark 4.1.3 at ")
    assert not list((tmp_path / "cache").rglob(releases.COMPLETE))


def test_constants_are_read_without_running_the_file(sink: Path) -> None:
    sink.write_text("A = ('x', 1)\nB = open('no such file')\nC: int = 2\nD = 3\nD += 1\nraise RuntimeError\n")
    assert literals(sink) == {"A": ("x", 1), "C": 2}
    assert release_wanted(sink) is None
