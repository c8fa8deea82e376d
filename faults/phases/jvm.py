"""Methods of classes of the user's own, or of a library's, in the JVMs of the driver and of executors.

A thread of a task says which task that is. What other threads of an executor call is not reported. Java's own classes
(``java.``, ``jdk.``, ``sun.``) come from a class loader that knows none of Byteman's: one with a rule would throw
NoClassDefFoundError where it is called.
"""

from __future__ import annotations

from collections.abc import Collection

from ..declarations import Parameter, Phase, Place
from ..probes.rule import Rule, Spot, literal
from ._selectors import ATTEMPT, BATCH, OF_A_QUERY, PARTITION, STAGE, WHEN
from ._tasks import CURRENT, IDENTITY, STREAMING

CLASS = Parameter(
    "class",
    "text",
    "the full name of a class, with a $ before a class within it; none of Java's own, which cannot be stopped",
    pattern=r"(?!(java|jdk|sun)\.)[^\W\d][\w$]*(\.[^\W\d][\w$]*)*",
    required=True,
)
METHOD = Parameter(
    "method",
    "text",
    "the name of a method that the class itself has, in all its forms; <init> is a constructor",
    pattern=r"[^\W\d][\w$]*|[$][\w$]+|<init>",
    required=True,
)

PHASES = (
    Phase(
        name="jvm",
        edges=("before", "after"),
        selectors=(CLASS, METHOD, BATCH, STAGE, PARTITION, ATTEMPT, WHEN, *OF_A_QUERY),
        where="driver",
        also_in=("executor",),
        sinks="every",
        meaning="a method of a class is called in the driver's JVM, or by a task: before its first statement, and when "
        "it returns; one that throws has no :after",
        two_phase="any step of the sink's own protocol",
        source="the method itself",
        step=104,
        place=Place(("class", "method"), "a class and a method", "com.acme.MySink#commit", "#"),
    ),
)


def rules_of(methods: Collection[tuple[str, str]]) -> tuple[Rule, ...]:
    """The rules for methods, each given by its class and its name."""
    return tuple(rule for of, name in sorted(methods) for rule in _rules(of, name))


def _rules(of: str, name: str) -> tuple[Rule, ...]:
    """On ``local[n]`` a JVM has those of both sides, of which one reports a call."""
    said = {"class": literal(of), "method": literal(name)}
    before, after = Spot(of, name, "ENTRY"), Spot(of, name, "EXIT")
    of_task, variant = {**IDENTITY, **said}, f"{of}#{name}"
    return (
        Rule("jvm", "before", "driver", before, said, (CURRENT,), f"!({STREAMING})", variant),
        Rule("jvm", "after", "driver", after, said, (CURRENT,), f"!({STREAMING})", variant),
        Rule("jvm", "before", "executor", before, of_task, (CURRENT,), STREAMING, f"{variant} in a task"),
        Rule("jvm", "after", "executor", after, of_task, (CURRENT,), STREAMING, f"{variant} in a task"),
    )
