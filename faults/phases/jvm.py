"""Methods of classes of the user's own, or of a library's, in the driver's JVM."""

from __future__ import annotations

from collections.abc import Collection

from ..declarations import Parameter, Phase, Place
from ..probes.rule import Rule, Spot, literal
from ._selectors import BATCH, OF_A_QUERY, WHEN

CLASS = Parameter(
    "class",
    "text",
    "the full name of a class, with a $ before a class within it",
    pattern=r"[^\W\d][\w$]*(\.[^\W\d][\w$]*)*",
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
        selectors=(CLASS, METHOD, BATCH, WHEN, *OF_A_QUERY),
        where="driver",
        sinks="every",
        meaning="a method of a class is called in the driver's JVM, where on local[n] tasks run too: before its first "
        "statement, and when it returns; one that throws has no :after",
        two_phase="any step of the sink's own protocol",
        source="the method itself",
        step=104,
        place=Place(("class", "method"), "a class and a method", "com.acme.MySink#commit", "#"),
    ),
)


def rules_of(methods: Collection[tuple[str, str]]) -> tuple[Rule, ...]:
    """The rules for methods, each given by its class and its name."""
    return tuple(rule for of, name in sorted(methods) for rule in _rules(of, name))


def _rules(of: str, name: str) -> tuple[Rule, Rule]:
    said = {"class": literal(of), "method": literal(name)}
    return (
        Rule("jvm", "before", "driver", Spot(of, name, "ENTRY"), said, variant=f"{of}#{name}"),
        Rule("jvm", "after", "driver", Spot(of, name, "EXIT"), said, variant=f"{of}#{name}"),
    )
