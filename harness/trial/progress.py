"""What a trial's journal and injector say of its progress; the supervisor asks, and decides on restarts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any

from ...faults import PHASES, Injector, Plan, action_named
from ...plans import ActionReference

BACK = {"broker_registered": "broker.registered", "server_back": "server.back"}
"""The events that fulfil what a kill requires, by its kind."""

BESIDE = frozenset(phase.name for phase in PHASES if phase.where in ("connection", "files", "python") or phase.place)
"""Phases that any thread of the job may report at any time, whatever becomes of its query."""

OF_ANY_THREAD = frozenset({"probe.hello", "connection.opened", "connection.closed"})
"""Events, too: a thread may connect again and again."""

ALONE_SECONDS = 900.0
"""How long they alone are progress of a batch: a thread that never stops may report them beside one that hangs."""


class TrialProgress:
    """Fed with every journal event of a trial of ``plan``; answers from memory."""

    def __init__(self, plan: Plan, clock: Callable[[], float] = time.monotonic) -> None:
        self._faults = plan.faults
        self._clock = clock
        self._lock = threading.Lock()
        self._committed: set[int] = set()
        self._started: int | None = None
        self._newest: int | None = None
        self._consequences = 0
        self._cut: set[tuple[object, object]] = set()
        self._impaired: set[ActionReference | None] = set()
        self._killed = 0
        self._paused: set[object] = set()
        self._fired = False
        self._starting = True
        self._querying = False
        self._committing = False
        self._writing: set[object] = set()
        self._ended: set[str] = set()
        self._moved = self._stepped = clock()
        self._moved_before: dict[object, float] = {}
        self._held = Counter[object]()
        self.injector: Injector | None = None
        self._arranged: Future[Any] | None = None

    def note(self, event: str, fields: Mapping[str, Any]) -> None:
        with self._lock:
            if event in ("hold", "release"):
                self._held[(fields.get("point") or {}).get("role")] += 1 if event == "hold" else -1
            self._note_movement(event, fields)
            if event == "driver.started":
                self._starting, self._querying, self._committing = True, False, False
                self._writing.clear()
            if event == "point":
                self._note_point(fields)
            if event == "query.ended":
                self._ended.add(fields["process"])
                self._writing.discard(fields["process"])
            self._fired = self._fired or event == "fault.fired"
            if event in ("fault.fired", "fault.repeated"):
                self._consequences += self._self_inflicted(fields)
            self._note_network(event, fields)
            self._note_services(event, fields)

    def _note_movement(self, event: str, fields: Mapping[str, Any]) -> None:
        """A driver that starts moves with all that is reported, and so does a batch that the sink writes, though not
        for ever. Otherwise only what is done by the query, the plan or the harness is movement.

        A report that is held is none, and neither is a connection while something is held: a client whose request the
        plan holds may ask again and again."""
        now = self._clock()
        beside = _is_beside(event, fields)
        if event == "hold" and _is_beside("point", fields.get("point") or {}):
            self._moved = self._moved_before.get(fields.get("process"), self._moved)
            return
        if event == "point":
            self._moved_before[fields.get("process")] = self._moved
        if event in OF_ANY_THREAD and self._held.total():
            return
        if not beside:
            self._stepped = now
        at_work = bool(self._writing) or not self._querying
        if not beside or (at_work and now - self._stepped < ALONE_SECONDS):
            self._moved = now

    def _self_inflicted(self, fired: Mapping[str, Any]) -> bool:
        """Whether a driver may fail by itself after this action."""
        reference = ActionReference.of(fired)
        action = reference.find(self._faults) if reference else None
        return action is not None and action.target in action_named(action.name).self_inflicted

    def _note_point(self, fields: Mapping[str, Any]) -> None:
        here, process = (fields.get("phase"), fields.get("edge")), fields.get("process")
        if here == ("query.start", "before"):
            self._querying = True
            self._ended.discard(str(process))
        elif here == ("batch.commit", "after"):
            self._committed.add(fields["batch"])
            self._committing = True
        elif here == ("sink.write", "before"):
            self._started = fields["batch"]
            self._newest = max(fields["batch"], self._newest or 0)
            self._starting = False
            self._writing.add(process)
        elif here == ("sink.write", "after"):
            self._writing.discard(process)

    def _note_network(self, event: str, fields: Mapping[str, Any]) -> None:
        """While the plan keeps a machine cut off, connections impaired or a service away, drivers may fail by that
        again and again."""
        link = (fields.get("process"), fields.get("peer"))
        if event == "network.cut":
            self._cut.add(link)
        elif event in ("network.healed", "environment.failure"):
            self._cut.discard(link)
        elif event == "network.impaired":
            self._impaired.add(ActionReference.of(fields))
        elif event == "network.restored":
            self._impaired.discard(ActionReference.of(fields))
        elif event == "driver.exited":
            self._consequences += self._kept_away()

    def _note_services(self, event: str, fields: Mapping[str, Any]) -> None:
        """A broker or server is away from its kill or pause on, until it is back or goes on."""
        dies, stops = self._takes_service_away(fields)
        failed = event == "environment.failure" and ("broker" in fields or "server" in fields)
        back = event in BACK.values() or failed
        if event == "fault.fired" and dies:
            self._killed += 1
        elif back or (event == "fault.failed" and dies):
            self._killed = max(0, self._killed - 1)
        elif event == "fault.fired" and stops:
            self._paused.add(fields.get("fault"))
        elif event == "resumed" or (event in ("fault.confirmed", "fault.failed") and stops):
            self._paused.discard(fields.get("fault"))

    def _takes_service_away(self, fields: Mapping[str, Any]) -> tuple[bool, bool]:
        """Whether an event's action takes a broker or server away until it is back, or until the action is over."""
        reference = ActionReference.of(fields)
        action = reference.find(self._faults) if reference else None
        spec = action_named(action.name) if action else None
        if action is None or spec is None or spec.network or action.target not in spec.takes_service_away:
            return False, False  # of a network it is told when it is cut and when it is healed
        comes_back = any(one.kind in BACK and action.target in one.targets for one in spec.requires)
        return comes_back, not comes_back

    def disturbed(self) -> bool:
        """Whether the plan keeps a broker or a server away, holds a thread of a broker, or cuts or impairs the
        network."""
        with self._lock:
            return self._kept_away() or self._held["broker"] > 0

    def _kept_away(self) -> bool:
        return bool(self._cut or self._impaired or self._killed or self._paused)

    def committed_batches(self) -> int:
        return len(self._committed)

    def started_batch(self) -> int | None:
        """The last batch that was handed to the sink."""
        return self._started

    def newest_batch(self) -> int | None:
        """The newest batch that was ever handed to the sink: a checkpoint may be taken back behind it."""
        return self._newest

    def starting(self) -> bool:
        return self._starting

    def querying(self) -> bool:
        return self._querying

    def committing(self) -> bool:
        return self._committing

    def ended_queries(self) -> Collection[str]:
        """The processes of drivers whose query has ended, well or not."""
        with self._lock:
            return set(self._ended)

    def consequences(self) -> int:
        return self._consequences

    @property
    def fired(self) -> bool:
        """Whether any fault fired."""
        return self._fired

    def idle_seconds(self) -> float:
        """A job that waits for its input, or for a network or a service that the plan keeps from it, is not idle."""
        if self.busy() or self._kept_away() or self._arranging():
            return 0.0
        return self._clock() - self._moved

    def wait_for_input(self, arranged: Future[Any]) -> None:
        """The job cannot go on before this is done."""
        self._arranged = arranged
        arranged.add_done_callback(lambda done: self.note("input.arranged", {}))

    def _arranging(self) -> bool:
        return self._arranged is not None and not self._arranged.done()

    def busy(self) -> bool:
        return self.injector is not None and self.injector.acting()

    def holding(self) -> bool:
        return self.injector is not None and self.injector.holding() > 0

    def release(self, reason: str | None = None) -> None:
        self._moved = self._clock()
        if self.injector is not None:
            self.injector.release_all(reason)


def _is_beside(event: str, fields: Mapping[str, Any]) -> bool:
    """Whether any thread may have brought it about, whatever becomes of the query."""
    of_any_thread = fields.get("phase") in BESIDE or fields.get("role") == "broker"
    return event in OF_ANY_THREAD or (event == "point" and of_any_thread)
