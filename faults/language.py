"""The text form of fault plans: parse it, print it. docs/plans.md describes it for those who write plans.

>>> plan = parse("sink.commit:after[batch=2] -> kill(driver)")
>>> plan.faults[0].at
Point(phase='sink.commit', edge='after', where={'batch': 2}, nth=None)
>>> format_plan(plan)
'sink.commit:after[batch=2] -> kill(driver)'

Parsing checks form and vocabulary: every phase, edge, selector, action, target and argument is one of the catalogue's.
Whether a certain sink can have them is the matter of :mod:`.resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib.resources import files
from typing import TypeVar

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedToken

from ..naming import Named, as_option
from ..plans import NUMBER, Action, Edge, Fault, Moment, Plan, Point, Value
from .catalogue import ACTIONS, PHASES, action_named, example_of
from .declarations import ActionSpec, Parameter, Phase
from .errors import PlanError, Span, listed, nearest
from .printing import format_action, format_fault, format_plan, format_point
from .settings import SETTINGS, is_setting, setting_value
from .syntax import describe_character, describe_token
from .values import duration, read_value, shown, unquote

__all__ = [
    "LocatedPlan",
    "Path",
    "format_action",
    "format_fault",
    "format_plan",
    "format_point",
    "is_empty",
    "parse",
    "parse_located",
]

Path = tuple[str | int, ...]
"""Where a part of a plan is: ``(0, "actions", 1, "arguments", "after")``, ``(0, "at", "where", "batch")``."""


COMMENT = re.compile(r"(?<!\S)#(?!\d).*")
"""As the grammar has it."""

TIMES = Parameter("times", "number", "how often", minimum=1)
"""Of ``every(5s, times=3)``, which stands for at(5s), at(10s) and at(15s)."""

MOST_TIMES = 100


def is_empty(text: str) -> bool:
    """Whether a text, which need not be a plan, says nothing: no fault and no setting.

    >>> is_empty("# later\\n;"), is_empty("set rows = 12")
    (True, False)
    """
    return not COMMENT.sub("", text).strip(" \t\r\n;")


@dataclass(frozen=True)
class LocatedPlan:
    """A plan with the text it came from and the place of each of its parts in it. ``named``: what its errors call that
    which is chosen elsewhere, such as the master."""

    plan: Plan
    text: str
    spans: Mapping[Path, Span]
    named: Named = as_option

    def error(self, message: str, path: Path) -> PlanError:
        """An error at the part ``path``, or at the nearest part around it whose place is known."""
        while path not in self.spans:
            path = path[:-1]
        return PlanError(message, self.text, self.spans[path])


def parse(text: str) -> Plan:
    """The plan that ``text`` describes. Raises PlanError."""
    return parse_located(text).plan


def parse_located(text: str, named: Named = as_option) -> LocatedPlan:
    """The plan that ``text`` describes, with the place of each of its parts. Raises PlanError."""
    try:
        tree = _grammar().parse(text)
    except UnexpectedToken as error:
        raise _error(text, *describe_token(error, text)) from None
    except UnexpectedCharacters as error:
        raise _error(text, *describe_character(text, error.pos_in_stream or 0)) from None
    reader = _Reader(text)
    return LocatedPlan(reader.plan(tree), text, reader.spans, named)


@cache
def _grammar() -> Lark:
    grammar = files(__package__).joinpath("grammar.lark").read_text(encoding="utf-8")
    placed = "|".join(phase.name for phase in PHASES if phase.place)
    return Lark(grammar.replace("PHASES", placed), parser="lalr", propagate_positions=True, maybe_placeholders=False)


def _error(text: str, message: str, span: Span) -> PlanError:
    return PlanError(message, text, span)


Node = Tree[Token] | Token
T = TypeVar("T")


@dataclass(frozen=True)
class _Written:
    """A value as written: its text without quotes, whether there were any, and its place."""

    text: str
    quoted: bool
    span: Span

    @property
    def shown(self) -> str:
        return shown(self.text, self.quoted)


class _Reader:
    """Makes a plan of a syntax tree and notes the place of each part."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: dict[Path, Span] = {(): Span(0, len(text))}

    def error(self, message: str, span: Span) -> PlanError:
        return PlanError(message, self.text, span)

    def plan(self, tree: Tree[Token]) -> Plan:
        faults: list[Fault] = []
        for fault in _trees(tree, "fault"):
            for number in range(1, self.times(_trigger(fault)) + 1):
                faults.append(self.fault(fault, (len(faults),), number))
        return Plan(tuple(faults), self.settings(_trees(tree, "setting")))

    def settings(self, trees: Sequence[Tree[Token]]) -> dict[str, str]:
        settings: dict[str, str] = {}
        for tree in trees:
            name, value = (self.written(child) for child in tree.children)
            if name.text in settings:
                raise self.error(f"{name.text} is set twice", name.span)
            self.spans["settings", name.text] = _span(tree)
            if not is_setting(name.text):
                raise self.error(f"nothing is called {name.text}: {nearest(name.text, SETTINGS)}", name.span)
            settings[name.text] = self.checked(value, partial(setting_value, name.text, value.text))
        return settings

    def fault(self, tree: Tree[Token], path: Path, number: int) -> Fault:
        """The fault, or the ``number``-th of a series."""
        self.spans[path] = _span(tree)
        trigger, at_path = _trigger(tree), (*path, "at")
        at = self.point(trigger, at_path) if _is_point(trigger) else self.moment(trigger, at_path, number)
        actions = [action for group in _trees(tree, "actions") for action in _trees(group, "action")]
        holds = [hold for group in _trees(tree, "holds") for hold in _trees(group, "hold")]
        return Fault(
            at,
            tuple(self.action(action, (*path, "actions", index)) for index, action in enumerate(actions)),
            tuple(self.point(_point_in(hold), (*path, "holds", index)) for index, hold in enumerate(holds)),
        )

    def moment(self, tree: Tree[Token], path: Path, number: int) -> Moment:
        self.spans[path] = _span(tree)
        word = self.written(tree.children[0])
        seconds = self.checked(word, lambda: duration(word.text))
        if tree.data == "series" and not seconds:
            raise self.error(f"every({word.text}) has no time between its faults: write every(5s, times=3)", word.span)
        return Moment(number * seconds)

    def times(self, trigger: Tree[Token]) -> int:
        """How many faults it stands for: a series for several."""
        if trigger.data != "series":
            return 1
        name, value = (self.written(child) for child in _trees(trigger, "pair")[0].children)
        if name.text != TIMES.name:
            raise self.error(f"every has no argument {name.text}: write every(5s, times=3)", name.span)
        times = int(self.value(TIMES, value))
        if times > MOST_TIMES:
            raise self.error(f"{times} is too often: a plan has {MOST_TIMES} moments of a series at most", value.span)
        return times

    def point(self, tree: Tree[Token], path: Path) -> Point:
        self.spans[path] = _span(tree)
        placed = tree.data == "placed"
        phase, edge = self.step(_words(tree if placed else _trees(tree, "step")[0]), path)
        where = self.place(_trees(tree, "place")[0], phase, path) if placed else {}
        for selectors in _trees(tree, "selectors"):
            self.selectors(selectors, phase, where, path)
        self.demand(phase, where, path)
        counts = [child for child in tree.children if isinstance(child, Token) and child.type == "COUNT"]
        return Point(phase.name, edge, _ordered(phase, where), self.count(counts[0], path) if counts else None)

    def step(self, words: Sequence[Token], path: Path) -> tuple[Phase, Edge | None]:
        name, *edges = map(self.written, words)
        self.spans[*path, "phase"] = name.span
        phase = next((phase for phase in PHASES if phase.name == name.text), None)
        if phase is None:
            raise self.error(f"no phase is called {name.text}: {_near_phase(name.text)}", name.span)
        if not edges:
            return phase, self.only_edge(phase, name.span)
        self.spans[*path, "edge"] = edges[0].span
        return phase, self.edge(phase, edges[0])

    def only_edge(self, phase: Phase, span: Span) -> Edge | None:
        if len(phase.edges) > 1:
            written = [f"{phase.example}:{edge}" for edge in phase.edges]
            raise self.error(f"{phase.name} needs an edge: {listed(written)}", span)
        return phase.edges[0] if phase.edges else None

    def edge(self, phase: Phase, written: _Written) -> Edge:
        for edge in phase.edges:
            if edge == written.text:
                return edge
        raise self.error(f"{phase.name} has no edge {written.text}: {nearest(written.text, phase.edges)}", written.span)

    def place(self, tree: Tree[Token], phase: Phase, path: Path) -> dict[str, Value]:
        """File and line of ``line[my_sink.py:42]``."""
        assert phase.place is not None
        span, names = _span(tree), phase.place.selectors
        self.spans.update({(*path, "where", name): span for name in names})
        written = [self.written(child).text for child in tree.children]
        texts = written if len(written) > 1 else written[0].rsplit(phase.place.separator, len(names) - 1)
        if len(texts) != len(names) or not all(texts):
            raise self.error(f"{phase.name} needs {phase.place.meaning}, as in {phase.example}", span)
        return {
            name: self.value(_named(phase.selectors, name), _Written(text, False, span))
            for name, text in zip(names, texts, strict=True)
        }

    def selectors(self, tree: Tree[Token], phase: Phase, where: dict[str, Value], path: Path) -> None:
        placed = phase.place.selectors if phase.place else ()
        valid = [selector.name for selector in phase.selectors if selector.name not in placed]
        for pair in _trees(tree, "pair"):
            key, value = (self.written(child) for child in pair.children)
            if key.text not in valid:
                raise self.error(f"{phase.name} has no selector {key.text}: {nearest(key.text, valid)}", key.span)
            if key.text in where:
                raise self.error(f"{key.text} is given twice", key.span)
            self.spans[*path, "where", key.text] = _span(pair)
            where[key.text] = self.value(_named(phase.selectors, key.text), value)

    def demand(self, phase: Phase, where: Mapping[str, Value], path: Path) -> None:
        for selector in phase.selectors:
            if selector.required and selector.name not in where:
                message = f"{phase.name} needs the selector {selector.name} ({selector.meaning}): {example_of(phase)}"
                raise self.error(message, self.spans[*path, "phase"])

    def count(self, token: Token, path: Path) -> int:
        span = self.spans[*path, "nth"] = _span(token)
        digits = token[1:]
        if not (digits.isdecimal() and digits.isascii() and len(digits) <= 18 and int(digits) > 0):
            raise self.error(f"{token} is not a count: write #1, #2 and so on, for the nth report that matches", span)
        return int(digits)

    def action(self, tree: Tree[Token], path: Path) -> Action:
        self.spans[path] = _span(tree)
        name = self.written(tree.children[0])
        self.spans[*path, "name"] = name.span
        if name.text not in [action.name for action in ACTIONS]:
            valid = [action.name for action in ACTIONS]
            raise self.error(f"no action is called {name.text}: {nearest(name.text, valid)}", name.span)
        spec = action_named(name.text)
        given = [argument for group in _trees(tree, "arguments") for argument in _trees(group, "argument")]
        target, arguments = self.arguments(given, spec, path)
        until = self.until(tree, spec, path)
        self.complete(spec, target, {*arguments, *(["until"] if until else [])}, path)
        return Action(spec.name, target, arguments, until)

    def arguments(
        self, given: Sequence[Tree[Token]], spec: ActionSpec, path: Path
    ) -> tuple[str | None, dict[str, Value]]:
        target: str | None = None
        arguments: dict[str, Value] = {}
        for tree in given:
            pairs, numbered = _trees(tree, "pair"), _trees(tree, "numbered")
            if not pairs and spec.targets and target is None and not arguments:
                words = (numbered[0] if numbered else tree).children
                target = self.target(self.written(words[0]), spec, path)
                arguments |= {NUMBER: self.number(numbered[0], spec, path)} if numbered else {}
                continue
            name, value = self.argument(tree, pairs, spec)
            if name.text in arguments:
                raise self.error(f"{name.text} is given twice", name.span)
            self.spans[*path, "arguments", name.text] = _span(tree)
            arguments[name.text] = self.value(_named(spec.arguments, name.text), value)
        return target, {one.name: arguments[one.name] for one in spec.arguments if one.name in arguments}

    def argument(self, tree: Tree[Token], pairs: Sequence[Tree[Token]], spec: ActionSpec) -> tuple[_Written, _Written]:
        """Name and value of one argument; the name is left out where the action has a positional one."""
        valid = [argument.name for argument in spec.arguments if argument.name != NUMBER]
        if pairs:
            name, value = (self.written(child) for child in pairs[0].children)
            if name.text not in valid:
                raise self.error(f"{spec.name} has no argument {name.text}: {nearest(name.text, valid)}", name.span)
            return name, value
        value = self.written(next(tree.scan_values(lambda token: isinstance(token, Token))))
        if spec.positional is None or _trees(tree, "numbered"):
            names = f"write its name: {listed(f'{name}={value.shown}' for name in valid)}" if valid else ""
            tail = names or (f"{spec.name} takes its target alone" if spec.targets else f"{spec.name} takes none")
            raise self.error(f"{value.shown} is one argument too many for {spec.name}: {tail}", value.span)
        return _Written(spec.positional, False, value.span), value

    def target(self, written: _Written, spec: ActionSpec, path: Path) -> str:
        self.spans[*path, "target"] = written.span
        if written.text not in spec.targets:
            message = f"{spec.name} has no target {written.shown}: {nearest(written.text, spec.targets)}"
            raise self.error(message, written.span)
        return written.text

    def number(self, tree: Tree[Token], spec: ActionSpec, path: Path) -> Value:
        """That of ``executor[1]``."""
        target, number = map(self.written, _words(tree))
        self.spans[*path, "arguments", NUMBER] = number.span
        if NUMBER not in [argument.name for argument in spec.arguments]:
            raise self.error(f"{spec.name} takes no {target.text}[{number.shown}]: leave the number out", number.span)
        return self.value(_named(spec.arguments, NUMBER), number)

    def until(self, tree: Tree[Token], spec: ActionSpec, path: Path) -> Point | None:
        points = [child for child in tree.children if isinstance(child, Tree) and child.data in ("point", "placed")]
        if not points:
            return None
        if not spec.takes_until:
            valid = listed(action.name for action in ACTIONS if action.takes_until)
            raise self.error(f"{spec.name} takes no until: only {valid} do", _span(points[0]))
        return self.point(points[0], (*path, "until"))

    def complete(self, spec: ActionSpec, target: str | None, given: set[str], path: Path) -> None:
        """Checks that the target and every argument that an action needs are there."""
        span = self.spans[path]
        if spec.targets and target is None:
            forms = listed(f"{spec.name}({name})" for name in spec.targets)
            raise self.error(f"{spec.name} needs a target: {forms}", span)
        for argument in spec.arguments:
            if argument.required and argument.name not in given:
                raise self.error(f"{spec.name} needs {argument.name}: {spec.example}", span)
        for argument in spec.arguments:
            if argument.with_until and argument.name in given and "until" not in given:
                raise self.error(f"{argument.name} goes with until POINT: {spec.example}", span)
        if spec.exactly_one and len(given & set(spec.exactly_one)) != 1:
            forms = listed("until POINT" if name == "until" else f"{name}=..." for name in spec.exactly_one)
            found = "not both" if given else "one of them is needed"
            raise self.error(f"{spec.name} takes {forms}, {found}: {spec.example}", span)

    def value(self, parameter: Parameter, written: _Written) -> Value:
        return self.checked(written, lambda: read_value(parameter, written.text, written.quoted))

    def checked(self, written: _Written, read: Callable[[], T]) -> T:
        try:
            return read()
        except ValueError as error:
            raise self.error(str(error), written.span) from None

    def written(self, node: Node) -> _Written:
        assert isinstance(node, Token)
        span = _span(node)
        if node.type != "STRING":
            return _Written(str(node), False, span)
        return _Written(self.checked(_Written(node, True, span), lambda: unquote(node)), True, span)


def _trigger(fault: Tree[Token]) -> Tree[Token]:
    trigger = fault.children[0]
    assert isinstance(trigger, Tree)
    return trigger


def _is_point(trigger: Tree[Token]) -> bool:
    return trigger.data not in ("moment", "series")


def _trees(tree: Tree[Token], data: str) -> list[Tree[Token]]:
    return [child for child in tree.children if isinstance(child, Tree) and child.data == data]


def _words(tree: Tree[Token]) -> list[Token]:
    """Those of a point: its phase and its edge."""
    return [child for child in tree.children if isinstance(child, Token) and child.type != "COUNT"]


def _point_in(tree: Tree[Token]) -> Tree[Token]:
    return next(child for child in tree.children if isinstance(child, Tree))


def _span(node: Node) -> Span:
    if isinstance(node, Token):
        return Span(node.start_pos or 0, node.end_pos or 0)
    return Span(node.meta.start_pos, node.meta.end_pos)


def _named(parameters: Sequence[Parameter], name: str) -> Parameter:
    return next(parameter for parameter in parameters if parameter.name == name)


def _ordered(phase: Phase, where: Mapping[str, Value]) -> dict[str, Value]:
    return {one.name: where[one.name] for one in phase.selectors if one.name in where}


def _near_phase(name: str) -> str:
    return nearest(name, [phase.name for phase in PHASES])
