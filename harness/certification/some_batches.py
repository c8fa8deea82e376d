"""What a sink does in some batches only: it compacts in every tenth one, say, or copies a large one.

Runs of twelve batches, and of one with many rows, are traced without a fault (the former unless the workload itself has
as many). A line to which a way leads that no batch of the other traces has, a request or a change of a file that is
like none of theirs, and one that follows another than there, are struck in the first batch that has them: the driver
dies there. New lines fail, too, as those of any batch do. A large batch may be done in pieces: so the driver also dies
behind the first of them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ...faults import Fault, Plan, format_action
from .callers import callers_by_line, caught
from .effects import Effect, Family, Pair, pairs, reliable
from .kinds import FAMILIES, Kind, answered_kinds
from .lines import end_of_batch, facts_at, fails, known_ways, line_point, new_ways
from .points import KILL, Gap, Question, SweepPoint, crash_in, evenly, under
from .strikes import larger, longer
from .strikes.half_written import BEHIND
from .trace import Event, Step, executions, line_of, ways_to

AT_MOST = 6
"""New ways of a large batch, the first and the last among these: requests and changes of files are points, too."""

Edges = Sequence[Literal["before", "after"]]


def in_some_batches(question: Question, long_run: Sequence[Event]) -> Iterator[SweepPoint | Gap]:
    """The points that the journal of the long run shows; where the workload has as many batches, its own trace does."""
    settings: Mapping[str, str] = longer.SETTINGS
    if question.batches is not None and question.batches >= longer.BATCHES:
        long_run, settings = question.trace, {}
    yield from _seen_in(_Run(long_run, longer.LATE, settings), question)


def in_a_large_batch(question: Question, large_run: Sequence[Event]) -> Iterator[SweepPoint | Gap]:
    """The points that the journal of the large batch's run shows. Besides what is new there, the driver dies behind the
    first request of each kind, and behind the first change of each kind in each directory: the first piece is done
    then, and others follow. Behind that with which a piece ends, its successor also dies behind the batch: what it has
    noted of the whole must be what it found and what it added. And the driver dies behind the second piece, half of
    them, and all but the last: who goes on where it stopped may know the last piece only, or compare them as text."""
    run = _Run(large_run, larger.LARGE, larger.SETTINGS, AT_MOST)
    for family in FAMILIES:
        seen = family.of_batch(large_run, larger.BATCH) if question.can_have(family.phase) else ()
        kinds = answered_kinds(reliable(seen))
        for kind in dict.fromkeys(kinds):
            yield run.point(_behind(kind, 1))
        for kind in kinds[-1:]:
            yield run.point(_behind(kind, 1, crash_in(larger.BATCH)))
            pieces = kinds.count(kind)
            for nth in dict.fromkeys(sorted((2, pieces // 2, pieces - 1))):
                if 1 < nth < pieces:
                    yield run.point(_behind(kind, nth))
    yield from _seen_in(run, question)


@dataclass(frozen=True)
class _Run:
    """A run that does more than the other traces, and what a trial sets to have it again. ``most``: of the new ways in
    a batch at which the driver dies, where its trials are long."""

    journal: Sequence[Event]
    role: str
    settings: Mapping[str, str]
    most: int = sys.maxsize

    def point(self, one: SweepPoint) -> SweepPoint:
        return replace(under(self.settings, one), seen_once=True)


def _behind(kind: Kind, nth: int, *more: Fault) -> SweepPoint:
    plan = Plan((Fault(kind.point("after", larger.BATCH, nth), (KILL,)), *more))
    which = f"{kind.shown} {nth}" if nth > 1 else kind.shown
    detail = ", ".join([which, *([BEHIND] if more else []), f"{larger.ROWS} rows"])
    return SweepPoint(Step(kind.phase, "after"), format_action(KILL), larger.LARGE, larger.BATCH, plan, detail)


def _seen_in(run: _Run, question: Question) -> Iterator[SweepPoint | Gap]:
    found = [*_of_lines(question, run)]
    for family in FAMILIES:
        found += _of_effects(question, family, run)
    for one in found:
        yield run.point(one) if isinstance(one, SweepPoint) else one


def _of_lines(question: Question, run: _Run) -> Iterator[SweepPoint | Gap]:
    ways = known_ways(question)
    for batch in sorted({event["batch"] for event in executions(run.journal)}):
        ran = executions(run.journal, batch)
        lines = {line for _, line in ways}
        for (_, line), nth, count in evenly([*new_ways((), ran, ways)], run.most):
            yield line_point(line, nth, count, KILL, run.role, batch) if line else end_of_batch(run.role, batch)
        new = [event for event in ran if line_of(event) not in lines]
        yield from _errors(question, new, run.role, batch)
        yield from facts_at(new, question.code, run.role)
        ways |= {*ways_to(ran)}


def _errors(question: Question, new: Sequence[Event], role: str, batch: int) -> Iterator[SweepPoint]:
    for line, callers in callers_by_line(new).items():
        errors = caught(line, callers, question.code.errors)
        for action in fails(question.code, line, [*errors], min(errors.values(), default=1)):
            nth = errors.get(str(action.arguments.get("error")), 1)
            yield line_point(line, nth, len(callers), action, role, batch)


def _of_effects(question: Question, family: Family, run: _Run) -> Iterator[SweepPoint]:
    for batch, effect, edges in _new_effects(question, family, run.journal):
        for edge in edges:
            plan = Plan((Fault(effect.point(edge, batch), (KILL,)),))
            yield SweepPoint(Step(family.phase, edge), format_action(KILL), run.role, batch, plan, effect.shown)


def _new_effects(question: Question, family: Family, run: Sequence[Event]) -> Iterator[tuple[int, Effect, Edges]]:
    """The first of each signature that the other traces do not have, with its batch, at both edges; before it, the
    first that follows another one than there. All are read together: what texts have in common shows where many are
    compared."""
    old, new = [*family.done(question.trace), *family.done(question.replay)], family.done(run)
    read = family.read([*old, *new])
    there, here = read[: len(old)], read[len(old) :]
    known, known_pairs = {one.signature for one in there}, {*_pair_of_each(old, there)}
    own = {batch: iter(family.of_batch(run, batch)) for batch in {event["batch"] for event in new}}
    for event, one, pair in zip(new, here, _pair_of_each(new, here), strict=True):
        effect = next(own[event["batch"]])
        if one.signature not in known:
            yield event["batch"], effect, longer.EDGES if effect.answered else longer.EDGES[:1]
        elif pair is not None and pair not in known_pairs:
            yield event["batch"], effect, longer.EDGES[:1]
        known.add(one.signature)
        known_pairs.add(pair)


def _pair_of_each(events: Sequence[Event], found: Sequence[Effect]) -> list[Pair | None]:
    """What each effect follows in its run of its batch, and its own kind; None of one that not every run has as
    often."""
    of_batch: dict[object, list[Effect]] = {}
    for event, one in zip(events, found, strict=True):
        of_batch.setdefault((event.get("run"), event["batch"]), []).append(one)
    known = {id(one): pair for own in of_batch.values() for pair, one in pairs(own)}
    return [known.get(id(one)) for one in found]
