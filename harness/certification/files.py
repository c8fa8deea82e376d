"""What the job does to files. Each kind of change fails once before it is done, and once after it; of a sink that says
that it is durable the driver's machine loses its power there as well.

Names of files hold what is new in each run (:mod:`.names`): a point has ``*`` there. That may stand for other names,
too, so a point's number counts all changes that the plan takes for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fnmatch import fnmatchcase

from ...faults import Value
from .effects import Effect, Family, Loss, task_process_dies, thread_of
from .names import PHASE, pattern_of
from .points import FAIL, POWER, Question
from .shapes import shapes_of_kinds
from .trace import Event

EMPTIES = ("create", "truncate")
"""Operations behind which a file is empty."""


def _read(reported: Sequence[Event]) -> list[Effect]:
    addresses = [(event["op"], event.get("pattern") or pattern_of(event["path"])) for event in reported]
    names = shapes_of_kinds([op for op, _ in addresses], [path for _, path in addresses])
    found = zip(reported, addresses, _numbers(reported, addresses), names, strict=True)
    return [_effect(event, op, path, nth, name) for event, (op, path), nth, name in found]


def _numbers(reported: Sequence[Event], addresses: Sequence[tuple[str, str]]) -> list[int]:
    """Which of the changes that its address chooses each one is, from 1."""
    counts, found = Counter[tuple[str, str]](), []
    wild = {(op, path) for op, path in addresses if "*" in path or "?" in path}
    for event, own in zip(reported, addresses, strict=True):
        chosen = {(op, path) for op, path in wild if op == event["op"] and fnmatchcase(event["path"], path)}
        counts.update(chosen | {own})
        found.append(counts[own])
    return found


def _effect(event: Event, op: str, path: str, nth: int, shape: str) -> Effect:
    """Two changes of one signature differ in what is given in their paths only: numbers, values of keys."""
    signature = (op, shape)
    again = f" ({nth})" if nth > 1 else ""
    where: dict[str, Value] = {"op": op, "path": path}
    return Effect(
        PHASE, where, nth, signature, f"{op} {path}{again}", thread_of(event), event.get("process", ""),
        empties=op in EMPTIES, from_elsewhere=str(event.get("source", "")).startswith("/"),
    )  # fmt: skip


def _losses(question: Question) -> tuple[Loss, ...]:
    power = [lambda effect, edge: POWER] if question.durable else []
    return (lambda effect, edge: FAIL, *power, task_process_dies)


def alike(effect: Effect) -> dict[str, Value]:
    """What chooses changes of the same kind in its directory: another one may have another name."""
    directory = str(effect.where["path"]).partition("/")[0]
    return {"op": effect.where["op"], "path": f"{directory}/*"}


FILES = Family(PHASE, _read, _losses, "changed no file of the sink's", may_fail=True)
