"""What is new in the names of files in each run: ids, time stamps, random texts. Points have ``*`` there.

Some of it shows in a name by itself. For the rest it takes two runs of a batch, the reference and the one that was
killed: a part of a name that not both of them have is new in each. So is one that only a replay has, unless the replay
of another batch has it, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .points import Question
from .shapes import UUID
from .trace import Event, reports, runs_of

PHASE = "file"

NEW_IN_EACH_RUN = re.compile(
    rf"{UUID}"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[ T_-][0-9]{2}(?:[:.-]?[0-9]+)*"  # a date with its time of day
    r"|(?<![0-9a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-z])"  # a digest, a time stamp
    r"|attempt_[0-9]+_[0-9]+_[a-z]_[0-9]+_[0-9]+"  # of a task of Hadoop's
    r"|tmp[a-z0-9_]{8}"  # of Python's tempfile
)

PART = re.compile(r"[^\W_]+")


class Change(NamedTuple):
    op: str
    path: str


def pattern_of(path: str) -> str:
    """The path without what shows by itself that it is new in each run.

    >>> pattern_of("target/part-00000-1b4e28ba-2fa1-11d2-883f-0016d3cca427-c000.snappy.parquet")
    'target/part-00000-*-c000.snappy.parquet'
    """
    return NEW_IN_EACH_RUN.sub("*", path.replace("[", "?"))


def masked(path: str, known: set[str]) -> str:
    """The same without those parts of the name that are not ``known``. A random text may have ``-`` and ``_`` at its
    ends.

    >>> masked("target/.part-x7_k2-.tmp", {"part", "tmp"})
    'target/.part*.tmp'
    """
    place, slash, name = pattern_of(path).partition("/")
    found = PART.sub(lambda part: part[0] if part[0] in known else "*", name)
    return place + slash + (name if found == name else re.sub(r"[_-]*\*[*_-]*", "*", found))


def with_patterns(question: Question) -> Question:
    """The same question, whose reports of files say by which ``pattern`` another run of their batch finds them."""
    patterns = _patterns(question)

    def named(journal: Sequence[Event]) -> Sequence[Event]:
        return [
            {**event, "pattern": patterns.get((event.get("batch"), _change(event))) or pattern_of(event["path"])}
            if _is_change(event)
            else event
            for event in journal
        ]

    return replace(question, trace=named(question.trace), replay=named(question.replay))


def _patterns(question: Question) -> Mapping[tuple[int | None, Change], str]:
    """Of each change of a batch whose name has to be learned."""
    found: dict[tuple[int | None, Change], str] = {}
    runs = {batch: _first_runs_and_replay(question, batch) for batch in question.roles.values()}
    for batch, (reference, killed, again) in runs.items():
        both = _parts(reference) & _parts(killed)
        elsewhere = {part for other, (*_, replay) in runs.items() if other != batch for part in _parts(replay)}
        steady = _masked(reference, both) & _masked(killed, both)
        for change in (*reference, *killed):
            if (pattern := masked(change.path, both)) and (change.op, pattern) in steady:
                found[batch, change] = pattern
        for change in again:
            pattern = masked(change.path, both | elsewhere)
            if elsewhere or (change.op, pattern) in steady:
                found.setdefault((batch, change), pattern)
    return found


def _first_runs_and_replay(question: Question, batch: int) -> list[list[Change]]:
    """What a batch changes in the reference, in the run that was killed, and in its replay."""
    runs = runs_of(question.replay, batch)
    of_replay = [_changes(question.replay, batch, run) for run in runs[:2]]
    return [_changes(question.trace, batch), *of_replay, [], []][:3]


def _changes(journal: Sequence[Event], batch: int, run: str | None = None) -> list[Change]:
    found = (event for event in reports(journal, batch) if _is_change(event) and run in (None, event.get("run")))
    return list(dict.fromkeys(map(_change, found)))


def _is_change(event: Event) -> bool:
    return (event["event"], event.get("phase")) == ("point", PHASE)


def _change(event: Event) -> Change:
    return Change(event["op"], event["path"])


def _parts(changes: Iterable[Change]) -> set[str]:
    return {part for change in changes for part in PART.findall(pattern_of(change.path))}


def _masked(changes: Iterable[Change], known: set[str]) -> set[tuple[str, str]]:
    return {(change.op, masked(change.path, known)) for change in changes}
