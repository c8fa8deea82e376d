"""What a sink does in some batches only: it compacts in every tenth one, say.

A run of twelve batches without a fault is traced, unless the workload itself has as many. A line to which a way leads
that no batch of the other traces has, and a request or a change of a file that is like none of theirs, are struck in
the first batch that has them: the driver dies there. New lines fail, too, as those of any batch do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from ...faults import Fault, Plan, format_action
from .callers import callers_by_line, caught
from .effects import Effect, Family
from .kinds import FAMILIES
from .lines import end_of_batch, facts_at, fails, known_ways, line_point, new_ways
from .points import KILL, Gap, Question, SweepPoint, under
from .strikes.longer import BATCHES, EDGES, LATE, SETTINGS
from .trace import Event, Step, executions, line_of, ways_to


def in_some_batches(question: Question, long_run: Sequence[Event]) -> Iterator[SweepPoint | Gap]:
    """The points that the journal of the long run shows; where the workload has as many batches, its own trace does."""
    settings: Mapping[str, str] = SETTINGS
    if question.batches is not None and question.batches >= BATCHES:
        long_run, settings = question.trace, {}
    found = [*_of_lines(question, long_run)]
    for family in FAMILIES:
        found += _of_effects(question, family, long_run)
    for one in found:
        if isinstance(one, SweepPoint):
            one = replace(under(settings, one), seen_once=True)
        yield one


def _of_lines(question: Question, long_run: Sequence[Event]) -> Iterator[SweepPoint | Gap]:
    ways = known_ways(question)
    for batch in sorted({event["batch"] for event in executions(long_run)}):
        ran = executions(long_run, batch)
        lines = {line for _, line in ways}
        for (_, line), nth, count in new_ways((), ran, ways):
            yield line_point(line, nth, count, KILL, LATE, batch) if line else end_of_batch(LATE, batch)
        new = [event for event in ran if line_of(event) not in lines]
        yield from _errors(question, new, batch)
        yield from facts_at(new, question.code, LATE)
        ways |= {*ways_to(ran)}


def _errors(question: Question, new: Sequence[Event], batch: int) -> Iterator[SweepPoint]:
    for line, callers in callers_by_line(new).items():
        errors = caught(line, callers, question.code.errors)
        for action in fails(question.code, line, [*errors]):
            nth = errors.get(str(action.arguments.get("error")), 1)
            yield line_point(line, nth, len(callers), action, LATE, batch)


def _of_effects(question: Question, family: Family, long_run: Sequence[Event]) -> Iterator[SweepPoint]:
    for batch, effect in _new_effects(question, family, long_run):
        for edge in EDGES if effect.answered else EDGES[:1]:
            plan = Plan((Fault(effect.point(edge, batch), (KILL,)),))
            yield SweepPoint(Step(family.phase, edge), format_action(KILL), LATE, batch, plan, effect.shown)


def _new_effects(question: Question, family: Family, long_run: Sequence[Event]) -> Iterator[tuple[int, Effect]]:
    """The first of each signature that the other traces do not have, with its batch. All are read together: what texts
    have in common shows where many are compared."""
    old, new = [*family.done(question.trace), *family.done(question.replay)], family.done(long_run)
    signatures = [effect.signature for effect in family.read([*old, *new])]
    known, places = {*signatures[: len(old)]}, Counter[int]()
    for event, signature in zip(new, signatures[len(old) :], strict=True):
        batch = event["batch"]
        if signature not in known:
            known.add(signature)
            yield batch, family.of_batch(long_run, batch)[places[batch]]
        places[batch] += 1
