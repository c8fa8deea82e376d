"""What the death of a driver must leave behind, by the step at which it died: the same however it died."""

from __future__ import annotations

from dataclasses import replace

from ..requirements import Requirement, Step
from .declarations import Execution

DRIVER = ("driver",)

PLANNED: tuple[Step, ...] = (("batch.plan", "before"), ("batch.offsets", "before"))
"""Steps at which the input of a batch is known, if at all, to its driver alone."""

OF_A_DRIVER = (
    Requirement("planned_again", PLANNED, in_batch=True, targets=DRIVER),
    Requirement("handed_over", (("batch.offsets", "after"), ("sink.write", "before")), in_batch=True, targets=DRIVER),
    Requirement("gone_on", (("batch.commit", "after"),), in_batch=True, targets=DRIVER),
    Requirement("new_run", (("query.start", "before"),), targets=DRIVER),
    Requirement("replayed", in_batch=True, targets=DRIVER),
    Requirement("new_run", targets=DRIVER),
)
"""The offset log decides whether a batch is planned again or replayed, the commit log whether it comes again at all."""

IN_A_REPLAY = tuple(replace(one, targets=()) for one in OF_A_DRIVER)
"""The same, for what is seen only once a driver has died and another one has taken its place."""

PROTOCOL: dict[str, str] = {
    "planned_again": "the next run plans the batch anew",
    "handed_over": "the next run hands the batch over with the offsets that were planned",
    "replayed": "the next run hands the batch over a second time, with the same offsets",
    "gone_on": "the batch never comes again, the next run goes on behind it",
    "new_run": "a new run of the same query starts",
    "broker_registered": "the broker registers again, and the transaction is complete, as it was decided",
}
"""What the protocol requires after a crash, by the kind of evidence."""

SAME_INPUT = ("handed_over", "replayed")
"""Kinds that say that a batch came again with the very input that it had."""


def left_behind(requirements: tuple[Requirement, ...], execution: Execution) -> tuple[Requirement, ...]:
    """What the same must leave behind in a query that Spark runs so: only micro-batches have an offset log that a
    replay is bound to. Elsewhere a batch, or an epoch, is planned again, with the input that there is then."""
    if execution == "micro-batch":
        return requirements
    return tuple(replace(one, kind="planned_again") if one.kind in SAME_INPUT else one for one in requirements)
