"""A line's callers say what is caught at which of its executions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onceproof.harness.certification.callers import callers_by_line, callers_of, caught
from onceproof.harness.certification.trace import Line

APPEND = Line("sink.py", 7)
WRITE, RETRY = Line("sink.py", 20), Line("team/retry.py", 4)


def execution(line: Line, callers: str = "") -> dict[str, Any]:
    return {"event": "point", "phase": "line", **line._asdict(), **({"callers": callers} if callers else {})}


def errors(lines: Sequence[Line]) -> list[str]:
    known = {APPEND: ["KeyError"], RETRY: ["OSError", "KeyError"]}
    return [name for line in lines for name in known.get(line, [])]


def test_a_report_names_its_callers_innermost_first() -> None:
    assert callers_of(execution(APPEND, "team/retry.py:4,sink.py:20")) == (RETRY, WRITE)
    assert callers_of(execution(APPEND)) == ()


def test_a_class_that_a_caller_catches_is_caught_at_the_first_execution_with_this_caller() -> None:
    executions = [
        execution(APPEND, "sink.py:20"),
        execution(WRITE),
        execution(APPEND, "team/retry.py:4,sink.py:20"),
        execution(APPEND, "team/retry.py:4,sink.py:20"),
    ]
    callers = callers_by_line(executions)
    assert callers == {APPEND: [(WRITE,), (RETRY, WRITE), (RETRY, WRITE)], WRITE: [()]}
    assert caught(APPEND, callers[APPEND], errors) == {"KeyError": 1, "OSError": 2}
    assert caught(WRITE, callers[WRITE], errors) == {}
