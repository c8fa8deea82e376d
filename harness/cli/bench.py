"""``onceproof bench``: what guarantees and recoveries cost, printed as Markdown, and drawn."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeVar

from cyclopts import App, Parameter
from cyclopts.validators import Number

from ..benches import checkpoint as checkpoints
from ..benches import guarantees as costs
from ..benches import overhead as overheads
from ..benches import recovery as recoveries
from ..benches.plot import check_plot, stacked
from ..console.printing import say
from ..environment_options import EnvironmentOptions
from ..errors import HELD, UsageError
from ..reports._tables import code, document, table
from ..request import check_request
from ..session import Session
from ..sinks import check_release, find_sink
from ..spark import spark_of
from ..state_stores import STATE_STORES, StateStoreName
from ..trial.recovery import PARTS
from .options import COUNT, GIVEN, SECONDS
from .sessions import opened, told

T = TypeVar("T")

OWN_SPARK = "since benches run with the Spark of onceproof's own interpreter"

Stores = Annotated[
    list[StateStoreName] | None,
    GIVEN,
    Parameter(name="--state-store", help="where Spark keeps the state; may be repeated", consume_multiple=True),
]
Repeat = Annotated[int, Parameter(validator=COUNT, help="trials of each case")]
Plot = Annotated[Path | None, Parameter(help="draw to this file, as .svg and .png (needs onceproof[plots])")]


def register(app: App) -> None:
    bench = App(name="bench", help="Measure what guarantees and recoveries cost.")
    for command in (recovery, checkpoint, guarantees, overhead):
        bench.command(command)
    app.command(bench)


def recovery(
    *,
    keys: Annotated[list[int] | None, GIVEN, Parameter(help="keys in the job's state", consume_multiple=True)] = None,
    state_store: Stores = None,
    repeat: Repeat = 3,
    plot: Plot = None,
) -> int:
    """How long the recovery from a driver's death takes, part by part, by the size of the state.

    Prints medians in seconds, and a line through the time that loading the state takes.

    Examples:

        onceproof bench recovery

        onceproof bench recovery --keys 1000 50000 --state-store rocksdb --plot docs/recovery
    """
    stores = state_store or list(STATE_STORES)
    cases = [recoveries.Case(store, size) for store in stores for size in keys or (1_000, 10_000, 100_000, 1_000_000)]
    for case in cases:
        recoveries.workload_of(case.keys)
    measured = _run(
        plot,
        lambda session: recoveries.measure(
            session, cases, repeat, lambda case, one: told(f"{case.store}, {case.keys} keys: {one.total:.1f} s")
        ),
    )
    fitted = [
        [code(line.store), f"{line.fixed:.2f}", f"{line.per_thousand:.4f}", f"{line.explained:.2f}"]
        for line in recoveries.fits(measured)
    ]
    rows = [[code(one.case.store), str(one.case.keys), *map(_seconds, one.medians().values())] for one in measured]
    parts = table(("state store", "keys", *map(_words, (*PARTS, "total"))), rows)
    line = table(("state store", "loading, fixed (s)", "loading, for 1000 keys (s)", "r²"), fitted) if fitted else ""
    say(document([parts, line]))
    bars = [f"{one.case.store}, {one.case.keys} keys" for one in measured]
    _draw(
        plot, "Recovery from a driver's death", bars, {part: [one.median(part) for one in measured] for part in PARTS}
    )
    return HELD


def checkpoint(
    *,
    interval: Annotated[
        list[float] | None,
        GIVEN,
        Parameter(validator=SECONDS, help="seconds of the trigger processingTime", consume_multiple=True),
    ] = None,
    rate: Annotated[int, Parameter(validator=Number(gte=1, lte=1_000_000), help="rows a second of the input")] = 200,
    state_store: Stores = None,
    plot: Plot = None,
) -> int:
    """What being recoverable costs each batch, by the trigger's interval: plan, offsets, state, commit.

    Prints medians in seconds, as Spark has measured them (StreamingQueryProgress), and their share of a batch.

    Examples:

        onceproof bench checkpoint

        onceproof bench checkpoint --interval 0.5 2 --state-store rocksdb-changelog
    """
    stores = state_store or list(STATE_STORES)
    cases = [checkpoints.Case(store, one) for store in stores for one in interval or (0.5, 1.0, 2.0, 5.0)]
    for case in cases:
        checkpoints.request_of(case, rate)
    measured = _run(
        plot,
        lambda session: checkpoints.measure(
            session, cases, rate, lambda one: told(f"{one.case.store}, {one.case.interval:g} s: {one.share:.0%}")
        ),
    )
    parts = ("plan", "offsets_log", "state_commit", "upload", "commit_log", "seconds")
    rows = [
        [code(one.case.store), f"{one.case.interval:g}", str(one.rows)]
        + [_seconds(one.median(part)) for part in parts]
        + [f"{one.share:.0%}", f"{sum(map(one.median, checkpoints.PARTS)) / one.case.interval:.0%}"]
        for one in measured
    ]
    names = ("plan", "offsets log", "state commit", "of which upload", "commit log", "batch")
    say(table(("state store", "interval (s)", "rows", *names, "of the batch", "of the interval"), rows))
    bars = [f"{one.case.store}, {one.case.interval:g} s" for one in measured]
    drawn = {part: [one.median(part) for one in measured] for part in checkpoints.PARTS}
    _draw(plot, "A batch's checkpoint", bars, drawn)
    return HELD


def guarantees(
    *sinks: Annotated[str, Parameter(help="sink files, or names of built-in sinks [default: ours]")],
    rows: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000), help="rows of a small batch")] = 500,
    repeat: Repeat = 1,
    plot: Plot = None,
) -> int:
    """Throughput and latency of sinks, without a fault: what does exactly-once cost?

    Examples:

        onceproof bench guarantees

        onceproof bench guarantees kafka_append kafka_transactional --repeat 3
    """
    wanted = sinks or costs.SINKS
    for sink in wanted:
        check_request(costs.request_of(sink, rows), EnvironmentOptions())
        check_release(find_sink(sink), spark_of(sys.executable).version, f"leave it out, {OWN_SPARK}")
    measured = _run(
        plot,
        lambda session: costs.measure(
            session, wanted, rows, repeat, lambda one: told(f"{one.sink}: {one.throughput:.0f} rows/s")
        ),
    )
    lines = [
        [code(one.sink), one.technique, one.claim, f"{one.throughput:.0f}", _seconds(one.latency)] for one in measured
    ]
    say(table(("sink", "technique", "claims", "rows a second", "a small batch (s)"), lines))
    bars = [f"{one.sink} ({one.claim})" for one in measured]
    _draw(plot, "A small batch", bars, {"batch": [one.latency for one in measured]})
    return HELD


def overhead(
    *,
    rows: Annotated[int, Parameter(validator=Number(gte=1, lte=10_000), help="rows of a small batch")] = 4000,
    pairs: Annotated[int, Parameter(validator=COUNT, help="pairs of trials in each case")] = 10,
    case: Annotated[
        list[str] | None, Parameter(help="what is armed, as the table names it; may be repeated [default: all]")
    ] = None,
) -> int:
    """What it costs a job that its steps, requests and files could be stopped, while none is: throughput in pairs of
    trials, one with probes and proxies, one without.

    Prints medians, with the interval that they lie in.

    Examples:

        onceproof bench overhead

        onceproof bench overhead --case "changes of files" --pairs 4
    """
    known = {one.name: one for one in overheads.CASES}
    if unknown := [name for name in case or () if name not in known]:
        raise UsageError(f"--case {unknown[0]} is none of the cases: {', '.join(known)}")
    cases = [known[name] for name in case or known]
    measured = _run(
        None,
        lambda session: overheads.measure(
            session,
            cases,
            rows,
            pairs,
            lambda one, pair: told(f"{one.name}: {pair.cost:+.1%} of {pair.bare:.0f} rows/s"),
        ),
    )
    lines = [
        [
            one.case.name,
            code(one.case.sink),
            str(len(one.pairs)),
            _share(one.median),
            " to ".join(map(_share, one.interval)),
        ]
        for one in measured
    ]
    say(table(("armed", "sink", "pairs", "throughput lost, median", "interval"), lines))
    return HELD


def _run(plot: Path | None, measure: Callable[[Session], Sequence[T]]) -> Sequence[T]:
    """In a session of its own; a plot that cannot be drawn is refused before it."""
    if plot is not None:
        check_plot(plot)
    with opened(EnvironmentOptions()) as session:
        return measure(session)


def _draw(plot: Path | None, title: str, bars: Sequence[str], parts: Mapping[str, Sequence[float]]) -> None:
    if plot is not None:
        for file in stacked(plot, title, bars, {_words(part): values for part, values in parts.items()}):
            told(f"drawn: {file}")


def _words(name: str) -> str:
    return name.replace("_", " ")


def _share(value: float) -> str:
    return f"{value:+.1%}"


def _seconds(value: float) -> str:
    return f"{value:.2f}"
