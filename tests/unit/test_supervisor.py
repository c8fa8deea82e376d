"""The supervisor, with drivers on paper."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from onceproof.harness.supervisor import Supervisor


@dataclass
class HeldJob:
    """A driver that the plan holds up until it is let go, and what the harness knows of it."""

    reasons: list[str | None] = field(default_factory=list)
    process: str = "local:1"

    def wait(self, timeout: float) -> int | None:
        return 0 if self.reasons else None

    def alive(self) -> list[str]:
        return [] if self.reasons else [self.process]

    def kill(self) -> str:
        raise AssertionError("the job did not hang by itself")

    def pause(self) -> str:
        raise NotImplementedError

    resume = pause

    def holding(self) -> bool:
        return not self.reasons

    def release(self, reason: str | None = None) -> None:
        self.reasons.append(reason)

    def idle_seconds(self) -> float:
        return 0.0 if self.reasons else 99.0

    def busy(self) -> bool:
        return False

    def committed_batches(self) -> int:
        return 0

    def started_batch(self) -> int | None:
        return None

    def consequences(self) -> int:
        return 0


def test_a_job_that_the_plan_holds_up_is_let_go_instead_of_given_up() -> None:
    job, events = HeldJob(), list[str]()

    def record(event: str, fields: Mapping[str, Any]) -> None:
        events.append(event)

    outcome = Supervisor(lambda number: job, lambda: True, lambda number: None, record, job, deadline=5.0).run()
    assert outcome.finished
    assert job.reasons == ["its hold was let go after 5 s in which nothing moved (--deadline)"]
    assert events == ["driver.started", "driver.exited"]
