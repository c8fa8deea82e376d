"""The driver that takes a paused one's place: was it handed the batch, or did the sink keep it out until that went on?

A sink may let one driver in at a time: the next one waits in its ``attach`` for a lock that the paused one holds, or
ends there by an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from .journal import is_at, points
from .model import Event
from .traces import Struck

LONGER = 2
"""How many times as long as its predecessor a driver has waited at least, if it was kept out."""


def has_successor(struck: Struck) -> bool:
    """Whether the action stops a driver until another one has gone on, or for so long at the most."""
    return struck.action.target == "driver" and "longest" in struck.action.arguments


def taken_over(struck: Struck) -> bool:
    """Whether another driver had the batch before the stopped one went on: who wakes up earlier is no zombie."""
    if struck.batch is None:
        return True
    end = _end(struck)
    return any(one.index < end for one in struck.new_hand_overs(struck.fired_at, struck.batch))


def went_on_early(struck: Struck) -> bool:
    """Whether the stopped driver went on because ``longest`` was over, with the batch in another driver's hands: that
    waited for what the stopped one held, or had not got to the point yet."""
    return _was_over(struck) and has_successor(struck) and struck.batch is not None and taken_over(struck)


def kept_out(struck: Struck) -> bool:
    """Whether the sink kept the other driver out for as long as the pause lasted.

    It had got to where the sink attaches itself to the stream, and was still there when the stopped one went on, after
    half of ``longest`` at least, and twice as long as its predecessor had been there. Before that it may be on its
    start. What kept it is not known either if the pause was given up, if a driver ended or began its query meanwhile,
    or if another fault had fired.
    """
    if not has_successor(struck) or not _was_over(struck):
        return False
    end = _end(struck)
    before, meanwhile = struck.journal[: struck.fired_at], struck.journal[struck.fired_at : end]
    if _other_fault_fired(struck, end) or any(_ends_or_begins(event) for event in meanwhile):
        return False
    waiting_since, own = _attached_at(meanwhile), _attached_within(before)
    if waiting_since is None or own is None:
        return False
    longest = float(struck.action.arguments["longest"])
    return float(struck.journal[end]["t"]) - waiting_since >= max(longest / 2, LONGER * own)


def refused(struck: Struck) -> bool:
    """Whether the sink refused the other driver, so that none was left but the one that stood still, which went on.

    It had got to where the sink attaches itself to the stream, and ended there by an error or an exit code of its own;
    it began no query, and no other fault had fired.
    """
    if not has_successor(struck) or not _was_given_up(struck):
        return False
    end = _end(struck)
    meanwhile = struck.journal[struck.fired_at : end]
    ends = [event for event in meanwhile if event["event"] == "driver.exited"]
    if _other_fault_fired(struck, end) or any(_begins(event) for event in meanwhile):
        return False
    by_itself = all(event.get("code", 0) > 0 and not event.get("planned") for event in ends)
    return bool(ends) and by_itself and _attached_at(meanwhile) is not None


def _end(struck: Struck) -> int:
    """The index at which the stopped driver went on; the journal's end if it never did."""
    for index, event in enumerate(struck.journal):
        if index > struck.fired_at and event["event"] == "resumed" and event.get("fault") == struck.traces.number:
            return index
    return len(struck.journal)


def _was_over(struck: Struck) -> bool:
    """Whether the stopped driver went on because ``longest`` was over: not if a journal does not say so."""
    return _resumed(struck, given_up=False)


def _was_given_up(struck: Struck) -> bool:
    """Whether it went on because no other driver was left."""
    return _resumed(struck, given_up=True)


def _resumed(struck: Struck, given_up: bool) -> bool:
    resumed = struck.journal[_end(struck) :][:1]
    return any(event.get("reached") is False and event.get("given_up") is given_up for event in resumed)


def _other_fault_fired(struck: Struck, end: int) -> bool:
    """Whether one did during the pause: what an earlier one did is over, since the stopped driver had got here."""
    fired = (event for event in struck.journal[struck.fired_at : end] if event["event"] == "fault.fired")
    return any(event["fault"] != struck.traces.number for event in fired)


def _ends_or_begins(event: Event) -> bool:
    """Whether a driver ended, or began its query."""
    return event["event"] == "driver.exited" or _begins(event)


def _begins(event: Event) -> bool:
    return event["event"] == "point" and is_at(event, "query.start")


def _attached_at(journal: Sequence[Event]) -> float | None:
    """When a driver last got to where the sink attaches itself."""
    times = [float(event["t"]) for event in journal if event["event"] == "query.writer"]
    return times[-1] if times else None


def _attached_within(journal: Sequence[Event]) -> float | None:
    """How long it last took a driver from there to its query's start."""
    starts = [index for index, event in points(journal) if is_at(event, "query.start")]
    began = _attached_at(journal[: starts[-1]]) if starts else None
    return None if began is None else float(journal[starts[-1]]["t"]) - began
