"""Random plans: all that the grammar has, and those that a sink is likely to meet."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from onceproof.faults import (
    ACTIONS,
    PHASES,
    Action,
    ActionSpec,
    Fault,
    Moment,
    Parameter,
    Phase,
    Plan,
    Point,
    SinkShape,
    phases_of,
)

NUMBER = st.integers(min_value=1, max_value=10**9)
TEXT = st.text(max_size=12)
SECONDS = st.floats(min_value=0, max_value=86400, allow_subnormal=False)
CLASSES = st.sampled_from(["RuntimeError", "psycopg.OperationalError", "kafka.errors.KafkaError", "été.Ère"])

Values = Callable[[Parameter], st.SearchStrategy[Any]]
"""The values of a selector or an argument."""


def any_value(parameter: Parameter) -> st.SearchStrategy[Any]:
    """Whatever the language lets it have."""
    if parameter.choices:
        return st.sampled_from(parameter.choices)
    if parameter.pattern:
        return st.from_regex(parameter.pattern, fullmatch=True)
    if parameter.name == "file":
        return st.text(min_size=1, max_size=12) | st.sampled_from(["my_sink.py", "a/b-c.py", "a:1.py", "a b.py"])
    return {"number": NUMBER, "text": TEXT, "duration": SECONDS, "class": CLASSES, "flag": st.booleans()}[
        parameter.kind
    ]


def some(parameters: Sequence[Parameter], values: Values) -> st.SearchStrategy[dict[str, Any]]:
    required = {one.name: values(one) for one in parameters if one.required}
    optional = {one.name: values(one) for one in parameters if not one.required}
    return st.fixed_dictionaries(required, optional=optional)


@st.composite
def points(draw: st.DrawFn, phases: Sequence[Phase], values: Values, counts: st.SearchStrategy[int | None]) -> Point:
    phase = draw(st.sampled_from(phases))
    edge = draw(st.sampled_from(phase.edges)) if phase.edges else None
    return Point(phase.name, edge, draw(some(phase.selectors, values)), draw(counts))


@st.composite
def actions(draw: st.DrawFn, until: st.SearchStrategy[Point], values: Values) -> Action:
    spec: ActionSpec = draw(st.sampled_from(ACTIONS))
    given = draw(some(spec.arguments, values))
    point = None
    with_until = {argument.name for argument in spec.arguments if argument.with_until}
    if spec.exactly_one:
        chosen = draw(st.sampled_from(spec.exactly_one))
        given = {name: value for name, value in given.items() if name not in spec.exactly_one}
        if chosen == "until":
            point = draw(until)
        else:
            (parameter,) = (one for one in spec.arguments if one.name == chosen)
            given[chosen] = draw(values(parameter))
            given = {name: value for name, value in given.items() if name not in with_until}
    return Action(spec.name, draw(st.sampled_from(spec.targets)) if spec.targets else None, given, point)


def plans(
    at: st.SearchStrategy[Point], moments: st.SearchStrategy[float], values: Values, most: int
) -> st.SearchStrategy[Plan]:
    faults = st.builds(
        Fault,
        at=st.one_of(*[at] * 6, st.builds(Moment, moments)),
        actions=st.lists(actions(at, values), min_size=1, max_size=most).map(tuple),
        holds=st.lists(at, max_size=most - 1).map(tuple),
    )
    return st.builds(Plan, st.lists(faults, max_size=most).map(tuple))


SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        "brokers": st.sampled_from(["1", "2", "3"]),
        "batches": st.sampled_from(["1", "100"]),
        "master": st.just("standalone"),
        "spark.sql.shuffle.partitions": TEXT,
        "broker.min.insync.replicas": TEXT,
    },
)

EVERY_PLAN = st.builds(
    replace, plans(points(PHASES, any_value, st.none() | NUMBER), SECONDS, any_value, 3), settings=SETTINGS
)
"""Whatever the grammar has."""


def likely_plans(shape: SinkShape, batches: int) -> st.SearchStrategy[Plan]:
    """Plans of the phases that a sink of this shape has, in batches, tasks, lines and times that a trial comes to."""
    last = batches - 1
    numbers = {"batch": (0, last), "partition": (0, 1), "stage": (1, 1), "row": (1, 5), "to": (0, last)}
    numbers["times"] = (1, 3)
    texts: Mapping[str, Sequence[str]] = {
        "function": ["os.replace", "psycopg.Connection.commit"],
        "class": ["org.apache.spark.sql.execution.streaming.runtime.MicroBatchExecution"],
        "method": ["runActivatedStream", "constructNextBatch"],
        "error": ["RuntimeError", "psycopg.OperationalError"],
    }
    lines = sorted((file, line) for file, of_file in shape.modules.items() for line in of_file)

    def values(parameter: Parameter) -> st.SearchStrategy[Any]:
        if parameter.name in numbers:
            return st.integers(*numbers[parameter.name])
        if parameter.name in texts:
            return st.sampled_from(texts[parameter.name])
        if parameter.kind == "duration":
            return st.sampled_from([0.0, 0.3, 2.0])
        return any_value(parameter)

    def known(phase: Phase) -> Phase:
        """Without the selectors whose values only a run shows."""
        named = [one for one in phase.selectors if one.required or one.choices or one.name in numbers]
        return replace(phase, selectors=tuple(named))

    def placed(point: Point) -> st.SearchStrategy[Point]:
        """A line that is there, instead of any."""
        if point.phase != "line" or not lines:
            return st.just(point)
        return st.sampled_from(lines).map(
            lambda line: Point("line", None, {**point.where, "file": line[0], "line": line[1]}, point.nth)
        )

    had = [known(phase) for phase, _ in phases_of(shape)]
    at = points(had, values, st.sampled_from([None, None, 1, 2])).flatmap(placed)
    return plans(at, st.sampled_from([0.5, 3.0, 8.0]), values, 2)
