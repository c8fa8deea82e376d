"""Lines of the sink's code as points, and what only a replay runs: the code of the recovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ...faults import Action, Fault, Plan, Point, format_action
from ...faults.handlers import says_undone
from .callers import Callers, callers_by_line, caught
from .points import ANY_BATCH, FAIL, KILL, Code, Gap, Question, SweepPoint, crash_in, in_turn, line_at, selector
from .steps import shown
from .trace import NOTHING, Event, Executed, Line, Step, Way, executed, executions, line_of, runs_of, ways_to


def lines(question: Question) -> Iterator[SweepPoint]:
    """Each line's first and last execution, by kill and by fail, the roles taken in turn; in a full sweep every
    execution in every role.

    A line that the other trace does not have in any of the same batches falls into a batch by chance, as that of a
    heartbeat does: it is struck at its first execution, in whatever batch that is.
    """
    batches = {role: callers_by_line(executions(question.trace, batch)) for role, batch in question.roles.items()}
    killed = {role: killed_lines(question, batch) for role, batch in question.roles.items()}
    anywhere = callers_by_line(executions(question.trace))
    turn = 0
    for line in sorted({line for of_role in batches.values() for line in of_role}):
        where = {role: of_role[line] for role, of_role in batches.items() if line in of_role}
        if question.profile == "full":
            for role, callers in where.items():
                for nth, above in enumerate(callers, 1):
                    for action in _line_actions(question.code, [line, *above], nth, everything=True):
                        yield line_point(line, nth, len(callers), action, role, question.roles[role])
            continue
        where = {role: callers for role, callers in where.items() if (of := killed[role]) is None or line in of}
        if not where:
            yield from _in_any_batch(question.code, line, anywhere[line])
            continue
        struck = set()
        for action, at in (*_first(question.code, line, where), *_last(question.code, line, where, killed)):
            for role in in_turn(question, turn, [*at], action.name):
                point = line_point(line, at[role], len(where[role]), action, role, question.roles[role])
                if point.text not in struck:  # the first execution at which it is caught may be the last
                    struck.add(point.text)
                    yield point
            turn += 1


def _in_any_batch(code: Code, line: Line, callers: Sequence[Callers]) -> Iterator[SweepPoint]:
    """``callers`` are those of its executions in all batches."""
    for action, at in _first(code, line, {ANY_BATCH: callers}):
        yield line_point(line, at[ANY_BATCH], len(callers), action, ANY_BATCH, None)


def facts(question: Question) -> Iterator[Gap]:
    """Exceptions that are caught at a line, and that state a fact which would not be true."""
    for role, batch in question.roles.items():
        yield from facts_at(executions(question.trace, batch), question.code, role)


def facts_at(executions: Sequence[Event], code: Code, role: str) -> Iterator[Gap]:
    """Those of executions of lines, in the batch of a role."""
    for line, callers in callers_by_line(executions).items():
        for error in caught(line, callers, code.facts):
            yield Gap(line, format_action(Action("fail", None, {"error": error})), role, FACT)


FACT = "it states a fact that would not be true"

Where = Mapping[str, Sequence[Callers]]
"""In each role's batch, by whom a line was called at each of its executions."""
At = Mapping[str, int]
"""In each role's batch, the execution at which an action is done."""


def _first(code: Code, line: Line, where: Where) -> Iterator[tuple[Action, At]]:
    """A line's first execution, and for each exception the first at which it is caught."""
    first = dict.fromkeys(where, 1)
    found = {role: caught(line, callers, code.errors) for role, callers in where.items()}
    errors = dict.fromkeys(error for of_role in found.values() for error in of_role)
    yield KILL, first
    for action in fails(code, line, list(errors)):
        error = action.arguments.get("error")
        at = {role: of_role[error] for role, of_role in found.items() if error in of_role}
        yield action, at or first


def _last(
    code: Code, line: Line, where: Where, killed: Mapping[str, Mapping[Line, int] | None]
) -> Iterator[tuple[Action, At]]:
    """A line's last execution where it runs several times, and equally often in both traces: a thread of the sink's own
    may run it more or less often, and then nothing is the last time."""
    last = {
        role: len(callers)
        for role, callers in where.items()
        if len(callers) > 1 and ((counts := killed[role]) is None or counts.get(line) == len(callers))
    }
    if last:
        yield KILL, last
        errors = {role: [*code.errors([line, *where[role][-1]])][:1] for role in last}
        role, error = next(iter(errors.items()))
        for action in fails(code, line, error, last[role])[:1]:
            yield action, {role: nth for role, nth in last.items() if errors[role] == error}


def killed_lines(question: Question, batch: int) -> Mapping[Line, int] | None:
    """How often each line ran in the batch before the traced replay's crash; None where no replay was traced."""
    runs = runs_of(question.replay, batch)
    return executed(question.replay, batch, runs[0]).lines if runs else None


def _line_actions(code: Code, lines: Sequence[Line], nth: int, *, everything: bool) -> list[Action]:
    """Kill, and each exception that the code around the line, and around those that called it, is ready for."""
    errors = fails(code, lines[0], code.errors(lines), nth)
    return [KILL, *(errors if everything else errors[:1])]


def fails(code: Code, line: Line, errors: Sequence[str], nth: int = 1) -> list[Action]:
    """Each exception before the nth execution of the line, and after a call of it, unless the call has come to nothing
    then; without any, a failure of no class in particular. None where nothing that the line calls may fail, nor where a
    ``with`` is left: whatever fails there, ``__exit__`` has been called, which an exception in its place prevents."""
    if not code.may_fail(line) or code.leaves(line, nth):
        return []
    before = [Action("fail", None, {"error": error}) for error in errors] or [FAIL]
    late = [one for one in errors if not says_undone(one) and code.may_be_done(line, one)] if code.calls(line) else []
    return [*before, *(Action("fail", None, {"error": error, "after": True}) for error in late)]


def line_point(
    line: Line,
    nth: int,
    count: int,
    action: Action,
    role: str,
    batch: int | None,
    before: Fault | None = None,
    detail: str = "in the replay",
) -> SweepPoint:
    """The nth of ``count`` executions of a line; ``detail`` says what the fault ``before`` it leads to."""
    faults = (*([before] if before else []), Fault(line_at(line, batch, nth), (action,)))
    details = [*([detail] if before else []), *([] if count == 1 else [_ordinal(nth, count)])]
    return SweepPoint(line, format_action(action), role, batch, Plan(faults), ", ".join(details), alone=batch is None)


def end_of_batch(role: str, batch: int, before: Fault | None = None, detail: str = "") -> SweepPoint:
    """The driver's death where the hand-over of a batch ends."""
    here = Step("sink.write", "after")
    end = Fault(selector(here, batch), (KILL,))
    plan = Plan((*([before] if before else []), end))
    return SweepPoint(here, format_action(KILL), role, batch, plan, detail)


def _ordinal(nth: int, count: int) -> str:
    """Which of ``count`` executions: first, last or a number."""
    return "first execution" if nth == 1 else "last execution" if nth == count else f"execution {nth}"


def second_crashes(question: Question) -> Iterator[SweepPoint]:
    """What the replay of a batch runs and its first run did not: the recovery, which no single fault reaches.

    New are steps, and ways from one line to the next. So the point behind the recovery's last line is struck as well:
    at the next line, be that an old one, or where the hand-over ends. What runs in both fails anew in the replay, where
    the code is ready for that: a question whether the batch is there has another answer by then.
    """
    found: dict[tuple[str, str, str], dict[str, SweepPoint]] = {}
    for role, batch in question.roles.items():
        crash = crash_in(batch)
        for of_one_kind in (_new_steps, _new_ways, _errors_anew):
            for point in of_one_kind(question, role, batch, crash):
                found.setdefault((point.step, point.action, point.detail), {})[point.text] = point
    for turn, points in enumerate(found.values()):
        if question.profile == "full":
            yield from points.values()
            continue
        by_role = {point.role: point for point in points.values()}
        action = next(iter(points.values())).plan.faults[-1].actions[0].name
        yield from (by_role[role] for role in in_turn(question, turn, [*by_role], action))


def _new_steps(question: Question, role: str, batch: int, crash: Fault) -> Iterator[SweepPoint]:
    first, again = _first_and_replay(question, batch)
    for step in again.steps:
        if step not in first.steps and step.row is None:
            plan = Plan((crash, Fault(selector(step, batch), (KILL,))))
            yield SweepPoint(shown(step, again), format_action(KILL), role, batch, plan, "in the replay")


def _new_ways(question: Question, role: str, batch: int, crash: Fault) -> Iterator[SweepPoint]:
    killed, replayed = _killed_and_replayed(question, batch)
    old = {*ways_to(executions(question.trace, batch)), *ways_to(killed)}
    callers, passed = callers_by_line([*killed, *replayed]), Counter(map(line_of, killed))
    for (_, line), nth, count in new_ways(killed, replayed, old):
        if line is None:
            plan = Plan((crash, Fault(Point("sink.write", "after", {"batch": batch}, 2), (KILL,))))
            here = Step("sink.write", "after")
            yield SweepPoint(here, format_action(KILL), role, batch, plan, "at the end of the replay")
            continue
        code = [line, *callers[line][nth - 1]]
        for action in _line_actions(question.code, code, nth, everything=nth == passed[line] + 1):
            yield line_point(line, nth, count, action, role, batch, crash)


def _errors_anew(question: Question, role: str, batch: int, crash: Fault) -> Iterator[SweepPoint]:
    """In the replay, each exception that is caught where a line calls something."""
    killed, replayed = _killed_and_replayed(question, batch)
    for line, nth, count, action in errors_anew(question.code, killed, replayed):
        yield line_point(line, nth, count, action, role, batch, crash)


def errors_anew(code: Code, before: Sequence[Event], after: Sequence[Event]) -> Iterator[tuple[Line, int, int, Action]]:
    """Each exception that is caught where a line of ``after`` calls something: the line, the first execution at which
    it is caught, and how many there are; counters go on over restarts."""
    passed = Counter(map(line_of, before))
    for line, callers in callers_by_line(after).items():
        for error, nth in caught(line, callers, code.errors).items() if code.calls(line) else ():
            for action in fails(code, line, [error], passed[line] + nth)[:1]:
                yield line, passed[line] + nth, passed[line] + len(callers), action


def known_ways(question: Question) -> set[Way]:
    """Those of both traces, each run of each batch for itself."""
    found: set[Way] = set()
    for batch in question.roles.values():
        found |= {*ways_to(executions(question.trace, batch)), *ways_to(executions(question.replay, batch))}
    return found


def new_ways(before: Sequence[Event], after: Sequence[Event], old: set[Way]) -> Iterator[tuple[Way, int, int]]:
    """The ways of ``after`` that are none of ``old``, each once, with the execution of the line that they lead to and
    how many of it there are. Counters go on over restarts: those ``before`` come first."""
    counts = Counter(map(line_of, [*before, *after]))
    passed = Counter(map(line_of, before))
    found: set[Way] = set()
    for way in ways_to(after):
        line = way[1]
        if line is not None:
            passed[line] += 1
        if way not in old and way not in found:
            found.add(way)
            yield way, passed[line] if line else 1, counts[line] if line else 1


def _killed_and_replayed(question: Question, batch: int) -> tuple[list[Event], list[Event]]:
    """The lines of a batch in the run that was killed, and those of its replay; none where no replay was traced."""
    runs = runs_of(question.replay, batch)
    if len(runs) < 2:
        return [], []
    return executions(question.replay, batch, runs[0]), executions(question.replay, batch, runs[1])


def _first_and_replay(question: Question, batch: int) -> tuple[Executed, Executed]:
    """What runs without a replay: in the reference, or in the run that was killed; and what the replay ran."""
    runs = runs_of(question.replay, batch)
    if len(runs) < 2:
        return NOTHING, NOTHING
    killed, reference = executed(question.replay, batch, runs[0]), executed(question.trace, batch)
    first = Executed({**reference.steps, **killed.steps}, {**reference.lines, **killed.lines}, killed.tasks)
    return first, executed(question.replay, batch, runs[1])
