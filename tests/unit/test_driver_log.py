"""Finding the one line of a driver's log that says why it died."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onceproof.harness.errors import UsageError
from onceproof.harness.trial.act import Acted
from onceproof.harness.trial.driver_log import NoJvm, error_in
from onceproof.harness.trial.supervisor import JobOutcome
from onceproof.harness.trial.trial import _raise_own_error

SINK = Path("/home/user/my_sink.py")


def written(tmp_path: Path, text: str) -> Path:
    log = tmp_path / "driver.log"
    log.write_text(text)
    return log


def test_the_exception_that_passed_through_the_sink_is_preferred(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        f"""Traceback (most recent call last):
  File "{SINK}", line 12, in write_batch
    raise ValueError("boom")
ValueError: boom

26/01/01 00:00:00 ERROR MicroBatchExecution: org.apache.spark.SparkException: something around it
pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query terminated
""",
    )
    assert error_in(log, SINK) == "ValueError: boom"


def test_an_exception_of_any_name_is_found_behind_frames_of_other_files_and_shifted_marks(tmp_path: Path) -> None:
    log = written(
        tmp_path,
        f"""pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Traceback:
  File "{SINK}", line 13, in write_batch
    cursor.executemany(INSERT, rows)
  ^^^^^^^^^^^^^^^^^
  File "/lib/psycopg/cursor.py", line 148, in executemany
    raise ex.with_traceback(None)
^^^^^^^^^^^^^^^
psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "events_pkey"
DETAIL:  Key (id)=(258) already exists.
""",
    )
    found = error_in(log, SINK)
    assert found == 'psycopg.errors.UniqueViolation: duplicate key value violates unique constraint "events_pkey"'


def test_of_an_error_in_the_jvm_that_python_met_the_jvms_own_exception_counts(tmp_path: Path) -> None:
    java = "java.lang.IllegalArgumentException: requirement failed: spark.network.timeout is too short."
    around = "py4j.protocol.Py4JJavaError: An error occurred while calling None.JavaSparkContext."
    text = f"{around}\n: {java}\n\tat scala.Predef$.require(Predef.scala:337)\n"
    assert error_in(written(tmp_path, text), SINK) == java
    inside = f'Traceback (most recent call last):\n  File "{SINK}", line 3, in write_batch\n    df.collect()\n{text}'
    assert error_in(written(tmp_path, inside), SINK) == java


@pytest.mark.parametrize(
    ("printed", "why"),
    [
        (
            "Error occurred during initialization of VM\nToo small maximum heap\n",
            "Error occurred during initialization of VM: Too small maximum heap",
        ),
        (
            "Unrecognized VM option 'NoSuch'\nError: Could not create the Java Virtual Machine.\n"
            "Error: A fatal exception has occurred. Program will exit.\n",
            "Unrecognized VM option 'NoSuch'",
        ),
    ],
)
def test_of_a_jvm_that_does_not_start_its_own_words_count(tmp_path: Path, printed: str, why: str) -> None:
    python = "pyspark.errors.exceptions.base.PySparkRuntimeError: [JAVA_GATEWAY_EXITED] Java gateway process exited.\n"
    found = error_in(written(tmp_path, printed + python), SINK)
    assert isinstance(found, NoJvm)
    assert found == f"the driver's JVM does not start: {why}"
    later = "java.io.IOException: of a driver that has started\n"
    assert error_in(written(tmp_path, printed + later), SINK) == later.strip()


def test_a_driver_whose_jvm_does_not_start_is_not_blamed_on_the_sink(tmp_path: Path) -> None:
    spec: Any = SimpleNamespace(sink=SimpleNamespace(path=SINK))
    why = NoJvm("the driver's JVM does not start: Too small maximum heap")
    acted = Acted(JobOutcome(finished=False, error=why), fired=False, broken=[])
    with pytest.raises(UsageError) as caught:
        _raise_own_error(spec, acted, [], {}, tmp_path)
    assert str(caught.value) == f"{why}: look at the properties of Spark (--conf, CONF); see {tmp_path}/logs"


def test_without_the_sink_the_last_exception_counts(tmp_path: Path) -> None:
    log = written(
        tmp_path, "java.io.IOException: first\nCaused by: java.lang.IllegalStateException: last\n  at x.y(Z.java)\n"
    )
    assert error_in(log, SINK) == "java.lang.IllegalStateException: last"


def test_a_log_without_an_exception_gives_none(tmp_path: Path) -> None:
    assert error_in(written(tmp_path, "all is well\n"), SINK) is None
    assert error_in(tmp_path / "absent.log", SINK) is None
