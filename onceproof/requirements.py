"""What an action must leave behind in the journal, as data: actions declare it, assertions check it kind by kind.

A fault that leaves no trace proves nothing, so each action declares what must be seen after it. The check of a kind is
the module of that name in :mod:`onceproof.assertions.requirements`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .plans import Edge

Step = tuple[str, Edge | None]
"""A phase and its edge; ``("line", None)`` is a line."""


@dataclass(frozen=True)
class Requirement:
    """One kind of evidence, and where it is what an action must leave behind.

    ``steps``: at these steps only; none are all, and moments (``at(3s)``). ``in_batch``: only where the report that was
    reached belongs to a batch. ``targets``: of the action on these only; none are all.
    """

    kind: str
    steps: tuple[Step, ...] = ()
    in_batch: bool = False
    targets: tuple[str, ...] = ()

    @property
    def everywhere(self) -> bool:
        """Whether it holds wherever the action is done."""
        return not self.steps and not self.in_batch

    def holds_at(self, step: Step | None, batch: int | None) -> bool:
        """Whether it is required of an action at ``step`` (None: a moment) of ``batch`` (None: outside of any)."""
        return (not self.steps or step in self.steps) and (not self.in_batch or batch is not None)


def required_at(requirements: tuple[Requirement, ...], step: Step | None, batch: int | None) -> Requirement | None:
    """The first of ``requirements`` that holds there."""
    return next((one for one in requirements if one.holds_at(step, batch)), None)
