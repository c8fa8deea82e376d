"""How often and for how long: more than is common, and more than the sink's own code names, within bounds.

A sink that gives up after ten tries says ten somewhere. So does one that waits for half a minute.
"""

from __future__ import annotations

from .points import Question

TRIES = 6
"""More than are commonly tried."""
MOST_TRIES = 20

CRASHES = 3
"""Sinks that give a batch up usually do so within four tries."""
MOST_CRASHES = 10

PATIENCE = 20.0
"""Seconds: more than a sink waits that does so for a while only (5, 10, 15)."""
MOST_PATIENCE = 60.0
LONGER = 5.0
"""Seconds by which a wait that the code names is outlasted."""


def tries(question: Question) -> int:
    """How often in a row the same fails."""
    return int(max(TRIES, _named(question, MOST_TRIES) + 1))


def crashes(question: Question) -> int:
    """How often in a row the driver dies."""
    return int(max(CRASHES, _named(question, MOST_CRASHES) + 1))


def patience(question: Question) -> float:
    """Seconds for which something is kept back."""
    named = _named(question, MOST_PATIENCE)
    return PATIENCE if named < PATIENCE else named + LONGER


def _named(question: Question, most: float) -> float:
    """The largest number of the sink's code up to that; 0 without any."""
    return max((number for number in question.code.numbers if number <= most), default=0)
