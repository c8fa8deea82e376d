"""The rendezvous server: probes report to it and stay parked until it answers; it counts, holds and fires.

A report of a point is answered with one byte: ``G`` go on, ``F`` fail (for Python followed by a line of JSON with the
class and the message of the exception). A report with another token than the trial's is refused. Counters live here, so
they go on over restarts of the driver; each fault fires once.

>>> from .language import parse
>>> plan = parse("sink.commit:after[batch=1] -> delay(1ms)")
>>> with Injector(plan, actuator=None, record=lambda event, fields: None) as injector:
...     [status.reached for status in injector.status()], injector.host
([False], '127.0.0.1')
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from .actuator import Actuator
from .catalogue import argument
from .matching import Counter
from .model import Action, Fault, Moment, Plan
from .printing import format_action, format_fault
from .report import Batches, Malformed, process_of, read_message, to_point

Record = Callable[[str, Mapping[str, Any]], None]
Observe = Callable[[Mapping[str, Any]], Mapping[str, Any]]

GO_ON = b"G"
FAIL = b"F"
LONGEST = 64 * 1024
"""Bytes of a report, at most."""


class InjectionError(Exception):
    """An action could not be carried out: the trial is inconclusive."""


@dataclass(frozen=True)
class FaultStatus:
    """What became of a fault so far. ``process`` is the one whose thread reached it (``place:pid``)."""

    index: int
    text: str
    reached: bool = False
    fired: bool = False
    confirmed: bool = False
    error: str | None = None
    process: str | None = None


@dataclass
class _Armed:
    """A fault with its counters. ``over`` is set when its actions are done, given up, or never to come; ``held`` is the
    number of threads that it holds."""

    index: int
    fault: Fault
    at: Counter | None
    holds: tuple[Counter, ...]
    status: FaultStatus
    over: threading.Event = field(default_factory=threading.Event)
    held: int = 0


@dataclass
class _Awaited:
    """A point for which a paused process waits: ``until P``."""

    point: Counter
    seen: threading.Event = field(default_factory=threading.Event)
    acted: threading.Event = field(default_factory=threading.Event)
    given_up: bool = False


class Injector:
    """Executes ``plan`` on what probes report; a context manager that serves while it is entered.

    ``record(event, fields)`` is called for each event of the journal, one call at a time and in the order in which
    things were decided. ``observe(point)`` may add fields to a point before it is recorded. Probes find the injector at
    ``host`` and ``port`` and identify themselves with ``token``.
    """

    def __init__(
        self,
        plan: Plan,
        actuator: Actuator | None,
        record: Record,
        observe: Observe | None = None,
        host: str = "127.0.0.1",
    ) -> None:
        self.plan = plan
        self.host = host
        self.port = 0
        self.token = secrets.token_hex(16)
        self.errors: list[str] = []
        """What went wrong in the injector itself: if there is any, a trial proves nothing."""
        self._actuator = actuator
        self._record = record
        self._observe = observe
        self._armed = tuple(_arm(index, fault) for index, fault in enumerate(plan.faults))
        self._awaited: list[_Awaited] = []
        self._batches = Batches()
        self._lock = threading.RLock()
        self._closing = threading.Event()
        self._acting = 0
        self._held = 0
        self._moved = time.monotonic()
        self._connections: set[socket.socket] = set()
        self._server: socket.socket | None = None

    # -- life -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> Injector:
        self._server = socket.create_server((self.host, 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._server,), name="injector", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        self.release_all()
        server, self._server = self._server, None
        for connection in [*([server] if server else []), *self._open_connections()]:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()

    def start_clock(self) -> None:
        """The first driver starts: moments (``at(3s)``) count from here."""
        for armed in self._armed:
            if isinstance(armed.fault.at, Moment):
                arguments = (armed, armed.fault.at.seconds)
                threading.Thread(target=self._at_moment, args=arguments, name="moment", daemon=True).start()

    def release_all(self, reason: str | None = None) -> None:
        """Let go of every held thread and every paused process: what they wait for cannot come any more.

        With a ``reason`` a fault that is still holding threads has failed by it, and does not fire any more.
        """
        with self._lock:
            for awaited in self._awaited:
                awaited.given_up = True
                awaited.seen.set()
            for armed in self._armed:
                if reason is not None and armed.held and not armed.over.is_set():
                    armed.status = replace(armed.status, error=reason)
                    self._record("fault.failed", {"fault": armed.index, "action": "hold", "error": reason})
                if armed.holds:
                    armed.over.set()

    # -- what the supervisor asks ---------------------------------------------------------------------------------

    def status(self) -> list[FaultStatus]:
        """What became of each fault of the plan, in its order."""
        with self._lock:
            return [armed.status for armed in self._armed]

    def pending(self) -> bool:
        """Whether a fault has not fired yet, a thread is held, or a paused process waits for a point."""
        with self._lock:
            return not all(armed.status.fired for armed in self._armed) or self._held > 0 or bool(self._awaited)

    def acting(self) -> bool:
        """Whether the actions of a fault are under way; waiting for the point of an ``until`` is not acting."""
        return self._acting > 0

    def holding(self) -> int:
        """How many threads are held by the plan."""
        return self._held

    def idle_seconds(self) -> float:
        """Seconds since the last report or the last action; 0 while one is under way."""
        return 0.0 if self.acting() else time.monotonic() - self._moved

    # -- connections ----------------------------------------------------------------------------------------------

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="probe", daemon=True).start()

    def _open_connections(self) -> list[socket.socket]:
        with self._lock:
            return list(self._connections)

    def _serve(self, connection: socket.socket) -> None:
        """Answer one probe until it goes. A connection that vanishes is that of a process which was killed."""
        try:
            with connection, connection.makefile("rb") as lines, suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                while line := lines.readline(LONGEST):
                    answer = self._receive(line)
                    if answer is None or self._closing.is_set():
                        return  # end of file: nothing goes on without the harness
                    connection.sendall(answer)
        except Exception as error:
            self._went_wrong(f"{type(error).__name__}: {error}")
        finally:
            with self._lock:
                self._connections.discard(connection)

    def _receive(self, line: bytes) -> bytes | None:
        """The answer to a report; None to close the connection without one."""
        try:
            message = read_message(line)
        except Malformed as error:
            self._refuse(f"malformed report {error}")
            return None
        if not secrets.compare_digest(message.token.encode(), self.token.encode()):
            self._refuse("wrong token")
            return None
        self._moved = time.monotonic()
        event = message.fields.get("event")
        if event is not None:
            self._note(str(event), message.fields)
            return GO_ON
        return self._point(message.fields)

    def _refuse(self, detail: str) -> None:
        with self._lock:
            self._record("probe.refused", {"detail": detail})

    def _note(self, event: str, fields: Mapping[str, Any]) -> None:
        """``probe.hello``, or ``probe.error``: something that a probe could not do as asked."""
        shown = {name: value for name, value in fields.items() if name in ("role", "error", "phase", "file", "line")}
        with self._lock:
            self._record(event, {**shown, "process": process_of(fields)})

    def _went_wrong(self, error: str) -> None:
        with self._lock:
            self.errors.append(error)
            self._record("injector.error", {"error": error})

    # -- points ---------------------------------------------------------------------------------------------------

    def _point(self, fields: Mapping[str, Any]) -> bytes:
        with self._lock:
            point = to_point(fields, self._batches)
        if point is None:
            return GO_ON
        point.update(self._observed(point))
        with self._lock:
            self._record("point", point)
            fires, holders, awaited = self._matching(point)
        for waiting in awaited:
            waiting.seen.set()
            waiting.acted.wait()
        for armed in holders:
            self._hold(armed, point)
        return self._fire_all(fires, point)

    def _observed(self, point: Mapping[str, Any]) -> Mapping[str, Any]:
        if self._observe is None:
            return {}
        try:
            return self._observe(point)
        except Exception as error:
            self._went_wrong(f"observation at {point.get('phase')}: {type(error).__name__}: {error}")
            return {}

    def _matching(self, point: Mapping[str, Any]) -> tuple[list[_Armed], list[_Armed], list[_Awaited]]:
        """The faults that fire at this point, those whose holds park it, and the pauses that end here."""
        counted = [armed for armed in self._armed if armed.at and armed.at.count(point) == armed.at.nth]
        fires = [armed for armed in counted if armed.status.error is None]
        holders = [armed for armed in self._armed if self._parks(armed, point) and armed not in fires]
        awaited = [waiting for waiting in self._awaited if waiting.point.count(point) == waiting.point.nth]
        return fires, holders, awaited

    @staticmethod
    def _parks(armed: _Armed, point: Mapping[str, Any]) -> bool:
        counts = [(hold, hold.count(point)) for hold in armed.holds]
        return not armed.over.is_set() and any(number is not None and number >= hold.nth for hold, number in counts)

    def _hold(self, armed: _Armed, point: Mapping[str, Any]) -> None:
        """Park this thread until the fault is over."""
        with self._lock:
            self._held += 1
            armed.held += 1
            self._record("hold", {"fault": armed.index, "process": point.get("process"), "point": point})
        armed.over.wait()
        with self._lock:
            self._held -= 1
            armed.held -= 1
            self._record("release", {"fault": armed.index, "process": point.get("process"), "point": point})

    # -- faults ---------------------------------------------------------------------------------------------------

    def _fire_all(self, fires: list[_Armed], point: Mapping[str, Any]) -> bytes:
        """Carry out what the point set off, while its thread is parked; returns its answer."""
        answer = GO_ON
        for armed in fires:
            answer = self._fire(armed, point) or answer
        return answer

    def _fire(self, armed: _Armed, point: Mapping[str, Any]) -> bytes | None:
        process = point.get("process")
        with self._lock:
            armed.status = replace(armed.status, reached=True, process=process)
            reached = {"fault": armed.index, "text": armed.status.text, "process": process, "point": point}
            self._record("fault.reached", reached)
        return self._carry_out(armed, point, armed.fault.actions)

    def _at_moment(self, armed: _Armed, seconds: float) -> None:
        if not self._closing.wait(seconds):
            self._fire(armed, {})

    def _carry_out(self, armed: _Armed, point: Mapping[str, Any], actions: tuple[Action, ...]) -> bytes | None:
        """Do ``actions`` in turn; the first that fails ends them. Returns another answer than "go on", if there is one.

        What follows a ``pause ... until P`` is done when P is reported; the parked thread does not wait for that.
        """
        answer = None
        with self._under_way():
            for number, action in enumerate(actions):
                try:
                    if action.until is not None:
                        self._pause_until(armed, point, actions[number:])
                        return answer
                    answer = self._perform(armed, point, action) or answer
                except Exception as error:
                    self._failed(armed, action, error)
                    return answer
            self._over(armed, confirmed=True)
        return answer

    @contextmanager
    def _under_way(self) -> Iterator[None]:
        with self._lock:
            self._acting += 1
        try:
            yield
        finally:
            with self._lock:
                self._acting -= 1
                self._moved = time.monotonic()

    def _perform(self, armed: _Armed, point: Mapping[str, Any], action: Action) -> bytes | None:
        """One action with its events."""
        self._fired(armed, point, action)
        answer = None
        if action.name == "fail":
            answer, detail = _failure(action, point)
        else:
            detail = self._effect(action, point)
        self._confirmed(armed, point, action, detail)
        return answer

    def _effect(self, action: Action, point: Mapping[str, Any]) -> str:
        """Do one action on a process or on the parked thread; returns what was done."""
        target = str(action.target)
        match action.name:
            case "kill":
                return self._acts_on().kill(target, point)
            case "pause":
                paused = self._acts_on().pause(target, point)
                self._keep(_seconds(action, "for"))
                return f"{paused}; {self._acts_on().resume(target, point)}"
            case "resume":
                return self._acts_on().resume(target, point)
            case "delay":
                kept = _seconds(action, "for")
                self._keep(kept)
                return f"the thread was kept for {kept:g} s"
            case "partition":
                peer = argument(action, "peer")
                peer = None if peer is None else str(peer)
                return self._acts_on().partition(target, point, peer, _seconds(action, "for"))
            case "restart":
                return f"the supervisor restarts the {target} after {_seconds(action, 'after'):g} s"
        raise InjectionError(f"the injector has no action {action.name}")

    def _acts_on(self) -> Actuator:
        if self._actuator is None:
            raise InjectionError("no actuator: there is nothing to act on")
        return self._actuator

    def _keep(self, seconds: float) -> None:
        if self._closing.wait(seconds):
            raise InjectionError(f"the trial ended before {seconds:g} s were over")

    def _pause_until(self, armed: _Armed, point: Mapping[str, Any], actions: tuple[Action, ...]) -> None:
        """Pause, and leave the rest to a thread of its own: P may be reported by any process, at any time."""
        action = actions[0]
        assert action.until is not None
        awaited = _Awaited(Counter(action.until))
        with self._lock:
            self._awaited.append(awaited)
        self._fired(armed, point, action)
        try:
            detail = self._acts_on().pause(str(action.target), point, replace=True)
        except BaseException:
            self._forget(awaited)
            raise
        arguments = (armed, point, actions, awaited, detail)
        threading.Thread(target=self._after_awaited, args=arguments, name="until", daemon=True).start()

    def _forget(self, awaited: _Awaited) -> None:
        with self._lock:
            self._awaited.remove(awaited)
        awaited.acted.set()

    def _after_awaited(
        self, armed: _Armed, point: Mapping[str, Any], actions: tuple[Action, ...], awaited: _Awaited, detail: str
    ) -> None:
        """Resume at P, then do what follows; the thread that reported P is parked until the process is resumed."""
        action, *rest = actions
        awaited.seen.wait()
        with self._under_way():
            try:
                resumed = self._acts_on().resume(str(action.target), point)
                with self._lock:
                    self._record("resumed", {"fault": armed.index, "process": point.get("process"), "detail": resumed})
                if awaited.given_up:
                    raise InjectionError("resumed without the point that it was to wait for: that was never reported")
                self._confirmed(armed, point, action, f"{detail}; {resumed}")
            except Exception as error:
                self._failed(armed, action, error)
                rest = []
            finally:
                self._forget(awaited)
            if armed.status.error is None:
                self._carry_out(armed, point, tuple(rest))

    def _fired(self, armed: _Armed, point: Mapping[str, Any], action: Action) -> None:
        with self._lock:
            armed.status = replace(armed.status, fired=True)
            self._record("fault.fired", _about(armed, action) | {"process": point.get("process")})

    def _confirmed(self, armed: _Armed, point: Mapping[str, Any], action: Action, detail: str) -> None:
        with self._lock:
            self._record("fault.confirmed", _about(armed, action) | {"process": point.get("process"), "detail": detail})

    def _failed(self, armed: _Armed, action: Action, error: Exception) -> None:
        with self._lock:
            text = str(error) or type(error).__name__
            armed.status = replace(armed.status, error=text)
            self._record("fault.failed", _about(armed, action) | {"error": text})
            self._over(armed, confirmed=False)

    def _over(self, armed: _Armed, *, confirmed: bool) -> None:
        """The fault is done: what it held goes on."""
        with self._lock:
            armed.status = replace(armed.status, confirmed=confirmed)
        armed.over.set()


def _arm(index: int, fault: Fault) -> _Armed:
    return _Armed(
        index=index,
        fault=fault,
        at=None if isinstance(fault.at, Moment) else Counter(fault.at),
        holds=tuple(map(Counter, fault.holds)),
        status=FaultStatus(index, format_fault(fault)),
    )


def _about(armed: _Armed, action: Action) -> dict[str, Any]:
    return {"fault": armed.index, "action": format_action(action)}


def _seconds(action: Action, name: str) -> float:
    return float(argument(action, name) or 0.0)


def _failure(action: Action, point: Mapping[str, Any]) -> tuple[bytes, str]:
    """The answer that makes the parked thread raise, and what it raises there."""
    if point.get("role") in ("driver", "executor"):
        return FAIL, "the thread throws java.lang.RuntimeException"
    if point.get("phase") != "line":
        raise InjectionError(
            f"fail needs a thread of a driver or executor, or a line: none is parked at {point or 'a moment'}"
        )
    answer = {"error": str(argument(action, "error")), "message": str(argument(action, "message"))}
    return FAIL + json.dumps(answer).encode() + b"\n", f"the line raises {answer['error']}"
