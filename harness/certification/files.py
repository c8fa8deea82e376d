"""What the job does to files. Each kind of change fails once before it is done, and once after it; of a sink that says
that it is durable the driver's machine loses its power there as well.

Names of files hold what is new in each run: ids of queries and attempts, random texts. A point has ``*`` there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...faults import Value
from .effects import Effect, Family, Loss, numbers, thread_of
from .points import FAIL, Question
from .power import POWER
from .shapes import UUID, shapes_of_kinds
from .trace import Event

PHASE = "file"

NEW_IN_EACH_RUN = re.compile(
    rf"{UUID}"
    r"|(?<![0-9a-f])(?=[a-f]*[0-9])[0-9a-f]{8,}(?![0-9a-z])"  # a digest, a time stamp
    r"|attempt_[0-9]+_[0-9]+_[a-z]_[0-9]+_[0-9]+"  # of a task of Hadoop's
    r"|tmp[a-z0-9_]{8}"  # of Python's tempfile
)


def pattern_of(path: str) -> str:
    """The path as every run of the same batch has it.

    >>> pattern_of("target/part-00000-1b4e28ba-2fa1-11d2-883f-0016d3cca427-c000.snappy.parquet")
    'target/part-00000-*-c000.snappy.parquet'
    """
    return NEW_IN_EACH_RUN.sub("*", path.replace("[", "?"))


def _read(reported: Sequence[Event]) -> list[Effect]:
    addresses = [(event["op"], pattern_of(event["path"])) for event in reported]
    names = shapes_of_kinds([op for op, _ in addresses], [path for _, path in addresses])
    found = zip(reported, addresses, numbers(addresses), names, strict=True)
    return [_effect(op, path, nth, name, thread_of(event)) for event, (op, path), nth, name in found]


def _effect(op: str, path: str, nth: int, shape: str, thread: str) -> Effect:
    """Two changes of one signature differ in what is given in their paths only: numbers, values of keys."""
    signature = (op, shape)
    again = f" ({nth})" if nth > 1 else ""
    return Effect(PHASE, {"op": op, "path": path}, nth, signature, f"{op} {path}{again}", thread)


def _losses(question: Question) -> tuple[Loss, ...]:
    return (lambda effect, edge: FAIL, *([lambda effect, edge: POWER] if question.durable else []))


def alike(effect: Effect) -> dict[str, Value]:
    """What chooses changes of the same kind in its directory: another one may have another name."""
    directory = str(effect.where["path"]).partition("/")[0]
    return {"op": effect.where["op"], "path": f"{directory}/*"}


FILES = Family(PHASE, _read, _losses, "changed no file of the sink's")
