"""The space of a sweep: step x action x batch role, from the catalogue, the reference trace and a traced replay.

No step of the protocol is known here by its name: a phase of the catalogue says by which actions it is swept
(``sweep``), and the plan language says which of them a sink and an environment can have. What a phase does not say of
itself is a module of :mod:`.strikes`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from ...faults import PHASES
from ..errors import UsageError
from .kinds import EFFECT_PHASES
from .names import with_patterns
from .points import STEPS_ONLY, Gap, Profile, Question, Space, SweepPoint
from .requests import LOOKUPS
from .steps import IN_THE_REPLAY, ONE_TASK_ENDED, ONE_TASK_MISSING, unreached
from .strikes import strikes
from .strikes.known import KNOWN
from .strikes.larger import LARGE_RUN
from .strikes.longer import LONG_RUN
from .trace import Line, Step

ALL, PLANS = "all", "plans"

KINDS = (ALL, "phases", "lines", "effects", PLANS)
OF_EFFECTS = (*EFFECT_PHASES, LOOKUPS.phase)
"""Phases whose points are those of --points effects."""

NO_STEPS = ("lines", "effects")
"""Kinds that profiles which sweep nothing but steps have no point of."""


def space_of(question: Question) -> Space:
    """The points in the order of the strikes."""
    question = with_patterns(question)
    wanted = [
        found
        for strike in strikes()
        if strike.steps_only or question.profile not in STEPS_ONLY
        for points in strike.points
        for found in points(question)
    ]
    possible: list[SweepPoint] = []
    impossible: dict[tuple[str, str, str], Gap] = {}
    untried: list[Gap] = []
    for found in wanted:
        reason = found.reason if isinstance(found, Gap) else question.refusal(found.plan)
        if reason is None:
            assert isinstance(found, SweepPoint)
            possible.append(found)
        elif isinstance(found, SweepPoint) and found.required:
            untried.append(found.gap(reason))
        else:
            impossible.setdefault((found.step, found.action, reason), Gap(found.at, found.action, found.role, reason))
    if question.profile == "demo":
        possible = _by_turns(possible)
    return Space(tuple(possible), tuple(impossible.values()), tuple(unreached(question)), tuple(untried))


def _by_turns(points: Sequence[SweepPoint]) -> list[SweepPoint]:
    """Each step once, in the batches of all roles in rotation."""
    steps: dict[str, list[SweepPoint]] = {}
    for point in points:
        steps.setdefault(point.step, []).append(point)
    chosen = [choice[turn % len(choice)] for turn, choice in enumerate(steps.values())]
    return [replace(point, alone=point.batch is None) for point in chosen]


def select(space: Space, wanted: str, *, whole: bool = False) -> Space:
    """Only those points that ``--points`` names: phases, effects, lines, all, plans, or patterns of steps, with commas.

    Raises UsageError if a name selects nothing; of a line only once the space is ``whole``, where the run of twelve
    batches is asked for: it may be the first to come there.

    >>> select(Space(()), "all").points
    ()
    """
    found = chosen(space, wanted)
    later = not whole and LONG_RUN in found.points
    for name in _names(wanted):
        if name not in KINDS and not _known(name, space) and not (later and _names_a_line(name)):
            steps = dict.fromkeys(_name(point.at) for point in space.points)
            raise UsageError(f"--points {name!r} selects nothing: the steps of this sink are {', '.join(steps)}")
    return found


def chosen(space: Space, wanted: str) -> Space:
    """The same, also if a name selects nothing."""
    names = _names(wanted)
    return replace(
        space,
        points=tuple(point for point in space.points if _selected(point.at, names) or _shows(point, names)),
        impossible=tuple(gap for gap in space.impossible if _selected(gap.at, names)),
        unreached=tuple(gap for gap in space.unreached if _selected(gap.at, names)),
        untried=tuple(gap for gap in space.untried if _selected(gap.at, names)),
    )


def check_points(wanted: str, profile: Profile = "standard") -> None:
    """Raises UsageError for a name that no sink's step has, or of which the profile has no point."""
    places = [Step(phase.name, edge) for phase in PHASES for edge in phase.edges]
    places += [Step(ONE_TASK_ENDED), Step(ONE_TASK_MISSING), Step("line"), Step(LONG_RUN.step)]
    names = _names(wanted)
    if not names or not all(
        name in KINDS or _names_a_line(name) or any(_selected(place, [name]) for place in places) for name in names
    ):
        known = ", ".join(phase.name for phase in PHASES)
        raise UsageError(
            f"--points {wanted!r} is unknown: it is one of plans, effects, phases, lines, all, or steps with commas in "
            f"between (task.commit, sink.*:after, line my_sink.py:12) of {known}"
        )
    if profile in STEPS_ONLY and (none := [name for name in names if name in NO_STEPS or _names_a_line(name)]):
        raise UsageError(
            f"--points {none[0]!r} with --profile {profile} has no point, since that sweeps steps of the commit "
            "protocol only: take --profile standard, or leave it out of --points"
        )


def needs_replay(wanted: str) -> bool:
    """Whether lines, effects or lookups are named: only these need a traced replay, for what a second fault in it can
    strike.

    >>> needs_replay("re*"), needs_replay("phases"), needs_replay("line my_sink.py")
    (True, False, True)
    """
    names = _names(wanted)
    return _selects(names, OF_EFFECTS) or _selected(Line("", 1), names) or any(map(_names_a_line, names))


def names_plans(wanted: str) -> bool:
    """Whether the library of known failures is named: it is no part of all."""
    return PLANS in _names(wanted)


def _names(wanted: str) -> list[str]:
    return [name.strip() for name in wanted.split(",") if name.strip()]


def _names_a_line(name: str) -> bool:
    """``line FILE:NUMBER``, or ``line FILE`` for all of a file's; both may have wildcards."""
    _, colon, number = name.rpartition(":")
    return name.startswith("line ") and (not colon or re.fullmatch(r"[0-9*?\[\]!-]+", number) is not None)


def _known(name: str, space: Space) -> bool:
    gaps = [gap.at for gap in (*space.impossible, *space.unreached, *space.untried)]
    return any(_selected(place, [name]) for place in (*(point.at for point in space.points), *gaps))


def _name(place: Step | Line) -> str:
    """What --points calls it."""
    return place.name if isinstance(place, Step) else str(place)


def _selected(place: Step | Line, names: Iterable[str]) -> bool:
    if place == IN_THE_REPLAY:
        return True
    kinds = {"all", "lines" if isinstance(place, Line) else "effects" if place.phase in OF_EFFECTS else "phases"}
    if isinstance(place, Step) and place.phase.startswith(KNOWN):
        kinds = {PLANS}
    if place == LONG_RUN.at:
        kinds = {"all", "lines", "effects"}
    patterns = [_name(place), place.phase if isinstance(place, Step) else f"line {place.file}"]
    return any(name in kinds or any(fnmatchcase(pattern, name) for pattern in patterns) for name in names)


def _shows(point: SweepPoint, names: Iterable[str]) -> bool:
    """Whether it is the run of a large batch, and some of the effects are named that it may show."""
    return point == LARGE_RUN and _selects(names, EFFECT_PHASES)


def _selects(names: Iterable[str], phases: Iterable[str]) -> bool:
    """Whether a step of these phases is among what is named."""
    return any(_selected(Step(phase, edge), names) for phase in phases for edge in ("before", "after"))


def is_effect(point: SweepPoint) -> bool:
    """Whether it lies at an effect: which of these every run has, only a second trace shows."""
    return isinstance(point.at, Step) and point.at.phase in EFFECT_PHASES
