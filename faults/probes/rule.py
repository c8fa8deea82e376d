"""One Byteman rule: declared by a phase, rendered for a Spark version and an injector.

Byteman's rules use classes of the JVM's boot loader only, so that no jar of ours has to be on any class path. A rule
opens a socket of its own for each report, in its BIND part: the only part in which values can be had and tested. Facts
about Byteman 4.0.26 that shape the text: a constructor's result must be in brackets before a method is called on it; a
void call is no value, so the socket is closed by reflection; a rule that cannot be parsed is dropped without a word, so
every rule is checked against the classes of every supported Spark version by Byteman's own TestScript in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Side = Literal["driver", "executor", "broker"]

GO_ON = 71
"""The byte ``G``."""

LOST_INJECTOR = 137
"""Exit code of a JVM that halts because the injector is gone: that of a SIGKILL."""


ITSELF, SUBCLASSES, IMPLEMENTATIONS = "CLASS ", "CLASS ^", "INTERFACE ^"
"""How Byteman's language begins the line that names a class."""


@dataclass(frozen=True)
class Spot:
    """A place in bytecode: a class (``{runtime}``, ``{checkpointing}`` and ``{sinks}`` stand for packages that moved
    between Spark versions), its method with a descriptor, and whether the rule runs at its entry or its exit. A method
    that throws has no exit. ``of``: whether it runs in the class alone, in every class that extends it, or in every
    class that implements it, by itself or by a class that it extends; a method that calls the one it overrides then
    runs the rule for both."""

    class_name: str
    method: str
    at: Literal["ENTRY", "EXIT"]
    of: str = ITSELF


@dataclass(frozen=True)
class Rule:
    """A report of ``phase`` from ``spot``.

    ``fields`` maps what is reported to Byteman expressions; ``$0`` is the object, ``$1`` the first argument, ``$!`` the
    returned value. ``bind`` declares variables for them. The rule reports only where ``when`` holds. A rule whose
    ``phase`` is None reports nothing: it runs ``silent`` for the sake of other rules of the same file.
    """

    phase: str | None
    edge: Literal["before", "after"] | None
    side: Side
    spot: Spot
    fields: Mapping[str, str]
    bind: tuple[str, ...] = ()
    when: str = "true"
    variant: str = ""
    silent: str = ""
    serves: tuple[tuple[str, str | None], ...] = ()
    """For a silent rule: the points that need it."""
    any_sink: bool | None = None
    """True: only for sinks of which nothing is known; False: only for those that are; None: for all."""

    @property
    def name(self) -> str:
        return " ".join(filter(None, (point_text(self.phase or "silent", self.edge), self.variant)))


@dataclass(frozen=True)
class Injection:
    """What is written into the rules: the injector's address and token, and the rows that are reported.

    ``gate`` is the file without which a broker reports nothing: an absent injector means "go on" there.
    """

    host: str
    port: int
    token: str
    rows: tuple[int, ...] = ()
    gate: str | None = None


def point_text(phase: str, edge: str | None) -> str:
    return f"{phase}:{edge}" if edge else phase


def render(rule: Rule, packages: Mapping[str, str], injection: Injection) -> str:
    """The rule's text."""
    bind, action = (list(rule.bind), _silent(rule)) if rule.silent else _report(rule, injection)
    return "\n".join(
        [
            f"RULE {rule.name}",
            f"{rule.spot.of}{rule.spot.class_name.format(**packages)}",
            f"METHOD {rule.spot.method}",
            f"AT {rule.spot.at}",
            *([f"BIND {(';' + chr(10) + '     ').join(bind)}"] if bind else []),
            *action,
            "ENDRULE",
            "",
        ]
    )


def _silent(rule: Rule) -> list[str]:
    return [f"IF {rule.when}", f"DO {rule.silent}"]


def _report(rule: Rule, injection: Injection) -> tuple[list[str], list[str]]:
    """The BIND part with the whole exchange, and what is done with the answer.

    End of file instead of an answer means that the harness is gone: driver and executor halt at once, without their
    shutdown hooks; a broker goes on.
    """
    when = rule.when.replace("{rows}", " || ".join(f"n == {row}" for row in injection.rows) or "false")
    if injection.gate is not None:
        when = f"(new java.io.File({literal(injection.gate)})).exists() && {when}"
    bind = [
        *rule.bind,
        f"on:boolean = {when}",
        f"s:java.net.Socket = (on ? new java.net.Socket({literal(injection.host)}, {injection.port}) : null)",
        'p:java.lang.Appendable = (on ? (new java.io.PrintStream(s.getOutputStream(), true, "UTF-8"))'
        f".append({_message(rule, injection.token)}) : null)",
        f"a:int = (on ? s.getInputStream().read() : {GO_ON})",
        'c:java.lang.Object = (on ? s.getClass().getMethod("close", null).invoke(s, null) : null)',
    ]
    if rule.side == "broker":
        return bind, ["IF false", "DO NOTHING"]
    error = literal(f"injected by onceproof at {point_text(str(rule.phase), rule.edge)}")
    return bind, [
        f"IF a != {GO_ON}",
        f"DO (a == -1 ? killJVM({LOST_INJECTOR}) : s.close()); throw new java.lang.RuntimeException({error})",
    ]


PROCESS = {
    "place": 'java.util.Objects.toString(java.lang.System.getenv("ONCEPROOF_PLACE"), "local")',
    "driver": 'java.util.Objects.toString(java.lang.System.getenv("ONCEPROOF_DRIVER"), "")',
    "pid": "java.lang.ProcessHandle.current().pid()",
    "thread": "java.lang.Thread.currentThread().getName()",
}
"""What every report says of its process. ``driver`` is the mark that all processes of one driver have in common."""


def _message(rule: Rule, token: str) -> str:
    """The Byteman expression of the line that is sent."""
    constant = {"phase": rule.phase, "edge": rule.edge, "role": rule.side}
    head = "\\t".join([_escaped(token), *(f"{key}={value}" for key, value in constant.items() if value)])
    parts = [f'"{head}"']
    for key, expression in {**PROCESS, **rule.fields}.items():
        parts += [f'"\\t{key}="', expression]
    return " + ".join([*parts, '"\\n"'])


def literal(text: str) -> str:
    """A Byteman string literal."""
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    if any(character in text for character in "\n\t\r"):
        raise ValueError(f"{text!r} cannot be written into a rule: it has a line end or a tab")
    return text.replace("\\", "\\\\").replace('"', '\\"')
