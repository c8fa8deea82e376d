"""``onceproof bench``: what guarantees cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from ..benches.plot import check_plot, stacked
from ..benches.recovery import Case, Fit, Measured, fits, measure, workload_of
from ..console.printing import say
from ..errors import HELD
from ..reports._tables import code, document, table
from ..session import EnvironmentOptions, Session
from ..state_stores import STATE_STORES, StateStoreName
from ..trial.recovery import PARTS, Recovery
from .options import COUNT
from .sessions import opened, told

KEYS = (1_000, 10_000, 100_000)


def register(app: App) -> None:
    bench = App(name="bench", help="Measure what recovery costs.")
    bench.command(recovery)
    app.command(bench)


def recovery(
    *,
    keys: Annotated[list[int] | None, Parameter(help="keys in the job's state", consume_multiple=True)] = None,
    state_store: Annotated[
        list[StateStoreName] | None, Parameter(help="where Spark keeps the state", consume_multiple=True)
    ] = None,
    repeat: Annotated[int, Parameter(validator=COUNT, help="trials of each case")] = 3,
    plot: Annotated[Path | None, Parameter(help="draw to this file, as .svg and .png")] = None,
) -> int:
    """How long the recovery from a driver's death takes, part by part, by the size of the state.

    Prints Markdown: medians in seconds for each state store and size, and a line through the time that loading takes.

    Examples:

        onceproof bench recovery

        onceproof bench recovery --keys 1000 50000 --state-store rocksdb --plot docs/recovery
    """
    sizes, stores = keys or list(KEYS), state_store or list(STATE_STORES)
    for size in sizes:
        workload_of(size)
    if plot is not None:
        check_plot(plot)
    with opened(EnvironmentOptions()) as session:
        measured = _measured(session, [Case(store, size) for store in stores for size in sizes], repeat)
    say(_document(measured, fits(measured)))
    if plot is not None:
        parts = {part.replace("_", " "): [one.median(part) for one in measured] for part in PARTS}
        bars = [f"{one.case.store}, {one.case.keys} keys" for one in measured]
        for file in stacked(plot, "Recovery from a driver's death", bars, parts):
            told(f"drawn: {file}")
    return HELD


def _measured(session: Session, cases: Sequence[Case], repeat: int) -> list[Measured]:
    def done(case: Case, found: Recovery) -> None:
        told(f"{case.store}, {case.keys} keys: {found.total:.1f} s, of which loading {found.load_state:.2f} s")

    return measure(session, cases, repeat, done)


def _document(measured: Sequence[Measured], lines: Sequence[Fit]) -> str:
    head = ("state store", "keys", *(part.replace("_", " ") for part in (*PARTS, "total")))
    rows = [
        [code(one.case.store), str(one.case.keys), *(f"{seconds:.2f}" for seconds in one.medians().values())]
        for one in measured
    ]
    fitted = [
        [code(line.store), f"{line.fixed:.2f}", f"{line.per_thousand:.4f}", f"{line.explained:.2f}"] for line in lines
    ]
    return document(
        [
            table(head, rows),
            table(("state store", "loading, fixed (s)", "loading, for 1000 keys (s)", "r²"), fitted) if fitted else "",
        ]
    )
