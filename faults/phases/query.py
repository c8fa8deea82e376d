"""The streaming query: once for each run, restarts included."""

from __future__ import annotations

from ..declarations import Phase
from ._selectors import QUERY
from ._sweeps import DRIVER

PHASES = (
    Phase(
        name="query.start",
        edges=("before",),
        selectors=(QUERY,),
        where="driver",
        sinks="every",
        meaning="a run of the query begins: before it reads its checkpoint",
        two_phase="the coordinator starts, or recovers",
        source="MicroBatchExecution.runActivatedStream",
        step=10,
        sweep=DRIVER,
    ),
)
