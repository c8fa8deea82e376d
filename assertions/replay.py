"""Did a fault land? What was reached, fired and confirmed, and what it must have left behind in the journal.

A fault that leaves no trace proves nothing: a trial counts only if, after each of its faults, the journal shows the
replay that the fault must cause. docs/verdict.md has the table; each function below is one row of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .journal import HandOver, hand_overs, is_at, points, runs
from .model import Event, Evidence, FaultRecord, FaultReport

UNCONFIRMED = ("restart",)
"""Actions that only set how another one goes on: they have no effect of their own to confirm."""


@dataclass(frozen=True)
class Replay:
    """What had to be seen, what was, and if nothing was: what was found instead."""

    required: str
    seen: str | None
    instead: str | None = None


@dataclass(frozen=True)
class Traces:
    """What the journal has of one fault."""

    number: int
    fault: FaultRecord
    evidence: Evidence
    events: Sequence[tuple[int, Event]] = field(init=False)

    def __post_init__(self) -> None:
        mine = [
            (index, event)
            for index, event in enumerate(self.evidence.journal)
            if str(event["event"]).startswith("fault.") and event.get("fault") == self.number
        ]
        object.__setattr__(self, "events", mine)

    @property
    def journal(self) -> Sequence[Event]:
        return self.evidence.journal

    def of(self, kind: str, action: tuple[str, str | None] | None = None) -> list[tuple[int, Event]]:
        return [
            (index, event)
            for index, event in self.events
            if event["event"] == kind and (action is None or same_action(str(event.get("action", "")), action))
        ]

    @property
    def effective(self) -> list[tuple[str, str | None]]:
        """The actions with an effect of their own."""
        return [action for action in self.fault.actions if action[0] not in UNCONFIRMED]

    @property
    def fired(self) -> bool:
        return bool(self.of("fault.fired"))

    @property
    def unconfirmed(self) -> list[str]:
        """The actions of which not every one that the fault has was confirmed."""
        lacking = [
            action
            for action in self.effective
            if len(self.of("fault.confirmed", action)) < self.effective.count(action)
        ]
        return list(dict.fromkeys(map(shown, lacking)))

    @property
    def error(self) -> str | None:
        failed = self.of("fault.failed")
        return str(failed[0][1].get("error")) if failed else None

    @cached_property
    def point(self) -> Mapping[str, Any]:
        """The report at which the fault was reached; empty for a moment."""
        reached = self.of("fault.reached")
        return (reached[0][1].get("point") if reached else None) or {}

    @property
    def batch(self) -> int | None:
        return self.point.get("batch")

    @property
    def process(self) -> str | None:
        """The process that was acted on, as far as the journal names it."""
        for kind in ("fault.confirmed", "fault.fired", "fault.reached"):
            for _, event in self.of(kind):
                if event.get("process"):
                    return str(event["process"])
        return self.point.get("process")

    def fired_at(self, action: tuple[str, str | None]) -> int:
        """The index from which on the action's consequences are looked for."""
        return (self.of("fault.fired", action) or self.of("fault.fired"))[0][0]

    def confirmed_at(self, action: tuple[str, str | None]) -> int:
        """The index at which a dead process cannot report any more."""
        confirmed = self.of("fault.confirmed", action)
        return confirmed[0][0] if confirmed else self.fired_at(action)

    def new_hand_overs(self, start: int, batch: int | None = None) -> list[HandOver]:
        """Hand-overs after ``start`` by runs that were not there before, of the same query."""
        old = set(runs(self.journal, 0, start)) | {self.point.get("run")}
        return [
            hand_over
            for hand_over in hand_overs(self.journal, batch)
            if hand_over.index > start and hand_over.run not in old and self._same_query(hand_over.query)
        ]

    def new_points(self, start: int) -> Iterator[tuple[int, Event]]:
        """Reports after ``start`` by runs that were not there before, of the same query."""
        old = {None, self.point.get("run"), *runs(self.journal, 0, start)}
        for index, event in points(self.journal, start):
            if event.get("run") not in old and self._same_query(event.get("query")):
                yield index, event

    def _same_query(self, query: object) -> bool:
        return None in (query, self.point.get("query")) or query == self.point.get("query")


def examine(number: int, evidence: Evidence) -> tuple[FaultReport, str | None]:
    """What became of fault ``number``, and why it did not land: None if it did."""
    fault = evidence.faults[number]
    traces = Traces(number, fault, evidence)
    replay = _replay(traces) if traces.fired else Replay(_required_words(fault), None)
    report = FaultReport(
        text=fault.text,
        reached=bool(traces.of("fault.reached")) or traces.fired,
        fired=traces.fired,
        confirmed=traces.fired and not traces.unconfirmed,
        process=traces.process,
        replay={"required": replay.required, "seen": replay.seen},
        error=traces.error,
        swallowed=_swallowed(traces) if traces.fired and ("fail", None) in fault.actions else None,
    )
    return report, _shortcoming(report, replay, traces)


def _shortcoming(report: FaultReport, replay: Replay, traces: Traces) -> str | None:
    if report.error is not None:
        return f"fault {report.text!r} could not be carried out: {report.error}"
    if not report.reached:
        return f"fault {report.text!r} was never reached"
    if not report.fired:
        return f"fault {report.text!r} was reached, but did not fire"
    if not report.confirmed:
        return f"the effect of fault {report.text!r} was not confirmed ({', '.join(traces.unconfirmed)})"
    if replay.seen is None:
        instead = f" ({replay.instead})" if replay.instead else ""
        return f"the replay evidence of fault {report.text!r} is missing: required was that {replay.required}{instead}"
    return None


def _replay(traces: Traces) -> Replay:
    """The evidence of all actions of a fault together."""
    return _together(
        [EVIDENCE[action](traces, (action, target)) for action, target in traces.effective if action in EVIDENCE]
    )


def _together(replays: Sequence[Replay]) -> Replay:
    """All of them are required."""
    seen = [replay.seen for replay in replays if replay.seen is not None]
    missing = [replay.instead for replay in replays if replay.seen is None and replay.instead]
    return Replay(
        required=", and ".join(dict.fromkeys(replay.required for replay in replays)) or "nothing",
        seen=", and ".join(dict.fromkeys(seen)) or "nothing" if len(seen) == len(replays) else None,
        instead=", and ".join(missing) or None,
    )


def _required_words(fault: FaultRecord) -> str:
    """What a fault that never fired would have had to leave behind, as far as it can be said without its batch."""
    names = {name for name, _ in fault.actions}
    return "the fault is reached and fires" + (", and a replay follows" if "kill" in names else "")


# --- kill ------------------------------------------------------------------------------------------------------------


def _kill(traces: Traces, action: tuple[str, str | None]) -> Replay:
    return {"driver": _kill_driver, "broker": _kill_broker}.get(str(action[1]), _kill_task)(traces, action)


def _kill_driver(traces: Traces, action: tuple[str, str | None]) -> Replay:
    start, batch, phase = traces.confirmed_at(action), traces.batch, (traces.fault.phase, traces.fault.edge)
    if batch is None or phase[0] in ("query.start", "at"):
        return _new_run(traces, start)
    if phase == ("batch.offsets", "before"):
        return _planned_again(traces, start, batch)
    if phase in (("batch.offsets", "after"), ("sink.write", "before")):
        return _handed_over(traces, start, batch, f"batch {batch} is handed to the sink by the new run")
    if phase == ("batch.commit", "after"):
        return _gone_on(traces, start, batch)
    return _handed_over(traces, start, batch, f"batch {batch} is handed over a second time")


def _new_run(traces: Traces, start: int) -> Replay:
    """query.start, a moment, or a point outside of any batch."""
    required = "a new run of the same query starts"
    if "run" not in traces.point and not runs(traces.journal, 0, start):
        return Replay(required, None, "no run of the query had begun before: there was nothing to interrupt")
    for _, event in traces.new_points(start):
        return Replay(required, f"run {event['run']} started in {event.get('process')}")
    return Replay(required, None, "no other run was reported afterwards")


def _planned_again(traces: Traces, start: int, batch: int) -> Replay:
    required = f"batch {batch} is planned by the new run"
    for _, event in traces.new_points(start):
        if event.get("batch") == batch and (is_at(event, "batch.offsets") or is_at(event, "sink.write", "before")):
            return Replay(required, f"run {event['run']} planned batch {batch}")
    return Replay(required, None, f"no other run planned batch {batch}")


def _handed_over(traces: Traces, start: int, batch: int, what: str) -> Replay:
    """A hand-over by the new run with the same offsets: the same input, or it is no replay."""
    required = f"{what}, offsets/{batch} byte-equal"
    again = traces.new_hand_overs(start, batch)
    if not again:
        return Replay(required, None, f"no other run handed batch {batch} to the sink")
    known = [one.offsets for one in hand_overs(traces.journal, batch) if one.index < start]
    digests = [digest for digest in [traces.point.get("offsets"), *known] if digest]
    by = f"run {again[0].run} ({again[0].process}) handed batch {batch} to the sink"
    if digests and again[0].offsets == digests[-1]:
        return Replay(required, f"{by}, offsets/{batch} byte-equal ({digests[-1][:12]})")
    if digests:
        return Replay(required, None, f"{by}, but offsets/{batch} differs or its digest is unknown")
    return _written_once(traces, start, batch, required, by)


def _written_once(traces: Traces, start: int, batch: int, required: str, by: str) -> Replay:
    """Killed between the offset log and the first hand-over, no digest was taken: then the file must have been written
    by the old run, and not again by the new one (Spark plans a batch only where offsets/N is absent)."""
    written = any(
        is_at(event, "batch.offsets", "after") and event.get("batch") == batch and index < start
        for index, event in points(traces.journal)
    )
    again = any(is_at(e, "batch.offsets") and e.get("batch") == batch for _, e in traces.new_points(start))
    if written and not again:
        return Replay(required, f"{by}, and did not write offsets/{batch} again")
    return Replay(required, None, f"{by}, but nothing shows that offsets/{batch} is the same")


def _gone_on(traces: Traces, start: int, batch: int) -> Replay:
    required = (
        f"batch {batch} is never handed over again, and batch {batch + 1} is by the new run, or that ends cleanly"
    )
    if traces.new_hand_overs(start, batch):
        return Replay(required, None, f"batch {batch} was handed over again though it was committed")
    for hand_over in traces.new_hand_overs(start, batch + 1):
        return Replay(required, f"run {hand_over.run} ({hand_over.process}) went on with batch {batch + 1}")
    for _, event in traces.new_points(start):
        if _clean_end(traces.journal, start):
            return Replay(
                required, f"run {event['run']} ({event.get('process')}) had nothing left to do and ended cleanly"
            )
    return Replay(required, None, "no other run went on or ended cleanly")


def _clean_end(journal: Sequence[Event], start: int) -> bool:
    return any(event["event"] == "driver.exited" and event.get("code") == 0 for event in journal[start:])


def _kill_task(traces: Traces, action: tuple[str, str | None]) -> Replay:
    """kill(executor), kill(worker), kill(node): Spark attempts the task again, or the batch is replayed by a new run
    (on a master that does not repeat tasks, local[n], the death of a worker ends the query)."""
    start, batch = traces.fired_at(action), traces.batch
    tasks = [traces.point] if "attempt" in traces.point else _running(traces, start)
    if not tasks:
        required = f"the {action[1]} is confirmed dead (no task was seen running in it)"
        return Replay(required, f"{traces.process} died" if traces.of("fault.confirmed", action) else None)
    required = f"a higher attempt of {_task(tasks[0])} starts"
    for task in tasks:
        attempt = _higher_attempt(traces, start, task)
        if attempt is not None:
            return Replay(required, f"attempt {attempt['attempt']} of {_task(task)} ran in {attempt.get('process')}")
    again = traces.new_hand_overs(start, tasks[0].get("batch", batch))
    if again:
        return Replay(required, f"run {again[0].run} ({again[0].process}) handed batch {again[0].batch} over again")
    return Replay(required, None, "neither a higher attempt nor another run of the batch was reported")


def _higher_attempt(traces: Traces, start: int, task: Mapping[str, Any]) -> Event | None:
    for _, event in points(traces.journal, start):
        same = all(event.get(name) == task.get(name) for name in ("batch", "partition", "stage"))
        if same and event.get("attempt", -1) > task["attempt"]:
            return event
    return None


def _running(traces: Traces, start: int) -> list[Mapping[str, Any]]:
    """Tasks that the killed process had begun and not ended, as far as probes reported them."""
    begun: dict[object, Mapping[str, Any]] = {}
    for index, event in points(traces.journal):
        if index >= start or event.get("process") != traces.process or "attempt" not in event:
            continue
        begun[event.get("task")] = event
        if is_at(event, "task.run", "after") or is_at(event, "task.commit", "after"):
            del begun[event.get("task")]
    return list(begun.values())


def _task(task: Mapping[str, Any]) -> str:
    return f"task {task.get('partition')} of batch {task.get('batch')}"


def _kill_broker(traces: Traces, action: tuple[str, str | None]) -> Replay:
    name = traces.point.get("transactional_id")
    required = "the broker's new incarnation registers" + (f", transaction {name} is complete" if name else "")
    start = traces.fired_at(action)
    back = [event for event in traces.journal[start:] if event["event"] == "broker.registered"]
    if not back:
        return Replay(required, None, "no broker registered afterwards")
    left = [one.state for one in traces.evidence.settlement.hanging if one.name == name]
    if left:
        return Replay(required, None, f"transaction {name} was left {left[0]}")
    complete = f", transaction {name} complete" if name else ""
    moved = [event for event in traces.journal[start:] if event["event"] == "txn.coordinator"]
    coordinator = f" (coordinator now: broker {moved[0].get('broker')})" if moved and name else ""
    return Replay(required, f"broker {back[0].get('broker')} registered again{complete}{coordinator}")


# --- partition -------------------------------------------------------------------------------------------------------


def _partition(traces: Traces, action: tuple[str, str | None]) -> Replay:
    """The network was cut, and is healed: what could not pass meanwhile may have been sent again, or the batch replayed
    by a new run; neither is required."""
    fired = traces.of("fault.fired", action)
    if not fired:
        return Replay(f"the {action[1]} is cut off, and its network healed", None, "nothing was cut")
    return _together([_cut_off(traces, index, event, action[1]) for index, event in fired])


def _cut_off(traces: Traces, fired: int, event: Event, target: str | None) -> Replay:
    named = re.search(r"\bpeer=(\w+)", str(event["action"]))
    peer = named[1] if named else None
    others = peer or "every other machine"
    required = f"the {target} is cut off from {others}, and the network between them healed"
    cut = _network_event(traces, "network.cut", fired, {"target": target, "peer": peer})
    if cut is None:
        return Replay(required, None, "nothing was cut")
    index, link = cut
    healed = _network_event(traces, "network.healed", index, {"process": link.get("process"), "peer": peer})
    if healed is None:
        return Replay(required, None, f"the network between {link.get('process')} and {others} was not healed")
    seconds = healed[1]["t"] - link["t"]
    return Replay(required, f"{link.get('process')} was cut off from {others} and healed after {seconds:.1f} s")


def _network_event(traces: Traces, kind: str, start: int, fields: Mapping[str, Any]) -> tuple[int, Event] | None:
    """The first event of this kind after ``start`` that has these fields."""
    for index, event in enumerate(traces.journal):
        if index > start and event["event"] == kind and all(event.get(name) == fields[name] for name in fields):
            return index, event
    return None


# --- actions that end nothing ----------------------------------------------------------------------------------------


def _goes_on(traces: Traces, action: tuple[str, str | None]) -> Replay:
    """pause, delay, resume: the stopped process reports again; a process that has nothing more to report ends."""
    required, start = "the same process goes on", traces.confirmed_at(action)
    process, run = traces.point.get("process") or traces.process, traces.point.get("run")
    for _, event in points(traces.journal, start):
        if event.get("process") == process or (run is not None and event.get("run") == run):
            return Replay(required, f"{event.get('process')} reported {event.get('phase')} afterwards")
    end = _own_end(traces, start)
    if end is not None:
        return Replay(required, end)
    return Replay(required, None, f"{process} reported nothing afterwards")


def _own_end(traces: Traces, start: int) -> str | None:
    """How the driver that had been stopped ended: another driver's end says nothing of it.

    One that was replaced may see that on its first step, and end with an error: it has gone on.
    """
    stopped = _incarnation(traces)
    for index, event in enumerate(traces.journal):
        if index >= start and event["event"] == "driver.exited" and event.get("incarnation") == stopped:
            replaced = any(one > stopped for one in _started(traces.journal[:index]))
            if replaced and not event.get("planned"):
                return f"the driver that had been replaced ended by itself with code {event.get('code')} afterwards"
            return "the driver ended cleanly afterwards" if event.get("code") == 0 else None
    return None


def _incarnation(traces: Traces) -> int:
    """The driver to which the fault's process belongs: the newest one when that process was first heard of."""
    process = traces.point.get("process")
    fired = traces.of("fault.fired")[0][0]
    known = (index for index, event in enumerate(traces.journal) if process and event.get("process") == process)
    return max(_started(traces.journal[: min(next(known, fired), fired)]), default=1)


def _started(journal: Sequence[Event]) -> list[int]:
    return [event["incarnation"] for event in journal if event["event"] == "driver.started"]


def _fail(traces: Traces, action: tuple[str, str | None]) -> Replay:
    required = "the engine sees the error, or the sink swallows it"
    return Replay(required, _engine_saw(traces) or "swallowed by the sink: neither the driver nor a task failed of it")


def _swallowed(traces: Traces) -> bool:
    return _engine_saw(traces) is None


def _engine_saw(traces: Traces) -> str | None:
    """The first thing after the error that shows that it got through; None if the batch went on as if nothing had been.

    What comes after the batch's end, or after a planned kill, is not of this error.
    """
    for event in traces.journal[traces.fired_at(("fail", None)) + 1 :]:
        if event["event"] == "driver.exited":
            saw = f"the driver ended with code {event.get('code')}: {event.get('error') or 'no exception found'}"
            return None if event.get("planned") or event.get("code") == 0 else saw
        if event["event"] == "point" and event.get("batch") == traces.batch and traces.batch is not None:
            if is_at(event, "sink.write", "after") or is_at(event, "batch.commit"):
                return None
            if event.get("attempt", -1) > _attempt_before(traces, event):
                return f"attempt {event['attempt']} of {_task(event)} ran afterwards"
            if is_at(event, "sink.write", "before") and event.get("run") != traces.point.get("run"):
                return f"run {event.get('run')} handed batch {traces.batch} over again"
    return None


def _attempt_before(traces: Traces, task: Event) -> int:
    """The highest attempt of the same task that was seen before the error; a first attempt afterwards is no second."""
    start = traces.fired_at(("fail", None))
    seen = [
        event["attempt"]
        for index, event in points(traces.journal)
        if index < start and "attempt" in event
        if all(event.get(name) == task.get(name) for name in ("batch", "partition", "stage", "process"))
    ]
    return max(seen, default=0)


EVIDENCE: Mapping[str, Callable[[Traces, tuple[str, str | None]], Replay]] = {
    "kill": _kill,
    "partition": _partition,
    "pause": _goes_on,
    "delay": _goes_on,
    "resume": _goes_on,
    "fail": _fail,
}


def same_action(text: str, action: tuple[str, str | None]) -> bool:
    """Whether the journal's ``pause(driver, for=2s)`` is ``("pause", "driver")``."""
    found = re.match(r"\s*([\w.]+)\s*(?:\(\s*([\w.]+)\s*[,)])?", text)
    name, target = action
    return found is not None and found[1] == name and target in (None, found[2])


def shown(action: tuple[str, str | None]) -> str:
    name, target = action
    return f"{name}({target})" if target else name
