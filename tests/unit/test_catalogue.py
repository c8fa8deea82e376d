"""The catalogue of phases and actions, and what static analysis tells of a sink."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest
from onceproof.faults import (
    ACTIONS,
    ALWAYS_REPORTED,
    PHASES,
    UNKNOWN,
    SinkShape,
    action_named,
    format_plan,
    keeps_state,
    parse,
    phase_named,
    phases_of,
    refused_names,
    render_actions,
    render_catalogue,
    required_steps,
    shape_of,
)
from onceproof.faults.catalogue import example_of, has_phase, restart_delay
from onceproof.faults.shape import lines_of
from onceproof.harness.phase_tables import PAGE, with_tables

ROOT = Path(__file__).parents[2]

BATCH = ["query.start", "batch.plan", "batch.offsets", "sink.write", "task.run", "batch.commit", "query.stop"]
ROWS_TO_PYTHON = [*BATCH[:-2], "task.input", *BATCH[-2:]]
COMMON = [*BATCH, "jvm"]
PYTHON = ["line", "call", "jvm"]
V2 = [
    "query.start",
    "batch.plan",
    "batch.offsets",
    "sink.write",
    "task.run",
    "task.open",
    "task.input",
    "task.row",
    "task.commit",
    "task.abort",
    "sink.commit",
    "sink.abort",
    "batch.commit",
    "query.stop",
]
OF_FILES = ["task.abort", "sink.manifest", "sink.abort"]
TRANSACTIONS = ["txn.end", "txn.prepare", "txn.marker", "txn.complete", "txn.load"]


def test_phases_are_listed_in_the_order_of_the_protocol() -> None:
    assert [phase.name for phase in PHASES if phase.sinks not in ("stateful", "manifest", "kafka")] == [
        *V2,
        *TRANSACTIONS,
        *PYTHON,
        "request",
        "lookup",
        "file",
    ]
    names = [phase.name for phase in PHASES]
    assert names.index("task.row") < names.index("state.commit") < names.index("task.commit")
    assert names.index("batch.commit") < names.index("log.append") < names.index("group.commit")
    assert names.index("group.commit") < names.index("txn.end")
    assert names[names.index("txn.load") + 1] == "log.leader"
    assert names.index("task.abort") < names.index("sink.manifest") < names.index("batch.commit")


@pytest.mark.parametrize(
    ("text", "stateful"),
    [
        ("def count(rows):\n    return rows.groupBy('key').count()", True),
        ("def pair(a, b):\n    return a.withWatermark('t', '1 s').join(b, 'key')", True),
        ("def look_up(rows, table):\n    return rows.join(table, 'key')", False),
        ("import os\nPATH = os.pathsep.join(['a'])", False),
        ("import helper", True),
    ],
)
def test_whether_a_job_keeps_state_is_read_from_its_code(tmp_path: Path, text: str, stateful: bool) -> None:
    (tmp_path / "helper.py").write_text("def once(rows):\n    return rows.dropDuplicates(['id'])")
    (tmp_path / "job.py").write_text(text)
    assert keeps_state(tmp_path / "job.py") is stateful
    assert has_phase(SinkShape(foreach_batch=True, stateful=stateful), phase_named("state.commit")) is stateful


UDF = "from pyspark.sql.functions import udf\n@udf('string')\ndef name(key):\n    return key"
EXPLODE = "import pyspark.sql.functions as f\ndef rows(given):\n    return given.select(f.explode('items'))"


@pytest.mark.parametrize(
    ("text", "execution", "refused"),
    [
        (UDF, "real-time", {"udf"}),
        (UDF, "continuous", set()),
        (EXPLODE, "continuous", {"explode"}),
        (EXPLODE, "micro-batch", set()),
        ("def rows(given):\n    return given.select('explode')", "continuous", set()),
    ],
)
def test_what_spark_refuses_is_read_from_the_code_of_a_job(
    tmp_path: Path, text: str, execution: Any, refused: set[str]
) -> None:
    (tmp_path / "job.py").write_text(text)
    assert refused_names(tmp_path / "job.py", execution) == refused


def test_phases_that_lack_an_edge() -> None:
    edges = {phase.name: phase.edges for phase in PHASES if phase.edges != ("before", "after")}
    assert edges == {
        "query.start": ("before",),
        "batch.plan": ("before",),
        "query.stop": ("before",),
        "task.open": ("after",),
        "task.input": ("before",),
        "lookup": ("before",),
        "task.row": ("before",),
        "txn.end": ("before",),
        "txn.prepare": ("after",),
        "txn.complete": ("before",),
        "txn.load": ("after",),
        "line": (),
    }


def test_every_example_in_the_catalogue_is_a_plan() -> None:
    for phase in PHASES:
        assert parse(f"{example_of(phase)} -> kill(driver)")
    for action in ACTIONS:
        assert format_plan(parse(action.example)) == action.example
        assert action.name in {step.name for fault in parse(action.example).faults for step in fault.actions}


def test_what_is_always_reported_is_in_the_catalogue() -> None:
    assert all(edge in phase_named(name).edges for name, edge in ALWAYS_REPORTED)


def test_rows_for_people_have_every_phase_and_action() -> None:
    assert [row["name"] for row in render_catalogue()] == [phase.name for phase in PHASES]
    assert [row["name"] for row in render_actions()] == [action.name for action in ACTIONS]
    assert [row["name"] for row in render_catalogue(SinkShape(foreach_batch=True))] == COMMON


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (SinkShape(foreach_batch=True, lines=frozenset({3})), [*ROWS_TO_PYTHON, *PYTHON]),
        (SinkShape(v2=True, lines=frozenset({3})), [*[name for name in V2 if name != "task.input"], "jvm"]),
        (SinkShape(file=True), [*BATCH[:-2], "task.row", *OF_FILES, *BATCH[-2:], "jvm"]),
        (SinkShape(foreach_batch=True, writes_batches=True), [*BATCH[:-2], "task.row", *BATCH[-2:], "jvm"]),
        (
            SinkShape(v2=True, python_source=True, kafka_transactions=True, lines=frozenset({3})),
            [*V2, *TRANSACTIONS, *PYTHON],
        ),
        (SinkShape(foreach_batch=True, services=frozenset({"postgres"})), [*COMMON, "request"]),
        (SinkShape(foreach_batch=True, services=frozenset({"directory"}), writes_files=True), [*COMMON, "file"]),
        (UNKNOWN, [phase.name for phase in PHASES]),
    ],
)
def test_a_sink_has_the_phases_of_its_kind(shape: SinkShape, expected: list[str]) -> None:
    found = phases_of(shape)
    assert [phase.name for phase, _ in found] == expected
    assert all(edges == phase.edges for phase, edges in found)


@pytest.mark.parametrize(
    ("text", "services"),
    [
        ("SERVICES = ('kafka', 'postgres')", {"kafka", "postgres"}),
        ("SERVICES = {'kafka', 'postgres'}", {"kafka", "postgres"}),
        ("GUARANTEE, SERVICES = 'exactly-once', ('redis',)", {"redis"}),
        ("SERVICES: tuple[str, ...] = ('postgres',)", {"postgres"}),
        ("GUARANTEE = 'exactly-once'", set()),
        ("SERVICES = ('postgres',)\nSERVICES += ('redis',)", None),
        ("if GUARANTEE := 'exactly-once':\n    SERVICES = ('redis',)", None),
        ("from team import *", None),
        ("SERVICES = tuple(['kafka'])", None),
        ("from team import SERVICES", None),
    ],
)
def test_the_services_of_a_sink_are_read_from_its_text(tmp_path: Path, text: str, services: set[str] | None) -> None:
    (tmp_path / "team.py").write_text("SERVICES = ('kafka',)")
    (tmp_path / "s.py").write_text(f"{text}\ndef write_batch(df, batch_id, target):\n    pass\n")
    found = shape_of(tmp_path / "s.py")
    assert found.services == services
    assert has_phase(found, phase_named("request")) is (services is None or bool(services))
    assert has_phase(found, phase_named("file")) is (services is None)


@pytest.mark.parametrize(
    ("text", "writes"),
    [
        ("SERVICES = ('directory',)", True),
        ("def note(target):\n    return target.checkpoint", True),
        ("SERVICES = ('postgres',)", False),
    ],
)
def test_a_sink_writes_files_that_has_a_directory_or_speaks_of_the_checkpoint(
    tmp_path: Path, text: str, writes: bool
) -> None:
    (tmp_path / "s.py").write_text(f"{text}\ndef write_batch(df, batch_id, target):\n    pass\n")
    assert has_phase(shape_of(tmp_path / "s.py"), phase_named("file")) is writes


def test_names_that_are_not_there_raise_key_errors() -> None:
    with pytest.raises(KeyError):
        phase_named("sink.comit")
    with pytest.raises(KeyError):
        action_named("kil")


DATA_SOURCE = """
from pyspark.sql import datasource

class Ledger(datasource.DataSource):
    def streamWriter(self, schema, overwrite):
        return None

def attach(stream, target):
    stream._spark.dataSource.register(Ledger)
    return stream.format(Ledger.name())
"""

SHAPES = [
    (
        "def write_batch(df, batch_id, target):\n    df.write.format('jdbc').save()\n",
        SinkShape(foreach_batch=True, writes_batches=True),
    ),
    (
        "def write_batch(df, batch_id, target):\n    open('rows', 'w').write(str(df.collect()))\n",
        SinkShape(foreach_batch=True),
    ),
    ("def attach(stream, target):\n    return stream.foreachBatch(print)\n", SinkShape(foreach_batch=True)),
    ("def attach(stream, target):\n    return stream.format('kafka')\n", SinkShape(v2=True, kafka_sink=True)),
    ("def attach(stream, target):\n    return stream.format(source='noop')\n", SinkShape(v2=True)),
    ("def attach(stream, target):\n    return stream.format('parquet')\n", SinkShape(file=True, takes_updates=False)),
    ("def attach(stream, target):\n    return stream.format('delta')\n", SinkShape(takes_updates=False)),
    ("def attach(stream, target):\n    return stream.format('iceberg')\n", SinkShape(v2=True, takes_updates=False)),
    ("def attach(stream, target):\n    return stream.format('acme')\n", SinkShape(unknown=True)),
    ("def attach(stream, target):\n    return stream.format(target.name)\n", SinkShape(unknown=True)),
    ("def attach(stream, target):\n    return stream.toTable('{}'.format('t'))\n", SinkShape(unknown=True)),
    ("def attach(stream, target):\n    return stream.foreach(print)\n", SinkShape(v2=True, python_source=True)),
    (DATA_SOURCE, SinkShape(v2=True, python_source=True, takes_updates=False)),
    (
        "def attach(stream, target):\n    return stream.format('kafka').option('kafka.transactional.id', 'x')\n",
        SinkShape(v2=True, kafka_sink=True, kafka_transactions=True),
    ),
    (
        "def write_batch(df, batch_id, target):\n    producer(transactional_id=str(batch_id))\n",
        SinkShape(foreach_batch=True, kafka_transactions=True),
    ),
    (
        "# transactional_id\ndef write_batch(df, batch_id, target):\n    '''no transactional.id'''\n",
        SinkShape(foreach_batch=True),
    ),
    ("GUARANTEE = 'exactly-once'\n", SinkShape(unknown=True)),
]


@pytest.mark.parametrize(("source", "expected"), SHAPES)
def test_the_shape_of_a_sink_is_read_from_its_text(tmp_path: Path, source: str, expected: SinkShape) -> None:
    path = tmp_path / "my_sink.py"
    path.write_text(source)
    found = shape_of(path)
    assert found.file_name == "my_sink.py"
    assert found == SinkShape(
        foreach_batch=expected.foreach_batch,
        writes_batches=expected.writes_batches,
        v2=expected.v2,
        file=expected.file,
        kafka_sink=expected.kafka_sink,
        unknown=expected.unknown,
        kafka_transactions=expected.kafka_transactions,
        python_source=expected.python_source,
        takes_updates=expected.takes_updates,
        python_file=str(path),
        lines=found.lines,
        modules={"my_sink.py": found.lines},
    )


def test_modules_next_to_the_sink_that_it_imports_belong_to_its_shape(tmp_path: Path) -> None:
    (tmp_path / "common.py").write_text("import more\ndef attach(stream, target):\n    return stream.format('kafka')\n")
    (tmp_path / "more.py").write_text("import common\nOPTIONS = {'transactional.id': 'x'}\n")
    (tmp_path / "other.py").write_text("class Other(DataSource):\n    pass\n")
    (tmp_path / "broken.py").write_text("def (")
    path = tmp_path / "my_sink.py"
    path.write_text("import json\nimport broken\nfrom common import attach\n")
    found = shape_of(path)
    assert (found.v2, found.python_source, found.kafka_transactions) == (True, False, True)
    assert found.lines == frozenset()


def test_modules_in_packages_below_the_sink_belong_to_its_shape_with_their_lines(tmp_path: Path) -> None:
    files = {
        "thin.py": "from team.sub.writer import write_batch\n",
        "team/__init__.py": "from . import names\n",
        "team/names.py": "def table():\n    return 't'\n",
        "team/sub/writer.py": "from ..ledger import *\nfrom .. import late\ndef write_batch(*given):\n    done()\n",
        "team/ledger.py": "import importlib\ndef done(n):\n    importlib.import_module('plugins.one').go()\n",
        "team/late.py": "def late():\n    from ...outside import x\n    import pyspark.sql, team.broken, team.absent\n",
        "team/broken.py": "def (",
        "plugins/one.py": "go = lambda: 1\n",
        "pyspark/sql.py": "def ours():\n    return 0\n",
        "other_sink.py": "def write_batch(df, n, target):\n    return 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path.parent / "outside.py").write_text("x = 1\n")
    found = shape_of(tmp_path / "thin.py")
    assert found.modules == {
        "thin.py": frozenset(),
        "team/__init__.py": frozenset(),
        "team/names.py": {2},
        "team/sub/writer.py": {4},
        "team/ledger.py": {3},
        "team/late.py": {2, 3},
        "plugins/one.py": {1},
    }
    assert (found.foreach_batch, found.has_lines) == (True, True)
    assert "line" in {phase.name for phase, _ in phases_of(found)}


def test_write_batch_may_be_imported_or_assigned(tmp_path: Path) -> None:
    path = tmp_path / "my_sink.py"
    for source in ("from psycopg import connect as write_batch\n", "write_batch = make('postgres')\n"):
        path.write_text(source)
        assert shape_of(path).foreach_batch


def test_a_file_that_does_not_parse_raises_its_syntax_error(tmp_path: Path) -> None:
    path = tmp_path / "my_sink.py"
    path.write_text("def write_batch(:\n")
    with pytest.raises(SyntaxError):
        shape_of(path)
    with pytest.raises(OSError, match="missing"):
        shape_of(tmp_path / "missing.py")


LINES = '''\
"""Docstring."""
import functools                           # 2: at import

LIMIT = 5                                  # 4: at import


class Writer:
    size: int = 3                          # 8: at import

    def write(
        self,
        rows: list[int] = [],              # 12: at import
    ) -> int:
        """Docstring."""
        total = sum(                       # 15
            row                            # 16
            for row in rows                # 17
        )

        # a comment
        def inner() -> int:                # 21
            return total                   # 22

        if total > LIMIT:                  # 24
            return inner()                 # 25
        return 0                           # 26


@functools.cache
def one() -> int: return 1                 # 30


double = lambda x: x * 2                   # 33


async def late() -> None:
    pass                                   # 37


def rows():
    yield 1                                # 41


def nothing():                             # 44: where it returns
    """Docstring."""
'''


def test_lines_are_those_of_functions_and_not_of_the_import() -> None:
    assert lines_of(LINES) == {15, 16, 17, 21, 22, 24, 25, 26, 30, 33, 37, 41, 44}


@pytest.mark.skipif(sys.gettrace() is not None, reason="a debugger or coverage owns the trace function")
def test_every_line_that_a_trace_reports_in_functions_is_known() -> None:
    seen: set[int] = set()

    def local(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line" and frame.f_code.co_flags & 1:
            seen.add(frame.f_lineno)
        return local

    def trace(frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return local if frame.f_code.co_filename == "<traced>" else None

    module: CodeType = compile(LINES, "<traced>", "exec", dont_inherit=True)
    names: dict[str, Any] = {"__name__": "traced"}
    old = sys.gettrace()
    sys.settrace(trace)
    try:
        exec(module, names)
        names["Writer"]().write([1, 2])
        names["Writer"]().write([8, 2])
        names["one"]()
        names["double"](2)
        list(names["rows"]())
        names["nothing"]()
        with pytest.raises(StopIteration):
            names["late"]().send(None)
    finally:
        sys.settrace(old)
    assert seen <= lines_of(LINES)
    assert seen >= {15, 17, 21, 22, 24, 25, 26, 30, 33, 37, 41, 44}


def test_the_steps_that_a_batch_must_have_follow_from_the_kind_of_its_sink() -> None:
    every = {
        ("query.start", "before"),
        *((name, edge) for name in ("batch.offsets", "sink.write", "task.run", "batch.commit") for edge in BOTH),
    }
    commits = {(name, edge) for name in ("task.commit", "sink.commit") for edge in BOTH}
    lines = frozenset({5})
    assert required_steps(UNKNOWN) == required_steps(SinkShape(file=True)) == every
    assert required_steps(SinkShape(v2=True, python_file="a.py", lines=lines)) == every | commits
    assert required_steps(SinkShape(foreach_batch=True, lines=lines)) == every | {("line", None)}
    thin = SinkShape(foreach_batch=True, python_file="a.py", modules={"team/writer.py": lines})
    assert required_steps(thin) == every | {("line", None)}
    source = SinkShape(v2=True, python_source=True, kafka_transactions=True, lines=lines)
    assert required_steps(source) == every | commits | {("line", None)}


BOTH = ("before", "after")


def test_the_tables_of_phases_in_the_docs_are_those_of_the_catalogue() -> None:
    page = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    assert with_tables(page) == page, "make schemas writes them"
    assert with_tables(page.replace("a run of the query begins", "it begins")) == page


def test_each_phase_says_what_the_protocol_requires_after_a_crash_there() -> None:
    for row in render_catalogue():
        assert set(row["after_a_crash"]) == set(row["edges"] or ["before"]), f"{row['name']} requires nothing"


def test_the_table_of_actions_in_the_docs_is_the_catalogue() -> None:
    text = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    for row in render_actions():
        assert f"| {row['meaning']} |" in text
        assert f"`{row['example']}`" in text


def test_every_plan_in_the_docs_is_valid() -> None:
    text = (ROOT / "docs" / "plans.md").read_text(encoding="utf-8")
    plans = [block.split("```")[0] for block in text.split("```plan\n")[1:]]
    assert plans
    for plan in plans:
        assert parse(plan).faults


@pytest.mark.parametrize(
    ("actions", "delays"),
    [
        ("kill(broker) then restart(broker, after=5s)", [5]),
        ("kill(broker)", [0]),
        (
            "kill(broker, which=broker1) then restart(broker, after=5s) then kill(broker, which=broker2) "
            "then restart(broker, after=30s)",
            [5, 30],
        ),
        ("kill(broker, which=broker1) then kill(broker, which=broker2) then restart(broker, after=5s)", [5, 5]),
        ("kill(broker, which=broker1) then restart(broker, after=5s) then kill(broker, which=broker2)", [5, 0]),
        ("kill(broker) then kill(driver) then restart(driver, after=5s)", [0, 5]),
        ("kill(broker) then restart(broker, after=5s) then restart(broker, after=30s)", [30]),
        ("stop(driver) then restart(driver, after=5s)", [5]),
    ],
)
def test_a_death_takes_the_restart_that_is_set_behind_it(actions: str, delays: list[float]) -> None:
    [fault] = parse(f"txn.prepare:after -> {actions}").faults
    deaths = [number for number, action in enumerate(fault.actions) if action.name in ("kill", "stop")]
    assert [restart_delay(fault, number) for number in deaths] == delays
