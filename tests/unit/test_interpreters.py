"""What is wrong with an interpreter that is asked for its pyspark."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from onceproof.harness.runtime import processes
from onceproof.harness.runtime.waiting import wait_for
from onceproof.harness.spark import NoSpark, spark_of


def interpreter(directory: Path, script: str) -> str:
    """A program that answers in its own way."""
    file = directory / "python"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("printf '\\377\\376\\n'", "did not answer when asked for pyspark"),
        ("echo 5", "did not answer when asked for pyspark"),
        ("echo '[]'", "did not answer when asked for pyspark"),
        ("echo '[1, 2]'", "did not answer when asked for pyspark"),
        ("head -c 100000 /dev/zero | tr '\\0' '['", "did not answer when asked for pyspark"),
        ("echo null", "has no pyspark"),
        ("exit 3", r"failed when asked for pyspark \(exit code 3\)"),
        ("""echo '["/none", "4.2.0"]'""", "brings no Spark"),
    ],
)
def test_an_answer_that_is_none_is_one_clear_line(tmp_path: Path, script: str, why: str) -> None:
    with pytest.raises(NoSpark, match=f"{why}.*: give --python an interpreter that has pyspark") as caught:
        spark_of(interpreter(tmp_path, script))
    assert "\n" not in str(caught.value)


def test_an_interpreter_that_gives_no_answer_is_ended_with_all_that_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("onceproof.harness.spark.ANSWER_SECONDS", 0.3)
    python = interpreter(tmp_path, f"sleep 30 &\necho $! > {tmp_path}/child\nwait")
    began = time.monotonic()
    with pytest.raises(NoSpark, match=r"interpreter \S+ does not run: it gave no answer within 0\.3 s: give --python"):
        spark_of(python)
    assert time.monotonic() - began < 20
    child = int((tmp_path / "child").read_text())
    wait_for(lambda: (row := processes.look(child)) is None or not row.alive, 10, "the end of what it started")
