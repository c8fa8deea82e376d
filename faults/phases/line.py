"""Lines of the sink's own Python code that are executed inside a batch."""

from __future__ import annotations

from ..declarations import Parameter, Phase
from ._selectors import BATCH, QUERY

FILE = Parameter("file", "text", "the sink's file, or a module of its directory", required=True)
LINE = Parameter("line", "number", "number of the line, from 1", minimum=1, required=True)

PHASES = (
    Phase(
        name="line",
        edges=(),
        selectors=(FILE, LINE, BATCH, QUERY),
        where="python",
        sinks="python",
        meaning="a line of the sink's file or of a module of its directory, before it is executed inside a batch",
        two_phase="any step of the sink's own protocol",
        source="the sink's code: foreachBatch's function; a Python data source; what tasks run of it in Python",
        step=100,
    ),
)
