"""Where an error was followed by another try, the sweep goes on with six errors in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from onceproof.faults import parse
from onceproof.harness.certification.points import Code, Question, SweepPoint
from onceproof.harness.certification.retries import Retried, noting_retries, retries
from onceproof.harness.certification.trace import Line

NEXT = {"event": "point", "phase": "batch.offsets", "edge": "after", "batch": 2}
QUESTION = Question(trace=[NEXT], roles={"middle": 1}, refusal=lambda plan: None)

FAIL = "line[s.py:7][batch=1]#1 -> fail(error=OSError)"


def line(number: int, run: str = "1", **more: Any) -> dict[str, Any]:
    return {"event": "point", "phase": "line", "file": "s.py", "line": number, "run": run, "batch": 1, **more}


def struck(text: str, *after: dict[str, Any], number: int = 7, **more: Any) -> tuple[SweepPoint, list[dict[str, Any]]]:
    """A line that failed, and what was executed behind it."""
    place = line(number, **more)
    point = SweepPoint(Line("s.py", number), text.rpartition(" -> ")[2], "middle", 1, parse(text), way="x")
    return point, [line(5), place, {"event": "fault.reached", "fault": 0, "text": text, "point": place}, *after]


def found(*journals: tuple[SweepPoint, list[dict[str, Any]]]) -> list[str]:
    noted: Retried = {}
    assert list(noting_retries(journals, noted)) == list(journals)
    return but_for_deaths([point.text for point in retries(QUESTION, noted)])


def but_for_deaths(texts: Sequence[str]) -> list[str]:
    """Each second point is the one before it, and the driver's death behind the batch."""
    assert list(texts[1::2]) == [f"{text}; batch.commit:after[batch=1] -> kill(driver)" for text in texts[::2]]
    return list(texts[::2])


def test_an_error_that_another_try_follows_comes_six_times_in_a_row() -> None:
    assert found(struck(FAIL, line(9), line(5), line(7))) == ["line[s.py:7][batch=1]#1 -> fail(error=OSError, times=6)"]


def test_a_limit_that_the_sinks_code_names_is_exceeded() -> None:
    question = replace(QUESTION, code=Code(numbers=frozenset({3, 10, 500})))
    noted: Retried = {}
    list(noting_retries([struck(FAIL, line(9), line(5), line(7))], noted))
    point, _ = retries(question, noted)
    assert point.text == "line[s.py:7][batch=1]#1 -> fail(error=OSError, times=11)"


@pytest.mark.parametrize(
    "after",
    [
        [line(9)],
        [line(9), line(5, run="2"), line(7, run="2")],
        [line(9), line(7, attempt=1)],
    ],
    ids=["no other try", "the next run", "the task's next attempt"],
)
def test_what_spark_tries_again_is_no_other_try_of_the_sinks(after: list[dict[str, Any]]) -> None:
    assert found(struck(FAIL, *after)) == []


def test_errors_that_are_handled_in_the_same_place_stand_for_each_other() -> None:
    one, other = FAIL, FAIL.replace(":7", ":8")
    again = [line(9), line(7), line(8)]
    assert found(struck(one, *again), struck(other, *again, number=8)) == [
        "line[s.py:8][batch=1]#1 -> fail(error=OSError, times=6)"
    ]
    assert len(found(struck(one, *again), struck(other.replace("OSError", "KeyError"), *again, number=8))) == 2


def test_a_setting_stays() -> None:
    point, journal = struck(FAIL, line(9), line(5), line(7))
    text = f"set starts = 4; {FAIL}"
    again = SweepPoint(point.at, point.action, point.role, point.batch, parse(text))
    assert found((again, journal)) == [text.replace("OSError", "OSError, times=6")]


def test_a_kill_is_no_error() -> None:
    assert found(struck("line[s.py:7][batch=1]#1 -> kill(driver)", line(9), line(7))) == []


def test_behind_the_last_batch_nothing_is_kept_for_a_next_one() -> None:
    noted: Retried = {}
    list(noting_retries([struck(FAIL, line(9), line(5), line(7))], noted))
    assert len([*retries(replace(QUESTION, trace=()), noted)]) == 1
