"""What can be known of a sink from its text alone, without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from types import CodeType

from ..sources import parsed
from .declarations import Execution
from .modules import modules_of
from .protocols import PROTOCOLS
from .statements import bound

V2_FORMATS = frozenset({"kafka", "noop", "console", "memory", "iceberg"})
FILE_FORMATS = frozenset({"parquet", "orc", "json", "csv", "text", "avro"})
V1_FORMATS = frozenset({"delta"})
APPENDED_TO = frozenset({"delta", "iceberg"})
"""Formats of tables that Spark refuses the output mode update for: Delta's DeltaDataSource names append and complete,
and Iceberg's SparkWriteBuilder is no SupportsStreamingUpdateAsAppend."""
STATEFUL_CALLS = frozenset(
    {
        "groupBy", "groupby", "distinct", "drop_duplicates", "dropDuplicates", "dropDuplicatesWithinWatermark",
        "transformWithState", "transformWithStateInPandas",
    }
)  # fmt: skip
"""Methods of a streaming DataFrame for which Spark keeps state. A join of two streams is told by its watermarks: texts
and paths have a join, too, and a stream that is joined with a table keeps none."""

REFUSED: Mapping[Execution, frozenset[str]] = {
    "real-time": frozenset({"udf", "pandas_udf", "arrow_udf", "mapInPandas", "mapInArrow"}),
    "continuous": frozenset({"explode", "explode_outer", "posexplode", "posexplode_outer", "inline", "inline_outer"}),
}
"""Names in the code of a job that Spark does not run so: real-time mode has no operators for functions in Python,
continuous processing none that generate rows."""

TRANSACTIONAL_NAMES = ("transactional_id", "transactional.id")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class SinkShape:
    """The kind of a sink, which decides the phases it has.

    ``foreach_batch``: a function called with each batch; ``writes_batches``: it uses ``df.write``. ``v2``: a DataSource
    V2 writer. ``file``: Spark's own file sink. ``kafka_sink``: Spark's own for Kafka. ``unknown``: static analysis
    cannot tell, so that every phase is allowed. ``kafka_transactions``: the sink uses Kafka transactions.
    ``python_source``: a Python data source or ``foreach``, whose code runs in the tasks. ``takes_updates``: Spark gives
    it the output mode update; files, tables of Delta and Iceberg and Python data sources only get what is final.
    ``python_file`` is the sink's file (path or base name, empty for none), ``lines`` its lines with code of functions.
    ``stateful``: the job that it serves keeps state, see :func:`keeps_state`; ``refused``: see :func:`refused_names`.
    ``execution``: how Spark runs its query. ``services``: those that its SERVICES names, None if they are computed;
    ``own_services``: the user's own that a proxy stands in front of, by their names. ``writes_files``: it has a
    directory of its own, or speaks of the checkpoint. ``modules`` has the lines of every module that the sink imports
    from its directory and the folders below it, its own file included, by their path relative to that directory
    (``team/writer.py``): that is how probes report them.
    """

    foreach_batch: bool = False
    writes_batches: bool = False
    v2: bool = False
    file: bool = False
    kafka_sink: bool = False
    unknown: bool = False
    kafka_transactions: bool = False
    python_source: bool = False
    takes_updates: bool = True
    python_file: str = ""
    stateful: bool = False
    refused: frozenset[str] = frozenset()
    execution: Execution = "micro-batch"
    services: frozenset[str] | None = frozenset()
    own_services: frozenset[str] = frozenset()
    writes_files: bool = False
    lines: frozenset[int] = frozenset()
    modules: Mapping[str, frozenset[int]] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.python_file and self.file_name not in self.modules:
            object.__setattr__(self, "modules", {self.file_name: self.lines, **self.modules})

    @property
    def file_name(self) -> str:
        """The base name of the sink's file: probes report lines by it."""
        return Path(self.python_file).name

    @property
    def has_lines(self) -> bool:
        """Whether the sink or a module of its directory has code of functions."""
        return bool(self.lines) or any(self.modules.values())

    @property
    def spoken_to(self) -> frozenset[str]:
        """The services whose requests can be told: those of its targets that may be among them, and the user's own."""
        return self.own_services | (frozenset(PROTOCOLS) if self.services is None else self.services & set(PROTOCOLS))

    def files_named(self, name: str) -> list[str]:
        """The files that a plan may mean by ``name``, relative to the sink's directory: the one of exactly this path,
        or all whose path ends in it; longer paths may begin with the sink's directory."""
        if name in self.modules:
            return [name]
        directory, wanted = PurePath(self.python_file).parent, PurePath(name).parts
        return [file for file in self.modules if (directory / file).parts[-len(wanted) :] == wanted]


UNKNOWN = SinkShape(unknown=True, services=None, writes_files=True)
"""A sink of which nothing is known: every phase is allowed."""


def shape_of(path: Path) -> SinkShape:
    """The shape of the sink in the file at ``path``, from its text and that of its directory's modules that it imports.

    Raises OSError, SyntaxError, or ValueError (null bytes) where the sink's own file cannot be read or parsed.
    """
    modules = modules_of(path)
    source, tree = modules[path.name]
    nodes = [node for _, module in modules.values() for node in ast.walk(module)]
    names = bound(tree)
    classes = [node for node in nodes if isinstance(node, ast.ClassDef)]
    formats = _formats(nodes)
    calls = _method_names(nodes)
    texts = set(_texts(nodes))
    services = _texts_of(names.get("SERVICES")) if names.keys() & {"SERVICES", "*"} else frozenset[str]()
    foreach_batch = "write_batch" in names or "foreachBatch" in calls
    data_source = any(_is_data_source(node) for node in classes)
    own_source = data_source or "foreach" in calls
    if foreach_batch:
        kind = SinkShape(foreach_batch=True)
    elif own_source:
        kind = SinkShape(v2=True, python_source=True)
    elif formats and formats <= V2_FORMATS:
        kind = SinkShape(v2=True, kafka_sink=formats == {"kafka"})
    elif formats and formats <= FILE_FORMATS:
        kind = SinkShape(file=True)
    elif formats and formats <= V1_FORMATS:
        kind = SinkShape()
    else:
        kind = SinkShape(unknown=True)
    return SinkShape(
        foreach_batch=kind.foreach_batch,
        writes_batches=kind.foreach_batch and _uses_batch_writers(nodes),
        v2=kind.v2,
        file=kind.file,
        kafka_sink=kind.kafka_sink,
        unknown=kind.unknown,
        python_source=kind.python_source,
        takes_updates=foreach_batch or not (data_source or kind.file or formats & APPENDED_TO),
        kafka_transactions=any(name in text for text in texts for name in TRANSACTIONAL_NAMES),
        services=services,
        writes_files=services is None or "directory" in services or "checkpoint" in texts,
        python_file=str(path),
        lines=_lines(source, tree, str(path)),
        modules={name: _lines(text, module, str(path.parent / name)) for name, (text, module) in modules.items()},
    )


def lines_of(source: bytes | str, filename: str = "<sink>") -> frozenset[int]:
    """The lines at which the code of functions and methods begins; lines run at import are none.

    They are the lines that the compiler notes, so those that a trace of this Python version can report.
    """
    return _lines(source, parsed(source, filename=filename), filename)


def modules_used(path: Path) -> list[Path]:
    """The files next to a Python file, and in the folders below, that it imports; itself is none of them.

    Raises SyntaxError, ValueError or OSError for a file that cannot be read.
    """
    return sorted(path.parent / name for name in modules_of(path) if name != path.name)


def hands_over_updates(job: Path) -> bool:
    """Whether a job's code chooses the output mode update: in outputMode(), or for the main() of jobs/passthrough.py.

    Raises as :func:`keeps_state` does.
    """
    tree = parsed(job.read_bytes(), filename=str(job))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _called(node) in ("outputMode", "main")]
    given = [value for call in calls for value in (*call.args, *(keyword.value for keyword in call.keywords))]
    return any(isinstance(value, ast.Constant) and value.value == "update" for value in given)


def _called(call: ast.Call) -> str:
    """The last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def keeps_state(job: Path) -> bool:
    """Whether a job's code, or a module next to it that it imports, calls what Spark keeps state for.

    Raises SyntaxError, ValueError or OSError for a file that cannot be read.
    """
    nodes = [node for _, tree in modules_of(job).values() for node in ast.walk(tree)]
    calls = _method_names(nodes)
    return bool(calls & STATEFUL_CALLS) or {"join", "withWatermark"} <= calls


def refused_names(job: Path, execution: Execution) -> frozenset[str]:
    """What a job's code, or a module next to it that it imports, names and Spark refuses in such a query.

    Raises as :func:`keeps_state` does.
    """
    nodes = [node for _, tree in modules_of(job).values() for node in ast.walk(tree)]
    names = {getattr(node, "id", None) or getattr(node, "attr", None) for node in nodes}
    return REFUSED.get(execution, frozenset()) & names


def _lines(source: bytes | str, tree: ast.Module, filename: str) -> frozenset[int]:
    module = compile(source, filename, "exec", dont_inherit=True)
    starts = {
        (node.name, _first_line(node)): _begin_of_code(node) for node in ast.walk(tree) if isinstance(node, Function)
    }
    return frozenset(
        line
        for code in _functions(module)
        for _, _, line in code.co_lines()
        if line is not None and line >= starts.get((code.co_name, code.co_firstlineno), 1)
    )


def _begin_of_code(function: Function) -> int:
    """One that has nothing but its docstring returns at the line of its ``def``."""
    bare = len(function.body) == 1 and ast.get_docstring(function, clean=False) is not None
    return function.lineno if bare else function.body[0].lineno


def _first_line(function: Function) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The code of every function inside ``code``: class bodies and annotation scopes run when their module does."""
    optimized = 0x1  # inspect.CO_OPTIMIZED: set for functions, not for modules and class bodies
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_flags & optimized and not _is_annotation_scope(constant):
                yield constant
            yield from _functions(constant)


def _is_annotation_scope(code: CodeType) -> bool:
    return code.co_name == "__annotate__" or code.co_name.startswith("<generic parameters of")


def _texts_of(value: ast.expr | None) -> frozenset[str] | None:
    """The texts of a constant tuple, list or set; None of what is none."""
    try:
        found = ast.literal_eval(value) if value else None
    except ValueError:
        return None
    return frozenset(one for one in found if isinstance(one, str)) if isinstance(found, tuple | list | set) else None


def _is_data_source(node: ast.ClassDef) -> bool:
    """Whether a class derives from pyspark.sql.datasource.DataSource, by the name of its base."""
    return any(ast.unparse(base).rpartition(".")[2] == "DataSource" for base in node.bases)


def _uses_batch_writers(nodes: Sequence[ast.AST]) -> bool:
    """Whether there is a ``.write`` that is not called: DataFrame.write is a property, a file's is a method."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any(isinstance(node, ast.Attribute) and node.attr == "write" and id(node) not in called for node in nodes)


def _method_names(nodes: Iterable[ast.AST]) -> set[str]:
    return {node.func.attr for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)}


def _formats(nodes: Iterable[ast.AST]) -> set[str]:
    """The arguments of ``.format(...)``, lower case; ``?`` for one that is no constant. Text formatting is left out."""
    formats: set[str] = set()
    for node in nodes:
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format"):
            continue
        if isinstance(node.func.value, ast.Constant | ast.JoinedStr):
            continue
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        source = arguments[0] if arguments else None
        formats.add(str(source.value).lower() if isinstance(source, ast.Constant) else "?")
    return formats


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Every name, keyword and text constant of the code; comments and docstrings are no code."""
    nodes = list(nodes)
    docstrings = {
        id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in nodes:
        match node:
            case ast.Constant(value=str(text)) if id(node) not in docstrings:
                yield text
            case ast.keyword(arg=str(text)) | ast.Name(id=text) | ast.Attribute(attr=text) | ast.arg(arg=text):
                yield text
