"""What tests of probes in real processes share: the rules that are loaded, and what was reported."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pyspark
from onceproof.faults.injection import Injector
from onceproof.faults.probes import rules
from onceproof.faults.probes.rule import Side
from onceproof.harness.artifacts import Artifacts


@cache
def artifacts() -> Artifacts:
    return Artifacts.open()


SIDES: tuple[Side, ...] = ("driver", "executor")


def script_for(
    side: Side, phases: Collection[str | tuple[str, str]], injector: Injector, gate: Path | None = None
) -> str:
    """The rules of one side, for this Spark and this injector."""
    return rules(
        phases,
        side,
        spark_version=pyspark.__version__,
        host=injector.host,
        port=injector.port,
        token=injector.token,
        rows=(2, 5),
        gate=str(gate) if gate else None,
    )


@dataclass
class Journal:
    """What the injector recorded."""

    events: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    grown: threading.Condition = field(default_factory=threading.Condition)

    def record(self, event: str, fields: Mapping[str, Any]) -> None:
        with self.grown:
            self.events.append((event, dict(fields)))
            self.grown.notify_all()

    def points(self, *phases: str) -> list[dict[str, Any]]:
        return [fields for event, fields in self.events if event == "point" and fields["phase"] in phases]

    def named(self, event: str) -> list[dict[str, Any]]:
        return [fields for name, fields in self.events if name == event]

    def wait_for(self, event: str, timeout: float = 90) -> dict[str, Any]:
        with self.grown:
            assert self.grown.wait_for(lambda: self.named(event), timeout), f"no {event}: {self.events[-5:]}"
        return self.named(event)[0]


class Killer:
    """Kills the worker that a point names."""

    def kill(self, target: str, point: Mapping[str, Any], **more: object) -> str:
        os.kill(int(str(point["process"]).split(":")[1]), signal.SIGKILL)
        return f"killed {target}"

    def pause(self, target: str, point: Mapping[str, Any], *, by: object, replace: bool = False) -> str:
        raise NotImplementedError

    def resume(self, target: str, point: Mapping[str, Any], *, paused_by: object = None) -> str:
        raise NotImplementedError


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline, tick = time.monotonic() + seconds, threading.Event()
    while not condition():
        if time.monotonic() > deadline:
            return False
        tick.wait(0.05)
    return True
