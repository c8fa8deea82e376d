"""Did a fault land? What was reached, fired and confirmed, and what it must have left behind in the journal.

A fault that leaves no trace proves nothing: a trial counts only if, after each of its faults, the journal shows what
each of its actions must leave behind. docs/verdict.md has the table; each kind of evidence is a module of
:mod:`.requirements`.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..requirements import required_at
from . import requirements
from .model import Evidence, FaultReport
from .traces import Found, Struck, Traces


def examine(number: int, evidence: Evidence) -> tuple[FaultReport, str | None]:
    """What became of fault ``number``, and why it did not land: None if it did."""
    fault = evidence.faults[number]
    traces = Traces(number, fault, evidence)
    found = _seen(traces) if traces.fired else _awaited(traces)
    report = FaultReport(
        text=fault.text,
        reached=bool(traces.of("fault.reached")) or traces.fired,
        fired=traces.fired,
        confirmed=traces.fired and not traces.unconfirmed,
        process=traces.process,
        replay={"required": found.required, "seen": found.seen},
        error=traces.error,
        swallowed=found.swallowed,
    )
    return report, _shortcoming(report, found, traces)


def _shortcoming(report: FaultReport, found: Found, traces: Traces) -> str | None:
    if report.error is not None:
        return f"fault {report.text!r} could not be carried out: {report.error}"
    if not report.reached:
        return f"fault {report.text!r} was never reached"
    if not report.fired:
        return f"fault {report.text!r} was reached, but did not fire"
    if not report.confirmed:
        return f"the effect of fault {report.text!r} was not confirmed ({', '.join(traces.unconfirmed)})"
    if found.seen is None:
        instead = f" ({found.instead})" if found.instead else ""
        return f"the replay evidence of fault {report.text!r} is missing: required was that {found.required}{instead}"
    return None


def _seen(traces: Traces) -> Found:
    return _together([_look(Struck(traces, action)) for action in traces.effective])


def _look(struck: Struck) -> Found:
    """What an action must leave behind where it struck, and whether it did."""
    requirement = required_at(struck.record.requirements, struck.step, struck.batch)
    if requirement is None:
        return Found(f"{struck.action.on_target} leaves something behind", None, "nothing is declared for this step")
    return requirements.check_named(requirement.kind)(struck)


def _together(found: Sequence[Found]) -> Found:
    """All of them are required."""
    seen = [one.seen for one in found if one.seen is not None]
    missing = [one.instead for one in found if one.seen is None and one.instead]
    swallowed = [one.swallowed for one in found if one.swallowed is not None]
    return Found(
        required=", and ".join(dict.fromkeys(one.required for one in found)),
        seen=", and ".join(dict.fromkeys(seen)) if len(seen) == len(found) else None,
        instead=", and ".join(missing) or None,
        swallowed=all(swallowed) if swallowed else None,
    )


def _awaited(traces: Traces) -> Found:
    """What a fault that never fired would have had to leave behind, as far as it can be said without its batch."""
    kinds = {one.kind for record in traces.fault.actions for one in record.requirements}
    replayed = any(requirements.is_replay(kind) for kind in kinds)
    return Found("the fault is reached and fires" + (", and a replay follows" if replayed else ""), None)
