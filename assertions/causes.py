"""Causes: sentences that the journal supports, and no more.

Which attempt wrote a row is claimed only if one attempt of its batch reached the sink; otherwise all that did are
named as candidates.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, islice, pairwise

from .journal import (
    HandOver,
    TaskAttempt,
    action_of,
    beginnings,
    commits,
    disturbances,
    hand_overs,
    is_at,
    points,
    task_attempts,
)
from .model import Evidence

BATCHES = 5
"""So many batches are named in an anomaly's causes; the rest is counted."""

TIMES = {0: "never", 1: "once", 2: "twice"}


def first_sentences(batches: Sequence[int], sentences: Iterable[str]) -> list[str]:
    """The first few of ``sentences`` (one for each of ``batches``), and how many more there would be."""
    more = len(batches) - BATCHES
    return [*islice(sentences, BATCHES), *([f"and so in {more} more batches"] if more > 0 else [])]


def after_what(evidence: Evidence, first: int = 0, last: int | None = None, most: int | None = None) -> str:
    """`` after kill(driver) at ... and ...``: what happened to the job between two events of the journal; no more than
    the first ``most`` of it, and nothing if nothing did."""
    between = disturbances(evidence.journal, evidence.faults, first, last)[:most]
    return f" after {' and '.join(between)}" if between else ""


def hand_over_story(batch: int, evidence: Evidence) -> str:
    """``batch 1 was handed to the sink twice (driver local:1, then driver local:2 after kill(driver) at ...)``."""
    found = hand_overs(evidence.journal, batch)
    story = f"batch {batch} was {times(len(found), 'handed to the sink')}"
    return f"{story} ({_then(found, evidence)})" if found else story


def epochs_story(batch: int, evidence: Evidence) -> str | None:
    """The runs of a query that hands over no batches, but ends epochs (a continuous one); None of any other."""
    starts = [(index, event) for index, event in points(evidence.journal) if is_at(event, "query.start")]
    if hand_overs(evidence.journal) or not starts:
        return None
    again = f", the last time{after_what(evidence, starts[0][0], starts[-1][0])}" if len(starts) > 1 else ""
    return (
        f"epoch {batch} had no hand-over: the tasks of a continuous query write each row as it comes; "
        f"{times(len(starts), 'the query began')}{again}, each time behind the last epoch that it had recorded as done"
    )


def cut_anew(batch: int, evidence: Evidence) -> str | None:
    """Which other batches came again without being bound to the input that they had, and may have had rows of this."""
    found = [other for other in _again(evidence) if other != batch]
    if not found:
        return None
    which = f"batch {found[0]} was" if len(found) == 1 else f"batches {', '.join(map(str, found))} were"
    return f"{which} planned again, not bound to the input that there was before, and may have had these rows"


def _again(evidence: Evidence) -> list[int]:
    found = hand_overs(evidence.journal)
    digests = {batch: [one.offsets for one in found if one.batch == batch] for batch in {one.batch for one in found}}
    begins = beginnings(evidence.journal)
    return sorted(
        batch
        for batch, of_batch in digests.items()
        if len(of_batch) > 1 and (None in of_batch or len(begins.get(batch, ())) > 1)
    )


def _then(found: Sequence[HandOver], evidence: Evidence) -> str:
    names = driver_names(found)
    parts, before = [names[0]], list[str]()
    for (earlier, later), name in zip(pairwise(found), names[1:], strict=True):
        between = disturbances(evidence.journal, evidence.faults, earlier.index, later.index)
        what = "the same" if between == before else " and ".join(between)
        parts.append(f"then {name}" + (f" after {what}" if between else ""))
        before = between
    return ", ".join(parts)


def driver_names(found: Sequence[HandOver]) -> list[str]:
    """Each hand-over's driver, with its run where one process made several."""
    processes = [hand_over.process for hand_over in found]
    return [
        f"driver {hand_over.process}" + (f" run {hand_over.run}" if processes.count(hand_over.process) > 1 else "")
        for hand_over in found
    ]


def replayed_by(batch: int, evidence: Evidence) -> str | None:
    """Who handed a batch over again: None if nobody did."""
    found = hand_overs(evidence.journal, batch)
    if len(found) < 2:
        return None
    if _replaced(found, evidence):
        return "the driver that took the paused one's place, and the paused one went on later"
    restarted = found[0].process != found[-1].process
    return "the restarted driver" if restarted else "a new run in the same driver"


def _replaced(found: Sequence[HandOver], evidence: Evidence) -> bool:
    """Whether the first driver was not dead, but paused until later, when the last one was handed the batch."""
    between = evidence.journal[found[0].index : found[-1].index]
    fired = [action_of(event, evidence.faults) for event in between if event["event"] == "fault.fired"]
    return any(one is not None and one.action.target == "driver" and one.action.until is not None for one in fired)


def repeated_tasks(batch: int, evidence: Evidence) -> list[str]:
    """A sentence for each task of which a single hand-over of the batch had several attempts."""
    found = hand_overs(evidence.journal, batch)
    starts = [hand_over.index for hand_over in found[1:]]
    attempts = sorted(
        task_attempts(evidence.journal, batch),
        key=lambda task: (sum(start <= task.index for start in starts), task.stage or 0, task.partition, task.index),
    )
    groups = groupby(attempts, lambda task: (sum(start <= task.index for start in starts), task.stage, task.partition))
    return [sentence for _, group in groups for sentence in [_repeated(batch, list(group), evidence)] if sentence]


def _repeated(batch: int, attempts: Sequence[TaskAttempt], evidence: Evidence) -> str | None:
    if len({task.attempt for task in attempts}) < 2:
        return None
    first, last = attempts[0], attempts[-1]
    named = ", ".join(str(task.attempt) for task in attempts)
    where = ", then ".join(dict.fromkeys(str(task.process) for task in attempts))
    after = after_what(evidence, first.index, last.index)
    return f"task {first.partition} of batch {batch} {times(len(attempts), 'ran')} (attempts {named} in {where}{after})"


def candidates(batch: int | None, evidence: Evidence) -> list[str]:
    """The attempts that may have written rows of ``batch``: one if only one reached the sink."""
    if batch is None:
        return []
    found = hand_overs(evidence.journal, batch)
    if len(found) != 1:
        return driver_names(found)
    numbers = dict.fromkeys((task.attempt, task.process) for task in task_attempts(evidence.journal, batch))
    if len({number for number, _ in numbers}) > 1:
        return [f"attempt {number} in {process}" for number, process in numbers]
    return driver_names(found)


def written_by(batch: int | None, evidence: Evidence) -> str:
    """``driver local:1``, or all candidates."""
    found = candidates(batch, evidence)
    return found[0] if len(found) == 1 else f"one of: {', '.join(found)}" if found else "unknown"


def committed_story(batch: int, evidence: Evidence) -> str:
    """``the engine recorded it as done``, with what happened to the job while the sink had the batch, and after it."""
    done = commits(evidence.journal, batch)
    if not done:
        return during_hand_over(batch, evidence)
    after = disturbances(evidence.journal, evidence.faults, evidence.journal.index(done[0]), None)
    then = f", before {' and '.join(after)}" if after else ""
    return f"{during_hand_over(batch, evidence)}; the engine recorded it as done{then}"


def during_hand_over(batch: int, evidence: Evidence) -> str:
    """``; fail at line[sink.py:42] fell into it``: what happened during the last one; empty if nothing did."""
    found = hand_overs(evidence.journal, batch)
    done = commits(evidence.journal, batch)
    end = evidence.journal.index(done[0]) if done else None
    during = disturbances(evidence.journal, evidence.faults, found[-1].index, end) if found else []
    return f"; {' and '.join(during)} fell into it" if during else ""


def times(count: int, what: str) -> str:
    """``never ran``, ``ran once``, ``ran twice``, ``ran 3 times``."""
    return f"never {what}" if count == 0 else f"{what} {TIMES.get(count, f'{count} times')}"
