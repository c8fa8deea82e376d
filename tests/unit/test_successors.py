"""A driver that the sink lets in only once its predecessor is gone: the pause of that one has had its effect."""

from __future__ import annotations

from typing import Any

import pytest
from paper_trial import Paper, fault, verdict

PAUSE = "pause(driver, longest=30s) until batch.commit:after[batch=1]"
PAUSED = f"sink.write:before[batch=1] -> {PAUSE}"
OVER = {"reached": False, "given_up": False}
NOTE = (
    "the sink let no other driver in while one stood still for 30 s, until that went on: what it does in a longer "
    "pause is not known"
)


def at(paper: Paper, seconds: float) -> Paper:
    """The last event came then."""
    paper.journal[-1]["t"] = seconds
    return paper


def waiting(attached: float = 5.0, since: float = 20.0, until: float = 50.0, **resumed: Any) -> Paper:
    """The driver takes so many seconds to attach its sink, and is stopped in batch 1 at second 11; the one in its place
    is there ``since``, and waits ``until`` the pause ends."""
    paper = at(Paper().add("query.writer", process="local:1"), 10.0 - attached)
    at(paper.start(), 10.0).batches(1, 0)
    at(paper.hand_over(1, 1).reached_last().fired(PAUSE, confirmed=False), 11.0)
    at(paper.add("driver.started", incarnation=2, process="local:2"), 12.0)
    at(paper.add("query.writer", process="local:2"), since)
    return at(paper.add("resumed", fault=0, process="local:1", **(resumed or OVER)), until).confirmed(PAUSE)


def went_on(paper: Paper) -> Paper:
    """The one that was stopped does all that is left, and the other one has nothing to do."""
    paper.finish(1, 1).batches(1, 2, 3, 4).exited(1)
    return paper.point("query.start", "before", 2).exited(2)


def without(paper: Paper, event: str, process: str) -> Paper:
    paper.journal = [one for one in paper.journal if (one["event"], one.get("process")) != (event, process)]
    return paper


def inserted(paper: Paper, *events: dict[str, Any]) -> Paper:
    """Something happens while the driver is stopped."""
    end = next(index for index, event in enumerate(paper.journal) if event["event"] == "resumed")
    paper.journal[end:end] = [{"t": 30.0} | event for event in events]
    return paper


def test_a_sink_that_let_no_other_driver_in_is_judged_by_what_a_reader_sees() -> None:
    found = verdict(None, went_on(waiting()), fault(PAUSED))
    assert (found.outcome, found.faults[0].replay["seen"]) == ("pass", "local:1 reported sink.write afterwards")
    assert list(found.notes) == [NOTE]


def test_the_one_that_was_stopped_has_to_go_on_all_the_same() -> None:
    assert verdict(None, waiting(), fault(PAUSED)).outcome == "inconclusive"


REFUSED = {"event": "driver.exited", "incarnation": 2, "code": 1, "error": "RuntimeError: another one is running"}
GIVEN_UP = {"reached": False, "given_up": True}


def test_a_sink_that_refuses_the_other_driver_is_judged_by_what_a_reader_sees() -> None:
    found = verdict(None, went_on(inserted(waiting(until=22.0, **GIVEN_UP), REFUSED)), fault(PAUSED))
    assert (found.outcome, found.faults[0].replay["seen"]) == ("pass", "local:1 reported sink.write afterwards")
    assert [note.partition(",")[0] for note in found.notes] == [
        "the sink refused the driver that was to take the place of one that stood still"
    ]


def test_one_that_ends_without_an_exception_is_refused_as_well() -> None:
    left = {"event": "driver.exited", "incarnation": 2, "code": 3, "error": None}
    found = verdict(None, went_on(inserted(waiting(until=22.0, **GIVEN_UP), left)), fault(PAUSED))
    assert (found.outcome, len(found.notes)) == ("pass", 1)


def test_what_was_struck_before_the_pause_holds_nobody_up_in_it() -> None:
    paper = waiting()
    paper.journal.insert(0, {"t": 0.0} | OTHER_FAULT)
    assert list(verdict(None, went_on(paper), fault(PAUSED)).notes) == [NOTE]


QUERY_BEGUN = {"event": "point", "phase": "query.start", "edge": "before", "run": "r2", "process": "local:2"}
OTHER_FAULT = {"event": "fault.fired", "fault": 1, "number": 0, "action": "down(for=9s)"}
UNKNOWN = {
    "it was never started": lambda: without(without(waiting(), "driver.started", "local:2"), "query.writer", "local:2"),
    "it was on its start": lambda: without(waiting(), "query.writer", "local:2"),
    "it was on its start for long": lambda: waiting(since=36.0),
    "its predecessor took long, too": lambda: waiting(attached=9.0, since=33.0),
    "its predecessor was not seen there": lambda: without(waiting(), "query.writer", "local:1"),
    "it died": lambda: inserted(waiting(), {"event": "driver.exited", "incarnation": 2, "code": 1}),
    "the engine let it wait": lambda: inserted(waiting(), QUERY_BEGUN),
    "another fault held it up": lambda: inserted(waiting(), OTHER_FAULT),
    "the pause was given up": lambda: waiting(**GIVEN_UP),
    "it ended before it got there": lambda: inserted(without(waiting(**GIVEN_UP), "query.writer", "local:2"), REFUSED),
    "it was refused once its query had begun": lambda: inserted(waiting(**GIVEN_UP), QUERY_BEGUN, REFUSED),
    "it was ended by the plan": lambda: inserted(waiting(**GIVEN_UP), REFUSED | {"planned": True}),
    "another fault ended it": lambda: inserted(waiting(**GIVEN_UP), OTHER_FAULT, REFUSED),
    "nothing says that the pause was not given up": lambda: waiting(reached=False),
}


@pytest.mark.parametrize("why", UNKNOWN)
def test_a_driver_that_may_have_been_held_up_by_anything_else_proves_nothing(why: str) -> None:
    found = verdict(None, went_on(UNKNOWN[why]()), fault(PAUSED))
    assert found.outcome == "inconclusive"
    assert "no other driver was handed the batch before it went on" in found.reason
    assert list(found.notes) == []


EARLY = (
    "a driver that stood still went on after 30 s, before the other one had got as far as the plan says, which waited "
    "for it or took longer: what the two do in a longer pause is not known"
)


@pytest.mark.parametrize(("resumed", "notes"), [(OVER, [EARLY]), ({"reached": True, "given_up": False}, [])], ids=str)
def test_a_driver_that_went_on_before_the_other_one_had_committed_is_told(
    resumed: dict[str, bool], notes: list[str]
) -> None:
    paper = at(Paper().start(), 10.0).batches(1, 0)
    at(paper.hand_over(1, 1).reached_last().fired(PAUSE, confirmed=False), 11.0)
    at(paper.add("driver.started", incarnation=2, process="local:2").start(2).hand_over(2, 1), 14.0)
    at(paper.add("resumed", fault=0, process="local:1", **resumed), 41.0).confirmed(PAUSE)
    found = verdict(
        None, paper.finish(2, 1).batches(2, 2, 3, 4).finish(1, 1).exited(2).exited(1, code=1), fault(PAUSED)
    )
    assert list(found.notes) == notes
