"""The Byteman script of one JVM: the rules of the phases that are wanted there, and of those that always are.

>>> text = rules([("sink.commit", "after")], "driver", spark_version="4.2.0", host="127.0.0.1", port=21000, token="t")
>>> [line for line in text.splitlines() if line.startswith("RULE sink.commit")]
['RULE sink.commit:after']
"""

from __future__ import annotations

from collections.abc import Collection
from functools import cache

from ...additions import modules_in
from .. import phases as families
from ..declarations import ALWAYS_REPORTED
from ..phases.jvm import rules_of
from .rule import Injection, Rule, Side, render

_STREAMING = "org.apache.spark.sql.execution.streaming"
_MOVED = ("runtime", "checkpointing", "sinks")
_PACKAGES = {
    "4.0": dict.fromkeys(_MOVED, _STREAMING),
    "4.1": {name: f"{_STREAMING}.{name}" for name in _MOVED},
    "4.2": {name: f"{_STREAMING}.{name}" for name in _MOVED},
}
"""Packages by Spark's feature release; all else that the rules name is the same in 4.0.0, 4.1.3 and 4.2.0."""


@cache
def every_rule() -> tuple[Rule, ...]:
    """The rules of all families of phases, each in the order of its file."""
    return tuple(rule for _, family in modules_in(families) for rule in getattr(family, "RULES", ()))


def rules(
    phases: Collection[str | tuple[str, str | None]],
    side: Side,
    *,
    spark_version: str,
    host: str,
    port: int,
    token: str,
    rows: Collection[int] = (),
    methods: Collection[tuple[str, str]] = (),
    gate: str | None = None,
    any_sink: bool = True,
) -> str:
    """The script for one side; empty if nothing has to be reported there.

    ``phases`` are points (name, edge), or names for all their edges; those of other sides are passed over. ``rows`` are
    the row numbers of task.row, ``methods`` the classes and names of the phase jvm. ``gate`` is for brokers: they
    report only while this file exists. ``any_sink`` False: the sink is foreachBatch, Spark's file sink or a V2 sink,
    which makes for a quicker start. Raises ValueError for a Spark version whose classes are not known, for a point that
    no rule reports, and for task.row without rows.
    """
    packages = _packages(spark_version)
    declared = (*every_rule(), *rules_of(methods))
    wanted = _points(phases, declared) | (ALWAYS_REPORTED if side == "driver" else frozenset())
    if any(phase == "task.row" for phase, _ in wanted) and side == "executor" and not rows:
        raise ValueError("task.row is reported for given rows only: rows is empty")
    injection = Injection(host, port, token, tuple(sorted(rows)), gate if side == "broker" else None)
    chosen = [rule for rule in declared if rule.side == side and _serves(rule, wanted)]
    return "\n".join(render(rule, packages, injection) for rule in chosen if rule.any_sink != (not any_sink))


def _packages(spark_version: str) -> dict[str, str]:
    feature = ".".join(spark_version.split(".")[:2])
    if feature not in _PACKAGES:
        raise ValueError(f"no rules for Spark {spark_version}: known are {', '.join(_PACKAGES)}")
    return _PACKAGES[feature]


def _points(
    phases: Collection[str | tuple[str, str | None]], declared: Collection[Rule]
) -> frozenset[tuple[str, str | None]]:
    known = {(str(rule.phase), rule.edge) for rule in declared if rule.phase}
    found: set[tuple[str, str | None]] = set()
    for asked in phases:
        points = {point for point in known if point == asked or point[0] == asked}
        if not points and asked != "line" and asked != ("line", None):
            raise ValueError(f"no rule reports {asked!r}: known are {', '.join(sorted({name for name, _ in known}))}")
        found |= points
    return frozenset(found)


def _serves(rule: Rule, wanted: frozenset[tuple[str, str | None]]) -> bool:
    if rule.phase is None:
        return any(point in wanted for point in rule.serves)
    return (rule.phase, rule.edge) in wanted
