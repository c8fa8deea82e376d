"""What the death of a driver must leave behind, by the step at which it died: the same however it died."""

from __future__ import annotations

from ..requirements import Requirement

DRIVER = ("driver",)

OF_A_DRIVER = (
    Requirement("planned_again", (("batch.offsets", "before"),), in_batch=True, targets=DRIVER),
    Requirement("handed_over", (("batch.offsets", "after"), ("sink.write", "before")), in_batch=True, targets=DRIVER),
    Requirement("gone_on", (("batch.commit", "after"),), in_batch=True, targets=DRIVER),
    Requirement("new_run", (("query.start", "before"),), targets=DRIVER),
    Requirement("replayed", in_batch=True, targets=DRIVER),
    Requirement("new_run", targets=DRIVER),
)
"""The offset log decides whether a batch is planned again or replayed, the commit log whether it comes again at all."""
