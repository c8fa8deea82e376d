"""Lines of the sink's own Python code: those that are executed inside a batch, and those before the query starts."""

from __future__ import annotations

from ..declarations import Parameter, Phase, Place
from ._selectors import BATCH, OF_A_QUERY, WHEN

FILE = Parameter("file", "text", "the sink's file, or a module of its directory", required=True)
LINE = Parameter("line", "number", "number of the line, from 1", minimum=1, required=True)

PHASES = (
    Phase(
        name="line",
        edges=(),
        selectors=(FILE, LINE, BATCH, WHEN, *OF_A_QUERY),
        where="python",
        sinks="python",
        meaning="a line of the sink's file or of a module of its directory, before it is executed, inside a batch (or "
        "before the query starts)",
        two_phase="any step of the sink's own protocol",
        source="the sink's code: foreachBatch's function; a Python data source; what tasks run of it in Python",
        step=100,
        place=Place(("file", "line"), "a file and a number", "my_sink.py:42"),
    ),
)
