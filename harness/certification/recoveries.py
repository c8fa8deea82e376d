"""Second faults in the recovery from a batch that is half written.

Which code runs after a fault at a line, or where a request is lost or refused, shows only in the trial that strikes
there: its journal has every line that was executed. What neither the reference nor the traced replay ran becomes a plan
of two faults: the driver dies there once more. So does each error that is caught where the recovery calls something,
also where the replay of a whole batch does the same: the question whether something is left over has another answer in
a half-written batch. It is raised as well where an error is handled, by code that asks what has become of a request:
after one that was carried out, and after one that was not. And at lines of the recovery that may change something the
driver stands still until another one has recovered: what it goes on with is old then.

Several crashes lead to the same code: those with the least and with the most done before them stand for all. What is
left behind by a crash may depend on how tasks took turns, so that one of the two may not come as far again: then the
other stands for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from operator import attrgetter

from ...faults import Action, Fault, format_action, format_fault
from .lines import end_of_batch, errors_anew, known_ways, line_point, new_ways
from .points import AFTER_A_FAULT, DROP, FAIL, KILL, Question, SweepPoint, end_of, evenly, line_at, under
from .requests import ANSWER
from .strikes._zombies import paused
from .trace import Event, Line, Step, Way, around, executions, line_of, task_lines, ways_to

PAUSE = Action("pause", "driver")
AT_MOST = 4
"""Lines before which it stands still, evenly, the first and the last among these."""


def shows_a_recovery(point: SweepPoint) -> bool:
    """Whether the trial of this point is to report every line: what comes after its fault may run nowhere else."""
    if point.batch is None or point.seen_once or len(point.plan.faults) != 1:
        return False
    shown = (KILL.name, FAIL.name) if isinstance(point.at, Line) else (ANSWER, DROP.name)
    return point.plan.faults[0].actions[0].name in shown


@dataclass(frozen=True)
class _Second:
    """``action`` at the nth of ``count`` executions of the line to which a way leads, after the fault of ``point``,
    before which ``done`` lines were executed in the batch."""

    point: SweepPoint
    way: Way
    nth: int
    count: int
    done: int
    action: Action = KILL

    @property
    def leads_to(self) -> tuple[object, ...]:
        """What it has in common with those for which it may stand."""
        asks = self.action.name == FAIL.name and not kills(self.point)
        return kills(self.point), *self.way, format_action(self.action), *([was_done(self.point)] if asks else [])


def recoveries(question: Question, struck: Iterable[tuple[SweepPoint, Sequence[Event]]]) -> Iterator[SweepPoint]:
    """The points that the journals of struck ones show: after a driver's death at each line to which a new way leads,
    and where an error is caught; after an error at each new line, and where the same run comes to an old one by a new
    way, because the error was caught."""
    ways = known_ways(question)
    lines = {line for _, line in ways}
    found: dict[tuple[object, ...], list[_Second]] = {}
    for point, journal in struck:
        before, after, run = _around(point.plan.faults[0], journal, point.batch)
        seconds = [_Second(point, way, nth, count, len(before)) for way, nth, count in new_ways(before, after, ways)]
        if kills(point):
            assert point.batch is not None  # a line is executed in one
            in_tasks = task_lines(after, point.batch)
            seconds += _taken_for_dead(question, [one for one in seconds if one.way[1] not in lines], in_tasks)
            for line, nth, count, action in errors_anew(question.code, before, after):
                seconds.append(_Second(point, (None, line), nth, count, len(before), action))
        else:
            handled = [event for event in after if event.get("run") == run]  # an error that is caught ends no run
            goes_on = {way for way in ways_to(handled) if None not in way}
            to_old = [one for one in seconds if one.way[1] in lines and one.way in goes_on]
            new = [one for one in seconds if one.way[1] not in lines]
            first = [replace(one, way=(None, one.way[1])) for one in new]
            seconds = [*first, *_at_their_last(new, before, handled), *to_old]
            for line, nth, count, action in errors_anew(question.code, before, handled):
                if line not in lines:
                    seconds.append(_Second(point, (None, line), nth, count, len(before), action))
        for second in seconds:
            found.setdefault(second.leads_to, []).append(second)
    paused_at = [leads_to for leads_to, (one, *_) in found.items() if one.action == PAUSE]
    for left_out in set(paused_at) - {*evenly(paused_at, AT_MOST)}:
        del found[left_out]
    for leads_to, seconds in found.items():
        least, most = min(seconds, key=attrgetter("done")), max(seconds, key=attrgetter("done"))
        for second in [most] if least == most or most.action == PAUSE else [least, most]:
            planned = under(second.point.plan.settings, _planned(second))
            yield replace(planned, way=" ".join(map(str, leads_to)))


def _at_their_last(new: Iterable[_Second], before: Sequence[Event], handled: Sequence[Event]) -> list[_Second]:
    """At the last execution of each line that the struck run executes several times: what is done instead of a whole
    may come in parts."""
    own, all_of = Counter(map(line_of, handled)), Counter(map(line_of, [*before, *handled]))
    several = [(one, one.way[1]) for one in new if one.way[1] and own[one.way[1]] > 1]
    return [replace(one, way=(line, line), nth=all_of[line]) for one, line in several]


def _taken_for_dead(question: Question, new: Sequence[_Second], in_tasks: Set[Line]) -> list[_Second]:
    """At each line of the driver that only the recovery has, and that may change something, it stands still until
    another one has done the batch."""
    return [
        replace(one, way=(None, line), action=PAUSE)
        for one in new
        if (line := one.way[1]) and line not in in_tasks and question.code.acts(line)
    ]


def kills(point: SweepPoint) -> bool:
    """Whether the driver dies there."""
    return point.plan.faults[0].actions == (KILL,)


def was_done(point: SweepPoint) -> bool:
    """Whether what failed or was lost there had been carried out."""
    (fault,) = point.plan.faults
    return bool(fault.actions[0].arguments.get("after")) or (isinstance(point.at, Step) and point.at.edge == "after")


def _around(first: Fault, journal: Sequence[Event], batch: int | None) -> tuple[list[Event], list[Event], str | None]:
    """The lines that were executed in the batch up to the fault, and after it, and the run that it struck: other tasks
    of a driver that dies may get further for a moment."""
    assert batch is not None  # a line is executed in one
    before, after = around(format_fault(first), journal)
    run = after[0]["point"].get("run") if after else None
    if first.actions == (KILL,):
        dying = [event for event in after if event.get("run") == run]
        before, after = [*before, *dying], [event for event in after if event.get("run") != run]
    return executions(before, batch), executions(after, batch), run


def _planned(second: _Second) -> SweepPoint:
    point, line = second.point, second.way[1]
    (first,) = point.plan.faults
    detail = AFTER_A_FAULT.format(step=point.step)
    assert point.batch is not None
    if line is not None and second.action == PAUSE:
        at = line_at(line, point.batch, second.nth)
        return paused(line, at, point.role, point.batch, end_of(point.batch), f" {detail}", before=(first,))
    if line is not None:
        return line_point(line, second.nth, second.count, second.action, point.role, point.batch, first, detail)
    return end_of_batch(point.role, point.batch, first, detail)
