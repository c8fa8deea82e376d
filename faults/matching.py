"""Which reported points a selector of the plan means, and how many of them there have been."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from ..plans import Point, Value


def matches(selector: Point, point: Mapping[str, Any]) -> bool:
    """Whether a report is one that ``selector`` means, its ``nth`` left aside.

    A selector without an edge means any; a line before the query starts is meant only where ``when`` says so. Text may
    have wildcards (``*``, ``?``): a transactional id holds a query's id, which nobody knows in advance.
    """
    if point.get("phase") != selector.phase or (selector.edge is not None and point.get("edge") != selector.edge):
        return False
    if "when" in point and "when" not in selector.where:
        return False
    return all(name in point and _equal(wanted, point[name]) for name, wanted in selector.where.items())


def _equal(wanted: Value, found: Any) -> bool:
    if isinstance(wanted, str):
        return fnmatchcase(str(found), wanted)
    return bool(wanted == found)


@dataclass
class Counter:
    """Counts the matching reports of a whole trial: the counters live in the harness, not in the process that dies."""

    selector: Point
    seen: int = 0

    def count(self, point: Mapping[str, Any]) -> int | None:
        """The number of this match, from 1; None if the report is no match."""
        if not matches(self.selector, point):
            return None
        self.seen += 1
        return self.seen

    @property
    def nth(self) -> int:
        return self.selector.nth or 1
