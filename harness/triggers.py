"""When Spark runs a batch: the trigger that a job is started with, as its ``--trigger`` has it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..faults import EXECUTIONS, Execution, SinkShape
from ..naming import Named, as_option
from .environments.spark_master import local_cores
from .errors import UsageError

INTERVAL = re.compile(r"(?P<number>[0-9]{1,8}) (milliseconds?|seconds?)")
"""Of at most three years: Spark counts in milliseconds of 64 bits."""


@dataclass(frozen=True)
class Trigger:
    """``execution``: how Spark runs a query with this trigger. ``ends_by_itself``: once its input is processed.
    ``at_once``: its interval may be 0, for a batch as soon as the last one is done."""

    name: str
    execution: Execution = "micro-batch"
    ends_by_itself: bool = False
    at_once: bool = False

    @property
    def written(self) -> str:
        return self.name if self.ends_by_itself else f"{self.name}=INTERVAL"

    def takes(self, interval: str) -> bool:
        found = INTERVAL.fullmatch(interval)
        return found is not None and (self.at_once or int(found["number"]) > 0)


AVAILABLE_NOW = Trigger("availableNow", ends_by_itself=True)

TRIGGERS = (
    AVAILABLE_NOW,
    Trigger("processingTime", at_once=True),
    Trigger("asyncProgress", "async progress", at_once=True),
    Trigger("realTime", "real-time"),
    Trigger("continuous", "continuous"),
)


def check_trigger(text: str, named: Named = as_option) -> str:
    """``text``, if jobs take it. Raises UsageError."""
    trigger_of(text, named)
    return text


def trigger_of(text: str | None, named: Named = as_option) -> Trigger:
    """The trigger that is written as ``text``; None is the job's own, availableNow. Raises UsageError."""
    name, given, interval = (AVAILABLE_NOW.name if text is None else text).partition("=")
    for trigger in TRIGGERS:
        if trigger.name == name and (not given if trigger.ends_by_itself else trigger.takes(interval)):
            return trigger
    option = named("trigger")
    raise UsageError(
        f"{option} {text!r} is not a trigger: it is one of {', '.join(one.written for one in TRIGGERS)}, where "
        "INTERVAL is in milliseconds or seconds, more than 0 and of up to 8 digits, as in "
        f'{option} "processingTime=500 milliseconds"'
    )


def check_execution(text: str | None, shape: SinkShape, partitions: int, master: str, named: Named = as_option) -> None:
    """Whether Spark can run a query with this trigger: all but micro-batches need its own Kafka sink and, to read
    without an end, a core for each partition of the source. Raises UsageError."""
    execution = trigger_of(text, named).execution
    if execution == "micro-batch":
        return
    given = f"{named('trigger')} {text!r}"
    if not (shape.unknown or shape.kafka_sink):
        raise UsageError(
            f"{given} with {shape.file_name}: Spark runs such a query into its own Kafka sink only, "
            f"as in {named('sink')} kafka_append"
        )
    if shape.stateful:
        other = f"choose another {named('job')}"
        raise UsageError(f"{given}: the job keeps state, which such a query cannot: {other}")
    if shape.refused:
        raise UsageError(
            f"{given}: the job has {' and '.join(sorted(shape.refused))}, which Spark refuses in "
            f"{EXECUTIONS[execution]}: choose another {named('job')} or {named('trigger')}"
        )
    cores = local_cores(master)
    if execution in ("real-time", "continuous") and cores is not None and cores < partitions:
        raise UsageError(
            f"{given} with {named('master')} {master}: each of the source's {partitions} partitions is read by a "
            f"task that does not end, and needs a core of its own: {named('master')} local[{partitions},4]"
        )


def check_sweep(text: str | None) -> None:
    """Raises UsageError for a trigger by which no run has the batches of another one: a sweep strikes at batches."""
    execution = trigger_of(text).execution
    if execution != "micro-batch":
        raise UsageError(
            f"--trigger {text!r} is not swept: {EXECUTIONS[execution]} does not run the same batches twice; run single "
            f'plans instead, as in onceproof run --trigger "{text}" --fault "batch.commit:before -> kill(driver)"'
        )
