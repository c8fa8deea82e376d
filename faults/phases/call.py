"""Calls of Python functions by their dotted name: also those of libraries, of which a line is none of the sink's."""

from __future__ import annotations

from ..declarations import Parameter, Phase, Place
from ._selectors import BATCH, OF_A_QUERY, WHEN

FUNCTION = Parameter(
    "function",
    "text",
    "the dotted name of a Python function, or of a method of a class, as it is called",
    pattern=r"[^\W\d]\w*(\.[^\W\d]\w*)+",
    required=True,
)

PHASES = (
    Phase(
        name="call",
        edges=("before", "after"),
        selectors=(FUNCTION, BATCH, WHEN, *OF_A_QUERY),
        where="python",
        sinks="python",
        meaning="a function or method is called inside a batch (or before the query starts): before it is, and before "
        "its caller has the result; one that raises has no :after",
        two_phase="any step of the sink's own protocol",
        source="the function itself, in every Python process of the job",
        step=102,
        place=Place(("function",), "the dotted name of a function", "psycopg.Connection.commit"),
    ),
)
