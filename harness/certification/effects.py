"""What the job does outside of its processes, as points: crashes are told apart only by what lies between them.

So the driver dies before each effect and after the last one: in the batch of each role, and where only a replay has it;
and after one that empties a file, because what is written to it then is no effect of its own.
Each kind of effect is also lost: before it is done, and after it, when the job does not learn that it was; and where a
process of tasks does it, an executor or Python that serves a task, that one dies. Which effects there are is a family's
to say: :mod:`.requests`, :mod:`.files`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from ...faults import Action, Fault, Plan, Point, Value, format_action
from ...faults.declarations import ITSELF
from .points import KILL, Gap, Question, SweepPoint, crash_in, in_turn
from .roles import MIDDLE
from .trace import DRIVER, OF_TASKS, Event, Step, processes_of, reports, runs_of

Signature = tuple[str, ...]
"""What effects of one kind have in common: they differ in their values only."""
Pair = tuple[Signature | None, Signature]
"""One effect and the next of the same thread; None before its first."""


@dataclass(frozen=True)
class Effect:
    """An effect of a batch: the ``nth`` that is addressed by ``where``, counted over the runs of the batch.

    ``thread`` is the thread of a ``process``, or the connection, that does it. ``steady``: every run of a batch has as
    many of its kind. ``answered``: it has an after. ``empties``: a file, which is written to before the next effect.
    ``from_elsewhere``: a file that comes from where nobody looks. ``by_task_process``: an executor does it,
    or the Python of a task.
    """

    phase: str
    where: Mapping[str, Value]
    nth: int
    signature: Signature
    shown: str
    thread: str = ""
    process: str = ""
    steady: bool = True
    answered: bool = True
    empties: bool = False
    from_elsewhere: bool = False
    by_task_process: bool = False

    def point(self, edge: str, batch: int) -> Point:
        return Point(self.phase, edge, {**self.where, "batch": batch}, self.nth)  # type: ignore[arg-type]

    @property
    def selectors(self) -> tuple[tuple[str, Value], ...]:
        """What addresses it, but for its number."""
        return tuple(self.where.items())

    @property
    def address(self) -> tuple[object, ...]:
        return (*self.selectors, self.nth)


Place = tuple[str, Effect]
"""An effect with the role of its batch."""
Runs = Sequence[Sequence[Effect]]
"""What a batch had in the reference, in the run that was killed, and in its replay."""
Loss = Callable[[Effect, str], Action | None]
"""How an effect is lost at an edge; None if it cannot be."""


def task_process_dies(effect: Effect, edge: str) -> Action | None:
    """The executor or the task's Python dies, and nothing of it tidies up. The driver goes on, and gives the task
    another attempt, or fails the batch."""
    return Action("kill", ITSELF) if effect.by_task_process else None


@dataclass(frozen=True)
class Family:
    """The effects of a phase: how reports of it are read, in their order, and the ways in which one is lost. Where one
    ``may_fail`` without a fault (a directory is made by whichever thread comes first), it has no after then."""

    phase: str
    read: Callable[[Sequence[Event]], Sequence[Effect]]
    losses: Callable[[Question], Sequence[Loss]]
    none: str
    may_fail: bool = False

    def of_batch(self, journal: Sequence[Event], batch: int, runs: Sequence[str] | None = None) -> Sequence[Effect]:
        """Those of a batch in the order in which they came, in these runs or in all."""
        own = [event for event in reports(journal, batch) if runs is None or event.get("run") in runs]
        of_tasks = processes_of(own, OF_TASKS) - processes_of(own, (DRIVER,))
        read = self.read(self.done(own))
        begun = [replace(one, by_task_process=one.process in of_tasks) for one in read]
        if not self.may_fail:
            return begun
        ended = {one.address for one in self.read(self.done(own, "after"))}
        return [one if one.address in ended else replace(one, answered=False) for one in begun]

    def done(self, journal: Sequence[Event], edge: str = "before") -> list[Event]:
        """The reports of those that were done in any batch, where each begins or ends."""
        return [
            event
            for event in journal
            if event["event"] == "point" and (event["phase"], event.get("edge")) == (self.phase, edge)
            if event.get("batch") is not None
        ]


def effects(question: Question, family: Family) -> Iterator[SweepPoint | Gap]:
    if not question.can_have(family.phase):
        return
    found = {role: steady(question, family, batch) for role, batch in question.roles.items()}
    if not any(found.values()) and question.phases is not None:
        yield from _none(question, family)
    for role, of_role in found.items():
        yield from _crashes(of_role, role, question.roles[role], full=question.profile == "full")
    losses = [*_losses(question, family, found), *_losses_of_several(question, family, found)]
    yield from {point.text: point for point in losses}.values()
    runs = {role: first_runs_and_replay(question, family, batch) for role, batch in question.roles.items()}
    yield from _later_losses(question, family, runs)
    yield from _between(question, runs)
    for role, batch in question.roles.items():
        yield from _in_the_replay(question, family, role, batch, runs[role])
    yield from _behind_new_ones(question, runs)


def steady(question: Question, family: Family, batch: int) -> list[Effect]:
    """The effects of a batch that any run of it has: those of both traces; and of kinds that are known to differ from
    run to run the first, but in a full sweep."""
    runs = runs_of(question.replay, batch)
    found = list(family.of_batch(question.trace, batch))
    if question.profile != "full":
        found = reliable(found)
    if not runs:
        return found
    again = {one.address for one in family.of_batch(question.replay, batch, runs[:1])}
    return [one for one in found if one.address in again]


def reliable(found: Iterable[Effect]) -> list[Effect]:
    """Of kinds that are known to differ from run to run the first only."""
    return [one for one in found if one.nth == 1 or one.steady]


def _none(question: Question, family: Family) -> Iterator[SweepPoint | Gap]:
    """Why there are none: the environment cannot have them, or the sink has none in a batch."""
    here = Step(family.phase, "before")
    for role, batch in question.roles.items():
        reason = question.refusal(Plan((Fault(Point(family.phase, "before", {"batch": batch}), (KILL,)),)))
        missing = f"batch {batch} {family.none} in the reference trace"
        yield Gap(here, format_action(KILL), role, reason or missing)


def _crashes(found: Sequence[Effect], role: str, batch: int, *, full: bool) -> Iterator[SweepPoint]:
    """Before each effect, and after the last one and each that empties a file; of those that come again and again, at
    the first and the last."""
    left_out = set() if full else _repeated(found)
    for number, effect in enumerate(found):
        if number not in left_out:
            yield _point(effect, "before", KILL, role, batch)
            if effect.answered and (effect.empties or effect is found[-1]):
                yield _point(effect, "after", KILL, role, batch)


def _repeated(found: Sequence[Effect]) -> set[int]:
    """The places of what is neither the first nor the last of its kind between two neighbours of theirs, those of the
    same thread: how threads take turns differs from run to run."""
    threads: dict[str, list[int]] = {}
    for at, effect in enumerate(found):
        threads.setdefault(effect.thread, []).append(at)
    alike: set[int] = set()
    places: dict[object, list[int]] = {}
    for own in threads.values():
        for number, at in enumerate(own):
            near = [found[other].signature for other in own[max(0, number - 1) : number + 2]]
            if len(near) == 3 and len(set(near)) == 1:
                alike.add(at)
            places.setdefault((number == 0, tuple(near)), []).append(at)
    between = {at for same in map(sorted, places.values()) for at in same[1:-1]}
    return (alike | between) - {0, len(found) - 1}


def _losses(question: Question, family: Family, found: dict[str, list[Effect]]) -> Iterator[SweepPoint]:
    """The first and the last of each signature in a batch, the roles in rotation."""
    where: dict[tuple[Signature, str], list[Place]] = {}
    for role, of_role in found.items():
        first, last = _first_and_last(of_role)
        for which, chosen in (("first", first), ("last", last)):
            for signature, effect in chosen.items():
                where.setdefault((signature, which), []).append((role, effect))
    for number, loss in enumerate(family.losses(question)):
        yield from _in_rotation(question, [*where.values()], loss, number)


def _in_rotation(
    question: Question, kinds: Sequence[Sequence[Place]], loss: Loss, begin: int = 0
) -> Iterator[SweepPoint]:
    """One of each kind's places at each edge. Losses that ``begin`` differently meet a kind in different batches."""
    for turn, (places, edge) in enumerate(product(kinds, ("before", "after")), begin):
        by_role = dict(places)
        action = loss(places[0][1], edge)
        for role in in_turn(question, turn, [*by_role], action.name) if action else ():
            yield from _lost(question, (role, by_role[role]), loss, edge)


def _lost(question: Question, place: Place, loss: Loss, edge: str) -> Iterator[SweepPoint]:
    role, effect = place
    action = loss(effect, edge)
    if action is not None and (edge == "before" or effect.answered):
        yield _point(effect, edge, action, role, question.roles[role])


def _losses_of_several(
    question: Question, family: Family, found: Mapping[str, Sequence[Effect]]
) -> Iterator[SweepPoint]:
    """What one batch does once, and another several times, is lost by the first of the family's ways where it comes
    first of these, too: others follow it, and who asks what has become of it may look at the last one only."""
    alone, first = set[Signature](), dict[Signature, list[Place]]()
    for role, of_role in found.items():
        firsts, lasts = _first_and_last(of_role)
        alone |= firsts.keys() - lasts.keys()
        for signature in lasts:
            first.setdefault(signature, []).append((role, firsts[signature]))
    kinds = [places for signature, places in first.items() if signature in alone]
    for loss in family.losses(question)[:1]:
        yield from _in_rotation(question, kinds, loss)


def _later_losses(question: Question, family: Family, runs: Mapping[str, Runs]) -> Iterator[SweepPoint]:
    """Of a kind of which clients send more or fewer from run to run, besides the first also the last, in a batch of
    which all runs had as many, the most of those: who asks what has become of some may not ask of the rest."""
    latest: dict[Hashable, Place] = {}
    for role, first, counts in _gathered_by_time(question, runs):
        for where, last in {one.selectors: one for one in first}.items():
            as_many = len({count[where] for count in counts}) == 1
            if as_many and last.nth > (latest[where][1].nth if where in latest else 1):
                latest[where] = role, last
    for place, loss, edge in product(latest.values(), family.losses(question), ("before", "after")):
        for point in _lost(question, place, loss, edge):
            yield replace(point, seen_once=True)


def _between(question: Question, runs: Mapping[str, Runs]) -> Iterator[SweepPoint]:
    """The driver's death behind the second, half and almost all of such a kind, in the batch with most of them: what
    has arrived by then need not be the first of what was to be sent."""
    most: dict[Hashable, tuple[int, str, list[Effect]]] = {}
    for role, first, (count, again, _) in _gathered_by_time(question, runs):
        for where in count:
            fewest = min(count[where], again[where])
            if fewest > (most[where][0] if where in most else 1):
                most[where] = fewest, role, [one for one in first if one.selectors == where]
    for fewest, role, found in most.values():
        for one in found:
            if one.answered and one.nth in {2, fewest // 2, fewest - 1} - {0, 1}:
                yield replace(_point(one, "after", KILL, role, question.roles[role]), seen_once=True)


def _gathered_by_time(
    question: Question, runs: Mapping[str, Runs]
) -> Iterator[tuple[str, list[Effect], list[Counter[Hashable]]]]:
    """In each role's batch, what clients send more or fewer of from run to run, as the reference has it; and how many
    each run has. A full sweep has all of them anyway."""
    for role, of_batch in runs.items() if question.profile != "full" else ():
        unsteady = [[one for one in run if not one.steady] for run in of_batch]
        yield role, unsteady[0], [Counter(one.selectors for one in run) for run in unsteady]


def _in_the_replay(question: Question, family: Family, role: str, batch: int, runs: Runs) -> Iterator[SweepPoint]:
    """A second crash before each effect that only the replay has; and in the middle batch it is lost before it is done,
    by the first of the family's ways: what repairs must not go on without."""
    *first, again = runs
    known = {effect.signature for run in first for effect in run}
    for effect in again:
        if effect.signature not in known:
            known.add(effect.signature)
            losses = [loss(effect, "before") for loss in family.losses(question)[:1]] if role == MIDDLE else []
            for action in (KILL, *filter(None, losses)):
                yield _point(effect, "before", action, role, batch, crash_in(batch))


def _behind_new_ones(question: Question, runs: Mapping[str, Runs]) -> Iterator[SweepPoint]:
    """A second crash before what follows another effect in the replay than in a first run, the roles in rotation: it
    lies behind one that only the replay has, or where the replay leaves one out."""
    found: dict[Pair, list[tuple[str, Effect]]] = {}
    for role, (*first, again) in runs.items():
        known = {pair for run in first for pair, _ in pairs(run)}
        signatures = {effect.signature for run in first for effect in run}
        for pair, effect in pairs(again):
            if pair not in known and effect.signature in signatures:  # a new one is struck in each role anyway
                found.setdefault(pair, []).append((role, effect))
    for turn, places in enumerate(found.values()):
        role, effect = places[turn % len(places)]
        yield _point(effect, "before", KILL, role, question.roles[role], crash_in(question.roles[role]))


def ends(found: Sequence[Effect]) -> list[Effect]:
    """The first and the last of each signature, in their order."""
    chosen = {id(one) for by_signature in _first_and_last(found) for one in by_signature.values()}
    return [one for one in found if id(one) in chosen]


def first_of_each(found: Iterable[Effect]) -> list[Effect]:
    """The first of each signature, in their order."""
    first, _ = _first_and_last(found)
    return list(first.values())


def _first_and_last(found: Iterable[Effect]) -> tuple[dict[Signature, Effect], dict[Signature, Effect]]:
    """The first of each signature; and the last, where it is another one."""
    first: dict[Signature, Effect] = {}
    last: dict[Signature, Effect] = {}
    for effect in found:
        if effect is not first.setdefault(effect.signature, effect):
            last[effect.signature] = effect
    return first, last


def first_runs_and_replay(question: Question, family: Family, batch: int) -> Runs:
    """The effects of a batch in the reference, in the run that was killed, and in its replay, which count on from the
    killed run's; none of them where no replay was traced."""
    runs = runs_of(question.replay, batch)
    if len(runs) < 2:
        return [(), (), ()]
    killed = family.of_batch(question.replay, batch, runs[:1])
    both = family.of_batch(question.replay, batch, runs[:2])
    return [family.of_batch(question.trace, batch), killed, both[len(killed) :]]


def pairs(found: Sequence[Effect]) -> Iterator[tuple[Pair, Effect]]:
    """Each effect that every run has as often, with the signature of the one before it of the same thread."""
    before: dict[str, Signature] = {}
    for effect in found:
        if effect.steady:
            yield (before.get(effect.thread), effect.signature), effect
            before[effect.thread] = effect.signature


def _point(effect: Effect, edge: str, action: Action, role: str, batch: int, before: Fault | None = None) -> SweepPoint:
    faults = (*([before] if before else []), Fault(effect.point(edge, batch), (action,)))
    detail = ", ".join([*(["in the replay"] if before else []), effect.shown])
    return SweepPoint(Step(effect.phase, edge), format_action(action), role, batch, Plan(faults), detail)


def thread_of(event: Event) -> str:
    return f"{event.get('process')} {event.get('thread')}"


def numbers(addresses: Sequence[Hashable]) -> list[int]:
    """Which of its address each one is, from 1.

    >>> numbers(["a", "b", "a"])
    [1, 1, 2]
    """
    counts = Counter[Hashable]()
    found = []
    for address in addresses:
        counts[address] += 1
        found.append(counts[address])
    return found
