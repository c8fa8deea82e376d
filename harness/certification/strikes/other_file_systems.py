"""A file that comes to its name from outside of the target's directory, such as a temporary one: where these are two
file systems, as with NFS or a volume of its own, it cannot be renamed (EXDEV), and what moves files copies it then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ....faults import Action, Fault, Plan, Point, format_action
from ..effects import ends
from ..files import FILES
from ..kinds import effects_of
from ..points import KILL, Question, SweepPoint
from ..roles import MIDDLE
from ..trace import Step
from ._declaration import Strike

ELSEWHERE = Action("fail", None, {"error": "EXDEV"})


def moved(question: Question) -> Iterator[SweepPoint]:
    """In the middle batch the first and the last of each kind cannot be renamed; and then the driver dies where a copy
    has the name, and nothing in it yet. Who makes none then is never there, and the point without it stands for it."""
    batch = question.middle
    for one in ends([one for one in effects_of(question, FILES, batch) if one.from_elsewhere]):
        first = Fault(one.point("before", batch), (ELSEWHERE,))
        copied = Point(FILES.phase, "after", {**one.where, "op": "create", "batch": batch}, 1)
        here, shown = Step(one.phase, "before"), format_action(ELSEWHERE)
        way = f"cannot be renamed before {one.address}"
        point = SweepPoint(here, shown, MIDDLE, batch, Plan((first,)), one.shown, alone=True, way=way)
        yield point
        half = Plan((first, Fault(copied, (KILL,))))
        yield replace(point, plan=half, detail=f"{one.shown}, and the driver dies in its copy")


STRIKE = Strike(37, (moved,))
