"""Finding the one line of a driver's log that says why it died."""

from __future__ import annotations

import re
from pathlib import Path

from ..java import start_error

TAIL = 400_000
"""Bytes read from the end of a log."""

EXCEPTION = re.compile(
    r"^\s*(?:Caused by: )?((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Failure|Warning)\b.*)$"
)


ANY_EXCEPTION = re.compile(r"^((?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:: .*)?)$")
"""The line that ends a Python traceback, whatever the exception's class is called (psycopg.errors.UniqueViolation)."""

OF_PY4J = re.compile(r"^py4j\.protocol\.Py4JJavaError: An error occurred while calling .*\n: ", re.MULTILINE)
"""Before the exception of the JVM that a call from Python met."""

MARKS = re.compile(r"^\s|^[~^]+$|^$")
"""Lines of a traceback before its end: frames, code and marks, which PySpark's error texts shift to the left."""


GATEWAY_EXITED = "[JAVA_GATEWAY_EXITED]"
"""In PySpark's exception where the driver's JVM has ended before it was ready (pyspark/java_gateway.py)."""


class NoJvm(str):
    """What is said of a driver whose JVM does not start, where that one says why."""


def error_in(log: Path, sink: Path) -> str | None:
    """The last exception that passed through the sink's file, else the last one at all; None if there is none. Of a
    JVM that does not start it is what that one says, as a NoJvm."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            text = file.read().decode(errors="replace")
    except OSError:
        return None
    found = _exception_in(text, sink)
    why = start_error(text) if found and GATEWAY_EXITED in found else None
    return NoJvm(f"the driver's JVM does not start: {why}") if why else found


def _exception_in(text: str, sink: Path) -> str | None:
    lines = OF_PY4J.sub("", text).splitlines()
    inside = [number for number, line in enumerate(lines) if f'File "{sink}"' in line]
    if inside:
        found = _end_of_traceback(lines[inside[-1] + 1 :])
        if found:
            return found
    return next((found for line in reversed(lines) if (found := _exception(line, EXCEPTION))), None)


def _end_of_traceback(lines: list[str]) -> str | None:
    """The exception behind a frame: the first line that is none of the traceback's own."""
    end = next((line for line in lines if not MARKS.match(line)), "")
    return _exception(end, ANY_EXCEPTION)


def _exception(line: str, pattern: re.Pattern[str]) -> str | None:
    match = pattern.match(line)
    return match.group(1).strip()[:500] if match else None
