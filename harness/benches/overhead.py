"""What it costs a job that its steps, requests and files could be stopped, while none of them is: pairs of trials.

Each pair has a trial whose plan strikes at a batch that never comes, and one without a plan; which of them is first
takes turns. Steps that every trial reports are in both.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ...assertions import Workload
from ..errors import UsageError
from ..request import Request
from ..session import Session
from ..sinks import find_sink
from ..trial.spec import TrialResult
from .progress import measured_batches
from .trials import passed

BATCHES = 12
NEVER = f"[batch={10 * BATCHES}]"
"""Selects a batch that does not come."""


@dataclass(frozen=True)
class Case:
    """What is armed, and in a trial of which sink."""

    name: str
    sink: str
    armed: Sequence[str]
    never: str = NEVER
    """The selectors that nothing meets."""

    @property
    def plan(self) -> str:
        return "; ".join(f"{point}{self.never} -> kill(driver)" for point in self.armed)


def line_with(sink: str, text: str) -> str:
    """The first line of a sink's file that has ``text``, as a point; where none has, one that a plan is refused for."""
    file = find_sink(sink)
    lines = file.read_text().splitlines()
    return f"line[{file.name}:{next((number for number, line in enumerate(lines, 1) if text in line), 1)}]"


CASES = (
    Case("steps", "kafka_append", ("batch.offsets:before", "task.run:before", "task.run:after", "task.commit:before")),
    Case(
        "steps of brokers",
        "kafka_transactional",
        ("log.append:before", "txn.marker:before"),
        never="[kafka_partition=999]",
    ),
    Case("a line for each row", "kafka_transactional", (line_with("kafka_transactional", "producer.send("),)),
    Case("requests to Postgres", "postgres_ledger", ("request:before",)),
    Case("requests to Redis", "redis_ledger", ("request:before",)),
    Case("requests to Kafka", "kafka_transactional", ("request:before",)),
    Case("changes of files", "file_rename", ("file:before",)),
)


@dataclass(frozen=True)
class Pair:
    """Rows a second of the two trials."""

    armed: float
    bare: float

    @property
    def cost(self) -> float:
        """The share of the throughput that is lost; below 0 where the armed trial was the quicker one."""
        return 1 - self.armed / self.bare


@dataclass(frozen=True)
class Measured:
    case: Case
    pairs: Sequence[Pair]

    @property
    def median(self) -> float:
        return statistics.median(pair.cost for pair in self.pairs)

    @property
    def interval(self) -> tuple[float, float]:
        """The second smallest and the second largest cost: of ten pairs, 98 % of such intervals have the true median
        (order statistics of the binomial distribution). Of fewer than four pairs, the smallest and the largest."""
        costs = sorted(pair.cost for pair in self.pairs)
        edge = 1 if len(costs) > 3 else 0
        return costs[edge], costs[-1 - edge]


def measure(
    session: Session, cases: Sequence[Case], rows: int, pairs: int, done: Callable[[Case, Pair], None]
) -> list[Measured]:
    """Batches have about ``rows`` rows, the large one eight times as many. Raises UsageError."""
    found = []
    for case in cases:
        request = Request(case.sink, workload=Workload(batches=BATCHES, rows=rows), watch=False)
        measured = []
        for number in range(pairs):
            measured.append(_pair(session, request, case, armed_first=number % 2 == 0))
            done(case, measured[-1])
        found.append(Measured(case, measured))
    return found


def _pair(session: Session, request: Request, case: Case, *, armed_first: bool) -> Pair:
    rates = {}
    for armed in (armed_first, not armed_first):
        asked = replace(request, plan=case.plan if armed else "")
        rates[armed] = _throughput(session, asked, _unreached if armed else passed)
    return Pair(armed=rates[True], bare=rates[False])


def _throughput(session: Session, request: Request, run: Callable[[Session, Request], TrialResult]) -> float:
    """Rows a second, the median of all batches but the first, in which classes are loaded: one batch in which the
    machine did something else moves a sum, and not the median."""
    return statistics.median(
        batch.rows / batch.seconds for batch in measured_batches(session, request, run) if batch.number > 0
    )


def _unreached(session: Session, request: Request) -> TrialResult:
    """A trial whose plan strikes nowhere gives no verdict; its job must have gone through all the same."""
    result = session.trial(request)
    if result.verdict.outcome.value == "fail" or any(fault.fired for fault in result.verdict.faults):
        raise UsageError(f"a trial for the bench was disturbed: see {result.directory}")
    return result
